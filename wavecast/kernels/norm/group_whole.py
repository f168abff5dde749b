"""Group norm where a program holds a whole group: forward and backward, each tensor read once.

Elements stay in registers as they were loaded, and so do weights: a load between stores would wait
for the stores. `zero` and `zero2` are 0, which the compiler does not know: so it does not keep the
float32 it made of them for an earlier sum, which would take twice the registers.
"""

# What pyright does not know of Triton: unrolled loops, functions that return tuples, constants.
# pyright: reportOperatorIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import choice, describe
from wavecast.kernels.describe import Demand, Device, Problem, Settings, coefficient
from wavecast.kernels.norm.group_slab import PARAMETERS, Shape, Tensors, affine
from wavecast.kernels.norm.rows import two_sums
from wavecast.kernels.pointwise.functions import activated, value_and_derivative
from wavecast.launch import gpu

_CHANNELS = 64
"""Channels of a group, whose loads and stores are unrolled."""
_PARTS = 16
"""Parts of the positions of a group, whose gradients are summed apart: the waves there may be.
Where a wave has 32 lanes the waves of a program are summed instead: sums of many parts are small
writes, which cost it more."""


@triton.jit
def reloaded(loaded, zero, ELEMENT: tl.constexpr):
    """Values that stayed in registers, as float32."""
    return (loaded ^ zero.to(loaded.dtype)).to(ELEMENT, bitcast=True).to(tl.float32)


@triton.jit
def group_norm_whole_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, scale_ptr, groups, positions, eps, zero, zero2,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, BITS: tl.constexpr, SILU: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """One group [WIDTH channels, positions] per program."""
    DTYPE: tl.constexpr = x_ptr.dtype.element_ty
    pid = tl.program_id(0)
    size = WIDTH * positions
    first = (tl.cast(pid, tl.int64) if WIDE else pid) * size
    offs = tl.arange(0, BLOCK)
    mask = offs < positions
    first_channel = pid % groups * WIDTH
    unit = tl.full((), 1.0, tl.float32)
    acc = tl.zeros((BLOCK,), tl.float32)
    loaded = ()
    factors = ()
    shifts = ()
    for channel in tl.static_range(WIDTH):
        x = tl.load(x_ptr + first + channel * positions + offs, mask=mask, other=0.0)
        acc += x.to(tl.float32)
        loaded = loaded + (x.to(BITS, bitcast=True),)  # noqa: RUF005 - Triton's tuples
        factor, shift = affine(weight_ptr, bias_ptr, first_channel + channel, True, unit)
        factors = factors + (factor,)  # noqa: RUF005
        shifts = shifts + (shift,)  # noqa: RUF005
    mean = tl.sum(acc, axis=0) / size
    squares = tl.zeros((BLOCK,), tl.float32)
    for channel in tl.static_range(WIDTH):
        delta = tl.where(mask, reloaded(loaded[channel], zero, DTYPE) - mean, 0.0)
        squares += delta * delta
    scale = tl.rsqrt(tl.sum(squares, axis=0) / size + eps)
    for channel in tl.static_range(WIDTH):
        y = (reloaded(loaded[channel], zero2, DTYPE) - mean) * (factors[channel] * scale) + shifts[
            channel
        ]
        if SILU:
            y = activated(y, "silu")
        out = y_ptr + first + channel * positions + offs
        tl.store(out, y.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + pid, mean)
    tl.store(scale_ptr + pid, scale)


