"""Attention of queries, keys and values in fp8."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels import checks, gpu
from wavecast.kernels.attention import launches, reference, spaces
from wavecast.kernels.attention.call import Call, Eight, Options
from wavecast.kernels.attention.sizes import forward_work, scores
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Operator, Tolerance
from wavecast.model.bounds import Work


def attention_fp8(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    q_descale: torch.Tensor,
    k_descale: torch.Tensor,
    v_descale: torch.Tensor,
    causal: bool = False,
    scale: float | None = None,
    left: int = -1,
    right: int = -1,
    sinks: torch.Tensor | None = None,
    soft_cap: float = 0.0,
    out_dtype: torch.dtype = torch.bfloat16,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax attention in fp8: (out [B, S, Hq, Dv] of `out_dtype`, lse [B, Hq, S] in float32).

    `q` [B, S, Hq, D], `k` [B, T, Hkv, D] and `v` [B, T, Hkv, Dv] are of float8_e4m3fn or all of
    float8_e4m3fnuz, and stand for themselves times `q_descale`, `k_descale` and `v_descale`
    (float32, positive): all three of one element, or all three [B, Hkv], one per batch and head of
    the keys. `out_dtype` is float16, bfloat16 or float32. All else is as in `attention`.

    Where the GPU multiplies the format (fnuz: gfx942; the other: gfx950, gfx1201, sm_90), both
    products do so, sums are in float32 (on sm_90 with the fewer bits its tensor cores keep of fp8
    products), and probabilities are rounded to fp8 after multiplication by a power of two: each by
    up to 1/16 of itself, below 2⁻¹⁷ of the greatest to multiples of 2⁻¹⁸. Elsewhere the values are
    widened to bfloat16, exactly, and so are the products.

    There is no gradient. A NaN in a query, or in a key it sees, makes its row NaN; a NaN in v that
    column of every query that reads the block, as 0 · NaN is NaN. Raises ArgumentError.
    """
    checks.require(
        gpu.launching().target.startswith("gfx") or q.dtype != torch.float8_e4m3fnuz,
        "attention_fp8",
        f"float8_e4m3fnuz is no format of {gpu.launching().id}",
    )
    given = Options(causal, scale, left, right, sinks, soft_cap=soft_cap)
    return launches.forward(
        Call(
            "attention_fp8",
            q,
            k,
            v,
            given,
            eight=Eight(q_descale, k_descale, v_descale, out_dtype),
        )
    )


def attention_fp8_reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_descale: torch.Tensor,
    k_descale: torch.Tensor, v_descale: torch.Tensor, causal: bool = False,
    scale: float | None = None, left: int = -1, right: int = -1, sinks: torch.Tensor | None = None,
    soft_cap: float = 0.0, out_dtype: torch.dtype = torch.bfloat16,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """On what the values stand for, with probabilities as they are, in float32 at least."""
    given = Options(causal, scale, left, right, sinks, soft_cap=soft_cap)
    eight = Eight(q_descale, k_descale, v_descale, out_dtype)
    Call("attention_fp8", q, k, v, given, eight=eight).check(reference=True)
    kind = torch.promote_types(q_descale.dtype, torch.float32)

    def meant(x: torch.Tensor, descale: torch.Tensor) -> torch.Tensor:
        if descale.numel() == 1:
            return x.to(kind) * descale.reshape(())
        group = x.shape[2] // descale.shape[1]
        return x.to(kind) * descale.repeat_interleave(group, 1)[:, None, :, None]

    wide = meant(q, q_descale), meant(k, k_descale), meant(v, v_descale)
    out, lse = reference.forward(Call("attention_fp8", *wide, given))
    return out.to(torch.promote_types(kind, out_dtype) if kind == torch.float64 else out_dtype), lse


def _inputs(
    make: Make, b: int, s: int, t: int, hq: int, hkv: int, d: int, dtype: str, dv: int = 0,
    by_head: bool = True, causal: bool = False, left: int = -1, right: int = -1,
    sinks: bool = False, soft_cap: float = 0.0, out: str = "bfloat16",
) -> dict[str, Any]:  # fmt: skip
    shape = (b, hkv) if by_head else (1,)
    return {
        "q": make.normal((b, s, hq, d), dtype, 16.0),
        "k": make.normal((b, t, hkv, d), dtype, 16.0),
        "v": make.normal((b, t, hkv, dv or d), dtype, 16.0),
        "q_descale": make.uniform(shape, "float32", 0.03, 0.1),
        "k_descale": make.uniform(shape, "float32", 0.03, 0.1),
        "v_descale": make.uniform(shape, "float32", 0.03, 0.1),
        "causal": causal,
        "left": left,
        "right": right,
        "sinks": make.normal((hq,), out) if sinks else None,
        "soft_cap": soft_cap,
        "out_dtype": make.dtype(out),
    }


def _work(
    b: int, s: int, t: int, hq: int, hkv: int, d: int, dtype: str, dv: int = 0,
    causal: bool = False, left: int = -1, right: int = -1, out: str = "bfloat16", **_: Any,
) -> Work:  # fmt: skip
    pairs = b * hq * scores(s, t, left, 0 if causal else right)
    return forward_work(
        pairs=pairs, queries=b * s, keys=b * t, hq=hq, hkv=hkv, d=d, dv=dv or d, dtype=dtype,
        out_bytes=getattr(torch, out).itemsize,
    )  # fmt: skip


def _case(
    b: int, s: int, t: int, hq: int, hkv: int, d: int, dtype: str = "float8_e4m3fn", **flags: Any
) -> dict[str, Any]:
    return {"b": b, "s": s, "t": t, "hq": hq, "hkv": hkv, "d": d, "dtype": dtype, **flags}


_FNUZ = "float8_e4m3fnuz"
_CASES = (
    _case(1, 7, 9, 2, 1, 16, causal=True, by_head=False),
    _case(2, 60, 130, 2, 1, 64, _FNUZ, causal=True),
    _case(1, 130, 150, 2, 1, 32, causal=True, left=40, sinks=True, out="float16"),
)
_THOROUGH = (
    _case(2, 60, 130, 2, 1, 64, causal=True),
    _case(1, 70, 150, 4, 2, 128, _FNUZ, right=20),
    _case(1, 40, 70, 1, 1, 192, dv=128),
    _case(1, 40, 70, 2, 2, 80, _FNUZ, soft_cap=20.0, by_head=False, out="float32"),
    _case(1, 7, 90, 8, 1, 64, causal=True),
)
_SHAPES = tuple(
    {**_case(*sizes, kind, causal=True), **flags}
    for kind in ("float8_e4m3fnuz", "float8_e4m3fn")
    for sizes, flags in (
        ((1, 8192, 8192, 32, 8, 128), {}),
        ((1, 16384, 16384, 64, 8, 128), {}),
        ((1, 8192, 8192, 64, 8, 64), {"left": 127, "sinks": True}),
    )
)

OPERATORS = (
    Operator(
        name="attention_fp8",
        summary="softmax attention of queries, keys and values in fp8",
        call=attention_fp8,
        reference=attention_fp8_reference,
        inputs=_inputs,
        work=_work,
        cases=_CASES,
        shapes=_SHAPES,
        thorough=_THOROUGH,
        spaces=(spaces.FORWARD,),
        tolerance=Tolerance(ulps=2.0, accumulated=0.1),
    ),
)
