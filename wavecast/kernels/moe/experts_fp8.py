"""Experts with fp8 weights: a scale per 128x128 of the weights, one per 128 of every activation."""

from typing import Any

import torch
import triton
from torch import Tensor

from wavecast.kernels.describe import Make, Operator, Tolerance, sizes, wide_dtype
from wavecast.kernels.moe import given
from wavecast.kernels.moe.combine import combine
from wavecast.kernels.moe.fp8_products import SQUARE, product_fp8, quantise_rows
from wavecast.kernels.moe.tiling import LARGEST_BYTE_BLOCK, Order
from wavecast.kernels.quantise.group import quantise_fp8_group_reference

TENSORS = given.tensors(
    "float8_e4m3fn",
    "scale1: [count, cdiv(2 * inter, 128), cdiv(model, 128)] float32",
    "scale2: [count, cdiv(model, 128), cdiv(inter, 128)] float32",
)


def moe_experts_fp8(
    hidden: Tensor, weights: Tensor, experts: Tensor, w1: Tensor, scale1: Tensor, w2: Tensor,
    scale2: Tensor, activation: str = "silu", alpha: float = 1.702, limit: float = 7.0,
) -> Tensor:  # fmt: skip
    """`moe_experts` with fp8 weights as DeepSeek-V3 has them, and activations rounded to fp8.

    `w1` [experts, 2 · inter, model] and `w2` [experts, model, inter] are of float8_e4m3fn; `scale1`
    [experts, ceil(2 · inter / 128), ceil(model / 128)] and `scale2`
    [experts, ceil(model / 128), ceil(inter / 128)] of float32 have a factor per square of 128.
    `hidden`, and what the activation makes, are rounded to float8_e4m3fn with a scale per 128
    channels (`quantise_fp8_group`); the activation's result is rounded to the dtype of `hidden`
    before. Everything else is as in `moe_experts`. Raises ArgumentError.
    """
    bound, gate = given.check("moe_experts_fp8", TENSORS, locals())
    count = bound["count"]
    if not hidden.numel():
        return torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    order = Order.of(experts, count, w1.element_size(), LARGEST_BYTE_BLOCK)
    dtype = hidden.dtype
    x, x_scale = quantise_rows(hidden, None, count)
    y = product_fp8(x, x_scale, order, w1, scale1, shared=order.top_k, dtype=dtype, gate=gate)
    x, x_scale = quantise_rows(y, order.experts, count)
    each = product_fp8(x, x_scale, order, w2, scale2, shared=1, dtype=dtype)
    return combine(each, order, weights, dtype)


def moe_experts_fp8_reference(
    hidden, weights, experts, w1, scale1, w2, scale2, activation="silu", alpha=1.702, limit=7.0
):
    """Weights times their scales, in float32 at least, of every expert for every token."""
    arguments, wide = dict(locals()), wide_dtype(hidden)

    def round_to_fp8(x):
        """Rounded to fp8 with a scale per 128 columns."""
        codes, scale = quantise_fp8_group_reference(x.to(hidden.dtype).to(wide))
        each = scale.to(wide).repeat_interleave(SQUARE, -1)[..., : x.shape[-1]]
        return codes.to(wide) * each

    def dequantise(w, scale):
        rows, columns = w.shape
        each = scale.to(wide).repeat_interleave(SQUARE, 0)[:rows]
        return w.to(wide) * each.repeat_interleave(SQUARE, 1)[:, :columns]

    def dense(number):
        return dequantise(w1[number], scale1[number]), dequantise(w2[number], scale2[number])

    return given.reference(arguments, dense, round_to_fp8)


def _inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    arguments = given.inputs(make, **sizes)
    del arguments["bias1"], arguments["bias2"]
    for (which, rows, columns), times in zip(given.layers(sizes), (16, 32), strict=True):
        shape = (sizes["experts"], rows, columns)
        squares = (shape[0], *(triton.cdiv(size, SQUARE) for size in shape[1:]))
        arguments[f"w{which}"] = make.normal(shape, "float8_e4m3fn", 32.0)
        scale = make.uniform(squares, "float32", 0.5, 1.0)
        arguments[f"scale{which}"] = scale * columns**-0.5 / times
    return arguments


OPERATOR = Operator(
    summary="moe_experts with block-scaled fp8 weights",
    call=moe_experts_fp8,
    tensors=TENSORS,
    fake=given.like_hidden,
    inputs=_inputs,
    work=lambda **sizes: given.work(sizes, "fp8", 1 + 4 / SQUARE**2),
    tolerance=Tolerance(ulps=3.0, accumulated=5e-3),
    exact=("hidden", "weights", "w1", "w2", "scale1", "scale2"),
    notes="A NaN among the weights counts as a finite number where a GPU lacks e4m3fn.",
    cases=(
        *sizes(f"{given.NAMES} routing", (5, 3, 160, 40, 2, "bfloat16", "odd")),
        *sizes(f"{given.NAMES} activation routing", (70, 3, 128, 256, 2, "float16", "gelu", "odd")),
        *sizes(given.NAMES, (33, 2, 256, 128, 1, "float32")),
    ),
    thorough=sizes(
        f"{given.NAMES} activation",
        (40, 2, 136, 200, 2, "bfloat16", "clamped_swiglu"),
        (20, 2, 384, 72, 2, "float16", "gelu_tanh"),
    ),
    shapes=given.SHAPES[:4] + given.SHAPES[5:],
)
