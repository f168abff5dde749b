"""The kernels of one step of a model on one GPU, as an engine launches them.

A step computes some sequences by one token each (decode) and some chunks of prompts (prefill).
`layer_nodes` and `head_nodes` give its kernels in order; a node is one operation of `model.ops`
with the name of the module it belongs to.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Final

from wavecast.arch.systems import System
from wavecast.model.ops.attention import BEST
from wavecast.model.ops.attention import Attention as AttentionOp
from wavecast.model.ops.base import Op
from wavecast.model.ops.collectives import Collective
from wavecast.model.ops.collectives.libraries import of_engine
from wavecast.model.ops.elementwise import Elementwise
from wavecast.model.ops.gemm import Gemm
from wavecast.model.ops.moe import FusedMoe
from wavecast.model.ops.norm import Norm
from wavecast.systems.architecture import (
    DenseMlp,
    ExpertMlp,
    GroupedQueryAttention,
    LatentAttention,
    Layer,
    LinearAttention,
    ModelArchitecture,
)
from wavecast.systems.engine import Engine
from wavecast.systems.parallel import Parallelism
from wavecast.systems.precision import Precision, WeightFormat

MODULES: Final = ("attention", "projections", "mlp", "experts", "norm", "collective", "head")
"""The parts of a step that times are added up by. Only kernels of `attention` depend on the
context; the others depend on the number of tokens."""
_CHUNK: Final = 64
"""Tokens that chunked linear attention multiplies at once (flash-linear-attention, vLLM)."""
_INDEX_DTYPE: Final = "fp8"


@dataclass(frozen=True, slots=True)
class Step:
    """What one step computes: `decode` sequences with `context` tokens each so far, and `chunks`
    pieces of prompts of `tokens` tokens each, after `before` tokens that are already cached. A
    decoding sequence computes `queries` tokens: one, and those that speculation drafted."""

    decode: int = 0
    context: int = 0
    chunks: int = 0
    tokens: int = 0
    before: int = 0
    queries: int = 1

    @property
    def rows(self) -> int:
        """Tokens of the step."""
        return self.decode * self.queries + self.chunks * self.tokens

    @property
    def sequences(self) -> int:
        """Sequences whose next token is computed."""
        return self.decode + self.chunks

    @property
    def sampled(self) -> int:
        """Tokens that logits are computed for."""
        return self.decode * self.queries + self.chunks


@dataclass(frozen=True, slots=True)
class Node:
    """A kernel: `op` of `module`, once per layer."""

    name: str
    module: str
    op: Op


@dataclass(frozen=True, slots=True)
class Builder:
    """What the kernels of a step depend on in addition to the step. Without a `system`, the GPUs of
    a collective are of one node."""

    architecture: ModelArchitecture
    precision: Precision
    parallel: Parallelism
    engine: Engine
    system: System | None = None

    def layer_nodes(self, layer: Layer, step: Step) -> Iterator[Node]:
        """The kernels of a layer."""
        yield from self._attention_part(layer, step)
        yield from self._mlp_part(layer, step)

    def head_nodes(self, step: Step) -> Iterator[Node]:
        """The last norm, the output projection, and the choice of tokens."""
        hidden, tensor = self.architecture.hidden, self.parallel.tensor
        part = -(-self.architecture.vocabulary // tensor)
        sequences = max(1, step.sampled)
        yield Node("norm", "norm", _norm(sequences, hidden))
        yield Node("lm_head", "head", self._product(sequences, part, hidden, self.precision.head))
        if tensor > 1:
            yield self._collective("gather logits", "all_gather", sequences * part * tensor * 2)
        logits = (sequences, self.architecture.vocabulary)
        yield Node("sample", "head", Elementwise.of("scale", logits, "fp32"))

    # --- attention -----------------------------------------------------------------------------

    def _attention_part(self, layer: Layer, step: Step) -> Iterator[Node]:
        step = self._own(step)
        rows, hidden = step.rows, self.architecture.hidden
        if not (self.engine.fused_reduce_norm and self.parallel.tensor > 1):
            yield Node("input_norm", "norm", _norm(rows, hidden, residual=True))
        match layer.attention:
            case GroupedQueryAttention() as attention:
                out = yield from self._grouped(attention, step)
            case LatentAttention() as attention:
                out = yield from self._latent(attention, step)
            case LinearAttention() as attention:
                out = yield from self._linear(attention, step)
        yield from self._quantise(rows, out, self.precision.attention)
        yield self._projection("o_proj", rows, hidden, out)
        if self.parallel.attention_tensor > 1:
            yield self._reduce(rows)

    def _grouped(self, attention: GroupedQueryAttention, step: Step) -> Generator[Node, None, int]:
        tensor, rows = self.parallel.attention_tensor, step.rows
        heads, keys = attention.heads // tensor, max(1, attention.kv_heads // tensor)
        head = attention.head_dim
        width = (heads * (1 + attention.gated) + 2 * keys) * head
        yield self._projection("qkv_proj", rows, width, self.architecture.hidden)
        yield Node("rope, cache write", "attention", _copy(rows, (heads + 2 * keys) * head))
        for name, queries, length, batch, causal in _parts(step):
            if attention.window:
                length = min(length, attention.window + queries - 1)
            yield Node(
                name,
                "attention",
                AttentionOp(
                    batch=batch,
                    # Drafted tokens share the keys of their sequence, as heads of a group do.
                    heads=heads if causal else heads * step.queries,
                    kv_heads=keys,
                    seq_q=queries,
                    seq_k=max(queries, length),
                    head=head,
                    head_v=head,
                    dtype="bf16",
                    kv_dtype=self._cache_dtype,
                    causal=causal,
                    library=BEST,
                ),
            )
        if attention.gated:
            yield Node("gate", "attention", Elementwise.of("mul", (rows, heads * head), "bf16"))
        return heads * head

    def _latent(self, attention: LatentAttention, step: Step) -> Generator[Node, None, int]:
        tensor, rows, hidden = self.parallel.attention_tensor, step.rows, self.architecture.hidden
        heads, query = attention.heads // tensor, attention.nope + attention.rope
        shared = attention.kv_rank + attention.rope
        if attention.q_rank:
            yield self._projection("qkv_a_proj", rows, attention.q_rank + shared, hidden)
            yield Node("q, kv norm", "norm", _norm(rows, attention.q_rank + shared))
            yield self._projection("q_b_proj", rows, heads * query, attention.q_rank)
        else:
            yield self._projection("q_proj", rows, heads * query, hidden)
            yield self._projection("kv_a_proj", rows, shared, hidden)
        yield Node("rope, cache write", "attention", _copy(rows, heads * attention.rope + shared))
        yield from self._indexer(attention, step)
        for name, queries, length, batch, causal in _parts(step):
            absorbed = not causal or attention.indexer is not None
            if not absorbed:
                width = heads * (attention.nope + attention.value)
                product = self._product(
                    batch * length, width, attention.kv_rank, self.precision.attention
                )
                yield Node("kv_b_proj", "attention", product)
                yield Node(
                    name,
                    "attention",
                    AttentionOp(
                        batch=batch,
                        heads=heads,
                        kv_heads=heads,
                        seq_q=queries,
                        seq_k=length,
                        head=query,
                        head_v=attention.value,
                        dtype="bf16",
                        causal=True,
                        library=BEST,
                    ),
                )
                continue
            if attention.indexer:
                length = min(length, attention.indexer.topk)
            tokens = batch * (queries if causal else step.queries)
            yield self._absorb("absorb keys", heads, tokens, attention.kv_rank, attention.nope)
            yield Node(
                name,
                "attention",
                AttentionOp(
                    batch=tokens if causal else batch,
                    heads=heads if causal else heads * step.queries,
                    kv_heads=1,
                    seq_q=1,
                    seq_k=length,
                    head=shared,
                    head_v=attention.kv_rank,
                    dtype="bf16",
                    kv_dtype=self._cache_dtype,
                    latent=True,
                    library=BEST,
                ),
            )
            yield self._absorb("expand values", heads, tokens, attention.value, attention.kv_rank)
        return heads * attention.value

    def _indexer(self, attention: LatentAttention, step: Step) -> Iterator[Node]:
        """Scores of all keys, and the choice of the best; every GPU does it for all heads."""
        if attention.indexer is None:
            return
        index, rows = attention.indexer, step.rows
        rank = attention.q_rank or self.architecture.hidden
        yield self._projection("index_q_proj", rows, index.heads * index.dim, rank)
        yield self._projection("index_k_proj", rows, index.dim, self.architecture.hidden)
        yield self._projection("index_weights_proj", rows, index.heads, self.architecture.hidden)
        yield Node("index rope, quantise", "attention", _copy(rows, (index.heads + 1) * index.dim))
        for name, queries, length, batch, causal in _parts(step):
            yield Node(
                f"index {name}",
                "attention",
                Gemm(
                    batch=batch,
                    m=(queries if causal else step.queries) * index.heads,
                    n=length,
                    k=index.dim,
                    dtype=_INDEX_DTYPE if self.precision.attention.activations == "fp8" else "bf16",
                ),
            )
            yield Node(
                "choose keys",
                "attention",
                Elementwise.of("scale", (batch * queries, length), "fp32"),
            )

    def _linear(self, attention: LinearAttention, step: Step) -> Generator[Node, None, int]:
        tensor, rows = self.parallel.attention_tensor, step.rows
        keys = max(1, attention.key_heads // tensor) * attention.key_dim
        heads = attention.value_heads // tensor
        values = heads * attention.value_dim
        width = 2 * keys + 2 * values + 2 * heads
        yield self._projection("in_proj", rows, width, self.architecture.hidden)
        yield Node("convolution", "attention", _copy(rows, 2 * keys + values))
        yield Node("decay, normalise", "attention", _copy(rows, 2 * keys + 2 * heads))
        if step.decode:
            updates = step.decode * step.queries
            state = (updates * heads, attention.key_dim * attention.value_dim)
            yield Node("recurrence", "attention", Elementwise.of("scale", state, "fp32"))
        if step.chunks:
            yield Node(
                "chunked recurrence",
                "attention",
                Gemm(
                    batch=step.chunks * heads,
                    m=step.tokens,
                    n=attention.value_dim,
                    k=2 * attention.key_dim + 2 * _CHUNK,
                    dtype="bf16",
                ),
            )
        yield Node("gated norm", "norm", _norm(rows * heads, attention.value_dim))
        return values

    # --- multilayer perceptron -----------------------------------------------------------------

    def _mlp_part(self, layer: Layer, step: Step) -> Iterator[Node]:
        rows, hidden, tensor = step.rows, self.architecture.hidden, self.parallel.tensor
        if not (self.engine.fused_reduce_norm and self.parallel.attention_tensor > 1):
            own = self._own(step).rows
            yield Node("post_norm", "norm", _norm(own, hidden, residual=True))
        if self.parallel.wide and isinstance(layer.mlp, ExpertMlp):
            yield from self._dispatched(layer.mlp, step)
            return
        separate = self.parallel.attention_data and tensor > 1
        if separate:
            yield self._collective("gather tokens", "all_gather", rows * hidden * 2)
        if isinstance(layer.mlp, DenseMlp):
            yield from self._dense("", rows, layer.mlp.inter // tensor)
        else:
            yield from self._experts(layer.mlp, rows)
        if separate:
            yield self._collective("scatter tokens", "reduce_scatter", rows * hidden * 2)
        elif tensor > 1:
            yield self._reduce(rows)

    def _dense(self, prefix: str, rows: int, inter: int) -> Iterator[Node]:
        hidden, narrow = self.architecture.hidden, self.precision.dense
        yield Node(f"{prefix}gate_up_proj", "mlp", self._product(rows, 2 * inter, hidden, narrow))
        yield Node(f"{prefix}activation", "mlp", Elementwise.of("silu_mul", (rows, inter), "bf16"))
        yield Node(f"{prefix}down_proj", "mlp", self._product(rows, hidden, inter, narrow))

    def _experts(self, mlp: ExpertMlp, rows: int) -> Iterator[Node]:
        tensor, ranks = self.parallel.tensor, self.parallel.expert
        yield from self._routed(mlp, rows, max(1, mlp.shared // tensor) if mlp.shared else 0)
        if ranks == 1:
            yield self._multiplied(rows, mlp.inter // tensor, mlp.experts, mlp.topk)
        else:
            yield self._own_experts(mlp, rows * mlp.topk / ranks)

    def _dispatched(self, mlp: ExpertMlp, step: Step) -> Iterator[Node]:
        """Experts on the GPUs of several replicas: each sends its tokens to those of their experts
        and adds what comes back. Shared experts are on every GPU."""
        hidden, rows = self.architecture.hidden, step.rows
        if self.parallel.attention_data:
            rows = self._own(step).rows
        elif self.parallel.tensor > 1:
            rows = -(-rows // self.parallel.tensor)
        yield from self._routed(mlp, rows, mlp.shared)
        narrow = self.precision.experts.quantised_activations
        size = rows * hidden
        yield self._exchange("dispatch", size * (1 if narrow else 2), mlp.topk)
        yield self._own_experts(mlp, rows * mlp.topk)
        yield self._exchange("combine", 2 * size, mlp.topk)
        if self.parallel.tensor > 1 and not self.parallel.attention_data:
            whole = rows * self.parallel.tensor * hidden * 2
            yield self._collective("gather tokens", "all_gather", whole)

    def _routed(self, mlp: ExpertMlp, rows: int, shared: int) -> Iterator[Node]:
        """The choice of experts for `rows` tokens, and `shared` units of the experts of all."""
        product = self._product(rows, mlp.experts, self.architecture.hidden, self.precision.head)
        yield Node("router", "experts", product)
        yield Node("topk", "experts", Elementwise.of("scale", (rows, mlp.experts), "fp32"))
        if shared:
            yield from self._dense("shared ", rows, shared)
            size = (rows, self.architecture.hidden)
            yield Node("add shared", "experts", Elementwise.of("add", size, "bf16"))

    def _own_experts(self, mlp: ExpertMlp, mean: float) -> Node:
        """The experts of the busiest GPU, where a GPU gets `mean` pairs of token and expert."""
        ranks = self.parallel.expert
        pairs = mean * self.parallel.load.busiest(mlp.experts, ranks)
        topk = max(1, mlp.topk // ranks)
        return self._multiplied(max(1, round(pairs / topk)), mlp.inter, mlp.experts // ranks, topk)

    def _multiplied(self, tokens: int, inter: int, experts: int, topk: int) -> Node:
        form = self.precision.experts
        scaling = form.scaling if form.scaling in ("token", "block", "mx") else ""
        return Node(
            "experts",
            "experts",
            FusedMoe(
                tokens,
                self.architecture.hidden,
                inter,
                experts,
                min(topk, experts),
                dtype=form.activations,
                weights=form.stored,
                scaling=scaling,
            ),
        )

    # --- parts ---------------------------------------------------------------------------------

    def _own(self, step: Step) -> Step:
        """The share of a step whose attention one GPU computes."""
        if not self.parallel.attention_data:
            return step
        ranks = self.parallel.tensor
        return replace(step, decode=-(-step.decode // ranks), chunks=-(-step.chunks // ranks))

    @property
    def _cache_dtype(self) -> str:
        return "" if self.precision.cache == "bf16" else self.precision.cache

    def _projection(self, name: str, rows: int, columns: int, depth: int) -> Node:
        product = self._product(rows, columns, depth, self.precision.attention)
        return Node(name, "projections", product)

    def _product(self, rows: int, columns: int, depth: int, form: WeightFormat) -> Gemm:
        return Gemm(
            m=rows,
            n=columns,
            k=depth,
            dtype=form.activations,
            weight=form.stored,
            scaling=form.scaling if form.scaling != "none" else "",
        )

    def _absorb(self, name: str, heads: int, rows: int, columns: int, depth: int) -> Node:
        product = Gemm(batch=heads, m=rows, n=columns, k=depth, dtype="bf16")
        return Node(name, "attention", product)

    def _quantise(self, rows: int, columns: int, form: WeightFormat) -> Iterator[Node]:
        if form.quantised_activations and not self.engine.fused_quantisation:
            yield Node("quantise", "norm", _copy(rows, columns))

    def _reduce(self, rows: int) -> Node:
        return self._collective("all_reduce", "all_reduce", rows * self.architecture.hidden * 2)

    def _collective(self, name: str, function: str, size: int) -> Node:
        ranks = self.parallel.tensor
        op = Collective(
            function,
            size,
            ranks,
            group=self.system.group(ranks) if self.system else None,
            library=of_engine(self.engine.name) if function == "all_reduce" else "",
        )
        return Node(name, "collective", op)

    def _exchange(self, function: str, size: int, topk: int) -> Node:
        ranks = self.parallel.expert
        group = self.system.group(ranks) if self.system else None
        op = Collective(function, max(1, size), ranks, group=group, topk=topk)
        return Node(function, "collective", op)


def _parts(step: Step) -> Iterator[tuple[str, int, int, int, bool]]:
    """Name, queries per sequence, keys, sequences and causality of the parts of attention."""
    if step.decode:
        yield "decode attention", 1, max(1, step.context), step.decode, False
    if step.chunks:
        length = step.tokens + step.before
        yield "prefill attention", step.tokens, length, step.chunks, True


def _norm(rows: int, columns: int, *, residual: bool = False) -> Norm:
    return Norm("rms_norm", rows, columns, "bf16", residual=residual)


def _copy(rows: int, columns: int) -> Elementwise:
    return Elementwise.of("copy", (rows, columns), "bf16")


__all__ = ["MODULES", "Builder", "Node", "Step"]