@triton.jit
def group_norm_whole_backward_kernel(
    dy_ptr, x_ptr, weight_ptr, bias_ptr, mean_ptr, scale_ptr, grad_sum_ptr, grad_x_sum_ptr, dx_ptr,
    groups, positions, zero,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr, BITS: tl.constexpr,
    DY_BITS: tl.constexpr, SILU: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """dx of one group per program, and sums of each channel's gradients, plain and along the
    normalised values, to [images, PARTS, channels]: over PARTS parts of the positions, so that no
    waves need to meet for them."""
    DTYPE: tl.constexpr = x_ptr.dtype.element_ty
    DY_DTYPE: tl.constexpr = dy_ptr.dtype.element_ty
    pid = tl.program_id(0)
    size = WIDTH * positions
    first = (tl.cast(pid, tl.int64) if WIDE else pid) * size
    offs = tl.arange(0, BLOCK)
    mask = offs < positions
    mean = tl.load(mean_ptr + pid)
    scale = tl.load(scale_ptr + pid)
    first_channel = pid % groups * WIDTH
    part = pid // groups * PARTS + tl.arange(0, PARTS)
    loaded_x = ()
    loaded_dy = ()
    factors = ()
    shifts = ()
    for channel in tl.static_range(WIDTH):  # all on their way before the first store
        factor, shift = affine(weight_ptr, bias_ptr, first_channel + channel, True, scale)
        factors = factors + (factor,)  # noqa: RUF005
        shifts = shifts + (shift,)  # noqa: RUF005
        ptrs = first + channel * positions + offs
        x = tl.load(x_ptr + ptrs, mask=mask, other=0.0)
        dy = tl.load(dy_ptr + ptrs, mask=mask, other=0.0)
        loaded_x = loaded_x + (x.to(BITS, bitcast=True),)  # noqa: RUF005
        loaded_dy = loaded_dy + (dy.to(DY_BITS, bitcast=True),)  # noqa: RUF005
    grad_sum = tl.zeros((PARTS,), tl.float32)
    grad_x_sum = tl.zeros((PARTS,), tl.float32)
    for channel in tl.static_range(WIDTH):
        x = loaded_x[channel].to(DTYPE, bitcast=True).to(tl.float32) - mean
        dy = loaded_dy[channel].to(DY_DTYPE, bitcast=True).to(tl.float32)
        if SILU:
            dy *= value_and_derivative(x * factors[channel] + shifts[channel], "silu")[1]
        own_grad_sum = tl.sum(tl.reshape(dy, (PARTS, BLOCK // PARTS)), axis=1)
        own_grad_x_sum = tl.sum(tl.reshape(dy * x, (PARTS, BLOCK // PARTS)), axis=1)
        out = part * (groups * WIDTH) + first_channel + channel
        tl.store(grad_sum_ptr + out, own_grad_sum)
        tl.store(grad_x_sum_ptr + out, own_grad_x_sum * scale)
        grad_sum += own_grad_sum * factors[channel]
        grad_x_sum += own_grad_x_sum * factors[channel]
    grad_sum, grad_x_sum = two_sums(grad_sum[None, :], grad_x_sum[None, :])
    grad_sum /= size
    grad_x_sum *= scale * scale / size
    for channel in tl.static_range(WIDTH):
        x = reloaded(loaded_x[channel], zero, DTYPE) - mean
        dy = reloaded(loaded_dy[channel], zero, DY_DTYPE)
        if SILU:
            dy *= value_and_derivative(x * factors[channel] + shifts[channel], "silu")[1]
        dx = dy * factors[channel] - grad_sum - x * grad_x_sum
        out = dx_ptr + first + channel * positions + offs
        tl.store(out, dx.to(dx_ptr.dtype.element_ty), mask=mask)


def holds(shape: Shape, element_bytes: int) -> bool:
    """Whether a program can hold a group that has so many bytes per element."""
    most = coefficient("ranking", "group_norm_resident_bytes").of(gpu.launching())
    block = triton.next_power_of_2(shape.positions)
    fits = shape.width <= _CHANNELS and block * shape.width * element_bytes <= most
    return fits and not shape.last


def _demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    """One wide load of each channel per lane, and no more than fits its registers with ease."""
    element, dy = problem["bytes"], problem.get("dy", 0)
    width = problem["channels"] // problem["groups"]
    size = problem["images"] * problem["channels"] * problem["positions"]
    lane = settings["BLOCK"] / (settings["num_warps"] * device.wave_lanes)
    demand = describe.StreamingKernel(
        workgroups=problem["images"] * problem["groups"],
        read=size * (element + dy),
        written=size * element,
        elements=settings["BLOCK"] * width,
        instructions=24.0 if dy else 8.0,
        live_registers=0.75 * (2 if dy else 1),
    )
    narrow = max(0.0, 16 / element / lane - 1)
    full = coefficient("ranking", "group_norm_lane_elements").of(device)
    crowded = max(0.0, lane * width / full - 1)
    narrow_penalty = coefficient("ranking", "group_norm_narrow_load_penalty").of(device)
    crowded_penalty = coefficient("ranking", "group_norm_crowded_lane_penalty").of(device)
    return demand.slow_down(1.0 + narrow_penalty * narrow + crowded_penalty * crowded)


FORWARD, BACKWARD = (
    describe.KernelSpec(
        function=function,
        grid="images * groups",
        axes={"BLOCK": "(next_power_of_2(positions),)", "num_warps": (8, 4, 16, 2, 1)},
        demand=_demand,
        contiguous=read,
        rounded=("images",),
    )
    for function, read in (
        (group_norm_whole_kernel, PARAMETERS),
        (group_norm_whole_backward_kernel, (*PARAMETERS, "mean", "scale")),
    )
)


def forward(shape: Shape, tensors: Tensors, eps: float, *, silu: bool) -> None:
    """Fill `y`, `mean` and `scale` of the `tensors`."""
    problem = shape.problem(tensors, silu=silu)
    constants = {"WIDTH": shape.width, "BITS": _bits(shape.bytes)}
    choice.run(FORWARD, problem, **tensors, eps=eps, zero=0, zero2=0, **constants)


def backward(shape: Shape, tensors: Tensors, *, silu: bool) -> Tensor:
    """Fill `dx` of the `tensors`; returns sums of each channel's gradients, and of their products
    with the normalised values: [2, parts, channels] of float32."""
    device, dy = gpu.launching(), tensors["dy"].element_size()
    most = 1 if device.vendor == "amd" and device.wave_lanes == 32 else _PARTS
    parts = min(most, triton.next_power_of_2(shape.positions))
    size = (2, shape.images * parts, shape.channels)
    sums = torch.empty(size, dtype=torch.float32, device=tensors["x"].device)
    problem = shape.problem(tensors, silu=silu, dy=dy)
    constants = {"WIDTH": shape.width, "PARTS": parts, "BITS": _bits(shape.bytes)}
    choice.run(
        BACKWARD, problem, **tensors, grad_sum=sums[0], grad_x_sum=sums[1], zero=0, **constants,
        DY_BITS=_bits(dy),
    )  # fmt: skip
    return sums


def _bits(size: int) -> tl.dtype:
    return tl.int32 if size == 4 else tl.int16
