"""Attention over sequences of any lengths, packed one behind the other."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels.attention import launches, reference, spaces
from wavecast.kernels.attention.call import Call, Options, Packed
from wavecast.kernels.attention.sizes import (
    backward_work,
    forward_work,
    gradients,
    options,
    scores,
)
from wavecast.kernels.derivative import by_reference
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
    given = Options(causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed)
    packed = Packed(cu_seqlens_q, cu_seqlens_k, max_q, max_k)
    return launches.forward(Call("attention_varlen", q, k, v, given, packed))


def attention_varlen_reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor, max_q: int, max_k: int, *given: Any, **named: Any,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Sequence by sequence, in float32 at least."""
    packed = Packed(cu_seqlens_q, cu_seqlens_k, max_q, max_k)
    return reference.forward(Call("attention_varlen", q, k, v, Options(*given, **named), packed))


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
    given = Options(causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed)
    packed = Packed(cu_seqlens_q, cu_seqlens_k, max_q, max_k)
    call = Call("attention_varlen_backward", q, k, v, given, packed)
    return launches.backward(call, dout, dlse, out, lse)


def attention_varlen_backward_reference(
    dout: torch.Tensor, dlse: torch.Tensor | None, q: torch.Tensor, k: torch.Tensor,
    v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor, max_q: int, max_k: int, *given: Any, **named: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Sequence by sequence, without `out` and `lse`."""
    packed = Packed(cu_seqlens_q, cu_seqlens_k, max_q, max_k)
    call = Call("attention_varlen_backward", q, k, v, Options(*given, **named), packed)
    return reference.backward(call, dout, dlse)


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
    dv: int = 0, **flags: Any,
) -> dict[str, Any]:  # fmt: skip
    return {
        "q": make.normal((sum(q), hq, d), dtype),
        "k": make.normal((sum(k), hkv, d), dtype),
        "v": make.normal((sum(k), hkv, dv or d), dtype),
        **packing(make, q, k),
        **options(make, hq, dtype, **flags),
    }


def packing(make: Make, q: tuple[int, ...], k: tuple[int, ...]) -> dict[str, Any]:
    """The arguments that say where sequences of these lengths start."""
    return {
        "cu_seqlens_q": make.tensor([sum(q[:n]) for n in range(len(q) + 1)], "int32"),
        "cu_seqlens_k": make.tensor([sum(k[:n]) for n in range(len(k) + 1)], "int32"),
        "max_q": max(q),
        "max_k": max(k),
    }


def _backward_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    given = _inputs(make, **sizes)
    if make.values:
        return gradients(make, given, attention_varlen_reference(**given))
    q, v = given["q"], given["v"]
    out = make.normal((*q.shape[:2], v.shape[2]), q.dtype)
    return gradients(make, given, (out, make.normal((q.shape[1], q.shape[0]), "float32")))


def _work(
    q: tuple[int, ...], k: tuple[int, ...], hq: int, hkv: int, d: int, dtype: str, dv: int = 0,
    causal: bool = False, left: int = -1, right: int = -1, **_: Any,
) -> Work:  # fmt: skip
    right = 0 if causal else right
    pairs = hq * sum(scores(s, t, left, right) for s, t in zip(q, k, strict=True))
    return forward_work(
        pairs=pairs, queries=sum(q), keys=sum(k), hq=hq, hkv=hkv, d=d, dv=dv or d, dtype=dtype
    )


def _backward_work(**sizes: Any) -> Work:
    return backward_work(_work(**sizes), sizes["d"], sizes.get("dv") or sizes["d"])


def _case(
    q: tuple[int, ...], k: tuple[int, ...], hq: int, hkv: int, d: int, dtype: str = "bfloat16",
    **flags: Any,
) -> dict[str, Any]:  # fmt: skip
    return {"q": q, "k": k, "hq": hq, "hkv": hkv, "d": d, "dtype": dtype, **flags}


_CASES = (
    _case((3, 5), (4, 7), 2, 1, 8, "float32", sinks=True),
    _case((70, 1, 90), (100, 40, 90), 2, 1, 32, causal=True),
    _case((50, 0, 80), (60, 10, 30), 2, 2, 24, "float16", causal=True, left=33, sinks=True),
)
_THOROUGH = (
    _case((40, 60), (90, 50), 2, 1, 32, alibi=True, soft_cap=20.0),
    _case((40, 60), (90, 50), 2, 1, 32, dropout=0.25),
    _case((40, 0), (0, 50), 1, 1, 48, "float32", dv=32, right=5),
    _case((3, 1, 9), (90, 0, 50), 8, 2, 32, causal=True, left=30),
)
_PACKED = (4096, 2048, 1024, 512) * 2
_SHAPES = (_case(_PACKED, _PACKED, 32, 8, 128, causal=True),)

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
        gradient=by_reference(attention_varlen_backward_reference),
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
