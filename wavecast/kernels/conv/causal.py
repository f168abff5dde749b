"""Causal convolutions along time, one short filter per channel, as state space models have them."""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Gradient, Operator, Tolerance
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.bounds import Work

ACTIVATIONS = ("none", "silu")
_MOST_TAPS = 16
_PARTS_PER_UNIT = 4
"""Workgroups of the weight's gradient per compute unit."""


@triton.jit
def inputs_at(
    x_ptr, state_ptr, channel, at, known, length, x_channel, x_step, state_channel, state_step,
    W: tl.constexpr, STATE: tl.constexpr,
):  # fmt: skip
    """Inputs [channels, times] in float32 at times `at`; those before the first are the state's."""
    inside = known & (at >= 0) & (at < length)
    x = tl.load(x_ptr + channel * x_channel + at * x_step, mask=inside, other=0.0).to(tl.float32)
    if STATE:
        before = known & (at < 0) & (at > -W)
        place = state_ptr + channel * state_channel + (at + (W - 1)) * state_step
        x += tl.load(place, mask=before, other=0.0).to(tl.float32)
    return x


@triton.jit
def causal_conv1d_kernel(
    x_ptr, weight_ptr, bias_ptr, state_ptr, y_ptr, next_ptr, channels, length,
    x_batch, x_channel, x_step, state_batch, state_channel, state_step,
    y_batch, y_channel, y_step,
    W: tl.constexpr, BIAS: tl.constexpr, STATE: tl.constexpr, SILU: tl.constexpr,
    WIDE: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    """One tile of channels by times. The program of the last times also writes the new state."""
    tiles = tl.cdiv(length, BLOCK_T)
    number = tl.program_id(0)
    tile = number % tiles
    batch = number // tiles
    channel = (tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D))[:, None]
    step = (tile * BLOCK_T + tl.arange(0, BLOCK_T))[None, :]
    known = channel < channels
    wide = batch
    if WIDE:
        wide, channel = batch.to(tl.int64), channel.to(tl.int64)
    x_ptr += wide * x_batch
    y_ptr += wide * y_batch
    if STATE:
        state_ptr += wide * state_batch
    total = tl.zeros((BLOCK_D, BLOCK_T), tl.float32)
    for tap in tl.static_range(W):
        weight = tl.load(weight_ptr + channel * W + tap, mask=known, other=0.0).to(tl.float32)
        x = inputs_at(
            x_ptr, state_ptr, channel, step + (tap - (W - 1)), known, length,
            x_channel, x_step, state_channel, state_step, W, STATE,
        )  # fmt: skip
        total += x * weight
    if BIAS:
        total += tl.load(bias_ptr + channel, mask=known, other=0.0).to(tl.float32)
    if SILU:
        total = total * tl.sigmoid(total)
    inside = known & (step < length)
    to = y_ptr + channel * y_channel + step * y_step
    tl.store(to, total.to(y_ptr.dtype.element_ty), mask=inside)
    if tile == tiles - 1:
        for tap in tl.static_range(W - 1):
            end = tl.zeros((1, 1), tl.int32) + (length - (W - 1) + tap)
            kept = inputs_at(
                x_ptr, state_ptr, channel, end, known, length,
                x_channel, x_step, state_channel, state_step, W, STATE,
            )  # fmt: skip
            to_next = next_ptr + (wide * channels + channel) * (W - 1) + tap
            tl.store(to_next, kept.to(next_ptr.dtype.element_ty), mask=known)


@triton.jit
def eighths(x):
    """The eight elements of the last dimension."""
    x = tl.reshape(x, (x.shape[0], x.shape[1], 2, 2, 2))
    even, odd = tl.split(x)
    a, c = tl.split(even)
    b, d = tl.split(odd)
    x0, x4 = tl.split(a)
    x2, x6 = tl.split(c)
    x1, x5 = tl.split(b)
    x3, x7 = tl.split(d)
    return x0, x1, x2, x3, x4, x5, x6, x7


