"""Experts with fp8 weights: a scale per 128x128 of the weights, one per 128 of every activation."""

from __future__ import annotations

from typing import Any

import torch
import triton

from wavecast.kernels import checks
from wavecast.kernels.inputs import Make
from wavecast.kernels.moe import activations, fp8_products, given, tiling
from wavecast.kernels.moe.activations import Gate
from wavecast.kernels.moe.combine import COMBINE, combine
from wavecast.kernels.moe.fp8_codes import ROUND, SQUARE, rounded
from wavecast.kernels.moe.fp8_products import product_fp8
from wavecast.kernels.moe.steps import Order
from wavecast.kernels.operator import Operator, Tolerance
from wavecast.kernels.quantise.group import quantise_fp8_group_reference
from wavecast.model.bounds import Work


def moe_experts_fp8(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
) -> torch.Tensor:
    """`moe_experts` with fp8 weights as DeepSeek-V3 has them, and activations rounded to fp8.

    `w1` [experts, 2 · inter, model] and `w2` [experts, model, inter] are of float8_e4m3fn; `scale1`
    [experts, ceil(2 · inter / 128), ceil(model / 128)] and `scale2`
    [experts, ceil(model / 128), ceil(inter / 128)] of float32 have a factor per square of 128.
    `hidden`, and what the activation makes, are rounded to float8_e4m3fn with a scale per 128
    channels (`quantise_fp8_group`); the activation's result is rounded to the dtype of `hidden`
    before. Everything else is as in `moe_experts`. Raises ArgumentError.
    """
    name = "moe_experts_fp8"
    count, _, _ = given.check(
        name, hidden, weights, experts, w1, w2, torch.float8_e4m3fn, scale1=scale1, scale2=scale2
    )
    for which, scale, w in (("scale1", scale1, w1), ("scale2", scale2, w2)):
        squares = (triton.cdiv(size, SQUARE) for size in w.shape[1:])
        checks.dtype_in(name, which, scale, (torch.float32,))
        checks.shape_is(name, which, scale, (count, *squares))
    gate = Gate.of(name, activation, alpha, limit)
    if not hidden.numel():
        return torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    order = Order.of(experts, count, w1.element_size(), tiling.BYTES_AT_MOST)
    kind = hidden.dtype
    x, x_scale = rounded(hidden, None, count)
    y = product_fp8(x, x_scale, order, w1, scale1, shared=order.top_k, dtype=kind, gate=gate)
    x, x_scale = rounded(y, order.experts, count)
    each = product_fp8(x, x_scale, order, w2, scale2, shared=1, dtype=kind)
    return combine(each, order, weights.contiguous(), kind)


def moe_experts_fp8_reference(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
) -> torch.Tensor:
    """Weights times their scales, in float32 at least, of every expert for every token."""
    kind = torch.promote_types(hidden.dtype, torch.float32)
    x = _rounded(hidden.to(kind))

    def expert(number: int) -> torch.Tensor:
        gate, up = activations.halves(x @ _scaled(w1[number], scale1[number], kind).T)
        y = activations.reference(activation, gate, up, alpha, limit).to(hidden.dtype)
        return _rounded(y.to(kind)) @ _scaled(w2[number], scale2[number], kind).T

    return given.mixture(hidden, weights, experts, w1.shape[0], expert)


def _rounded(x: torch.Tensor) -> torch.Tensor:
    """Rounded to fp8 with a scale per 128 columns."""
    codes, scale = quantise_fp8_group_reference(x)
    each = scale.to(x.dtype).repeat_interleave(SQUARE, -1)[..., : x.shape[-1]]
    return codes.to(x.dtype) * each


def _scaled(w: torch.Tensor, scale: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    rows, columns = w.shape
    each = scale.to(kind).repeat_interleave(SQUARE, 0)[:rows]
    return w.to(kind) * each.repeat_interleave(SQUARE, 1)[:, :columns]


def _inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    experts, model, inter = (sizes[name] for name in ("experts", "model", "inter"))
    kind = "float8_e4m3fn"

    def scale(rows: int, deep: int) -> torch.Tensor:
        squares = (triton.cdiv(size, SQUARE) for size in (rows, deep))
        return make.uniform((experts, *squares), "float32", 0.5, 1.0) * deep**-0.5

    plain = given.inputs(make, **sizes)
    names = ("hidden", "weights", "experts", "activation")
    return {
        **{name: plain[name] for name in names},
        "w1": make.normal((experts, 2 * inter, model), kind, 32.0),
        "scale1": scale(2 * inter, model) / 16,
        "w2": make.normal((experts, model, inter), kind, 32.0),
        "scale2": scale(model, inter) / 32,
    }


def _work(**sizes: Any) -> Work:
    return given.work(sizes, "fp8", 1 + 4 / SQUARE**2)


OPERATORS = (
    Operator(
        name="moe_experts_fp8",
        summary="moe_experts with block-scaled fp8 weights",
        call=moe_experts_fp8,
        reference=moe_experts_fp8_reference,
        fake=given.like_hidden,
        inputs=_inputs,
        work=_work,
        cases=(
            {"tokens": 5, "experts": 3, "model": 160, "inter": 40, "top_k": 2}
            | {"dtype": "bfloat16", "routing": "odd"},
            {"tokens": 70, "experts": 3, "model": 128, "inter": 256, "top_k": 2}
            | {"dtype": "float16", "activation": "gelu", "routing": "odd"},
            {"tokens": 33, "experts": 2, "model": 256, "inter": 128, "top_k": 1}
            | {"dtype": "float32"},
        ),
        thorough=(
            {"tokens": 40, "experts": 2, "model": 136, "inter": 200, "top_k": 2}
            | {"dtype": "bfloat16", "activation": "clamped_swiglu"},
            {"tokens": 20, "experts": 2, "model": 384, "inter": 72, "top_k": 2}
            | {"dtype": "float16", "activation": "gelu_tanh"},
        ),
        shapes=given.SHAPES[:4] + given.SHAPES[5:],
        spaces=(ROUND, fp8_products.PRODUCT, COMBINE),
        tolerance=Tolerance(ulps=3.0, accumulated=5e-3),
        exact=("hidden", "weights", "w1", "w2", "scale1", "scale2"),
        notes="A NaN among the weights counts as a finite number where a GPU lacks e4m3fn.",
    ),
)
