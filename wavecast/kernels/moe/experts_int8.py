"""Experts with int8 weights, a scale per channel, and activations rounded to int8 per token."""

from typing import Any

import torch
from torch import Tensor

from wavecast.kernels.describe import Make, Operator, Tolerance
from wavecast.kernels.moe import given
from wavecast.kernels.moe.combine import combine
from wavecast.kernels.moe.products import product
from wavecast.kernels.moe.tiling import LARGEST_BYTE_BLOCK, Order
from wavecast.kernels.quantise.token import per_row, quantise_int8_token_reference

TENSORS = given.tensors(
    "int8", "scale1: [count, 2 * inter] float32", "scale2: [count, model] float32"
)


def moe_experts_int8(
    hidden: Tensor, weights: Tensor, experts: Tensor, w1: Tensor, scale1: Tensor, w2: Tensor,
    scale2: Tensor, bias1: Tensor | None = None, bias2: Tensor | None = None,
    activation: str = "silu", alpha: float = 1.702, limit: float = 7.0, interleaved: bool = False,
) -> Tensor:  # fmt: skip
    """`moe_experts` with int8 weights, and activations rounded to int8 (w8a8).

    `w1` [experts, 2 · inter, model] and `w2` [experts, model, inter] are of int8; `scale1`
    [experts, 2 · inter] and `scale2` [experts, model] of float32 have a factor per row of these.
    `hidden`, and what the activation makes, are rounded to int8 with a scale per token
    (`quantise_int8_token`), the latter from the dtype of `hidden`. Products are summed in int32,
    exactly. Everything else is as in `moe_experts`. Raises ArgumentError.
    """
    name = "moe_experts_int8"
    bound, gate = given.check(name, TENSORS, locals())
    count = bound["count"]
    if not hidden.numel():
        return torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    order = Order.of(experts, count, w1.element_size(), LARGEST_BYTE_BLOCK)
    x, x_scale = per_row(name, hidden, torch.int8, "int8")
    first = {"bias": bias1, "w_scale": scale1, "shared": order.top_k, "gate": gate}
    y = product(x, order, w1, **first, x_scale=x_scale, dtype=hidden.dtype)
    x, x_scale = per_row(name, y, torch.int8, "int8", order.experts, count)
    second = {"bias": bias2, "w_scale": scale2, "shared": 1}
    each = product(x, order, w2, **second, x_scale=x_scale, dtype=hidden.dtype)
    return combine(each, order, weights, hidden.dtype)


def moe_experts_int8_reference(
    hidden, weights, experts, w1, scale1, w2, scale2, bias1=None, bias2=None, activation="silu",
    alpha=1.702, limit=7.0, interleaved=False,
):  # fmt: skip
    """Weights times their scales, in float64, of every expert for every token."""
    arguments = dict(locals())

    def round_to_int8(x):
        codes, scale = quantise_int8_token_reference(x.to(hidden.dtype))
        return codes.double() * scale.double()

    def dense(number):
        layers = ((w1[number], scale1[number]), (w2[number], scale2[number]))
        return tuple(w.double() * scale.double()[:, None] for w, scale in layers)

    return given.reference(arguments, dense, round_to_int8)


def _inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    arguments = given.inputs(make, **sizes)
    for which, rows, columns in given.layers(sizes):
        shape = (sizes["experts"], rows, columns)
        arguments[f"w{which}"] = make.integers(shape, -127, 128, "int8")
        scale = make.uniform(shape[:2], "float32", 0.5, 1.0)
        arguments[f"scale{which}"] = scale * columns**-0.5 / 40
    return arguments


OPERATOR = Operator(
    summary="moe_experts with int8 weights and activations",
    call=moe_experts_int8,
    tensors=TENSORS,
    fake=given.like_hidden,
    inputs=_inputs,
    work=lambda **sizes: given.work(sizes, "int8", 1.0),
    tolerance=Tolerance(ulps=3.0, accumulated=5e-3),
    exact=("hidden", "weights", "scale1", "scale2", "bias1", "bias2"),
    cases=given.CASES,
    thorough=given.THOROUGH,
    shapes=given.SHAPES,
)
