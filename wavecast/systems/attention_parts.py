"""The kernels of attention in one step: projections, cache, grouped-query and linear attention."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from wavecast.perfmodel.ops.attention import Attention as AttentionOp
from wavecast.perfmodel.ops.elementwise import Elementwise
from wavecast.perfmodel.ops.gemm import Gemm
from wavecast.systems import windows
from wavecast.systems.architecture import (
    CompressedAttention,
    GroupedQueryAttention,
    LatentAttention,
    Layer,
    LinearAttention,
)
from wavecast.systems.compressed_parts import compressed_nodes
from wavecast.systems.latent_parts import latent_nodes
from wavecast.systems.parts import Builder, Node, Step, attention_problems, copy, norm

_CHUNK: Final = 64
"""Tokens that chunked linear attention multiplies at once (flash-linear-attention, vLLM)."""
_GATES: Final = "gates_proj"
"""The product that makes the gates of linear attention, where it is apart; it has 16 bits."""


def attention_nodes(builder: Builder, layer: Layer, step: Step) -> Iterator[Node]:
    """The norm before attention, attention, and its output projection."""
    step = builder.own(step)
    rows, hidden = step.rows, builder.architecture.hidden
    yield from builder.norm("input_norm", rows, builder.parallel.tensor)
    yield from builder.quantise(rows, hidden, builder.precision.attention)
    match layer.attention:
        case GroupedQueryAttention() as attention:
            out = yield from _grouped_query(builder, attention, step)
        case LatentAttention() as attention:
            out = yield from latent_nodes(builder, attention, step)
        case LinearAttention() as attention:
            out = yield from _linear(builder, attention, step)
        case CompressedAttention() as attention:
            out = yield from compressed_nodes(builder, attention, step)
    match layer.attention:
        case LinearAttention() | GroupedQueryAttention(gated=True):
            attended = False
        case _:
            attended = True
    yield from builder.quantise(rows, out, builder.precision.attention, attention=attended)
    yield builder.projection("o_proj", rows, hidden, out)
    if builder.parallel.attention_tensor > 1 and not layer.parallel:
        yield builder.reduce(rows)
    yield from builder.add_streams(rows)


def _grouped_query(
    builder: Builder, attention: GroupedQueryAttention, step: Step
) -> Generator[Node, None, int]:
    tensor, rows = builder.parallel.attention_tensor, step.rows
    heads, keys = attention.heads // tensor, max(1, attention.kv_heads // tensor)
    head = attention.head_dim
    width = (heads * (1 + attention.gated) + 2 * keys) * head
    yield builder.projection("qkv_proj", rows, width, builder.architecture.hidden)
    yield from builder.head_norm(rows, attention.head_norm, heads * head, keys * head)
    if attention.rotary:
        yield from builder.rope(rows, (heads + keys) * head, keys * head)
    else:
        yield Node("cache write", "attention", copy(rows, 2 * keys * head))
    for name, queries, length, batch, causal in attention_problems(step):
        op = AttentionOp(
            batch=batch,
            # Drafted tokens share the keys of their sequence, as heads of a group do.
            heads=heads if causal else heads * step.queries,
            kv_heads=keys,
            seq_q=queries,
            seq_k=max(queries, length),
            head=head,
            head_v=head,
            dtype="bf16",
            kv_dtype=builder.cache_dtype,
            causal=causal,
            library=builder.engine.attention_prefill if causal else builder.engine.attention_decode,
        )
        yield Node(name, "attention", windows.of_layer(op, attention))
    if attention.gated:
        yield Node("gate", "attention", Elementwise.of("mul", (rows, heads * head), "bf16"))
    return heads * head


def _linear(builder: Builder, attention: LinearAttention, step: Step) -> Generator[Node, None, int]:
    tensor, rows = builder.parallel.attention_tensor, step.rows
    keys = max(1, attention.key_heads // tensor) * attention.key_dim
    heads = attention.value_heads // tensor
    values = heads * attention.value_dim
    hidden, gates, engine = builder.architecture.hidden, 2 * heads, builder.engine
    separate = _GATES in engine.linear_kernels
    width = 2 * keys + 2 * values + (0 if separate else gates)
    yield builder.projection("in_proj", rows, width, hidden)
    if separate:
        yield Node(_GATES, "projections", Gemm(m=rows, n=gates, k=hidden, dtype="bf16"))
    yield Node("convolution", "attention", copy(rows, 2 * keys + values))
    columns = {
        "order": 2 * keys + 2 * values + gates,
        "copy queries": keys,
        "copy keys": keys,
        "copy values": values,
        "decay": gates,
        "clear result": values,
        "copy result": values,
    }
    for name in engine.linear_kernels:
        if name != _GATES:
            yield Node(name, "attention", copy(rows, columns[name]))
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
    yield Node("gated norm", "norm", norm(rows * heads, attention.value_dim))
    return values


__all__ = ["attention_nodes"]
