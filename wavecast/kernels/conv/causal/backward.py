"""Gradients of `causal_conv1d`."""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.conv.causal.arguments import check
from wavecast.kernels.conv.causal.forward import FORWARD, fits, inputs_at
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import contiguous

_PARTS_PER_UNIT = 4
"""Workgroups of the weight's gradient per compute unit."""
_TIMES = 1024
"""Times of a tile of the weight's gradient."""


@triton.jit
def slope_at(
    dy_ptr, x_ptr, weight_ptr, bias_ptr, state_ptr, channel, at, known, length,
    dy_channel, dy_step, x_channel, x_step, state_channel, state_step,
    W: tl.constexpr, BIAS: tl.constexpr, STATE: tl.constexpr, SILU: tl.constexpr,
):  # fmt: skip
    """The gradient of the sums at times `at`: `dy` times the slope of the activation there, zero
    outside the sequence."""
    inside = known & (at >= 0) & (at < length)
    dy = tl.load(dy_ptr + channel * dy_channel + at * dy_step, mask=inside, other=0.0)
    slope = dy.to(tl.float32)
    if SILU:
        total = slope * 0.0
        for tap in tl.static_range(W):
            weight = tl.load(weight_ptr + channel * W + tap, mask=known, other=0.0)
            x = inputs_at(
                x_ptr, state_ptr, channel, at + (tap - (W - 1)), known, length,
                x_channel, x_step, state_channel, state_step, W, STATE,
            )  # fmt: skip
            total += x * weight.to(tl.float32)
        if BIAS:
            total += tl.load(bias_ptr + channel, mask=known, other=0.0).to(tl.float32)
        gate = tl.sigmoid(total)
        slope = slope * gate * (1.0 + total * (1.0 - gate))
    return slope


@triton.jit
def causal_conv1d_backward_kernel(
    slope_ptr, dnext_ptr, weight_ptr, dx_ptr, channels, length, dx_batch, dx_channel, dx_step,
    W: tl.constexpr, WIDE: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    """The gradient of inputs from that of sums [batch, channels, length], and of the last ones from
    the new state's too. Times before the first are the old state's: `dx_ptr` begins with them."""
    tiles = tl.cdiv(length + (W - 1), BLOCK_T)
    number = tl.program_id(0)
    batch = number // tiles
    channel = (tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D))[:, None]
    at = (number % tiles * BLOCK_T + tl.arange(0, BLOCK_T))[None, :] - (W - 1)
    known = channel < channels
    wide = batch
    if WIDE:
        wide, channel = batch.to(tl.int64), channel.to(tl.int64)
    row = wide * channels + channel
    total = tl.zeros((BLOCK_D, BLOCK_T), tl.float32)
    for tap in tl.static_range(W):
        later = at + (W - 1 - tap)
        some = known & (later >= 0) & (later < length)
        slope = tl.load(slope_ptr + row * length + later, mask=some, other=0.0)
        weight = tl.load(weight_ptr + channel * W + tap, mask=known, other=0.0).to(tl.float32)
        total += slope.to(tl.float32) * weight
    if W > 1:
        kept = at - (length - (W - 1))
        some = known & (kept >= 0) & (kept < W - 1)
        total += tl.load(dnext_ptr + row * (W - 1) + kept, mask=some, other=0.0).to(tl.float32)
    inside = known & (at < length)
    to = dx_ptr + wide * dx_batch + channel * dx_channel + (at + (W - 1)) * dx_step
    tl.store(to, total.to(dx_ptr.dtype.element_ty), mask=inside)


