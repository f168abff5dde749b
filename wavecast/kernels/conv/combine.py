"""Partial sums of split reductions added up in a fixed order, with what ends a convolution."""

# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.pointwise.functions import sigmoid
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.chip import Chip


@triton.jit
def activated(x, ACTIVATION: tl.constexpr):
    """An activation function by its name, in float32."""
    if ACTIVATION == "relu":
        x = tl.where(x < 0, 0.0, x)  # keeps NaN
    elif ACTIVATION == "silu":
        x = x * sigmoid(x)
    elif ACTIVATION == "gelu":
        x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    return x


@triton.jit
def combine_splits_kernel(
    part_ptr, bias_ptr, y_ptr, rest_ptr, count, first_count, splits, channels,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, AHEAD: tl.constexpr, BLOCK: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """`part_ptr` holds `splits` times `count` elements, channels innermost; AHEAD of these parts
    are on their way at once. The first `first_count` sums go to `y_ptr`, others to `rest_ptr`."""
    start = tl.program_id(0) * BLOCK
    if WIDE:
        start = start.to(tl.int64)
        count = count.to(tl.int64)
    place = start + tl.arange(0, BLOCK)
    inside = place < count
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, splits, AHEAD):
        for turn in tl.static_range(AHEAD):
            some = inside & (first + turn < splits)
            total += tl.load(part_ptr + (first + turn) * count + place, mask=some, other=0.0)
    if BIAS:
        bias = tl.load(bias_ptr + place % channels, mask=inside, other=0.0)
        total += bias.to(tl.float32)
    total = activated(total, ACTIVATION)
    if rest_ptr is not None:
        last = total.to(rest_ptr.dtype.element_ty)
        tl.store(rest_ptr + (place - first_count), last, mask=inside & (place >= first_count))
        inside &= place < first_count
    tl.store(y_ptr + place, total.to(y_ptr.dtype.element_ty), mask=inside)


def combine(
    parts: torch.Tensor,
    bias: torch.Tensor | None,
    y: torch.Tensor,
    activation: str,
    rest: torch.Tensor | None = None,
) -> None:
    """Write the sums of `parts` [splits, images · pixels · channels] to `y` [images, channels, …],
    dense with channels innermost; those of the elements that `parts` has beyond these to `rest`."""
    splits, count = parts.shape
    problem = {
        "count": count,
        "splits": splits,
        "bytes": y.element_size(),
        "bias": bias is not None,
        "activation": activation,
    }
    launch(
        combine_splits_kernel,
        lambda settings: (triton.cdiv(count, settings["BLOCK"]),),
        (parts, bias, y, rest, count, y.numel(), splits, y.shape[1]),
        SPACE,
        problem,
        BIAS=bias is not None,
        ACTIVATION=activation,
        AHEAD=min(8, triton.next_power_of_2(splits)),
        WIDE=checks.wide(parts, y),
    )


def seconds(count: int, splits: int, device: Device) -> float:
    """What adding up takes, with writing the parts before."""
    problem = {"count": count, "splits": splits, "bytes": 2}
    best = min(
        _seconds(problem, {"BLOCK": block, "num_warps": 4}, device) for block in (256, 512, 1024)
    )
    chip = Chip.of(device)
    return best + count * splits * 4 / chip.hbm + chip.launch


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {"BLOCK": (256, 512, 1024, 2048), "num_warps": (1, 2, 4), "num_stages": (1,)}


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    count, splits = problem["count"], problem["splits"]
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(count, settings["BLOCK"]),
        read=4.0 * count * splits,
        written=count * problem["bytes"],
        elements=settings["BLOCK"],
        operations=2.0 * splits + 8.0,
        held=3.0,
    )


SPACE = Space(
    kernel="combine_splits_kernel",
    axes=_axes,
    fits=lambda problem, settings, device: settings["BLOCK"] >= 128 * settings["num_warps"],
    seconds=_seconds,
    classes=("count",),
)

__all__ = ["SPACE", "activated", "combine", "seconds"]