@triton.jit
def causal_conv1d_vector_kernel(
    x_ptr, weight_ptr, bias_ptr, state_ptr, y_ptr, next_ptr, channels, length,
    x_batch, x_channel, state_batch, state_channel, state_step, y_batch, y_channel,
    W: tl.constexpr, BIAS: tl.constexpr, STATE: tl.constexpr, SILU: tl.constexpr,
    WIDE: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    """`causal_conv1d_kernel` for times that are adjacent in memory, channels at multiples of eight
    elements and W up to nine: a lane loads eight times and the eight before, whole vectors both,
    and shifts in its registers."""
    tiles = tl.cdiv(length, BLOCK_T)
    number = tl.program_id(0)
    tile = number % tiles
    batch = number // tiles
    channel = (tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D))[:, None]
    known = channel < channels
    wide = batch
    if WIDE:
        wide, channel = batch.to(tl.int64), channel.to(tl.int64)
    x_ptr += wide * x_batch
    y_ptr += wide * y_batch
    if STATE:
        state_ptr += wide * state_batch
    group = tile * (BLOCK_T // 8) + tl.arange(0, BLOCK_T // 8)
    at = group[None, :, None] * 8 + tl.arange(0, 8)[None, None, :]
    row, some = channel[:, :, None], known[:, :, None]
    now = tl.load(x_ptr + row * x_channel + at, mask=some & (at < length), other=0.0)
    before = tl.load(
        x_ptr + row * x_channel + at - 8, mask=some & (at >= 8) & (at < length + 8), other=0.0
    )
    if STATE:
        place = state_ptr + row * state_channel + (at - 8 + (W - 1)) * state_step
        kept = tl.load(place, mask=some & (at < 8) & (at - 8 > -W), other=0.0)
        before = tl.where(at < 8, kept, before)
    seen = eighths(before) + eighths(now)
    base = tl.zeros((BLOCK_D, BLOCK_T // 8), tl.float32)
    if BIAS:
        base += tl.load(bias_ptr + channel, mask=known, other=0.0).to(tl.float32)
    sums = ()
    for place in tl.static_range(8):
        total = base
        for tap in tl.static_range(W):
            weight = tl.load(weight_ptr + channel * W + tap, mask=known, other=0.0).to(tl.float32)
            total += seen[8 + place + tap - (W - 1)].to(tl.float32) * weight
        if SILU:
            total = total * tl.sigmoid(total)
        sums = sums + (total.to(y_ptr.dtype.element_ty),)  # noqa: RUF005 -- Triton
    even = tl.join(tl.join(sums[0], sums[4]), tl.join(sums[2], sums[6]))
    odd = tl.join(tl.join(sums[1], sums[5]), tl.join(sums[3], sums[7]))
    y = tl.reshape(tl.join(even, odd), (BLOCK_D, BLOCK_T // 8, 8))
    tl.store(y_ptr + row * y_channel + at, y, mask=some & (at < length))
    if tile == tiles - 1:
        for tap in tl.static_range(W - 1):
            end = tl.zeros((1, 1), tl.int32) + (length - (W - 1) + tap)
            last = inputs_at(
                x_ptr, state_ptr, channel, end, known, length,
                x_channel, 1, state_channel, state_step, W, STATE,
            )  # fmt: skip
            to_next = next_ptr + (wide * channels + channel) * (W - 1) + tap
            tl.store(to_next, last.to(next_ptr.dtype.element_ty), mask=known)


@triton.jit
def causal_conv1d_update_kernel(
    x_ptr, weight_ptr, bias_ptr, state_ptr, y_ptr, count, channels,
    state_batch, state_channel, state_step,
    W: tl.constexpr, BIAS: tl.constexpr, SILU: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One step of [batch, channels], flat; the state moves on by one in place."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    known = place < count
    channel = place % channels
    batch = (place // channels).to(tl.int64)
    state = state_ptr + batch * state_batch + channel * state_channel
    new = tl.load(x_ptr + place, mask=known, other=0.0)
    weight = tl.load(weight_ptr + channel * W + (W - 1), mask=known, other=0.0)
    total = new.to(tl.float32) * weight.to(tl.float32)
    if BIAS:
        total += tl.load(bias_ptr + channel, mask=known, other=0.0).to(tl.float32)
    for tap in tl.static_range(W - 1):
        x = tl.load(state + tap * state_step, mask=known, other=0.0)
        weight = tl.load(weight_ptr + channel * W + tap, mask=known, other=0.0)
        total += x.to(tl.float32) * weight.to(tl.float32)
        if tap > 0:
            tl.store(state + (tap - 1) * state_step, x, mask=known)
    if W > 1:
        to = state + (W - 2) * state_step
        tl.store(to, new.to(state_ptr.dtype.element_ty), mask=known)
    if SILU:
        total = total * tl.sigmoid(total)
    tl.store(y_ptr + place, total.to(y_ptr.dtype.element_ty), mask=known)


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


def causal_conv1d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    state: torch.Tensor | None = None,
    activation: str = "silu",
) -> tuple[torch.Tensor, torch.Tensor]:
    """A convolution along time that sees the past only, with one filter per channel:

        y[b, d, t] = activation(bias[d] + Σ_w weight[d, w] · x[b, d, t - W + 1 + w])

    `x` is [batch, channels, length] of float32, float16 or bfloat16, `weight` [channels, W] with W
    up to 16 and `bias` [channels] of any of these; `state` [batch, channels, W - 1], of the dtype
    of `x`, holds the inputs before the first (None: zeros). `activation` is silu or none.

    Returns the result, of the dtype of `x` and with channels innermost in memory where `x` has them
    so, and the state after the last input. Sums are in float32. Raises ArgumentError.
    """
    name = "causal_conv1d"
    _check(name, x, weight, bias, state, activation)
    batch, channels, length = x.shape
    taps = weight.shape[1]
    y = torch.empty_like(x) if _dense(x) else torch.empty(x.shape, dtype=x.dtype, device=x.device)
    after = torch.empty((batch, channels, taps - 1), dtype=x.dtype, device=x.device)
    if not x.numel():
        return y, after.zero_() if state is None else after.copy_(state)
    held = x if state is None else state
    problem = {
        "batch": batch,
        "channels": channels,
        "length": length,
        "taps": taps,
        "bytes": x.element_size(),
        "last": x.stride(1) == 1 and channels > 1,
        "bias": bias is not None,
        "state": state is not None,
        "silu": activation == "silu",
    }

    def grid(settings: Settings) -> tuple[int, ...]:
        tiles = triton.cdiv(length, settings["BLOCK_T"])
        return batch * tiles, triton.cdiv(channels, settings["BLOCK_D"])

    aligned = x.stride(2) == 1 and not length % 8 and x.stride(0) % 8 == x.stride(1) % 8 == 0
    if aligned and taps <= 9:
        whole = not length % 16 and x.stride(0) % 16 == x.stride(1) % 16 == 0
        launch(
            causal_conv1d_vector_kernel,
            grid,
            (
                *(x, weight.contiguous(), _contiguous(bias), state, y, after, channels, length),
                *x.stride()[:2],
                *held.stride(),
                *y.stride()[:2],
            ),
            VECTOR,
            {**problem, "whole": whole},
            W=taps,
            BIAS=bias is not None,
            STATE=state is not None,
            SILU=activation == "silu",
            WIDE=checks.wide(x, y, state),
        )
        return y, after
    launch(
        causal_conv1d_kernel,
        grid,
        (
            *(x, weight.contiguous(), _contiguous(bias), state, y, after, channels, length),
            *x.stride(),
            *held.stride(),
            *y.stride(),
        ),
        FORWARD,
        problem,
        W=taps,
        BIAS=bias is not None,
        STATE=state is not None,
        SILU=activation == "silu",
        WIDE=checks.wide(x, y, state),
    )
    return y, after


def causal_conv1d_reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    state: torch.Tensor | None = None,
    activation: str = "silu",
) -> tuple[torch.Tensor, torch.Tensor]:
    """PyTorch's depthwise convolution after the state, in float32 at least."""
    kind = torch.promote_types(x.dtype, torch.float32)
    taps, channels = weight.shape[1], x.shape[1]
    before = x.new_zeros((x.shape[0], channels, taps - 1)) if state is None else state
    whole = torch.cat((before, x), 2)
    wide = None if bias is None else bias.to(kind)
    y = torch.nn.functional.conv1d(
        whole.to(kind), weight.to(kind).unsqueeze(1), wide, groups=channels
    )
    y = torch.nn.functional.silu(y) if activation == "silu" else y
    out = torch.empty_like(x) if _dense(x) else x.new_empty(x.shape)
    return out.copy_(y), whole[:, :, x.shape[2] :].contiguous()


def causal_conv1d_update(
    x: torch.Tensor,
    state: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str = "silu",
) -> torch.Tensor:
    """One more step of `causal_conv1d`: `x` [batch, channels] is the next input, `state` [batch,
    channels, W - 1] is moved on in place, with any strides. Returns [batch, channels]. Raises
    ArgumentError."""
    name = "causal_conv1d_update"
    checks.require(x.dim() == 2, name, f"x has {x.dim()} dimensions, expected 2")
    _check(name, x.unsqueeze(2), weight, bias, state, activation)
    batch, channels = x.shape
    y = torch.empty((batch, channels), dtype=x.dtype, device=x.device)
    if not x.numel():
        return y
    count = batch * channels
    problem = {
        "count": count,
        "taps": weight.shape[1],
        "bytes": x.element_size(),
        "bias": bias is not None,
        "silu": activation == "silu",
    }
    launch(
        causal_conv1d_update_kernel,
        lambda settings: (triton.cdiv(count, settings["BLOCK"]),),
        (
            *(x.contiguous(), weight.contiguous(), _contiguous(bias), state, y, count, channels),
            *state.stride(),
        ),
        UPDATE,
        problem,
        W=weight.shape[1],
        BIAS=bias is not None,
        SILU=activation == "silu",
    )
    return y


def causal_conv1d_update_reference(
    x: torch.Tensor,
    state: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str = "silu",
) -> torch.Tensor:
    """One step by the formula, in float32 at least."""
    kind = torch.promote_types(x.dtype, torch.float32)
    window = torch.cat((state, x.unsqueeze(2)), 2)
    y = (window.to(kind) * weight.to(kind)).sum(2)
    y = y if bias is None else y + bias.to(kind)
    state.copy_(window[:, :, 1:])
    y = torch.nn.functional.silu(y) if activation == "silu" else y
    return y.to(x.dtype).contiguous()


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
    _check(name, x, weight, bias, state, activation)
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
            *(dy, x, weight.contiguous(), _contiguous(bias), state, slope, parts),
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


def _check(
    operator: str,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor | None,
    activation: str,
) -> None:
    checks.require(x.dim() == 3, operator, f"x has {x.dim()} dimensions, expected 3")
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    checks.dtype_in(operator, "weight", weight, checks.FLOATS)
    checks.shape_is(operator, "weight", weight, (x.shape[1], -1))
    taps = weight.shape[1]
    checks.require(1 <= taps <= _MOST_TAPS, operator, f"weight has {taps} taps, not 1 to 16")
    if bias is not None:
        checks.dtype_in(operator, "bias", bias, checks.FLOATS)
        checks.shape_is(operator, "bias", bias, (x.shape[1],))
    if state is not None:
        checks.dtype_in(operator, "state", state, (x.dtype,))
        checks.shape_is(operator, "state", state, (x.shape[0], x.shape[1], taps - 1))
    known = ", ".join(ACTIVATIONS)
    checks.require(
        activation in ACTIVATIONS, operator, f"activation {activation!r}, expected {known}"
    )
    checks.same_device(operator, x=x, weight=weight, bias=bias, state=state)


def _dense(x: torch.Tensor) -> bool:
    """Whether a result can have the strides of `x`."""
    return x.is_contiguous() or x.transpose(1, 2).is_contiguous()


def _contiguous(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.contiguous()


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, weight, bias, state, activation = inputs
    ctx.save_for_backward(x, weight, bias, state)
    ctx.activation = activation


def _gradient(ctx: Any, dy: torch.Tensor | None, dnext: torch.Tensor | None) -> tuple[Any, ...]:
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


_TIMES = 1024
"""Times of a tile of the weight's gradient."""


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    times = triton.next_power_of_2(problem["length"])
    if problem["last"]:
        wide = triton.next_power_of_2(problem["channels"])
        return {
            "BLOCK_D": tuple(n for n in (128, 256) if n <= wide) or (wide,),
            "BLOCK_T": tuple(n for n in (4, 8) if n <= times) or (times,),
            "num_warps": (1, 2, 4),
            "num_stages": (1,),
        }
    return {
        "BLOCK_D": (1, 2, 4, 8),
        "BLOCK_T": tuple(n for n in (128, 256, 512, 1024) if n <= times) or (times,),
        "num_warps": (1, 2, 4),
        "num_stages": (1,),
    }


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    lanes = 64 if device.target.startswith("gfx9") else 32
    times = settings.get("BLOCK_T", problem.get("times", 1))
    least = min(problem["channels"] * problem["length"], settings["num_warps"] * lanes)
    each = settings["BLOCK_D"] * times
    most = 8 if problem["last"] else 16
    if each > most * settings["num_warps"] * lanes and "times" not in problem:
        return False
    return least <= each or settings["num_warps"] == 1


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    channels, times = settings["BLOCK_D"], settings["BLOCK_T"]
    size = problem["batch"] * problem["channels"] * problem["length"] * problem["bytes"]
    across = triton.cdiv(problem["channels"], channels)
    tiles = triton.cdiv(problem["length"], times)
    return estimates.streaming(
        device,
        settings,
        workgroups=problem["batch"] * across * tiles,
        read=size * (1 + problem["taps"] / times / 2),
        written=size,
        elements=channels * times,
        operations=problem["taps"] * 6.0 + 12.0,
        held=3.0,
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


def _update_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    size = problem["count"] * problem["bytes"]
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(problem["count"], settings["BLOCK"]),
        read=size * (problem["taps"] * 2 + 1),
        written=size * problem["taps"],
        elements=settings["BLOCK"],
        operations=problem["taps"] * 8.0,
        held=4.0,
    )


FORWARD = Space(
    kernel="causal_conv1d_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("batch", "length"),
)
VECTOR = Space(
    kernel="causal_conv1d_vector_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("batch", "length"),
)
BACKWARD = Space(
    kernel="causal_conv1d_backward_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("batch", "length"),
    ignored=("turns", "times"),
)
SLOPE = Space(
    kernel="causal_conv1d_slope_kernel",
    axes=_slope_axes,
    fits=_fits,
    seconds=_slope_seconds,
    classes=("batch", "length", "turns"),
)
UPDATE = Space(
    kernel="causal_conv1d_update_kernel",
    axes=lambda problem, device: {
        "BLOCK": (64, 128, 256, 512, 1024),
        "num_warps": (1, 2, 4),
        "num_stages": (1,),
    },
    fits=lambda problem, settings, device: settings["BLOCK"] >= 64 * settings["num_warps"],
    seconds=_update_seconds,
    classes=("count",),
)


def _inputs(
    make: Make,
    batch: int,
    channels: int,
    length: int,
    taps: int,
    dtype: str,
    layout: str = "first",
    bias: bool = True,
    state: bool = True,
    activation: str = "silu",
) -> dict[str, Any]:
    if layout == "last":
        x = make.normal((batch, length, channels), dtype).transpose(1, 2)
    else:
        x = make.normal((batch, channels, length), dtype)
    return {
        "x": x,
        "weight": make.normal((channels, taps), dtype, 0.5),
        "bias": make.normal((channels,), dtype) if bias else None,
        "state": make.normal((batch, channels, taps - 1), dtype) if state else None,
        "activation": activation,
    }


def _backward_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    given = _inputs(make, **sizes)
    dy = make.normal(given["x"].shape, sizes["dtype"])
    shape = (sizes["batch"], sizes["channels"], sizes["taps"] - 1)
    return {"dy": dy, "dnext": make.normal(shape, sizes["dtype"]), **given}


def _update_inputs(make: Make, **sizes: Any) -> dict[str, Any]:
    given = _inputs(make, **{**sizes, "length": 1, "state": True})
    given["x"] = given["x"].squeeze(2)
    return {name: given[name] for name in ("x", "state", "weight", "bias", "activation")}


def _work(kind: str) -> Any:
    def work(
        batch: int, channels: int, taps: int, dtype: str, length: int = 1, **flags: Any
    ) -> Work:
        size = getattr(torch, dtype).itemsize
        many = batch * channels * length
        kept = batch * channels * (taps - 1) * size
        weight = channels * (taps + bool(flags.get("bias", True))) * size
        held = kept if flags.get("state", True) else 0
        if kind == "backward":
            flops = {"vector_fp32": many * (6.0 * taps + 8)}
            read, written = 2 * many * size + weight + held + kept, many * size + weight + held
        else:
            flops = {"vector_fp32": many * (2.0 * taps + 4)}
            read, written = many * size + weight + held, many * size + kept
        return Work(flops, read, written, "formula", "formula")

    return work


_CASES: tuple[dict[str, Any], ...] = (
    {"batch": 2, "channels": 3, "length": 5, "taps": 3, "dtype": "float32"},
    {"batch": 2, "channels": 5, "length": 1300, "taps": 4, "dtype": "bfloat16"},
    {
        "batch": 1,
        "channels": 70,
        "length": 75,
        "taps": 4,
        "dtype": "float16",
        "layout": "last",
        "bias": False,
        "state": False,
    },
)
_THOROUGH: tuple[dict[str, Any], ...] = (
    {"batch": 1, "channels": 6, "length": 2, "taps": 4, "dtype": "float16"},
    {
        "batch": 3,
        "channels": 9,
        "length": 40,
        "taps": 2,
        "dtype": "float32",
        "activation": "none",
        "bias": False,
    },
    {
        "batch": 2,
        "channels": 72,
        "length": 33,
        "taps": 5,
        "dtype": "bfloat16",
        "layout": "last",
        "activation": "none",
    },
    {"batch": 2, "channels": 5, "length": 1040, "taps": 4, "dtype": "float16"},
    {
        "batch": 1,
        "channels": 3,
        "length": 152,
        "taps": 9,
        "dtype": "float32",
        "state": False,
        "bias": False,
        "activation": "none",
    },
    {"batch": 1, "channels": 7, "length": 300, "taps": 1, "dtype": "float16", "state": False},
)
_UPDATES: tuple[dict[str, Any], ...] = (
    {"batch": 3, "channels": 300, "taps": 4, "dtype": "bfloat16"},
    {"batch": 2, "channels": 17, "taps": 3, "dtype": "float32", "activation": "none"},
    {"batch": 1, "channels": 130, "taps": 2, "dtype": "float16", "bias": False},
)
_SHAPES: tuple[dict[str, Any], ...] = (
    {"batch": 1, "channels": 4096, "length": 8192, "taps": 4, "dtype": "bfloat16", "state": False},
    {
        "batch": 1,
        "channels": 4096,
        "length": 8192,
        "taps": 4,
        "dtype": "bfloat16",
        "layout": "last",
        "state": False,
    },
)
_TOLERANCE = Tolerance(ulps=1.0, accumulated=1e-5)

OPERATORS = (
    Operator(
        name="causal_conv1d",
        summary="causal convolution along time, one short filter per channel",
        call=causal_conv1d,
        reference=causal_conv1d_reference,
        inputs=_inputs,
        work=_work("forward"),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(FORWARD, VECTOR),
        tolerance=_TOLERANCE,
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="causal_conv1d_update",
        summary="one step of causal_conv1d, which moves its state on in place",
        call=causal_conv1d_update,
        reference=causal_conv1d_update_reference,
        inputs=_update_inputs,
        work=_work("update"),
        cases=_UPDATES,
        shapes=({"batch": 256, "channels": 4096, "taps": 4, "dtype": "bfloat16"},),
        spaces=(UPDATE,),
        tolerance=_TOLERANCE,
        mutates=("state",),
    ),
    Operator(
        name="causal_conv1d_backward",
        summary="gradients of causal_conv1d",
        call=causal_conv1d_backward,
        reference=causal_conv1d_backward_reference,
        inputs=_backward_inputs,
        work=_work("backward"),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES[:1],
        spaces=(SLOPE, BACKWARD),
        tolerance=Tolerance(ulps=1.0, accumulated=1e-4),
    ),
)
