"""Group norm where a program holds a whole group: forward and backward, each tensor read once.

Elements wait in registers as they were loaded, and so do weights: a load between stores would wait
for them. `nought` and `also` are 0, which the compiler does not know: so it does not keep the
float32 it made of them for an earlier sum, which would take twice the registers.
"""

# What pyright does not know of Triton: unrolled loops, functions that return tuples, constants.
# pyright: reportOperatorIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.norm.group_slab import Shape
from wavecast.kernels.norm.group_terms import affine
from wavecast.kernels.norm.rows import two_sums
from wavecast.kernels.pointwise.functions import activated, value_and_derivative
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.chip import Chip

_CHANNELS = 64
"""Channels of a group, whose loads and stores are unrolled."""
_PARTS = 16
"""Parts of the positions of a group, whose gradients are summed apart: the waves there may be. On
RDNA the waves meet instead: sums of many parts are small writes, which cost it more."""
_HELD = {"gfx": 160 * 2**10, "sm_": 2**17}
"""Bytes that the registers of a program hold, by the beginning of a target: with what they are
computed from, as many as 16 waves have without spilling."""


@triton.jit
def again(held, nought, ELEMENT: tl.constexpr):
    """What was held, as float32."""
    return (held ^ nought.to(held.dtype)).to(ELEMENT, bitcast=True).to(tl.float32)


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
    own = number % groups * WIDTH
    one = tl.full((), 1.0, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    held = ()
    factors = ()
    shifts = ()
    for channel in tl.static_range(WIDTH):
        x = tl.load(x_ptr + first + channel * positions + place, mask=inside, other=0.0)
        total += x.to(tl.float32)
        held = held + (x.to(BITS, bitcast=True),)  # noqa: RUF005 - Triton's tuples
        factor, shift = affine(weight_ptr, bias_ptr, own + channel, True, one)
        factors = factors + (factor,)  # noqa: RUF005
        shifts = shifts + (shift,)  # noqa: RUF005
    mean = tl.sum(total, axis=0) / size
    squares = tl.zeros((BLOCK,), tl.float32)
    for channel in tl.static_range(WIDTH):
        apart = tl.where(inside, again(held[channel], nought, KIND) - mean, 0.0)
        squares += apart * apart
    scale = tl.rsqrt(tl.sum(squares, axis=0) / size + eps)
    for channel in tl.static_range(WIDTH):
        y = (again(held[channel], also, KIND) - mean) * (factors[channel] * scale) + shifts[channel]
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
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr, BITS: tl.constexpr,
    DY_BITS: tl.constexpr, SILU: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """dx of one group per program, and sums of each channel's gradients, plain and along the
    normalised values, to [images, PARTS, channels]: over PARTS parts of the positions, so that no
    waves need to meet for them."""
    KIND: tl.constexpr = x_ptr.dtype.element_ty
    DY_KIND: tl.constexpr = dy_ptr.dtype.element_ty
    number = tl.program_id(0)
    size = WIDTH * positions
    first = (tl.cast(number, tl.int64) if WIDE else number) * size
    place = tl.arange(0, BLOCK)
    inside = place < positions
    mean = tl.load(mean_ptr + number)
    scale = tl.load(scale_ptr + number)
    own = number % groups * WIDTH
    part = number // groups * PARTS + tl.arange(0, PARTS)
    held_x = ()
    held_dy = ()
    factors = ()
    shifts = ()
    for channel in tl.static_range(WIDTH):  # all on their way before the first store
        factor, shift = affine(weight_ptr, bias_ptr, own + channel, True, scale)
        factors = factors + (factor,)  # noqa: RUF005
        shifts = shifts + (shift,)  # noqa: RUF005
        at = first + channel * positions + place
        x = tl.load(x_ptr + at, mask=inside, other=0.0)
        dy = tl.load(dy_ptr + at, mask=inside, other=0.0)
        held_x = held_x + (x.to(BITS, bitcast=True),)  # noqa: RUF005
        held_dy = held_dy + (dy.to(DY_BITS, bitcast=True),)  # noqa: RUF005
    plain = tl.zeros((PARTS,), tl.float32)
    along = tl.zeros((PARTS,), tl.float32)
    for channel in tl.static_range(WIDTH):
        x = held_x[channel].to(KIND, bitcast=True).to(tl.float32) - mean
        dy = held_dy[channel].to(DY_KIND, bitcast=True).to(tl.float32)
        if SILU:
            dy *= value_and_derivative(x * factors[channel] + shifts[channel], "silu")[1]
        own_plain = tl.sum(tl.reshape(dy, (PARTS, BLOCK // PARTS)), axis=1)
        own_along = tl.sum(tl.reshape(dy * x, (PARTS, BLOCK // PARTS)), axis=1)
        to = part * (groups * WIDTH) + own + channel
        tl.store(plain_ptr + to, own_plain)
        tl.store(along_ptr + to, own_along * scale)
        plain += own_plain * factors[channel]
        along += own_along * factors[channel]
    plain, along = two_sums(plain[None, :], along[None, :])
    plain /= size
    along *= scale * scale / size
    for channel in tl.static_range(WIDTH):
        x = again(held_x[channel], nought, KIND) - mean
        dy = again(held_dy[channel], nought, DY_KIND)
        if SILU:
            dy *= value_and_derivative(x * factors[channel] + shifts[channel], "silu")[1]
        dx = dy * factors[channel] - plain - x * along
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
    """Fill `dx`; returns sums of each channel's gradients, plain and along the normalised values:
    [2, shares, channels] of float32."""
    most = 1 if gpu.launching().target.startswith("gfx1") else _PARTS
    parts = min(most, triton.next_power_of_2(shape.positions))
    sums = means.new_empty((2, shape.images * parts, shape.channels))
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
        PARTS=parts,
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