@triton.jit
def causal_conv1d_slope_kernel(
    dy_ptr, x_ptr, weight_ptr, bias_ptr, state_ptr, slope_ptr, part_ptr, channels, length, tiles,
    turns, dy_batch, dy_channel, dy_step, x_batch, x_channel, x_step,
    state_batch, state_channel, state_step,
    W: tl.constexpr, TAPS: tl.constexpr, BIAS: tl.constexpr, STATE: tl.constexpr,
    SILU: tl.constexpr, WIDE: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    """The gradient of sums, to `slope_ptr`, and the share of `turns` tiles of times of a batch in
    the gradients of weight and bias, to a row of `part_ptr` [shares, channels, TAPS]: taps, then
    the bias."""
    shares = tl.cdiv(tiles, turns)
    number = tl.program_id(0)
    batch = number // shares
    channel = (tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D))[:, None]
    known = channel < channels
    wide = batch
    if WIDE:
        wide, channel = batch.to(tl.int64), channel.to(tl.int64)
    dy_ptr += wide * dy_batch
    x_ptr += wide * x_batch
    if STATE:
        state_ptr += wide * state_batch
    row = wide * channels + channel
    place = tl.arange(0, TAPS)[None, :]
    total = tl.zeros((BLOCK_D, TAPS), tl.float32)
    first = number % shares * turns
    for tile in range(first, tl.minimum(first + turns, tiles)):
        at = (tile * BLOCK_T + tl.arange(0, BLOCK_T))[None, :]
        slope = slope_at(
            dy_ptr, x_ptr, weight_ptr, bias_ptr, state_ptr, channel, at, known, length,
            dy_channel, dy_step, x_channel, x_step, state_channel, state_step,
            W, BIAS, STATE, SILU,
        )  # fmt: skip
        tl.store(slope_ptr + row * length + at, slope, mask=known & (at < length))
        for tap in tl.static_range(W):
            x = inputs_at(
                x_ptr, state_ptr, channel, at + (tap - (W - 1)), known, length,
                x_channel, x_step, state_channel, state_step, W, STATE,
            )  # fmt: skip
            share = tl.sum(x * slope, axis=1)[:, None]
            total += tl.where(place == tap, share, 0.0)
        total += tl.where(place == W, tl.sum(slope, axis=1)[:, None], 0.0)
    to = part_ptr + (number.to(tl.int64) * channels + channel) * TAPS + place
    tl.store(to, total, mask=known & (place <= W))


