"""A step of a model, its kernels, and what they depend on: `graph` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from wavecast.arch.systems import System
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.collectives import Collective
from wavecast.perfmodel.ops.collectives.libraries import of_engine
from wavecast.perfmodel.ops.elementwise import Elementwise
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.perfmodel.ops.norm import Norm
from wavecast.systems.architecture import ModelArchitecture
from wavecast.systems.engine import Engine
from wavecast.systems.parallel import Parallelism
from wavecast.systems.precision import Precision, WeightFormat

MODULES: Final = ("attention", "projections", "mlp", "experts", "norm", "collective", "head")
"""The parts of a step that times are added up by. Only kernels of `attention` depend on the
context; the others depend on the number of tokens."""


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

    def own(self, step: Step) -> Step:
        """The share of a step whose attention one GPU computes."""
        if not self.parallel.attention_data:
            return step
        ranks = self.parallel.tensor
        return replace(step, decode=-(-step.decode // ranks), chunks=-(-step.chunks // ranks))

    @property
    def cache_dtype(self) -> str:
        """Dtype of keys and values; "" for that of the queries."""
        return "" if self.precision.cache == "bf16" else self.precision.cache

    def projection(self, name: str, rows: int, columns: int, depth: int) -> Node:
        """A product of attention with weights: (rows, depth) by (depth, columns)."""
        product = self.product(rows, columns, depth, self.precision.attention)
        return Node(name, "projections", product)

    def product(self, rows: int, columns: int, depth: int, form: WeightFormat) -> Gemm:
        """A product with weights of a format."""
        op = Gemm(
            m=rows,
            n=columns,
            k=depth,
            dtype=form.activations,
            weight=form.stored,
            scaling=form.scaling if form.scaling != "none" else "",
        )
        library, tile = self.engine.products_library, self.engine.products_tile
        if library and form.scaling == "block":
            op = replace(op, library=library)
            if tile and (columns, depth) not in self.engine.tuned_products:
                op = replace(op, tile=(tile[0], tile[1], tile[2]), splits=1)
        return op

    def rope(self, rows: int, rotated: int, cached: int) -> Iterator[Node]:
        """Rotation of `rotated` elements of a token, and `cached` elements into the cache."""
        columns = {
            "rope, cache write": rotated + cached,
            "rope": rotated,
            "concatenate queries": rotated,
            "concatenate keys": cached,
            "cache write": cached,
        }
        for name in self.engine.rope_kernels:
            yield Node(name, "attention", copy(rows, columns[name]))

    def norm(self, name: str, rows: int, ranks: int) -> Iterator[Node]:
        """The norm before a block of a layer, with what is added before it; none where the
        all-reduce of `ranks` GPUs does it. Several hidden states are mixed into one before it."""
        model = self.architecture
        if model.streams > 1:
            weights = model.streams * (model.streams + 2)
            yield Node(
                "mixing weights", "norm", Gemm(m=rows, n=weights, k=model.mixed, dtype="bf16")
            )
            yield Node("mix streams", "norm", copy(rows, (model.mixed + model.hidden) // 2))
            yield Node(name, "norm", norm(rows, model.hidden, model.norm))
        elif not (self.engine.fused_reduce_norm and ranks > 1):
            yield Node(name, "norm", norm(rows, model.hidden, model.norm, residual=True))

    def head_norm(self, rows: int, kind: str, queries: int, keys: int) -> Iterator[Node]:
        """Norms of `queries` and `keys` elements of a token, over one head or all (`kind`)."""
        names = {
            "": (),
            "head": self.engine.head_norm_kernels,
            "heads": self.engine.heads_norm_kernels,
        }[kind]
        ranks = self.parallel.attention_tensor
        for name in names:
            if name == "reduce squares":
                if ranks > 1:
                    yield self.collective(name, "all_reduce", rows * 2 * 4)
                continue
            columns = queries * ("queries" in name) + keys * ("keys" in name)
            yield Node(name, "attention", copy(rows, columns))

    def add_streams(self, rows: int) -> Iterator[Node]:
        """The result of a block added to all hidden states, where there are several."""
        model = self.architecture
        if model.streams > 1:
            yield Node("add to streams", "norm", copy(rows, model.mixed + model.hidden // 2))

    def quantise(
        self, rows: int, columns: int, form: WeightFormat, *, attention: bool = False
    ) -> Iterator[Node]:
        """The conversion of activations, where the kernel before (`attention`: it is that) does
        not do it."""
        engine = self.engine
        fused = engine.attention_quantisation if attention else engine.fused_quantisation
        if form.quantised_activations and form.scaling not in fused:
            yield Node("quantise", "norm", copy(rows, columns))

    def reduce(self, rows: int) -> Node:
        """The sum of the hidden states of all GPUs of a layer."""
        return self.collective("all_reduce", "all_reduce", rows * self.architecture.hidden * 2)

    def collective(self, name: str, function: str, size: int) -> Node:
        """A collective of `size` bytes among the GPUs of a layer."""
        ranks = self.parallel.tensor
        op = Collective(
            function,
            size,
            ranks,
            group=self.system.group(ranks) if self.system else None,
            library=of_engine(self.engine.name) if function == "all_reduce" else "",
        )
        return Node(name, "collective", op)

    def exchange(self, function: str, size: int, topk: int) -> Node:
        """Tokens of `size` bytes to or from the GPUs of their experts."""
        ranks = self.parallel.expert
        group = self.system.group(ranks) if self.system else None
        op = Collective(function, max(1, size), ranks, group=group, topk=topk)
        return Node(function, "collective", op)


def attention_problems(step: Step) -> Iterator[tuple[str, int, int, int, bool]]:
    """Name, queries per sequence, keys, sequences and causality of the parts of attention."""
    if step.decode:
        yield "decode attention", 1, max(1, step.context), step.decode, False
    if step.chunks:
        length = step.tokens + step.before
        yield "prefill attention", step.tokens, length, step.chunks, True


def norm(rows: int, columns: int, function: str = "rms_norm", *, residual: bool = False) -> Norm:
    """A norm of rows, with the addition before it where it has one."""
    return Norm(function, rows, columns, "bf16", residual=residual)


def copy(rows: int, columns: int) -> Elementwise:
    """A kernel that reads and writes rows of 16 bits."""
    return Elementwise.of("copy", (rows, columns), "bf16")


__all__ = ["MODULES", "Builder", "Node", "Step", "attention_problems", "copy", "norm"]
