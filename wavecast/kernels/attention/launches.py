"""The launches of a call."""

from __future__ import annotations

import torch
import triton

from wavecast.kernels import checks
from wavecast.kernels.attention import spaces
from wavecast.kernels.attention.backward import (
    attention_backward_kv_kernel,
    attention_backward_q_kernel,
)
from wavecast.kernels.attention.call import Call, native
from wavecast.kernels.attention.delta import attention_delta_kernel
from wavecast.kernels.attention.forward import attention_kernel
from wavecast.kernels.attention.ranking import padded
from wavecast.kernels.choice import launch
from wavecast.kernels.space import Settings
from wavecast.kernels.strides import adjacent, contiguous

_PEAK = {torch.float8_e4m3fn: 8, torch.float8_e4m3fnuz: 7}
"""The exponent of the greatest power of two that a format holds: what the greatest probability
becomes."""


def forward(call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse). Raises ArgumentError."""
    call.check()
    empty = torch.zeros if call.packed else torch.empty
    out = empty(call.out_shape, dtype=call.out_dtype, device=call.q.device)
    lse = empty(call.lse_shape, dtype=torch.float32, device=call.q.device)
    if not lse.numel() or not call.batch or not call.queries:
        return out, lse
    q, k, v = (adjacent(tensor) for tensor in (call.q, call.k, call.v))
    constants = call.constants(q, k, v, out)
    ropes: tuple[torch.Tensor | None, ...] = (None, None)
    rope_steps = 0, 0, 0
    if call.rope is not None:
        q_rope, k_rope = ropes = adjacent(call.rope.q), adjacent(call.rope.k)
        rope_steps = q_rope.stride(0), q_rope.stride(1), k_rope.stride(0)
        constants["WIDE"] = checks.wide(q, k, v, out, *ropes)
    descales: tuple[torch.Tensor | None, ...] = (None, None, None)
    scale_steps = 0, 0
    narrow = False
    if call.eight is not None:
        descales = tuple(s.contiguous() for s in (call.eight.q, call.eight.k, call.eight.v))
        scale_steps = (0, 0) if call.eight.q.numel() == 1 else (call.shared, 1)
        narrow = native(call)

    def grid(settings: Settings) -> tuple[int, ...]:
        pack = settings["PACK"]
        blocks = triton.cdiv(call.queries, settings["BLOCK_M"] // pack)
        return (blocks * (call.heads // pack) * call.batch,)

    launch(
        attention_kernel,
        grid,
        (
            *(q, k, v, out, lse, *ropes, contiguous(call.options.sinks)),
            *(contiguous(call.options.alibi), *descales),
            *_starts(call),
            *(step for tensor in (q, k, v, out) for step in _steps(call, tensor)),
            *(*rope_steps, *scale_steps, *_scalars(call, lse)),
        ),
        spaces.FORWARD,
        call.problem(),
        **constants,
        ROPE=call.rope_size,
        DIM_R=padded(call.rope_size),
        SINKS=call.options.sinks is not None,
        SCALED=call.eight is not None,
        WIDEN=call.eight is not None and not narrow,
        PEAK=_PEAK[call.q.dtype] if narrow else 0,
    )
    return out, lse


def backward(
    call: Call,
    dout: torch.Tensor,
    dlse: torch.Tensor | None,
    out: torch.Tensor,
    lse: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """(dq, dk, dv, dsinks). Raises ArgumentError."""
    call.check()
    _check_gradients(call, dout, dlse, out, lse)
    empty = torch.empty
    if call.packed or not (call.q.numel() and call.k.numel()):
        empty = torch.zeros
    dq, dk, dv = (
        empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
        for tensor in (call.q, call.k, call.v)
    )
    delta = _delta(call, dout.contiguous(), dlse, out.contiguous())
    if dq.numel() and dk.numel() and call.queries and call.keys:
        _gradients(call, adjacent(dout), lse.contiguous(), delta, dq, dk, dv)
    sinks = call.options.sinks
    if sinks is None:
        return dq, dk, dv, call.q.new_empty(0)
    finite = lse.masked_fill(lse == -torch.inf, 0.0)  # of rows that see nothing, without a sink
    share = torch.exp(sinks.float()[:, None] - finite) * delta
    over = (1,) if call.packed else (0, 2)
    return dq, dk, dv, -share.sum(over).to(sinks.dtype)


def _delta(
    call: Call, dout: torch.Tensor, dlse: torch.Tensor | None, out: torch.Tensor
) -> torch.Tensor:
    """rowsum(dout · out) - dlse in the shape of lse."""
    delta = torch.empty(call.lse_shape, dtype=torch.float32, device=out.device)
    rows, head_v = delta.numel(), call.v.shape[-1]
    if not rows:
        return delta
    launch(
        attention_delta_kernel,
        lambda settings: (triton.cdiv(rows, settings["ROWS"]),),
        (
            *(out, dout, contiguous(dlse), delta, rows),
            *(call.heads, delta.shape[-1], *_lse_steps(call, delta)),
        ),
        spaces.DELTA,
        {"rows": rows, "head": head_v, "bytes": out.element_size(), "dlse": dlse is not None},
        HEAD=head_v,
        DIM=padded(head_v),
        DLSE=dlse is not None,
        WIDE=checks.wide(out),
    )
    return delta


def _gradients(
    call: Call,
    dout: torch.Tensor,
    lse: torch.Tensor,
    delta: torch.Tensor,
    dq: torch.Tensor,
    dk: torch.Tensor,
    dv: torch.Tensor,
) -> None:
    """Fill dk and dv, then dq."""
    q, k, v = (adjacent(tensor) for tensor in (call.q, call.k, call.v))
    read = (q, k, v, dout)
    constants = call.constants(*read)
    strides = [step for tensor in read for step in _steps(call, tensor)]
    starts = (contiguous(call.options.alibi), *_starts(call))

    def over_keys(settings: Settings) -> tuple[int, ...]:
        blocks = triton.cdiv(call.keys, settings["BLOCK_N"])
        return blocks * call.shared * call.batch, 2 if settings["SPLIT"] else 1

    def over_queries(settings: Settings) -> tuple[int, ...]:
        return (triton.cdiv(call.queries, settings["BLOCK_M"]) * call.heads * call.batch,)

    launch(
        attention_backward_kv_kernel,
        over_keys,
        (
            *(*read, lse, delta, dk, dv, *starts, *strides),
            *(*_steps(call, dk), *_steps(call, dv), *_scalars(call, lse)),
        ),
        spaces.BACKWARD_KV,
        call.problem(),
        **constants,
    )
    launch(
        attention_backward_q_kernel,
        over_queries,
        (
            *(*read, lse, delta, dq, *starts, *strides),
            *(*_steps(call, dq), *_scalars(call, lse)),
        ),
        spaces.BACKWARD_Q,
        call.problem(),
        **constants,
    )


def _scalars(call: Call, lse: torch.Tensor) -> tuple[object, ...]:
    """The last arguments of all kernels."""
    given = call.options
    return (
        *_lse_steps(call, lse),
        *(call.queries, call.keys, call.heads, *given.window, call.factor, given.soft_cap),
        *(given.threshold, 1 / (1 - given.dropout), given.seed, 0),
    )


def _lse_steps(call: Call, lse: torch.Tensor) -> tuple[int, int]:
    """Strides of batch and head."""
    return (0, lse.shape[1]) if call.packed else (lse.shape[1] * lse.shape[2], lse.shape[2])


def _steps(call: Call, tensor: torch.Tensor) -> tuple[int, int, int]:
    """Strides of batch, row and head."""
    if call.packed:
        return 0, tensor.stride(0), tensor.stride(1)
    return tensor.stride(0), tensor.stride(1), tensor.stride(2)


def _starts(call: Call) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    if call.packed is None:
        return None, None
    return call.packed.starts_q.contiguous(), call.packed.starts_k.contiguous()


def _check_gradients(
    call: Call,
    dout: torch.Tensor,
    dlse: torch.Tensor | None,
    out: torch.Tensor,
    lse: torch.Tensor,
) -> None:
    """Raises ArgumentError."""
    for label, tensor, shape in (
        ("dout", dout, call.out_shape),
        ("out", out, call.out_shape),
        ("lse", lse, call.lse_shape),
        ("dlse", dlse, call.lse_shape),
    ):
        if tensor is not None:
            wanted = (call.q.dtype,) if "out" in label else (torch.float32,)
            checks.dtype_in(call.name, label, tensor, wanted)
            checks.shape_is(call.name, label, tensor, shape)
    checks.same_device(call.name, q=call.q, dout=dout, dlse=dlse, out=out, lse=lse)


__all__ = ["backward", "forward"]
