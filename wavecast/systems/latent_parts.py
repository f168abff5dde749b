"""The kernels of latent attention in one step, with its indexer."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from typing import Final

from wavecast.perfmodel.ops.attention import Attention as AttentionOp
from wavecast.perfmodel.ops.elementwise import Elementwise
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.systems.architecture import LatentAttention, SparseIndexer
from wavecast.systems.parts import Builder, Node, Step, attention_problems, copy, norm

_INDEX_DTYPE: Final = "fp8"


def latent_nodes(
    builder: Builder, attention: LatentAttention, step: Step
) -> Generator[Node, None, int]:
    tensor, rows, hidden = builder.parallel.attention_tensor, step.rows, builder.architecture.hidden
    heads, query = attention.heads // tensor, attention.nope + attention.rope
    shared = attention.kv_rank + attention.rope
    if attention.q_rank:
        yield builder.projection("qkv_a_proj", rows, attention.q_rank + shared, hidden)
        yield Node("q, kv norm", "norm", norm(rows, attention.q_rank + shared))
        yield from builder.quantise(rows, attention.q_rank, builder.precision.attention)
        yield builder.projection("q_b_proj", rows, heads * query, attention.q_rank)
    else:
        yield builder.projection("q_proj", rows, heads * query, hidden)
        yield builder.projection("kv_a_proj", rows, shared, hidden)
    yield from builder.rope(rows, heads * attention.rope, shared)
    if attention.indexer and not attention.indexer.shared:
        rank = attention.q_rank or hidden
        yield from index_nodes(
            builder, attention.indexer, step, rank=rank, width=attention.indexer.dim
        )
    for name, queries, length, batch, causal in attention_problems(step):
        absorbed = not causal or attention.indexer is not None
        if not absorbed:
            width = heads * (attention.nope + attention.value)
            product = builder.product(
                batch * length, width, attention.kv_rank, builder.precision.attention
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
                    library=builder.engine.latent_prefill,
                ),
            )
            continue
        if attention.indexer:
            length = min(length, attention.indexer.topk)
        tokens = batch * (queries if causal else step.queries)
        absorb = partial(_absorb, builder, heads=heads, rows=tokens)
        yield from absorb("absorb keys", columns=attention.kv_rank, depth=attention.nope)
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
                kv_dtype=builder.cache_dtype,
                latent=True,
                library=builder.engine.sparse_attention
                if attention.indexer
                else builder.engine.latent_decode,
            ),
        )
        yield from absorb("expand values", columns=attention.value, depth=attention.kv_rank)
    return heads * attention.value


def index_nodes(
    builder: Builder, index: SparseIndexer, step: Step, *, rank: int, width: int, rate: int = 1
) -> Iterator[Node]:
    """Scores of all keys, and the choice of the best; every GPU does it for all heads. Queries come
    from `rank` elements, a key from a projection to `width`; `rate` tokens share a key."""
    rows, hidden = step.rows, builder.architecture.hidden
    yield builder.projection("index_q_proj", rows, index.heads * index.dim, rank)
    yield builder.projection("index_k_proj", rows, width, hidden)
    # Checkpoints and engines (vLLM, SGLang) keep `weights_proj` in 16 bits.
    weights = builder.product(rows, index.heads, hidden, builder.precision.head)
    yield Node("index_weights_proj", "projections", weights)
    columns = {"queries": index.heads * index.dim, "keys": width, "weights": index.heads}
    for name in builder.engine.index_kernels:
        size = sum(count for what, count in columns.items() if what in name)
        yield Node(f"index {name}", "attention", copy(rows, size))
    for name, queries, length, batch, causal in attention_problems(step):
        keys = max(1, length // rate)
        yield Node(
            f"index {name}",
            "attention",
            Gemm(
                batch=batch,
                m=(queries if causal else step.queries) * index.heads,
                n=keys,
                k=index.dim,
                dtype=_INDEX_DTYPE if builder.precision.attention.activations == "fp8" else "bf16",
            ),
        )
        yield Node(
            "choose keys", "attention", Elementwise.of("scale", (batch * queries, keys), "fp32")
        )


def _absorb(
    builder: Builder, name: str, heads: int, rows: int, columns: int, depth: int
) -> Iterator[Node]:
    """A product with a part of the weights of keys and values, by heads."""
    plain = builder.engine.plain_absorb
    if plain:
        stored = builder.precision.attention.stored != "bf16"
        for what in ("convert", "scale")[not stored :]:
            yield Node(f"{what} for {name}", "attention", copy(heads * columns, depth))
    product = Gemm(batch=heads, m=rows, n=columns, k=depth, dtype="bf16")
    yield Node(name, "attention", product)
    if plain:
        yield Node(f"transpose of {name}", "attention", copy(rows, heads * columns))


__all__ = ["index_nodes", "latent_nodes"]
