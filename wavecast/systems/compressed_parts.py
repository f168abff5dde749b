"""The kernels of compressed attention (DeepSeek-V4) in one step."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from wavecast.perfmodel.ops.attention import BEST
from wavecast.perfmodel.ops.attention import Attention as AttentionOp
from wavecast.systems.architecture import CompressedAttention
from wavecast.systems.latent_parts import index_nodes
from wavecast.systems.parts import Builder, Node, Step, attention_problems, copy, norm
from wavecast.systems.windows import block_of


def compressed_nodes(
    builder: Builder, attention: CompressedAttention, step: Step
) -> Generator[Node, None, int]:
    """Projections, the compressor, and attention to the window and to compressed entries.

    Entries that an indexer chose are read by every query by itself; others by blocks of queries.
    """
    tensor, rows, hidden = builder.parallel.attention_tensor, step.rows, builder.architecture.hidden
    heads, head = attention.heads // tensor, attention.head_dim
    groups = attention.groups // tensor
    yield builder.projection("qkv_a_proj", rows, attention.q_rank + head, hidden)
    yield Node("q, kv norm", "norm", norm(rows, attention.q_rank + head))
    yield builder.projection("q_b_proj", rows, heads * head, attention.q_rank)
    yield from builder.rope(rows, heads * head, head)
    if attention.rate:
        width = attention.compressor_width
        yield builder.projection("compress_proj", rows, width, hidden)
        yield Node("compress", "attention", copy(rows, width))
    if attention.indexer:
        yield from index_nodes(
            builder, attention.indexer, step, rank=attention.q_rank,
            width=attention.index_width, rate=attention.rate,
        )  # fmt: skip
    for name, queries, length, batch, causal in attention_problems(step):
        entries = length // attention.rate if attention.rate else 0
        if attention.indexer:
            entries = min(entries, attention.indexer.topk)
        op = AttentionOp(
            batch=batch,
            heads=heads if causal else heads * step.queries,
            kv_heads=1,
            seq_q=1,
            seq_k=min(length, attention.window) + entries,
            head=head,
            head_v=head,
            dtype="bf16",
            kv_dtype=builder.cache_dtype,
            latent=True,
            library=BEST,
        )
        if causal and attention.indexer:
            op = replace(op, batch=batch * queries)
        elif causal:
            block = block_of(queries, attention.window)
            keys = min(length, attention.window + block) + entries
            op = replace(op, batch=batch * -(-queries // block), seq_q=block, seq_k=keys)
        yield Node(name, "attention", op)
    depth = heads * head // groups
    product = builder.product(rows, attention.out_rank, depth, builder.precision.attention)
    yield Node("o_a_proj", "projections", replace(product, batch=groups))
    return groups * attention.out_rank


__all__ = ["compressed_nodes"]
