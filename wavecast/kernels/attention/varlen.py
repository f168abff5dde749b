"""Attention over sequences of any lengths, packed one behind the other."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels.attention import reference, spaces
from wavecast.kernels.attention.call import Call
from wavecast.kernels.attention.sizes import scores
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Gradient, Operator, Tolerance
from wavecast.model.bounds import Work


def attention_varlen(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_q: int,
    max_k: int,
    causal: bool = False,
    scale: float | None = None,
    left: int = -1,
    right: int = -1,
    sinks: torch.Tensor | None = None,
    alibi: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    dropout: float = 0.0,
    seed: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`attention` of each of N sequences: (out [Q, Hq, Dv] in the dtype of q, lse [Hq, Q] in
    float32).

    `q` is [Q, Hq, D], `k` [K, Hkv, D] and `v` [K, Hkv, Dv]. The queries of sequence n are rows
    `cu_seqlens_q[n]` to `cu_seqlens_q[n + 1]`, its keys rows `cu_seqlens_k[n]` to
    `cu_seqlens_k[n + 1]` (both [N + 1] of int32); no sequence may have more than `max_q` queries or
    `max_k` keys, which nothing checks. Rows of no sequence give zeros. All else is as in
    `attention`. Raises ArgumentError.
    """
    return _call(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_q, max_k, causal, scale, left, right, sinks, alibi,
        soft_cap, dropout, seed,
    ).forward()  # fmt: skip


def attention_varlen_reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_q: int,
    max_k: int,
    causal: bool = False,
    scale: float | None = None,
    left: int = -1,
    right: int = -1,
    sinks: torch.Tensor | None = None,
    alibi: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    dropout: float = 0.0,
    seed: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequence by sequence, in float32 at least."""
    call = _call(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_q, max_k, causal, scale, left, right, sinks, alibi,
        soft_cap, dropout, seed,
    )  # fmt: skip
    call.check(reference=True)
    kind = torch.promote_types(q.dtype, torch.float32)
    out = torch.zeros(call.out_shape, dtype=kind, device=q.device)
    lse = torch.zeros(call.lse_shape, dtype=kind, device=q.device)
    rows = torch.arange(lse.numel(), device=q.device).reshape(lse.shape)
    sinks, alibi = (None if one is None else one.to(kind) for one in (sinks, alibi))
    for own, others in _sequences(cu_seqlens_q, cu_seqlens_k):
        out[own], lse[:, own] = reference.forward(
            q[own].to(kind), k[others].to(kind), v[others].to(kind), sinks, alibi, rows[:, own],
            call.options(),
        )  # fmt: skip
    return out.to(q.dtype), lse


def attention_varlen_backward(
    dout: torch.Tensor,
    dlse: torch.Tensor | None,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_q: int,
    max_k: int,
    causal: bool = False,
    scale: float | None = None,
    left: int = -1,
    right: int = -1,
    sinks: torch.Tensor | None = None,
    alibi: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    dropout: float = 0.0,
    seed: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of `attention_varlen`: (dq, dk, dv, dsinks), as `attention_backward` gives
    them. `dout` and `dlse` (None: zeros) must be zero in rows of no sequence. Raises ArgumentError.
    """
    call = _call(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_q, max_k, causal, scale, left, right, sinks, alibi,
        soft_cap, dropout, seed, "attention_varlen_backward",
    )  # fmt: skip
    return call.backward(dout, dlse, out, lse)


