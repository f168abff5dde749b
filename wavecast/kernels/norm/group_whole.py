"""Group norm where a program holds a whole group: forward and backward, each tensor read once.

Elements wait in registers as they were loaded. `nought` and `also` are 0, which the compiler does
not know: so it does not keep the float32 it made of them for an earlier sum, which would take twice
the registers.
"""

# What pyright does not know of Triton: unrolled loops, functions that return tuples, constants.
# pyright: reportOperatorIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.norm.group_slabs import Shape
from wavecast.kernels.norm.group_terms import affine
from wavecast.kernels.norm.rows import two_sums
from wavecast.kernels.pointwise.functions import activated, sloped
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.chip import Chip

_CHANNELS = 64
"""Channels of a group, whose loads and stores are unrolled."""
_HELD = {"gfx": 160 * 2**10, "sm_": 2**17}
"""Bytes that the registers of a program hold, by the beginning of a target: with what they are
computed from, as many as 16 waves have without spilling."""


@triton.jit
def again(held, nought, ELEMENT: tl.constexpr):
    """What was held, as float32."""
    return (held ^ nought.to(held.dtype)).to(ELEMENT, bitcast=True).to(tl.float32)


@triton.jit
def stacked(values, COUNT: tl.constexpr, LEVELS: tl.constexpr):
    """A tuple of COUNT = 2**LEVELS tensors [n] as one, [COUNT, n]."""
    for level in tl.static_range(LEVELS):
        pairs = ()
        for number in tl.static_range(COUNT >> (level + 1)):
            pair = tl.join(values[number], values[number + (COUNT >> (level + 1))])
            pairs = pairs + (pair,)  # noqa: RUF005 - Triton's tuples
        values = pairs
    found = values[0]
    return tl.trans(tl.reshape(found, (found.shape[0], COUNT)))


@triton.jit
def group_norm_whole_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, scale_ptr, groups, positions, eps, nought, also,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, BITS: tl.constexpr, SILU: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """One group [WIDTH channels, positions] per program."""
    KIND: tl.constexpr = x_ptr.dtype.element_ty
    number = tl.program_id(0)
    size = WIDTH * positions
    first = (tl.cast(number, tl.int64) if WIDE else number) * size
    place = tl.arange(0, BLOCK)
    inside = place < positions
    total = tl.zeros((BLOCK,), tl.float32)
    held = ()
    for channel in tl.static_range(WIDTH):
        x = tl.load(x_ptr + first + channel * positions + place, mask=inside, other=0.0)
        total += x.to(tl.float32)
        held = held + (x.to(BITS, bitcast=True),)  # noqa: RUF005 - Triton's tuples
    mean = tl.sum(total, axis=0) / size
    squares = tl.zeros((BLOCK,), tl.float32)
    for channel in tl.static_range(WIDTH):
        apart = tl.where(inside, again(held[channel], nought, KIND) - mean, 0.0)
        squares += apart * apart
    scale = tl.rsqrt(tl.sum(squares, axis=0) / size + eps)
    own = number % groups * WIDTH
    for channel in tl.static_range(WIDTH):
        factor, shift = affine(weight_ptr, bias_ptr, own + channel, True, scale)
        y = (again(held[channel], also, KIND) - mean) * factor + shift
        if SILU:
            y = activated(y, "silu")
        to = y_ptr + first + channel * positions + place
        tl.store(to, y.to(y_ptr.dtype.element_ty), mask=inside)
    tl.store(mean_ptr + number, mean)
    tl.store(scale_ptr + number, scale)


