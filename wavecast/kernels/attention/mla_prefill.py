"""Multi-head latent attention of many queries at once, keys and values expanded: the heads of q and
k have a second part, with the rotary embedding, that in k all heads share."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels.attention import launches, reference, spaces
from wavecast.kernels.attention.call import Call, Options, Packed, Rope
from wavecast.kernels.attention.sizes import forward_work, scores
from wavecast.kernels.attention.varlen import packing
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Gradient, Operator, Tolerance
from wavecast.model.bounds import Work


def mla_prefill(
    q_nope: torch.Tensor,
    q_rope: torch.Tensor,
    k_nope: torch.Tensor,
    k_rope: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_q: int,
    max_k: int,
    causal: bool = True,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of packed sequences with heads in two parts: (out [Q, H, Dv] in the dtype of
    q_nope, lse [H, Q] in float32).

    `q_nope` is [Q, H, D] and `q_rope` [Q, H, R], `k_nope` [K, H, D] and `v` [K, H, Dv]; `k_rope`
    [K, R] is the second part of the keys of all heads (DeepSeek: D and Dv 128, R 64). All are
    float32, float16 or bfloat16, with D, R and Dv from 1 to 256 and any strides of rows and heads,
    so that q_nope and q_rope may be views of one tensor. Sums are in float32.

    Logits are (q_nope · k_nopeᵀ + q_rope · k_ropeᵀ) · `scale` (by default 1 / √(D + R), always
    positive). The queries of sequence n are rows `cu_seqlens_q[n]` to `cu_seqlens_q[n + 1]`, its
    keys rows `cu_seqlens_k[n]` to `cu_seqlens_k[n + 1]` (both [N + 1] of int32); no sequence may
    have more than `max_q` queries or `max_k` keys, which nothing checks. If `causal`, the last
    query sees all keys, the one before all but the last, and so on.

    With lse, the logarithm of the denominator, chunks of a long context are merged: those before
    without `causal`, the last with it. A query that sees nothing gives zeros, and -inf as lse.

    The gradient concatenates the parts and calls `attention_varlen_backward`. Raises ArgumentError.
    """
    return launches.forward(
        Call(
            "mla_prefill",
            q_nope,
            k_nope,
            v,
            Options(causal, scale),
            Packed(cu_seqlens_q, cu_seqlens_k, max_q, max_k),
            Rope(q_rope, k_rope),
        )
    )


def mla_prefill_reference(
    q_nope: torch.Tensor, q_rope: torch.Tensor, k_nope: torch.Tensor, k_rope: torch.Tensor,
    v: torch.Tensor, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, max_q: int,
    max_k: int, causal: bool = True, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Sequence by sequence on concatenated heads, in float32 at least."""
    given, packed = Options(causal, scale), Packed(cu_seqlens_q, cu_seqlens_k, max_q, max_k)
    Call("mla_prefill", q_nope, k_nope, v, given, packed, Rope(q_rope, k_rope)).check(
        reference=True
    )
    q, k = _joined(q_nope, q_rope, k_nope, k_rope)
    return reference.forward(Call("mla_prefill", q, k, v, given, packed))


def _joined(
    q_nope: torch.Tensor, q_rope: torch.Tensor, k_nope: torch.Tensor, k_rope: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Whole queries and keys."""
    shared = k_rope[:, None].expand(-1, k_nope.shape[1], -1)
    return torch.cat([q_nope, q_rope], -1), torch.cat([k_nope, shared], -1)


def _fake(
    q_nope: torch.Tensor, q_rope: torch.Tensor, k_nope: torch.Tensor, k_rope: torch.Tensor,
    v: torch.Tensor, *_: Any, **__: Any,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    kind = torch.promote_types(q_nope.dtype, torch.float32)
    out = q_nope.new_empty((*q_nope.shape[:-1], v.shape[-1]))
    return out, q_nope.new_empty((q_nope.shape[1], q_nope.shape[0]), dtype=kind)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:7], *output)
    ctx.options = inputs[7:]


def _gradient(ctx: Any, dout: torch.Tensor | None, dlse: torch.Tensor | None) -> tuple[Any, ...]:
    q_nope, q_rope, k_nope, k_rope, v, starts_q, starts_k, out, lse = ctx.saved_tensors
    max_q, max_k, causal, scale = ctx.options
    if dout is None:
        dout = torch.zeros_like(out)
    q, k = _joined(q_nope, q_rope, k_nope, k_rope)
    dq, dk, dv, _ = torch.ops.wavecast.attention_varlen_backward(
        dout, dlse, q, k, v, out, lse, starts_q, starts_k, max_q, max_k, causal, scale
    )
    d = q_nope.shape[-1]
    parts = dq[..., :d], dq[..., d:], dk[..., :d], dk[..., d:].sum(1)
    return *(part.contiguous() for part in parts), dv, *(None,) * 6


def _inputs(
    make: Make, q: tuple[int, ...], k: tuple[int, ...], h: int, d: int, rope: int, dv: int,
    dtype: str, causal: bool = True,
) -> dict[str, Any]:  # fmt: skip
    return {
        "q_nope": make.normal((sum(q), h, d), dtype),
        "q_rope": make.normal((sum(q), h, rope), dtype),
        "k_nope": make.normal((sum(k), h, d), dtype),
        "k_rope": make.normal((sum(k), rope), dtype),
        "v": make.normal((sum(k), h, dv), dtype),
        **packing(make, q, k),
        "causal": causal,
    }


def _work(
    q: tuple[int, ...], k: tuple[int, ...], h: int, d: int, rope: int, dv: int, dtype: str,
    causal: bool = True,
) -> Work:  # fmt: skip
    right = 0 if causal else -1
    pairs = h * sum(scores(s, t, -1, right) for s, t in zip(q, k, strict=True))
    return forward_work(
        pairs=pairs, queries=sum(q), keys=sum(k), hq=h, hkv=h, d=d, dv=dv, dtype=dtype, rope=rope
    )


def _case(
    q: tuple[int, ...], k: tuple[int, ...], h: int, d: int = 128, rope: int = 64, dv: int = 128,
    dtype: str = "bfloat16", causal: bool = True,
) -> dict[str, Any]:  # fmt: skip
    sizes = {"q": q, "k": k, "h": h, "d": d, "rope": rope, "dv": dv, "dtype": dtype}
    return {**sizes, "causal": causal}


_CASES = (
    _case((3, 5), (4, 7), 2, 8, 4, 8, "float32"),
    _case((60, 1, 20), (60, 70, 90), 2),
    _case((40, 10), (70, 0), 2, 48, 24, 32, "float16", False),
)
_THOROUGH = (
    _case((70, 0, 33), (70, 20, 65), 1, 64, 32, 96),
    _case((90,), (60,), 2, 128, 64, 128, "float16"),
    _case((30, 17), (30, 40), 1, 128, 64, 128, "float32"),
    _case((50,), (130,), 1, 192, 64, 256),
)
_SHAPES = (
    _case((1024,) * 8, (1024,) * 8, 128),
    _case((4096,) * 2, (4096,) * 2, 128),
    _case((16384,), (16384,), 128),
    _case((4096,) * 2, (4096,) * 2, 16),
    _case((16384,), (16384,), 16),
    _case((2048,) * 4, (8192,) * 4, 16, causal=False),
)

OPERATORS = (
    Operator(
        name="mla_prefill",
        summary="multi-head latent attention of packed sequences, for prefill",
        call=mla_prefill,
        reference=mla_prefill_reference,
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
)
