"""Attention over rectangular batches: softmax(q · kᵀ · scale) · v, head by head."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels.attention import reference, spaces
from wavecast.kernels.attention.call import Call
from wavecast.kernels.attention.sizes import scores
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Gradient, Operator, Tolerance
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
    return _call(
        q, k, v, causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed
    ).forward()


def attention_reference(
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
    """All logits at once, in float32 at least."""
    call = _call(q, k, v, causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed)
    call.check(reference=True)
    kind = torch.promote_types(q.dtype, torch.float32)
    out = torch.zeros(call.out_shape, dtype=kind, device=q.device)
    lse = torch.zeros(call.lse_shape, dtype=kind, device=q.device)
    rows = torch.arange(lse.numel(), device=q.device).reshape(lse.shape)
    sinks, alibi = (None if one is None else one.to(kind) for one in (sinks, alibi))
    for batch in range(call.batch):
        one = [tensor[batch].to(kind) for tensor in (q, k, v)]
        out[batch], lse[batch] = reference.forward(
            one[0], one[1], one[2], sinks, alibi, rows[batch], call.options()
        )
    return out.to(q.dtype), lse


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
    call = _call(
        q, k, v, causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed,
        "attention_backward",
    )  # fmt: skip
    return call.backward(dout, dlse, out, lse)


def attention_backward_reference(
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
    """By the formula, in float32 at least, without `out` and `lse`."""
    call = _call(q, k, v, causal, scale, left, right, sinks, alibi, soft_cap, dropout, seed)
    call.check(reference=True)
    kind = torch.promote_types(q.dtype, torch.float32)
    rows = torch.arange(lse.numel(), device=q.device).reshape(lse.shape)
    gradients = [torch.zeros(x.shape, dtype=kind, device=q.device) for x in (q, k, v)]
    dsinks = torch.zeros(0 if sinks is None else len(sinks), dtype=kind, device=q.device)
    wide = (None if one is None else one.to(kind) for one in (sinks, alibi))
    sinks_, alibi_ = wide
    for batch in range(call.batch):
        found = reference.backward(
            dout[batch].to(kind),
            torch.zeros_like(rows[batch], dtype=kind) if dlse is None else dlse[batch].to(kind),
            q[batch].to(kind),
            k[batch].to(kind),
            v[batch].to(kind),
            sinks_,
            alibi_,
            rows[batch],
            call.options(),
        )
        for gradient, one in zip(gradients, found[:3], strict=True):
            gradient[batch] = one
        if found[3] is not None:
            dsinks = dsinks + found[3]
    dq, dk, dv = gradients
    like = q if sinks is None else sinks
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), dsinks.to(like.dtype)


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


def _call(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float | None,
    left: int, right: int, sinks: torch.Tensor | None, alibi: torch.Tensor | None,
    soft_cap: float, dropout: float, seed: int, name: str = "attention",
) -> Call:  # fmt: skip
    return Call(
        name=name, q=q, k=k, v=v, causal=causal, scale=scale, left=left, right=right, sinks=sinks,
        alibi=alibi, soft_cap=soft_cap, dropout=dropout, seed=seed,
    )  # fmt: skip


def _inputs(
    make: Make, b: int, s: int, t: int, hq: int, hkv: int, d: int, dtype: str, dv: int = 0,
    causal: bool = False, left: int = -1, right: int = -1, sinks: bool = False,
    alibi: bool = False, soft_cap: float = 0.0, dropout: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    return {
        "q": make.normal((b, s, hq, d), dtype),
        "k": make.normal((b, t, hkv, d), dtype),
        "v": make.normal((b, t, hkv, dv or d), dtype),
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
    shape = (*q.shape[:3], v.shape[3])
    dout = make.normal(shape, q.dtype)
    rows = (q.shape[0], q.shape[2], q.shape[1])
    if make.values:
        out, lse = attention_reference(**given)
    else:
        out, lse = make.normal(shape, q.dtype), make.normal(rows, "float32")
    dlse = make.normal(rows, lse.dtype) if sizes.get("sinks") else None
    return {"dout": dout, "dlse": dlse, **given, "out": out, "lse": lse}


def _work(
    b: int, s: int, t: int, hq: int, hkv: int, d: int, dtype: str, dv: int = 0,
    causal: bool = False, left: int = -1, right: int = -1, **_: Any,
) -> Work:  # fmt: skip
    dv = dv or d
    size = getattr(torch, dtype).itemsize
    flops = {
        "bfloat16": "bf16", "float16": "fp16", "float32": "fp32",
    }  # fmt: skip
    pairs = b * hq * scores(s, t, left, 0 if causal else right)
    read = b * (s * hq * d + t * hkv * (d + dv)) * size
    written = b * s * hq * (dv * size + 4)
    return Work({flops[dtype]: 2.0 * pairs * (d + dv)}, read, written, "formula", "formula")


_CASES = (
    {
        "b": 1,
        "s": 7,
        "t": 9,
        "hq": 2,
        "hkv": 1,
        "d": 8,
        "dtype": "float32",
        "causal": True,
        "sinks": True,
        "soft_cap": 3.0,
    },
    {"b": 2, "s": 150, "t": 150, "hq": 2, "hkv": 1, "d": 64, "dtype": "bfloat16", "causal": True},
    {"b": 1, "s": 70, "t": 190, "hq": 2, "hkv": 2, "d": 80, "dtype": "float16"},
    {
        "b": 1,
        "s": 200,
        "t": 170,
        "hq": 2,
        "hkv": 1,
        "d": 32,
        "dtype": "bfloat16",
        "causal": True,
        "left": 40,
        "sinks": True,
    },
)
_THOROUGH = (
    {"b": 1, "s": 70, "t": 150, "hq": 4, "hkv": 2, "d": 128, "dtype": "bfloat16", "causal": True},
    {
        "b": 1,
        "s": 70,
        "t": 150,
        "hq": 2,
        "hkv": 1,
        "d": 192,
        "dv": 128,
        "dtype": "bfloat16",
        "causal": True,
    },
    {"b": 1, "s": 130, "t": 130, "hq": 2, "hkv": 1, "d": 32, "dtype": "float16", "alibi": True},
    {
        "b": 1,
        "s": 130,
        "t": 130,
        "hq": 2,
        "hkv": 1,
        "d": 32,
        "dtype": "float16",
        "causal": True,
        "soft_cap": 20.0,
    },
    {"b": 1, "s": 100, "t": 130, "hq": 2, "hkv": 1, "d": 32, "dtype": "bfloat16", "dropout": 0.25},
    {
        "b": 1,
        "s": 100,
        "t": 230,
        "hq": 2,
        "hkv": 1,
        "d": 32,
        "dtype": "bfloat16",
        "left": 30,
        "right": 20,
    },
    {"b": 1, "s": 50, "t": 70, "hq": 1, "hkv": 1, "d": 96, "dtype": "float32", "causal": True},
    {"b": 1, "s": 70, "t": 90, "hq": 1, "hkv": 1, "d": 256, "dtype": "bfloat16"},
)
_SHAPES = (
    {
        "b": 1,
        "s": 8192,
        "t": 8192,
        "hq": 32,
        "hkv": 8,
        "d": 128,
        "dtype": "bfloat16",
        "causal": True,
    },
    {
        "b": 1,
        "s": 16384,
        "t": 16384,
        "hq": 64,
        "hkv": 8,
        "d": 128,
        "dtype": "bfloat16",
        "causal": True,
    },
    {
        "b": 4,
        "s": 4096,
        "t": 4096,
        "hq": 32,
        "hkv": 8,
        "d": 128,
        "dtype": "bfloat16",
        "causal": True,
    },
    {
        "b": 1,
        "s": 8192,
        "t": 8192,
        "hq": 128,
        "hkv": 8,
        "d": 128,
        "dtype": "bfloat16",
        "causal": True,
    },
    {
        "b": 1,
        "s": 8192,
        "t": 8192,
        "hq": 64,
        "hkv": 8,
        "d": 64,
        "dtype": "bfloat16",
        "causal": True,
        "left": 127,
        "sinks": True,
    },
    {"b": 4, "s": 2048, "t": 2048, "hq": 32, "hkv": 32, "d": 64, "dtype": "bfloat16"},
)


def _backward_work(**sizes: Any) -> Work:
    """Five products; q, k, v, out and their gradients once."""
    forward = _work(**sizes)
    d, dv = sizes["d"], sizes.get("dv", 0) or sizes["d"]
    flops = {n: f * (3 * d + 2 * dv) / (d + dv) for n, f in (forward.flops or {}).items()}
    read, written = forward.bytes_read or 0.0, forward.bytes_written or 0.0
    return Work(flops, read + 2 * written, read, "formula", "formula")


OPERATORS = (
    Operator(
        name="attention",
        summary="softmax attention, causal or in windows, with grouped heads",
        call=attention,
        reference=attention_reference,
        inputs=_inputs,
        work=_work,
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
        inputs=_backward_inputs,
        work=_backward_work,
        cases=_CASES,
        shapes=(_SHAPES[0], _SHAPES[2]),
        thorough=_THOROUGH,
        spaces=(spaces.DELTA, spaces.BACKWARD_KV, spaces.BACKWARD_Q),
        tolerance=Tolerance(ulps=4.0, accumulated=1e-5),
    ),
)
