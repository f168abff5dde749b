"""Attention over rectangular batches: softmax(q · kᵀ · scale) · v, head by head."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels.attention import launches, reference, spaces
from wavecast.kernels.attention.call import Call, Options
from wavecast.kernels.attention.sizes import (
    backward_work,
    forward_work,
    gradients,
    options,
    scores,
)
from wavecast.kernels.derivative import by_reference
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance
from wavecast.model.bounds import Work


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
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
    """Softmax attention: (out [B, S, Hq, Dv] in the dtype of q, lse [B, Hq, S] in float32).

    `q` is [B, S, Hq, D], `k` [B, T, Hkv, D] and `v` [B, T, Hkv, Dv] of float32, float16 or
    bfloat16, with D and Dv from 1 to 256; Hq is a multiple of Hkv, and neighbouring heads of q
    share one of k. Batch, rows and heads may have any strides. Sums are in float32.

    Logits are q · kᵀ · `scale` (by default 1 / √D, always positive), then
    `soft_cap` · tanh(logits / `soft_cap`) unless that is 0, then minus `alibi` [Hq] times the
    distance of query and key. Query i stands at key i + T - S, so that the last query stands at the
    last key; from there it sees `left` keys before and `right` keys behind (-1: all), none behind
    if `causal`. `sinks` [Hq] are logits that only the denominator has. A query that sees nothing
    gives zeros, and -inf as lse, the logarithm of the denominator.

    `dropout` zeroes probabilities at random and scales the others; the same `seed` drops the same
    ones, whatever the GPU and in the gradient. Raises ArgumentError.
    """
    given = Options(causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed)
    return launches.forward(Call("attention", q, k, v, given))


def attention_reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *given: Any, **named: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """All logits at once, in float32 at least."""
    return reference.forward(Call("attention", q, k, v, Options(*given, **named)))


def attention_backward(
    dout: torch.Tensor,
    dlse: torch.Tensor | None,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
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
    """The gradients of `attention`: (dq, dk, dv, dsinks), in the dtypes of what they belong to.

    `dout` and `dlse` (None: zeros) are the gradients of its results `out` and `lse`, the other
    arguments its own; `alibi` has no gradient, and without `sinks` dsinks is empty. Every sum has a
    fixed order. Raises ArgumentError.
    """
    given = Options(causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed)
    return launches.backward(Call("attention_backward", q, k, v, given), dout, dlse, out, lse)


def attention_backward_reference(
    dout: torch.Tensor, dlse: torch.Tensor | None, q: torch.Tensor, k: torch.Tensor,
    v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, *given: Any, **named: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """By the formula, in float32 at least, without `out` and `lse`."""
    call = Call("attention_backward", q, k, v, Options(*given, **named))
    return reference.backward(call, dout, dlse)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    q, k, v, causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(q, k, v, sinks, alibi, *output)
    ctx.options = causal, scale, left, right, soft_cap, dropout, seed


def _gradient(ctx: Any, dout: torch.Tensor | None, dlse: torch.Tensor | None) -> tuple[Any, ...]:
    q, k, v, sinks, alibi, out, lse = ctx.saved_tensors
    causal, scale, left, right, soft_cap, dropout, seed = ctx.options
    if dout is None:
        dout = torch.zeros_like(out)
    dq, dk, dv, dsinks = torch.ops.wavecast.attention_backward(
        dout, dlse, q, k, v, out, lse, causal, scale, left, right, sinks, alibi, soft_cap, dropout,
        seed,
    )  # fmt: skip
    return dq, dk, dv, *(None,) * 4, None if sinks is None else dsinks, *(None,) * 4


def _inputs(
    make: Make, b: int, s: int, t: int, hq: int, hkv: int, d: int, dtype: str, dv: int = 0,
    **flags: Any,
) -> dict[str, Any]:  # fmt: skip
    return {
        "q": make.normal((b, s, hq, d), dtype),
        "k": make.normal((b, t, hkv, d), dtype),
        "v": make.normal((b, t, hkv, dv or d), dtype),
        **options(make, hq, dtype, **flags),
    }


def _backward_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    given = _inputs(make, **sizes)
    if make.values:
        return gradients(make, given, attention_reference(**given))
    q, v = given["q"], given["v"]
    out = make.normal((*q.shape[:3], v.shape[3]), q.dtype)
    return gradients(make, given, (out, make.normal(_lse_shape(q), "float32")))


def _lse_shape(q: torch.Tensor) -> tuple[int, int, int]:
    return q.shape[0], q.shape[2], q.shape[1]


def _work(
    b: int, s: int, t: int, hq: int, hkv: int, d: int, dtype: str, dv: int = 0,
    causal: bool = False, left: int = -1, right: int = -1, **_: Any,
) -> Work:  # fmt: skip
    pairs = b * hq * scores(s, t, left, 0 if causal else right)
    return forward_work(
        pairs=pairs, queries=b * s, keys=b * t, hq=hq, hkv=hkv, d=d, dv=dv or d, dtype=dtype
    )


def _backward_work(**sizes: Any) -> Work:
    return backward_work(_work(**sizes), sizes["d"], sizes.get("dv") or sizes["d"])


def _case(
    b: int, s: int, t: int, hq: int, hkv: int, d: int, dtype: str = "bfloat16", **flags: Any
) -> dict[str, Any]:
    return {"b": b, "s": s, "t": t, "hq": hq, "hkv": hkv, "d": d, "dtype": dtype, **flags}


_CASES = (
    _case(1, 7, 9, 2, 1, 8, "float32", causal=True, sinks=True, soft_cap=3.0),
    _case(2, 150, 150, 2, 1, 64, causal=True),
    _case(1, 70, 190, 2, 2, 80, "float16"),
    _case(1, 200, 170, 2, 1, 32, causal=True, left=40, sinks=True),
)
_THOROUGH = (
    _case(1, 70, 150, 4, 2, 128, causal=True),
    _case(1, 70, 150, 2, 1, 192, dv=128, causal=True),
    _case(1, 130, 130, 2, 1, 32, "float16", alibi=True),
    _case(1, 130, 130, 2, 1, 32, "float16", causal=True, soft_cap=20.0),
    _case(1, 100, 130, 2, 1, 32, dropout=0.25),
    _case(1, 100, 230, 2, 1, 32, left=30, right=20),
    _case(1, 50, 70, 1, 1, 96, "float32", causal=True),
    _case(1, 70, 90, 1, 1, 256),
    _case(1, 90, 90, 4, 1, 32, causal=True, left=20, sinks=True, alibi=True, dropout=0.25),
    _case(2, 7, 150, 8, 1, 64, "float16", causal=True),
)
_SHAPES = (
    _case(1, 8192, 8192, 32, 8, 128, causal=True),
    _case(1, 16384, 16384, 64, 8, 128, causal=True),
    _case(4, 4096, 4096, 32, 8, 128, causal=True),
    _case(1, 8192, 8192, 128, 8, 128, causal=True),
    _case(1, 8192, 8192, 64, 8, 64, causal=True, left=127, sinks=True),
    _case(4, 2048, 2048, 32, 32, 64),
)

OPERATORS = (
    Operator(
        name="attention",
        summary="softmax attention, causal or in windows, with grouped heads",
        call=attention,
        reference=attention_reference,
        inputs=_inputs,
        work=_work,
        batch=Batch(("q", "k", "v"), merged=True, unless=lambda dropout=0.0, **_: dropout > 0),
        cases=_CASES,
        shapes=_SHAPES,
        thorough=_THOROUGH,
        spaces=(spaces.FORWARD,),
        gradient=Gradient(_setup, _gradient),
        tolerance=Tolerance(ulps=2.0, accumulated=4e-6),
    ),
    Operator(
        name="attention_backward",
        summary="gradients of attention",
        call=attention_backward,
        reference=attention_backward_reference,
        gradient=by_reference(attention_backward_reference),
        inputs=_backward_inputs,
        work=_backward_work,
        cases=_CASES,
        shapes=(_SHAPES[0], _SHAPES[2]),
        thorough=_THOROUGH,
        spaces=(spaces.DELTA, spaces.BACKWARD_KV, spaces.BACKWARD_Q),
        tolerance=Tolerance(ulps=4.0, accumulated=1e-5),
    ),
)