def attention_varlen_backward_reference(
    dout: torch.Tensor,
    dlse: torch.Tensor | None,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_q: int,
    max_k: int,
    causal: bool = False,
    scale: float | None = None,
    left: int = -1,
    right: int = -1,
    sinks: torch.Tensor | None = None,
    alibi: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    dropout: float = 0.0,
    seed: int = 0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sequence by sequence, without `out` and `lse`."""
    call = _call(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_q, max_k, causal, scale, left, right, sinks, alibi,
        soft_cap, dropout, seed,
    )  # fmt: skip
    call.check(reference=True)
    kind = torch.promote_types(q.dtype, torch.float32)
    rows = torch.arange(lse.numel(), device=q.device).reshape(lse.shape)
    dq, dk, dv = (torch.zeros(x.shape, dtype=kind, device=q.device) for x in (q, k, v))
    dsinks = torch.zeros(0 if sinks is None else len(sinks), dtype=kind, device=q.device)
    dlse = torch.zeros_like(lse, dtype=kind) if dlse is None else dlse.to(kind)
    like = q if sinks is None else sinks
    sinks, alibi = (None if one is None else one.to(kind) for one in (sinks, alibi))
    for own, others in _sequences(cu_seqlens_q, cu_seqlens_k):
        dq[own], dk[others], dv[others], more = reference.backward(
            dout[own].to(kind), dlse[:, own], q[own].to(kind), k[others].to(kind),
            v[others].to(kind), sinks, alibi, rows[:, own], call.options(),
        )  # fmt: skip
        if more is not None:
            dsinks = dsinks + more
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), dsinks.to(like.dtype)


def _sequences(starts_q: torch.Tensor, starts_k: torch.Tensor) -> list[tuple[slice, slice]]:
    q, k = starts_q.tolist(), starts_k.tolist()
    return [(slice(q[n], q[n + 1]), slice(k[n], k[n + 1])) for n in range(len(q) - 1)]


def _call(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, starts_q: torch.Tensor,
    starts_k: torch.Tensor, longest_q: int, longest_k: int, causal: bool, scale: float | None,
    left: int, right: int, sinks: torch.Tensor | None, alibi: torch.Tensor | None,
    soft_cap: float, dropout: float, seed: int, name: str = "attention_varlen",
) -> Call:  # fmt: skip
    return Call(
        name=name, q=q, k=k, v=v, causal=causal, scale=scale, left=left, right=right, sinks=sinks,
        alibi=alibi, soft_cap=soft_cap, dropout=dropout, seed=seed, starts_q=starts_q,
        starts_k=starts_k, longest_q=longest_q, longest_k=longest_k,
    )  # fmt: skip


def _fake(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_: Any, **__: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    kind = torch.promote_types(q.dtype, torch.float32)
    out = q.new_empty((*q.shape[:-1], v.shape[-1]))
    return out, q.new_empty((q.shape[1], q.shape[0]), dtype=kind)


def _fake_backward(
    dout: torch.Tensor, dlse: torch.Tensor | None, q: torch.Tensor, k: torch.Tensor,
    v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor, max_q: int, max_k: int, causal: bool = False,
    scale: float | None = None, left: int = -1, right: int = -1,
    sinks: torch.Tensor | None = None, *_: Any, **__: Any,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    like = q.new_empty(0) if sinks is None else sinks
    return tuple(x.new_empty(x.shape) for x in (q, k, v, like))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    ctx.set_materialize_grads(False)
    q, k, v, starts_q, starts_k, *rest = inputs
    sinks, alibi = rest[6:8]
    ctx.save_for_backward(q, k, v, starts_q, starts_k, sinks, alibi, *output)
    ctx.options = rest[:6], rest[8:]


def _gradient(ctx: Any, dout: torch.Tensor | None, dlse: torch.Tensor | None) -> tuple[Any, ...]:
    q, k, v, starts_q, starts_k, sinks, alibi, out, lse = ctx.saved_tensors
    before, behind = ctx.options
    if dout is None:
        dout = torch.zeros_like(out)
    dq, dk, dv, dsinks = torch.ops.wavecast.attention_varlen_backward(
        dout, dlse, q, k, v, out, lse, starts_q, starts_k, *before, sinks, alibi, *behind
    )
    return dq, dk, dv, *(None,) * 8, None if sinks is None else dsinks, *(None,) * 4


def _inputs(
    make: Make, q: tuple[int, ...], k: tuple[int, ...], hq: int, hkv: int, d: int, dtype: str,
    dv: int = 0, causal: bool = False, left: int = -1, right: int = -1, sinks: bool = False,
    alibi: bool = False, soft_cap: float = 0.0, dropout: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    return {
        "q": make.normal((sum(q), hq, d), dtype),
        "k": make.normal((sum(k), hkv, d), dtype),
        "v": make.normal((sum(k), hkv, dv or d), dtype),
        "cu_seqlens_q": make.tensor([sum(q[:n]) for n in range(len(q) + 1)], "int32"),
        "cu_seqlens_k": make.tensor([sum(k[:n]) for n in range(len(k) + 1)], "int32"),
        "max_q": max(q),
        "max_k": max(k),
        "causal": causal,
        "left": left,
        "right": right,
        "sinks": make.normal((hq,), dtype) if sinks else None,
        "alibi": make.uniform((hq,), dtype, 0.02, 0.5) if alibi else None,
        "soft_cap": soft_cap,
        "dropout": dropout,
        "seed": 12345 if dropout else 0,
    }


def _backward_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    given = _inputs(make, **sizes)
    q, v = given["q"], given["v"]
    shape = (*q.shape[:2], v.shape[2])
    dout = make.normal(shape, q.dtype)
    if make.values:
        out, lse = attention_varlen_reference(**given)
    else:
        out, lse = make.normal(shape, q.dtype), make.normal((q.shape[1], q.shape[0]), "float32")
    dlse = make.normal(lse.shape, lse.dtype) if sizes.get("sinks") else None
    return {"dout": dout, "dlse": dlse, **given, "out": out, "lse": lse}


_FLOPS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


def _work(
    q: tuple[int, ...], k: tuple[int, ...], hq: int, hkv: int, d: int, dtype: str, dv: int = 0,
    causal: bool = False, left: int = -1, right: int = -1, **_: Any,
) -> Work:  # fmt: skip
    dv = dv or d
    size = getattr(torch, dtype).itemsize
    right = 0 if causal else right
    pairs = hq * sum(scores(s, t, left, right) for s, t in zip(q, k, strict=True))
    read = (sum(q) * hq * d + sum(k) * hkv * (d + dv)) * size
    written = sum(q) * hq * (dv * size + 4)
    return Work({_FLOPS[dtype]: 2.0 * pairs * (d + dv)}, read, written, "formula", "formula")


def _backward_work(**sizes: Any) -> Work:
    """Five products; q, k, v, out and their gradients once."""
    forward = _work(**sizes)
    d, dv = sizes["d"], sizes.get("dv", 0) or sizes["d"]
    flops = {n: f * (3 * d + 2 * dv) / (d + dv) for n, f in (forward.flops or {}).items()}
    read, written = forward.bytes_read or 0.0, forward.bytes_written or 0.0
    return Work(flops, read + 2 * written, read, "formula", "formula")


_CASES = (
    {"q": (3, 5), "k": (4, 7), "hq": 2, "hkv": 1, "d": 8, "dtype": "float32", "sinks": True},
    {
        "q": (70, 1, 90),
        "k": (100, 40, 90),
        "hq": 2,
        "hkv": 1,
        "d": 32,
        "dtype": "bfloat16",
        "causal": True,
    },
    {
        "q": (50, 0, 80),
        "k": (60, 10, 30),
        "hq": 2,
        "hkv": 2,
        "d": 24,
        "dtype": "float16",
        "causal": True,
        "left": 33,
        "sinks": True,
    },
)
_THOROUGH = (
    {
        "q": (40, 60),
        "k": (90, 50),
        "hq": 2,
        "hkv": 1,
        "d": 32,
        "dtype": "bfloat16",
        "alibi": True,
        "soft_cap": 20.0,
    },
    {
        "q": (40, 60),
        "k": (90, 50),
        "hq": 2,
        "hkv": 1,
        "d": 32,
        "dtype": "bfloat16",
        "dropout": 0.25,
    },
    {
        "q": (40, 0),
        "k": (0, 50),
        "hq": 1,
        "hkv": 1,
        "d": 48,
        "dv": 32,
        "dtype": "float32",
        "right": 5,
    },
)
_SHAPES = (
    {
        "q": (4096, 2048, 1024, 512) * 2,
        "k": (4096, 2048, 1024, 512) * 2,
        "hq": 32,
        "hkv": 8,
        "d": 128,
        "dtype": "bfloat16",
        "causal": True,
    },
)

OPERATORS = (
    Operator(
        name="attention_varlen",
        summary="softmax attention of packed sequences",
        call=attention_varlen,
        reference=attention_varlen_reference,
        inputs=_inputs,
        work=_work,
        cases=_CASES,
        shapes=_SHAPES,
        thorough=_THOROUGH,
        spaces=(spaces.FORWARD,),
        gradient=Gradient(_setup, _gradient),
        tolerance=Tolerance(ulps=2.0, accumulated=4e-6),
        fake=_fake,
    ),
    Operator(
        name="attention_varlen_backward",
        summary="gradients of attention_varlen",
        call=attention_varlen_backward,
        reference=attention_varlen_backward_reference,
        inputs=_backward_inputs,
        work=_backward_work,
        cases=_CASES,
        shapes=_SHAPES,
        thorough=_THOROUGH,
        spaces=(spaces.DELTA, spaces.BACKWARD_KV, spaces.BACKWARD_Q),
        tolerance=Tolerance(ulps=4.0, accumulated=1e-5),
        fake=_fake_backward,
    ),
)
