"""Experts with weights of four bits and activations of 16."""

from typing import Any, Final

import torch
from torch import Tensor

from wavecast.kernels import checks
from wavecast.kernels.describe import Make, Operator, Signature, Tolerance, sizes, wide_dtype
from wavecast.kernels.gemm.product import rate_of
from wavecast.kernels.moe import given
from wavecast.kernels.moe.combine import combine
from wavecast.kernels.moe.int4_products import product_int4
from wavecast.kernels.moe.tiling import Order
from wavecast.kernels.strides import adjacent

TENSORS = given.tensors("uint8", hidden="bfloat16|float16", inter="inter_bytes", packed=2)
SCALES = Signature(
    "hidden: [tokens, model]",
    "scale1: [count, model / group, 4 * inter_bytes] float",
    "zero1?: [count, model / group, 4 * inter_bytes] uint8",
    "scale2: [count, 2 * inter_bytes / group, model] float",
    "zero2?: [count, 2 * inter_bytes / group, model] uint8",
)
_GROUPS: Final = (32, 64, 128)


def moe_experts_w4a16(
    hidden: Tensor, weights: Tensor, experts: Tensor, w1: Tensor, scale1: Tensor, w2: Tensor,
    scale2: Tensor, zero1: Tensor | None = None, zero2: Tensor | None = None,
    bias1: Tensor | None = None, bias2: Tensor | None = None, group: int = 128,
    activation: str = "silu", alpha: float = 1.702, limit: float = 7.0, interleaved: bool = False,
) -> Tensor:  # fmt: skip
    """`moe_experts` with weights of four bits, packed as `matmul_w4a16` takes them:
    `w = (code - zero) * scale`.

    `hidden` is of bfloat16 or float16. `w1` [experts, 2 · inter, model / 2] and `w2`
    [experts, model, inter / 2] of uint8 have two codes from 0 to 15 per byte, that of the even
    element in the low four bits. `scale1` [experts, model / group, 2 · inter] and `scale2`
    [experts, inter / group, model] of bfloat16, float16 or float32, and `zero1` and `zero2` like
    them of uint8 from 0 to 15 (None: 8 everywhere), belong to `group` elements along the last
    dimension of the weights: 32, 64 or 128, of which model and inter are multiples. Everything else
    is as in `moe_experts`. Raises ArgumentError.
    """
    name, given_tensors = "moe_experts_w4a16", dict(locals())
    bound, gate = given.check(name, TENSORS, given_tensors)
    checks.require(group in _GROUPS, name, f"groups of {group}; it takes 32, 64 and 128")
    for which, columns in (("w1", bound["model"]), ("w2", 2 * bound["inter_bytes"])):
        even = columns % group == 0
        checks.require(even, name, f"{which} has {columns} columns, no multiple of {group}")
    SCALES.check(name, given_tensors, group=group, **bound)
    if not hidden.numel():
        return torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    order = Order.of(experts, bound["count"], 0.5)
    y = product_int4(
        adjacent(hidden), order, w1, scale1, zero1, shared=order.top_k, group=group, bias=bias1,
        gate=gate,
    )  # fmt: skip
    each = product_int4(y, order, w2, scale2, zero2, shared=1, group=group, bias=bias2)
    return combine(each, order, weights, hidden.dtype)


def moe_experts_w4a16_reference(
    hidden, weights, experts, w1, scale1, w2, scale2, zero1=None, zero2=None, bias1=None,
    bias2=None, group=128, activation="silu", alpha=1.702, limit=7.0, interleaved=False,
):  # fmt: skip
    """Weights widened, in float32 at least, of every expert for every token."""
    arguments, wide = dict(locals()), wide_dtype(hidden)

    def each(scale):
        return scale.to(wide).T.repeat_interleave(group, 1)

    def dense(number):
        layers = ((w1, scale1, zero1), (w2, scale2, zero2))
        codes = (torch.stack((w[number] & 15, w[number] >> 4), -1).flatten(1) for w, *_ in layers)
        return tuple(
            (code.to(wide) - (8.0 if zero is None else each(zero[number]))) * each(scale[number])
            for code, (_, scale, zero) in zip(codes, layers, strict=True)
        )

    return given.reference(arguments, dense, lambda x: x.to(wide))


def _inputs(make: Make, group: int = 128, zeros: bool = True, **sizes: Any) -> dict[str, Any]:
    experts = sizes["experts"]
    arguments = {**given.inputs(make, **sizes), "group": group}
    for which, rows, columns in given.layers(sizes):
        shape, small = (experts, columns // group, rows), columns**-0.5
        arguments[f"w{which}"] = make.integers((experts, rows, columns // 2), 0, 256, "uint8")
        arguments[f"scale{which}"] = make.uniform(shape, sizes["dtype"], 0.1 * small, 0.3 * small)
        arguments[f"zero{which}"] = make.integers(shape, 0, 16, "uint8") if zeros else None
    return arguments


def _work(group: int = 128, zeros: bool = True, **sizes: Any) -> Any:
    dtype = getattr(torch, sizes["dtype"])
    return given.work(sizes, rate_of(dtype), 0.5 + (dtype.itemsize + zeros) / group)


_SIZES = "tokens experts model inter top_k group dtype"

OPERATOR = Operator(
    summary="moe_experts with weights of four bits",
    call=moe_experts_w4a16,
    tensors=TENSORS,
    fake=given.like_hidden,
    inputs=_inputs,
    work=_work,
    tolerance=Tolerance(ulps=3.0, accumulated=1e-5),
    cases=(
        *sizes(f"{_SIZES} bias routing", (3, 4, 64, 32, 2, 32, "bfloat16", True, "odd")),
        *sizes(f"{given.NAMES} zeros routing", (45, 3, 128, 256, 2, "float16", False, "odd")),
        *sizes(
            f"{_SIZES} activation bias interleaved routing",
            (70, 3, 192, 64, 2, 64, "bfloat16", "clamped_swiglu", True, True, "odd"),
        ),
    ),
    thorough=(
        *sizes(
            f"{_SIZES} activation interleaved", (130, 2, 160, 96, 2, 32, "float16", "gelu", True)
        ),
        *sizes(f"{given.NAMES} activation", (200, 2, 128, 128, 2, "bfloat16", "gelu_tanh")),
    ),
    shapes=tuple(
        {**shape, "group": 64} if shape["inter"] % 128 else dict(shape) for shape in given.SHAPES
    ),
)