def causal_conv1d_backward(
    dy: torch.Tensor,
    dnext: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    state: torch.Tensor | None = None,
    activation: str = "silu",
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of `causal_conv1d` with respect to `x`, `weight`, `bias` and `state`, in the
    dtypes of `x`, `weight`, `weight` and `x`, contiguous; those of arguments that were not given
    are what they would be for zeros.

    `dy` is the gradient of the result, `dnext` [batch, channels, W - 1] that of the new state. Sums
    are in float32 in a fixed order. Raises ArgumentError.
    """
    name = "causal_conv1d_backward"
    check(name, x, weight, bias, state, activation)
    checks.dtype_in(name, "dy", dy, checks.FLOATS)
    checks.dtype_in(name, "dnext", dnext, checks.FLOATS)
    checks.shape_is(name, "dy", dy, x.shape)
    batch, channels, length = x.shape
    taps = weight.shape[1]
    checks.shape_is(name, "dnext", dnext, (batch, channels, taps - 1))
    checks.same_device(name, x=x, dy=dy, dnext=dnext)
    whole = torch.empty((batch, channels, taps - 1 + length), dtype=x.dtype, device=x.device)
    if not x.numel():
        dw, db = torch.zeros_like(weight), weight.new_zeros(channels)
        return torch.zeros_like(x), dw, db, dnext.to(x.dtype).clone()
    device = gpu.launching()
    held = x if state is None else state
    slope = torch.empty((batch, channels, length), dtype=torch.float32, device=x.device)
    times = min(_TIMES, max(16, triton.next_power_of_2(length)))
    tiles = triton.cdiv(length, times)
    wanted = triton.cdiv(_PARTS_PER_UNIT * device.compute_units, batch * triton.cdiv(channels, 8))
    turns = triton.cdiv(tiles, min(tiles, wanted))
    shares = batch * triton.cdiv(tiles, turns)
    width = triton.next_power_of_2(taps + 1)
    parts = torch.empty((shares, channels, width), dtype=torch.float32, device=x.device)
    problem = {
        "batch": batch,
        "channels": channels,
        "length": length,
        "taps": taps,
        "bytes": x.element_size(),
        "turns": turns,
        "last": x.stride(1) == 1 and channels > 1,
        "bias": bias is not None,
        "state": state is not None,
        "silu": activation == "silu",
        "times": times,
    }
    launch(
        causal_conv1d_slope_kernel,
        lambda settings: (shares, triton.cdiv(channels, settings["BLOCK_D"])),
        (
            *(dy, x, weight.contiguous(), contiguous(bias), state, slope, parts),
            *(channels, length, tiles, turns),
            *dy.stride(),
            *x.stride(),
            *held.stride(),
        ),
        SLOPE,
        problem,
        W=taps,
        TAPS=width,
        BIAS=bias is not None,
        STATE=state is not None,
        SILU=activation == "silu",
        WIDE=checks.wide(x, dy, slope),
    )
    launch(
        causal_conv1d_backward_kernel,
        lambda settings: (
            batch * triton.cdiv(length + taps - 1, settings["BLOCK_T"]),
            triton.cdiv(channels, settings["BLOCK_D"]),
        ),
        (
            *(slope, dnext.contiguous(), weight.contiguous(), whole, channels, length),
            *whole.stride(),
        ),
        BACKWARD,
        {**problem, "bias": False, "state": False, "last": False},
        W=taps,
        WIDE=checks.wide(slope, whole),
    )
    sums = parts.sum(0)
    return (
        whole[:, :, taps - 1 :].contiguous(),
        sums[:, :taps].to(weight.dtype).contiguous(),
        sums[:, taps].to(weight.dtype).contiguous(),
        whole[:, :, : taps - 1].contiguous(),
    )


def causal_conv1d_backward_reference(
    dy: torch.Tensor,
    dnext: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    state: torch.Tensor | None = None,
    activation: str = "silu",
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """By the formula, in float32 at least."""
    kind = torch.promote_types(x.dtype, torch.float32)
    taps, channels, length = weight.shape[1], x.shape[1], x.shape[2]
    before = x.new_zeros((x.shape[0], channels, taps - 1)) if state is None else state
    whole = torch.cat((before, x), 2).to(kind)
    wide = weight.to(kind)
    windows = [whole[:, :, tap : tap + length] for tap in range(taps)]
    slope = dy.to(kind)
    if activation == "silu":
        total = torch.zeros_like(slope)
        for tap, window in enumerate(windows):
            total = total + window * wide[:, tap, None]
        total = total if bias is None else total + bias.to(kind)[:, None]
        gate = torch.sigmoid(total)
        slope = slope * gate * (1 + total * (1 - gate))
    dw = torch.stack([(window * slope).sum((0, 2)) for window in windows], 1)
    pad = torch.nn.functional.pad
    gradient = pad(dnext.to(kind), (length, 0))
    for tap in range(taps):
        gradient = gradient + pad(slope * wide[:, tap, None], (tap, taps - 1 - tap))
    gradient = gradient.to(x.dtype)
    return (
        gradient[:, :, taps - 1 :].contiguous(),
        dw.to(weight.dtype),
        slope.sum((0, 2)).to(weight.dtype),
        gradient[:, :, : taps - 1].contiguous(),
    )


def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, weight, bias, state, activation = inputs
    ctx.save_for_backward(x, weight, bias, state)
    ctx.activation = activation


def gradient(ctx: Any, dy: torch.Tensor | None, dnext: torch.Tensor | None) -> tuple[Any, ...]:
    x, weight, bias, state = ctx.saved_tensors
    if dy is None:
        dy = torch.zeros_like(x)
    if dnext is None:
        dnext = x.new_zeros((x.shape[0], x.shape[1], weight.shape[1] - 1))
    dx, dw, db, ds = torch.ops.wavecast.causal_conv1d_backward(
        dy, dnext, x, weight, bias, state, ctx.activation
    )
    return (
        dx,
        dw,
        None if bias is None else db.to(bias.dtype),
        None if state is None else ds,
        None,
    )


def _slope_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {
        "BLOCK_D": (1, 2, 4, 8),
        "BLOCK_T": (problem["times"],),
        "num_warps": (1, 2, 4, 8),
        "num_stages": (1,),
    }


def _slope_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    size = problem["batch"] * problem["channels"] * problem["length"]
    across = triton.cdiv(problem["channels"], settings["BLOCK_D"])
    tiles = triton.cdiv(problem["length"], problem["times"] * problem["turns"])
    return estimates.streaming(
        device,
        settings,
        workgroups=problem["batch"] * across * tiles,
        read=2.0 * size * problem["bytes"],
        written=4.0 * size,
        elements=settings["BLOCK_D"] * problem["times"],
        operations=(problem["taps"] * 16.0 + 20.0) * problem["turns"],
        held=5.0,
    )


BACKWARD = replace(FORWARD, kernel="causal_conv1d_backward_kernel", ignored=("turns", "times"))
SLOPE = Space(
    kernel="causal_conv1d_slope_kernel",
    axes=_slope_axes,
    fits=fits,
    seconds=_slope_seconds,
    classes=("batch", "length", "turns"),
)

__all__ = [
    "BACKWARD",
    "SLOPE",
    "causal_conv1d_backward",
    "causal_conv1d_backward_reference",
    "gradient",
    "setup",
]
