"""The launches of a call."""

import torch
from torch import Tensor

from wavecast.kernels import choice
from wavecast.kernels.attention import specs
from wavecast.kernels.attention.call import Call
from wavecast.kernels.quantise.formats import FP8, largest_power
from wavecast.kernels.strides import adjacent
from wavecast.launch import gpu


def forward(call: Call) -> tuple[Tensor, Tensor]:
    """(out, lse). Raises ArgumentError."""
    call.check()
    empty = torch.zeros if call.packed else torch.empty
    out = empty(call.out_shape, dtype=call.out_dtype, device=call.q.device)
    lse = empty(call.lse_shape, dtype=torch.float32, device=call.q.device)
    if not lse.numel() or not call.batch or not call.queries:
        return out, lse
    q, k, v = (adjacent(tensor) for tensor in (call.q, call.k, call.v))
    q_rope, k_rope = (adjacent(part) for part in call.rope) if call.rope else (None, None)
    scaled = call.descales is not None
    q_scale, k_scale, v_scale = call.descales or (None, None, None)
    by_head = q_scale is not None and q_scale.numel() > 1
    formats = gpu.launching().capabilities.matrix_fp8
    native = scaled and str(call.q.dtype).removeprefix("torch.") in formats
    # the power of two that the greatest probability becomes
    peak = largest_power(FP8[call.q.dtype]) if native else 0
    choice.run(
        specs.FORWARD, call.problem(), **call.arguments(q=q, k=k, v=v, out=out), lse=lse,
        q_rope=q_rope, k_rope=k_rope, q_scale=q_scale, k_scale=k_scale, v_scale=v_scale,
        scale_batch=call.kv_heads if by_head else 0, scale_head=int(by_head),
        sinks=call.options.sinks, SINKS=call.options.sinks is not None,
        DIM_R=specs.padded_head_size(call.rope_size), SCALED=scaled, WIDEN=scaled and not native,
        PEAK=peak,
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
        DIM=specs.padded_head_size(head_v), DLSE=dlse is not None,
    )  # fmt: skip
    return delta