@triton.jit
def group_norm_whole_backward_kernel(
    dy_ptr, x_ptr, weight_ptr, bias_ptr, mean_ptr, scale_ptr, plain_ptr, along_ptr, dx_ptr,
    groups, positions, nought,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, LEVELS: tl.constexpr, BITS: tl.constexpr,
    DY_BITS: tl.constexpr, SILU: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """dx of one group per program, and the sums of each channel's gradients, plain and along the
    normalised values, to [images, channels]. All channels are summed in one exchange."""
    COUNT: tl.constexpr = 2**LEVELS
    KIND: tl.constexpr = x_ptr.dtype.element_ty
    DY_KIND: tl.constexpr = dy_ptr.dtype.element_ty
    LANE: tl.constexpr = min(BLOCK, 16 // x_ptr.dtype.element_ty.itemsize)
    number = tl.program_id(0)
    size = WIDTH * positions
    first = (tl.cast(number, tl.int64) if WIDE else number) * size
    place = tl.arange(0, BLOCK)
    inside = place < positions
    mean = tl.load(mean_ptr + number)
    scale = tl.load(scale_ptr + number)
    own = number % groups * WIDTH
    held_x = ()
    held_dy = ()
    plains = ()
    alongs = ()
    for channel in tl.static_range(WIDTH):
        at = first + channel * positions + place
        x = tl.load(x_ptr + at, mask=inside, other=0.0)
        dy = tl.load(dy_ptr + at, mask=inside, other=0.0)
        held_x = held_x + (x.to(BITS, bitcast=True),)  # noqa: RUF005
        held_dy = held_dy + (dy.to(DY_BITS, bitcast=True),)  # noqa: RUF005
        x = x.to(tl.float32) - mean
        dy = dy.to(tl.float32)
        if SILU:
            factor, shift = affine(weight_ptr, bias_ptr, own + channel, True, scale)
            dy *= sloped(x * factor + shift, "silu")[1]
        plain = tl.sum(tl.reshape(dy, (BLOCK // LANE, LANE)), axis=1)
        along = tl.sum(tl.reshape(dy * x, (BLOCK // LANE, LANE)), axis=1)
        plains = plains + (plain,)  # noqa: RUF005
        alongs = alongs + (along,)  # noqa: RUF005
    for _ in tl.static_range(WIDTH, COUNT):
        plains = plains + (tl.zeros_like(plains[0]),)  # noqa: RUF005
        alongs = alongs + (tl.zeros_like(alongs[0]),)  # noqa: RUF005
    plain, along = two_sums(stacked(plains, COUNT, LEVELS), stacked(alongs, COUNT, LEVELS))
    along *= scale
    channel = tl.arange(0, COUNT)
    real = channel < WIDTH
    to = number * WIDTH + channel
    tl.store(plain_ptr + to, plain, mask=real)
    tl.store(along_ptr + to, along, mask=real)
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + own + channel, mask=real, other=0.0).to(tl.float32)
        plain *= weight
        along *= weight
    plain, along = two_sums(plain[None, :], along[None, :])
    plain *= scale / size
    along *= scale * scale / size
    for channel in tl.static_range(WIDTH):
        factor, shift = affine(weight_ptr, bias_ptr, own + channel, True, scale)
        x = again(held_x[channel], nought, KIND) - mean
        dy = again(held_dy[channel], nought, DY_KIND)
        if SILU:
            dy *= sloped(x * factor + shift, "silu")[1]
        dx = dy * factor - plain - x * along
        to = dx_ptr + first + channel * positions + place
        tl.store(to, dx.to(dx_ptr.dtype.element_ty), mask=inside)


def holds(shape: Shape, bytes_: int) -> bool:
    """Whether a program can hold a group that has so many bytes per element."""
    target = gpu.launching().target
    room = next(most for start, most in _HELD.items() if target.startswith(start))
    block = triton.next_power_of_2(shape.positions)
    within = shape.width <= _CHANNELS and block * shape.width * bytes_ <= room
    return within and not shape.last


def forward(
    shape: Shape, source: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
    y: torch.Tensor, means: torch.Tensor, scales: torch.Tensor, eps: float, *, silu: bool,
) -> None:  # fmt: skip
    """Fill `y`, `means` and `scales`."""
    launch(
        group_norm_whole_kernel,
        lambda _: (shape.images * shape.groups,),
        (source, weight, bias, y, means, scales, shape.groups, shape.positions, eps, 0, 0),
        FORWARD,
        shape.problem(silu=silu, parameters=(weight is not None) + (bias is not None)),
        WIDTH=shape.width,
        BITS=_bits(source),
        SILU=silu,
        WIDE=checks.wide(source),
    )


def backward(
    shape: Shape, dy: torch.Tensor, source: torch.Tensor, weight: torch.Tensor | None,
    bias: torch.Tensor | None, means: torch.Tensor, scales: torch.Tensor, dx: torch.Tensor, *,
    silu: bool,
) -> torch.Tensor:  # fmt: skip
    """Fill `dx`; returns the sums of each channel's gradients, plain and along the normalised
    values: [2, images, channels] of float32."""
    sums = means.new_empty((2, shape.images, shape.channels))
    parameters = (weight is not None) + (bias is not None)
    launch(
        group_norm_whole_backward_kernel,
        lambda _: (shape.images * shape.groups,),
        (
            *(dy, source, weight, bias, means, scales, sums[0], sums[1], dx),
            *(shape.groups, shape.positions, 0),
        ),
        BACKWARD,
        shape.problem(silu=silu, parameters=parameters, dy=dy.element_size()),
        WIDTH=shape.width,
        LEVELS=triton.next_power_of_2(shape.width).bit_length() - 1,
        BITS=_bits(source),
        DY_BITS=_bits(dy),
        SILU=silu,
        WIDE=checks.wide(source),
    )
    return sums


def _bits(tensor: torch.Tensor) -> tl.dtype:
    return tl.int32 if tensor.element_size() == 4 else tl.int16


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {
        "BLOCK": (triton.next_power_of_2(problem["positions"]),),
        "num_warps": (8, 4, 16, 2, 1),
        "num_stages": (1,),
    }


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    """One wide load of each channel per lane, and no more than it can hold at ease."""
    bytes_, dy = problem["bytes"], problem.get("dy", 0)
    width = problem["channels"] // problem["groups"]
    size = problem["images"] * problem["channels"] * problem["positions"]
    lane = settings["BLOCK"] / (settings["num_warps"] * Chip.of(device).lanes)
    found = estimates.streaming(
        device,
        settings,
        workgroups=problem["images"] * problem["groups"],
        read=size * (bytes_ + dy),
        written=size * bytes_,
        elements=settings["BLOCK"] * width,
        operations=24.0 if dy else 8.0,
        held=0.75 * (2 if dy else 1),
    )
    narrow = max(0.0, 16 / bytes_ / lane - 1)
    return found * (1.0 + 0.1 * narrow + 0.02 * max(0.0, lane * width / 80 - 1))


FORWARD = Space(kernel="group_norm_whole_kernel", axes=_axes, seconds=_seconds, classes=("images",))
BACKWARD = Space(
    kernel="group_norm_whole_backward_kernel", axes=_axes, seconds=_seconds, classes=("images",)
)

__all__ = ["BACKWARD", "FORWARD", "backward", "forward", "holds"]
