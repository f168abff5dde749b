"""Convolutions in plain sizes: their arguments and work, and those tested and judged."""

from __future__ import annotations

import math
from typing import Any

import torch

from wavecast.kernels.conv.geometry import Geometry, geometry
from wavecast.kernels.conv.ranking import DTYPES
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Sizes
from wavecast.model.bounds import Work


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split("x")]


def _shapes(sizes: Sizes) -> tuple[list[int], list[int], dict[str, Any]]:
    """Shapes of input and weight, and the other arguments, of a call given in plain sizes."""
    size, taps = _numbers(sizes["size"]), _numbers(sizes["kernel"])
    dims, groups = len(size), sizes.get("groups", 1)
    rest = {
        "stride": _numbers(sizes.get("stride", "x".join("1" * dims))),
        "padding": _numbers(sizes.get("padding", "x".join("0" * dims))),
        "dilation": _numbers(sizes.get("dilation", "x".join("1" * dims))),
        "groups": groups,
    }
    x = [sizes["batch"], sizes["channels"], *size]
    return x, [sizes["filters"], sizes["channels"] // groups, *taps], rest


def _given(sizes: Sizes) -> Geometry:
    x, weight, rest = _shapes(sizes)
    return geometry("convolution", x, weight, **rest)


def _tensor(make: Make, shape: Any, sizes: Sizes, scale: float = 1.0) -> torch.Tensor:
    last = sizes.get("layout", "last") == "last"
    if not last:
        return make.normal(shape, sizes["dtype"], scale)
    drawn = make.normal((shape[0], *shape[2:], shape[1]), sizes["dtype"], scale)
    return drawn.movedim(-1, 1)


def inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    x, weight, rest = _shapes(sizes)
    scale = math.prod(weight[1:]) ** -0.5
    bias = make.normal((weight[0],), sizes["dtype"]) if sizes.get("bias") else None
    return {
        "x": _tensor(make, x, sizes),
        "weight": _tensor(make, weight, sizes, scale),
        "bias": bias,
        **rest,
        "activation": sizes.get("activation", "none"),
    }


def data_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    x, weight, rest = _shapes(sizes)
    return {
        "dy": _tensor(make, _given(sizes).output_shape(), sizes),
        "weight": _tensor(make, weight, sizes, math.prod(weight[1:]) ** -0.5),
        "size": x[2:],
        **rest,
    }


def weight_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    x, weight, rest = _shapes(sizes)
    dy = _tensor(make, _given(sizes).output_shape(), sizes)
    return {
        "dy": dy,
        "x": _tensor(make, x, sizes),
        "kernel": weight[2:],
        **rest,
        "bias": sizes.get("bias", True),
    }


def work(way: str) -> Any:
    def work(**sizes: Any) -> Work:
        g = _given(sizes)
        kind = getattr(torch, sizes["dtype"])
        x, y, w = (math.prod(s()) for s in (g.input_shape, g.output_shape, g.weight_shape))
        bias = g.filters if sizes.get("bias", way == "weight") else 0
        written = {"forward": y, "data": x, "weight": w + bias}[way]
        taps = math.prod(g.taps)
        products = 2.0 * y * (g.channels // g.groups) * taps
        name = "vector_fp32" if g.depthwise else DTYPES[kind]
        read = x + y + w + (0 if way == "data" else bias) - written
        size = kind.itemsize
        return Work({name: products}, read * size, written * size, "formula", "formula")

    return work


def _net(
    channels: int, filters: int, size: int, taps: int, batch: int = 32, stride: int = 1, **more: Any
) -> dict[str, Any]:
    """A layer of an image network."""
    pad = taps // 2
    return {
        "batch": batch,
        "channels": channels,
        "filters": filters,
        "size": f"{size}x{size}",
        "kernel": f"{taps}x{taps}",
        "stride": f"{stride}x{stride}",
        "padding": f"{pad}x{pad}",
        "dtype": "float16",
        **more,
    }


CASES: tuple[dict[str, Any], ...] = (
    {
        "batch": 2,
        "channels": 4,
        "filters": 6,
        "size": "5x4",
        "kernel": "3x2",
        "stride": "2x1",
        "padding": "1x1",
        "groups": 2,
        "dtype": "float32",
        "bias": True,
    },
    {
        "batch": 2,
        "channels": 40,
        "filters": 72,
        "size": "9x7",
        "kernel": "3x3",
        "padding": "1x1",
        "dtype": "float16",
        "bias": True,
        "activation": "relu",
    },
    {
        "batch": 1,
        "channels": 3,
        "filters": 20,
        "size": "17x15",
        "kernel": "7x7",
        "stride": "2x2",
        "padding": "3x3",
        "dtype": "bfloat16",
        "layout": "first",
    },
    {
        "batch": 3,
        "channels": 36,
        "filters": 36,
        "size": "11x6",
        "kernel": "3x3",
        "stride": "2x1",
        "padding": "1x1",
        "groups": 36,
        "dtype": "float16",
    },
    {
        "batch": 1,
        "channels": 200,
        "filters": 24,
        "size": "8x4",
        "kernel": "1x1",
        "dtype": "bfloat16",
        "bias": True,
        "activation": "silu",
    },
)
THOROUGH: tuple[dict[str, Any], ...] = (
    {
        "batch": 2,
        "channels": 24,
        "filters": 18,
        "size": "30",
        "kernel": "5",
        "stride": "3",
        "padding": "2",
        "dilation": "2",
        "dtype": "float16",
    },
    {
        "batch": 1,
        "channels": 16,
        "filters": 18,
        "size": "5x6x7",
        "kernel": "2x3x3",
        "stride": "1x2x1",
        "padding": "1x1x0",
        "dilation": "1x1x2",
        "dtype": "bfloat16",
    },
    {
        "batch": 2,
        "channels": 10,
        "filters": 20,
        "size": "3x6x5",
        "kernel": "2x3x1",
        "stride": "2x1x2",
        "padding": "1x1x0",
        "groups": 10,
        "dtype": "float32",
        "layout": "first",
        "activation": "gelu",
    },
    {
        "batch": 2,
        "channels": 40,
        "filters": 24,
        "size": "4x12",
        "kernel": "1x1",
        "dtype": "float16",
        "layout": "first",
        "activation": "gelu",
        "bias": True,
    },
    {
        "batch": 2,
        "channels": 12,
        "filters": 18,
        "size": "9x8",
        "kernel": "3x2",
        "stride": "1x2",
        "padding": "1x0",
        "dilation": "2x1",
        "groups": 3,
        "dtype": "bfloat16",
        "layout": "first",
    },
    {
        "batch": 1,
        "channels": 24,
        "filters": 17,
        "size": "7x7",
        "kernel": "1x1",
        "stride": "3x2",
        "dtype": "float32",
    },
    {
        "batch": 2,
        "channels": 33,
        "filters": 20,
        "size": "6x7",
        "kernel": "3x3",
        "dilation": "1x2",
        "dtype": "float32",
        "layout": "first",
        "activation": "silu",
    },
    {
        "batch": 1,
        "channels": 8,
        "filters": 8,
        "size": "40",
        "kernel": "4",
        "padding": "3",
        "groups": 8,
        "dtype": "bfloat16",
        "activation": "silu",
        "bias": True,
    },
)
SHAPES = (
    _net(3, 64, 224, 7, stride=2),
    _net(64, 64, 56, 1),
    _net(64, 64, 56, 3),
    _net(64, 64, 56, 3, layout="first"),
    _net(64, 256, 56, 1, batch=256),
    _net(256, 128, 56, 1, layout="first"),
    _net(128, 128, 56, 3, stride=2),
    _net(128, 128, 28, 3, batch=256),
    _net(256, 256, 14, 3, batch=1),
    _net(256, 256, 14, 3),
    _net(1024, 512, 7, 1, batch=1),
    _net(512, 512, 7, 3, batch=256),
    _net(144, 144, 56, 3, groups=144),
)
GRADIENT_SHAPES = (
    _net(64, 64, 56, 3),
    _net(256, 128, 56, 1),
    _net(128, 128, 56, 3, stride=2),
)


def without_ends(cases: tuple[dict[str, Any], ...]) -> tuple[Sizes, ...]:
    """Cases without what gradients do not have."""
    return tuple(
        {name: value for name, value in case.items() if name not in ("bias", "activation")}
        for case in cases
    )


__all__ = [
    "CASES",
    "GRADIENT_SHAPES",
    "SHAPES",
    "THOROUGH",
    "data_inputs",
    "inputs",
    "weight_inputs",
    "without_ends",
    "work",
]
