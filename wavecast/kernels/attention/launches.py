"""The launches of a call."""

from typing import Any

import torch
from torch import Tensor

from wavecast.kernels import choice, gpu
from wavecast.kernels.attention import specs
from wavecast.kernels.attention.call import Call
from wavecast.kernels.strides import adjacent, contiguous

_PEAK = {torch.float8_e4m3fn: 8, torch.float8_e4m3fnuz: 7}
"""The exponent of the greatest power of two in a format: what the greatest probability becomes."""


def forward(call: Call) -> tuple[Tensor, Tensor]:
    """(out, lse). Raises ArgumentError."""
    call.check()
    empty = torch.zeros if call.packed else torch.empty
    out = empty(call.out_shape, dtype=call.out_dtype, device=call.q.device)
    lse = empty(call.lse_shape, dtype=torch.float32, device=call.q.device)
    if not lse.numel() or not call.batch or not call.queries:
        return out, lse
    q, k, v = (adjacent(tensor) for tensor in (call.q, call.k, call.v))
    rope: dict[str, Any] = {"q_rope": None, "k_rope": None}
    rope_strides = {"q_rope_row": 0, "q_rope_head": 0, "k_rope_row": 0}
    if call.rope is not None:
        q_rope, k_rope = adjacent(call.rope[0]), adjacent(call.rope[1])
        rope = {"q_rope": q_rope, "k_rope": k_rope}
        rope_strides = dict(
            zip(rope_strides, (*q_rope.stride()[:2], k_rope.stride(0)), strict=True)
        )
    scales: dict[str, Any] = {"q_scale": None, "k_scale": None, "v_scale": None}
    scale_strides = 0, 0
    native = False
    if call.descales is not None:
        scales = dict(zip(scales, (x.contiguous() for x in call.descales), strict=True))
        scale_strides = (0, 0) if call.descales[0].numel() == 1 else (call.kv_heads, 1)
        formats = gpu.launching().capabilities.matrix_fp8
        native = str(call.q.dtype).removeprefix("torch.") in formats
    choice.run(
        specs.FORWARD, call.problem(), **call.arguments(q=q, k=k, v=v, out=out), **rope,
        **rope_strides, **scales, lse=lse, sinks=contiguous(call.options.sinks),
        scale_batch=scale_strides[0], scale_head=scale_strides[1], ROPE=call.rope_size,
        DIM_R=specs.padded(call.rope_size), SINKS=call.options.sinks is not None,
        SCALED=call.descales is not None, WIDEN=call.descales is not None and not native,
        PEAK=_PEAK[call.q.dtype] if native else 0,
    )  # fmt: skip
    return out, lse


def backward(
    call: Call, dout: Tensor, dlse: Tensor | None, out: Tensor, lse: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(dq, dk, dv, dsinks). Raises ArgumentError."""
    call.check()
    empty = torch.empty_like
    if call.packed or not (call.q.numel() and call.k.numel()):
        empty = torch.zeros_like
    dq, dk, dv = (empty(x, memory_format=torch.contiguous_format) for x in (call.q, call.k, call.v))
    delta = _delta(call, dout.contiguous(), dlse, out.contiguous())
    if dq.numel() and dk.numel() and call.queries and call.keys:
        q, k, v = (adjacent(tensor) for tensor in (call.q, call.k, call.v))
        read = {"q": q, "k": k, "v": v, "dout": adjacent(dout)}
        rest = {"lse": lse.contiguous(), "delta": delta}
        over_queries = call.arguments(**read, dk=dk, dv=dv) | rest
        choice.run(specs.BACKWARD_KV, call.problem(), **over_queries)
        choice.run(specs.BACKWARD_Q, call.problem(), **call.arguments(**read, dq=dq), **rest)
    sinks = call.options.sinks
    if sinks is None:
        return dq, dk, dv, call.q.new_empty(0)
    finite = lse.masked_fill(lse == -torch.inf, 0.0)  # of rows that see nothing, without a sink
    share = torch.exp(sinks.float()[:, None] - finite) * delta
    dims = (1,) if call.packed else (0, 2)
    return dq, dk, dv, -share.sum(dims).to(sinks.dtype)


def _delta(call: Call, dout: Tensor, dlse: Tensor | None, out: Tensor) -> Tensor:
    """rowsum(dout · out) - dlse in the shape of lse."""
    delta = torch.empty(call.lse_shape, dtype=torch.float32, device=out.device)
    rows, head_v = delta.numel(), call.v.shape[-1]
    if not rows:
        return delta
    problem = {"rows": rows, "head": head_v, "bytes": out.element_size(), "dlse": dlse is not None}
    choice.run(
        specs.DELTA, problem, out=out, dout=dout, dlse=dlse, delta=delta,
        heads=call.heads, queries=delta.shape[-1], **call.lse_strides(), HEAD=head_v,
        DIM=specs.padded(head_v), DLSE=dlse is not None,
    )  # fmt: skip
    return delta
