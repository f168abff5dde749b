"""The operators over convolutions, and their arguments and work in plain sizes."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels import derivative, describe
from wavecast.kernels.conv import convolution
from wavecast.kernels.conv.geometry import Geometry, geometry
from wavecast.kernels.describe import Batch, Make, Operator, Sizes, Tolerance, Work


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split("x")]


def _shapes(sizes: Sizes) -> tuple[list[int], list[int], dict[str, Any]]:
    """Shapes of input and weight, and the other arguments, of a call given in plain sizes."""
    size, taps = _numbers(sizes["size"]), _numbers(sizes["kernel"])
    groups = sizes.get("groups", 1)
    rest: dict[str, Any] = {"groups": groups}
    for name, usual in (("stride", 1), ("padding", 0), ("dilation", 1)):
        rest[name] = _numbers(sizes[name]) if name in sizes else [usual] * len(size)
    x = [sizes["batch"], sizes["channels"], *size]
    return x, [sizes["filters"], sizes["channels"] // groups, *taps], rest


def _case_geometry(sizes: Sizes) -> Geometry:
    x, weight, rest = _shapes(sizes)
    return geometry("convolution", x, weight, **rest)


def _tensor(make: Make, shape: Any, sizes: Sizes, scale: float = 1.0) -> Tensor:
    if sizes.get("layout", "last") != "last":
        return make.normal(shape, sizes["dtype"], scale)
    values = make.normal((shape[0], *shape[2:], shape[1]), sizes["dtype"], scale)
    return values.movedim(-1, 1)


def _weight(make: Make, shape: list[int], sizes: Sizes) -> Tensor:
    return _tensor(make, shape, sizes, math.prod(shape[1:]) ** -0.5)


def _inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    x, weight, rest = _shapes(sizes)
    bias = make.normal((weight[0],), sizes["dtype"]) if sizes.get("bias") else None
    operands = {"x": _tensor(make, x, sizes), "weight": _weight(make, weight, sizes), "bias": bias}
    return {**operands, **rest, "activation": sizes.get("activation", "none")}


def _data_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    x, weight, rest = _shapes(sizes)
    dy = _tensor(make, _case_geometry(sizes).output_shape(), sizes)
    return {"dy": dy, "weight": _weight(make, weight, sizes), "size": x[2:], **rest}


def _weight_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    x, weight, rest = _shapes(sizes)
    dy = _tensor(make, _case_geometry(sizes).output_shape(), sizes)
    operands = {"dy": dy, "x": _tensor(make, x, sizes), "kernel": weight[2:]}
    return {**operands, **rest, "bias": sizes.get("bias", True)}


def _work(result: str) -> Callable[..., Work]:
    """The work of the operator that computes `y`, `x` (its gradient) or `weight` (its gradient)."""

    def work(**sizes: Any) -> Work:
        g = _case_geometry(sizes)
        dtype = getattr(torch, sizes["dtype"])
        x, y, w = (math.prod(s()) for s in (g.input_shape, g.output_shape, g.weight_shape))
        bias = g.filters if sizes.get("bias", result == "weight") else 0
        written = {"y": y, "x": x, "weight": w + bias}[result]
        products = 2.0 * y * (g.channels // g.groups) * math.prod(g.taps)
        rate = "vector_fp32" if g.depthwise else describe.short_name(dtype)
        read = x + y + w + (0 if result == "x" else bias) - written
        size = dtype.itemsize
        return Work({rate: products}, read * size, written * size, "formula", "formula")

    return work


def _case(batch: int, channels: int, filters: int, size: str, kernel: str, **more: Any) -> Sizes:
    sizes = {"batch": batch, "channels": channels, "filters": filters, "size": size}
    return {**sizes, "kernel": kernel, **more}


def _layer(
    channels: int, filters: int, size: int, taps: int, batch: int = 32, stride: int = 1, **more: Any
) -> Sizes:
    """A layer of an image network."""
    square = f"{size}x{size}", f"{taps}x{taps}"
    ends = {"stride": f"{stride}x{stride}", "padding": f"{taps // 2}x{taps // 2}"}
    return _case(batch, channels, filters, *square, **ends, dtype="float16", **more)


def _without_ends(cases: tuple[Sizes, ...]) -> tuple[Sizes, ...]:
    """Cases without bias and activation, which gradients do not have."""
    ends = ("bias", "activation")
    return tuple({n: v for n, v in case.items() if n not in ends} for case in cases)


_CASES = (
    _case(2, 4, 6, "5x4", "3x2", stride="2x1", padding="1x1", groups=2, dtype="float32", bias=True),
    _case(2, 40, 72, "9x7", "3x3", padding="1x1", dtype="float16", bias=True, activation="relu"),
    _case(1, 3, 20, "17x15", "7x7", stride="2x2", padding="3x3", dtype="bfloat16", layout="first"),
    _case(3, 36, 36, "11x6", "3x3", stride="2x1", padding="1x1", groups=36, dtype="float16"),
    _case(1, 200, 24, "8x4", "1x1", dtype="bfloat16", bias=True, activation="silu"),
)
_THOROUGH = (
    _case(2, 24, 18, "30", "5", stride="3", padding="2", dilation="2", dtype="float16"),
    _case(1, 16, 18, "5x6x7", "2x3x3", stride="1x2x1", padding="1x1x0", dilation="1x1x2",
          dtype="bfloat16"),
    _case(2, 10, 20, "3x6x5", "2x3x1", stride="2x1x2", padding="1x1x0", groups=10, dtype="float32",
          layout="first", activation="gelu"),
    _case(2, 40, 24, "4x12", "1x1", dtype="float16", layout="first", activation="gelu", bias=True),
    _case(2, 12, 18, "9x8", "3x2", stride="1x2", padding="1x0", dilation="2x1", groups=3,
          dtype="bfloat16", layout="first"),
    _case(1, 24, 17, "7x7", "1x1", stride="3x2", dtype="float32"),
    _case(2, 33, 20, "6x7", "3x3", dilation="1x2", dtype="float32", layout="first",
          activation="silu"),
    _case(1, 8, 8, "40", "4", padding="3", groups=8, dtype="bfloat16", activation="silu",
          bias=True),
)  # fmt: skip
_SHAPES = (
    _layer(3, 64, 224, 7, stride=2),
    _layer(64, 64, 56, 1),
    _layer(64, 64, 56, 3),
    _layer(64, 64, 56, 3, layout="first"),
    _layer(64, 256, 56, 1, batch=256),
    _layer(256, 128, 56, 1, layout="first"),
    _layer(128, 128, 56, 3, stride=2),
    _layer(128, 128, 28, 3, batch=256),
    _layer(256, 256, 14, 3, batch=1),
    _layer(256, 256, 14, 3),
    _layer(1024, 512, 7, 1, batch=1),
    _layer(512, 512, 7, 3, batch=256),
    _layer(144, 144, 56, 3, groups=144),
)
_TOLERANCE = Tolerance(ulps=1.0, accumulated=1e-5)

CONVOLUTION = Operator(
    summary="convolution of one, two or three dimensions with bias and activation",
    call=convolution.convolution,
    inputs=_inputs,
    work=_work("y"),
    batch=Batch(("x",), merged=True),
    cases=_CASES,
    thorough=_THOROUGH,
    shapes=_SHAPES,
    tolerance=_TOLERANCE,
    gradient=convolution.GRADIENT,
)
_OF_IMAGES = tuple(case for case in (*_CASES, *_THOROUGH) if case["size"].count("x") == 1)
IMAGES = replace(
    CONVOLUTION,
    name="conv2d",
    summary="convolution of images with bias and activation",
    call=convolution.conv2d,
    reference=convolution.conv2d_reference,
    cases=_OF_IMAGES[:2],
    thorough=_OF_IMAGES[2:5],
    shapes=_SHAPES[2:3],
)
_GRADIENTS: dict[str, Any] = {
    "cases": _without_ends(_CASES),
    "shapes": (_SHAPES[2], _layer(256, 128, 56, 1), _SHAPES[6]),
    "tolerance": _TOLERANCE,
}
_FURTHER = _without_ends(_THOROUGH)
DATA_GRADIENT = derivative.operator(
    CONVOLUTION,
    convolution.convolution_backward_data,
    summary="gradient of a convolution's input",
    inputs=_data_inputs,
    work=_work("x"),
    thorough=_FURTHER,
    **_GRADIENTS,
)
WEIGHT_GRADIENT = derivative.operator(
    CONVOLUTION,
    convolution.convolution_backward_weight,
    summary="gradients of a convolution's weight and bias",
    inputs=_weight_inputs,
    work=_work("weight"),
    thorough=(*_FURTHER, {**DATA_GRADIENT.cases[1], "bias": False}),
    **_GRADIENTS,
)
OPERATORS = (CONVOLUTION, IMAGES, DATA_GRADIENT, WEIGHT_GRADIENT)
