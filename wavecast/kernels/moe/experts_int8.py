"""Experts with int8 weights, a scale per channel, and activations rounded to int8 per token."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels import checks
from wavecast.kernels.inputs import Make
from wavecast.kernels.moe import activations, given, products, tiling
from wavecast.kernels.moe.activations import Gate
from wavecast.kernels.moe.combine import COMBINE, combine
from wavecast.kernels.moe.steps import Order, product
from wavecast.kernels.operator import Operator, Tolerance
from wavecast.kernels.quantise.token import TOKEN, per_row, quantise_int8_token_reference
from wavecast.kernels.strides import contiguous
from wavecast.model.bounds import Work


def moe_experts_int8(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
    bias1: torch.Tensor | None = None,
    bias2: torch.Tensor | None = None,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
    interleaved: bool = False,
) -> torch.Tensor:
    """`moe_experts` with int8 weights, and activations rounded to int8 (w8a8).

    `w1` [experts, 2 · inter, model] and `w2` [experts, model, inter] are of int8; `scale1`
    [experts, 2 · inter] and `scale2` [experts, model] of float32 have a factor per row of these.
    `hidden`, and what the activation makes, are rounded to int8 with a scale per token
    (`quantise_int8_token`), the latter from the dtype of `hidden`. Products are summed in int32,
    exactly. Everything else is as in `moe_experts`. Raises ArgumentError.
    """
    name = "moe_experts_int8"
    count, model, inter = given.check(
        name, hidden, weights, experts, w1, w2, torch.int8,
        bias1=bias1, bias2=bias2, scale1=scale1, scale2=scale2,
    )  # fmt: skip
    for which, scale, rows in (("scale1", scale1, 2 * inter), ("scale2", scale2, model)):
        checks.dtype_in(name, which, scale, (torch.float32,))
        checks.shape_is(name, which, scale, (count, rows))
    gate = Gate.of(name, activation, alpha, limit, interleaved)
    if not hidden.numel():
        return torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    order = Order.of(experts, count, w1.element_size(), tiling.BYTES_AT_MOST)
    bias1 = contiguous(bias1)
    bias2 = contiguous(bias2)
    x, x_scale = per_row(name, hidden, torch.int8, "int8")
    y = product(
        *(x, order, w1.contiguous()),
        shared=order.top_k, bias=bias1, gate=gate, dtype=hidden.dtype,
        x_scale=x_scale, w_scale=scale1.contiguous(),
    )  # fmt: skip
    x, x_scale = per_row(name, y, torch.int8, "int8", order.experts, count)
    each = product(
        *(x, order, w2.contiguous()),
        shared=1, bias=bias2, dtype=hidden.dtype, x_scale=x_scale, w_scale=scale2.contiguous(),
    )  # fmt: skip
    return combine(each, order, weights.contiguous(), hidden.dtype)


def moe_experts_int8_reference(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
    bias1: torch.Tensor | None = None,
    bias2: torch.Tensor | None = None,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
    interleaved: bool = False,
) -> torch.Tensor:
    """Weights times their scales, in float64, of every expert for every token."""
    x = _rounded(hidden)

    def expert(number: int) -> torch.Tensor:
        before = x @ (w1[number].double() * scale1[number].double()[:, None]).T
        gate, up = activations.halves(given.biased(before, bias1, number), interleaved)
        y = _rounded(activations.reference(activation, gate, up, alpha, limit).to(hidden.dtype))
        found = y @ (w2[number].double() * scale2[number].double()[:, None]).T
        return given.biased(found, bias2, number)

    return given.mixture(hidden, weights, experts, w1.shape[0], expert)


def _rounded(x: torch.Tensor) -> torch.Tensor:
    """Rounded to int8 with a scale per row."""
    codes, scale = quantise_int8_token_reference(x)
    return codes.double() * scale.double()


def _inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    experts, model, inter = (sizes[name] for name in ("experts", "model", "inter"))

    def scale(rows: int, deep: int) -> torch.Tensor:
        return make.uniform((experts, rows), "float32", 0.5, 1.0) * deep**-0.5 / 40

    return {
        **given.inputs(make, **sizes),
        "w1": make.integers((experts, 2 * inter, model), -127, 128, "int8"),
        "scale1": scale(2 * inter, model),
        "w2": make.integers((experts, model, inter), -127, 128, "int8"),
        "scale2": scale(model, inter),
    }


def _work(**sizes: Any) -> Work:
    return given.work(sizes, "int8", 1.0)


OPERATORS = (
    Operator(
        name="moe_experts_int8",
        summary="moe_experts with int8 weights and activations",
        call=moe_experts_int8,
        reference=moe_experts_int8_reference,
        fake=given.like_hidden,
        inputs=_inputs,
        work=_work,
        cases=given.CASES,
        thorough=given.THOROUGH,
        shapes=given.SHAPES,
        spaces=(TOKEN, products.PRODUCT, COMBINE),
        tolerance=Tolerance(ulps=3.0, accumulated=5e-3),
        exact=("hidden", "weights", "scale1", "scale2", "bias1", "bias2"),
    ),
)
