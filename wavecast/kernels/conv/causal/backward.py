"""Gradients of `causal_conv1d`."""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.conv.causal.arguments import check, dense
from wavecast.kernels.conv.causal.forward import axes, beyond, described, fits
from wavecast.kernels.conv.causal.times import filters, store_times, times
from wavecast.kernels.conv.combine import combine
from wavecast.kernels.pointwise.functions import sigmoid
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import contiguous

_PROGRAMS_PER_UNIT = 8
"""Programs per compute unit among which a block of channels is shared, where there are few."""
_SHARED_CHANNELS = 256
"""Channels of a block, where they are innermost."""
_LEAST_TIMES = 256
"""Times a program has at least."""


@triton.jit
def causal_conv1d_backward_kernel(
    dy_ptr, dnext_ptr, x_ptr, weight_ptr, bias_ptr, state_ptr,
    dx_ptr, dstate_ptr, dweight_ptr, dbias_ptr, batches, channels, length, shares,
    dy_batch, dy_channel, dy_step, x_batch, x_channel, x_step,
    state_batch, state_channel, state_step, dx_batch, dx_channel, dx_step,
    W: tl.constexpr, TAPS: tl.constexpr, BIAS: tl.constexpr, STATE: tl.constexpr,
    SILU: tl.constexpr, LAST: tl.constexpr, WIDE: tl.constexpr,
    BLOCK_D: tl.constexpr, GROUPS: tl.constexpr, EACH: tl.constexpr,
):  # fmt: skip
    """One of `shares` of all tiles, BLOCK_D channels by GROUPS of EACH times, of a block of
    channels: their gradients of inputs and of the old state, and their share in those of weight
    and bias, to row `share` of `dweight_ptr` and of `dbias_ptr`. These rows are of both."""
    channel = (tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D))[:, None]
    share = tl.program_id(1)
    known = channel < channels
    if WIDE:
        channel = channel.to(tl.int64)
    weights = filters(weight_ptr, channel, known, W, TAPS, LAST)
    base = tl.zeros((BLOCK_D, 1), tl.float32)
    if BIAS:
        base += tl.load(bias_ptr + channel, known, 0.0).to(tl.float32)
    dweights = ()
    for _ in tl.static_range(W):
        dweights = dweights + (tl.zeros((BLOCK_D, GROUPS), tl.float32),)  # noqa: RUF005 -- Triton
    dbias = tl.zeros((BLOCK_D, GROUPS), tl.float32)
    tiles = tl.cdiv(length, GROUPS * EACH)
    turns = tl.cdiv(batches * tiles, shares)
    for number in range(share * turns, tl.minimum(share * turns + turns, batches * tiles)):
        batch = number // tiles
        start = number % tiles * (GROUPS * EACH)
        if WIDE:
            batch, start = batch.to(tl.int64), start.to(tl.int64)
        row = batch * channels + channel
        x = times(
            x_ptr + batch * x_batch, state_ptr + batch * state_batch if STATE else state_ptr,
            start, channel, known, length, x_channel, x_step, state_channel, state_step,
            1 - W, EACH + 2 * (W - 1), W, STATE, LAST, EACH, GROUPS,
        )  # fmt: skip
        dy = times(
            dy_ptr + batch * dy_batch, state_ptr, start, channel, known, length,
            dy_channel, dy_step, 0, 0, 0, EACH + W - 1, W, False, LAST, EACH, GROUPS,
        )  # fmt: skip
        slopes = ()
        for place in tl.static_range(EACH + W - 1):
            slope = dy[place].to(tl.float32)
            if SILU:
                total = base
                for tap in tl.static_range(W):
                    total += x[place + tap].to(tl.float32) * weights[tap]
                gate = sigmoid(total)
                slope = slope * (gate + (total * gate) * (1.0 - gate))
            slopes = slopes + (slope,)  # noqa: RUF005 -- Triton
        for place in tl.static_range(EACH):
            dbias += slopes[place]
        sums = ()
        for tap in tl.static_range(W):
            total = dweights[tap]
            for place in tl.static_range(EACH):
                total += x[place + tap].to(tl.float32) * slopes[place]
            sums = sums + (total,)  # noqa: RUF005 -- Triton
        dweights = sums
        parts = ()
        for place in tl.static_range(EACH):
            total = slopes[place + W - 1] * weights[0]
            for tap in tl.static_range(1, W):
                total += slopes[place + W - 1 - tap] * weights[tap]
            parts = parts + (total,)  # noqa: RUF005 -- Triton
        if start + GROUPS * EACH > length - (W - 1):
            # the last inputs are the new state, too
            first = start + (tl.arange(0, GROUPS) * EACH)[None, :] - (length - (W - 1))
            ended = ()
            for place in tl.static_range(EACH):
                some = known & (first + place >= 0) & (first + place < W - 1)
                kept = tl.load(dnext_ptr + row * (W - 1) + first + place, some, 0.0)
                ended = ended + (parts[place] + kept.to(tl.float32),)  # noqa: RUF005 -- Triton
            parts = ended
        store_times(
            dx_ptr + batch * dx_batch, parts, start, channel, known, length, dx_channel, dx_step,
            LAST, EACH, GROUPS,
        )  # fmt: skip
        if start == 0:
            begins = known & (tl.arange(0, GROUPS) == 0)[None, :]
            for place in tl.static_range(W - 1):
                total = slopes[place] * weights[0]
                for tap in tl.static_range(1, place + 1):
                    total += slopes[place - tap] * weights[tap]
                to = tl.broadcast_to(row * (W - 1) + place, (BLOCK_D, GROUPS))
                if place >= length:
                    total += tl.load(dnext_ptr + to - length, known, 0.0).to(tl.float32)
                tl.store(dstate_ptr + to, total.to(dstate_ptr.dtype.element_ty), begins)
    dweight_ptr += share * (channels * (W + 1))
    dbias_ptr += share * (channels * (W + 1))
    for tap in tl.static_range(W):
        total = tl.sum(dweights[tap], axis=1, keep_dims=True)
        tl.store(dweight_ptr + channel * W + tap, total.to(dweight_ptr.dtype.element_ty), known)
    total = tl.sum(dbias, axis=1, keep_dims=True)
    tl.store(dbias_ptr + channel, total.to(dbias_ptr.dtype.element_ty), known)


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
    dtypes of `x`, `weight`, `weight` and `x`; those of arguments that were not given are what they
    would be for zeros. That of `x` has channels innermost where `x` has them so.

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
    dx = torch.empty_like(x) if dense(x) else torch.empty(x.shape, dtype=x.dtype, device=x.device)
    dw = torch.empty((channels, taps), dtype=weight.dtype, device=x.device)
    db = torch.empty((channels,), dtype=weight.dtype, device=x.device)
    if not x.numel():
        return dx, dw.zero_(), db.zero_(), dnext.to(x.dtype).clone()
    ds = torch.empty((batch, channels, taps - 1), dtype=x.dtype, device=x.device)
    held = x if state is None else state
    problem = described(x, weight, bias, state, activation)
    blocks = triton.cdiv(channels, _SHARED_CHANNELS if problem["last"] else 1)
    wanted = triton.cdiv(_PROGRAMS_PER_UNIT * gpu.launching().compute_units, blocks)
    shares = min(wanted, triton.cdiv(batch * length, _LEAST_TIMES))
    parts = torch.empty(
        (shares if shares > 1 else 0, channels * (taps + 1)), dtype=torch.float32, device=x.device
    )
    to_dw, to_db = (parts, parts[:, channels * taps :]) if shares > 1 else (dw, db)
    launch(
        causal_conv1d_backward_kernel,
        lambda settings: (triton.cdiv(channels, settings["BLOCK_D"]), shares),
        (
            *(dy, dnext.contiguous(), x, weight.contiguous(), contiguous(bias), state),
            *(dx, ds, to_dw, to_db, batch, channels, length, shares),
            *dy.stride(),
            *x.stride(),
            *held.stride(),
            *dx.stride(),
        ),
        BACKWARD,
        {**problem, "shares": shares},
        W=taps,
        TAPS=triton.next_power_of_2(taps),
        BIAS=bias is not None,
        STATE=state is not None,
        SILU=activation == "silu",
        LAST=problem["last"],
        WIDE=checks.wide(x, dy, state),
    )
    if shares > 1:
        combine(parts, None, dw, "none", db)
    return dx, dw, db, ds


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
    dx = torch.empty_like(x) if dense(x) else x.new_empty(x.shape)
    return (
        dx.copy_(gradient[:, :, taps - 1 :]),
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


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    channels, each = settings["BLOCK_D"], settings["EACH"]
    size = problem["batch"] * problem["channels"] * problem["length"]
    across = triton.cdiv(problem["channels"], channels)
    tiles = problem["batch"] * triton.cdiv(problem["length"], each * settings["GROUPS"])
    again = (problem["taps"] - 1) / each
    sums = (problem["taps"] + 1) * 4.0 * problem["channels"] * problem["shares"]
    return estimates.streaming(
        device,
        settings,
        workgroups=across * problem["shares"],
        read=size * problem["bytes"] * (2 + 3 * beyond(problem, settings)),
        written=size * problem["bytes"] + sums,
        elements=channels * each * settings["GROUPS"],
        operations=(problem["taps"] * (3.0 + again) + 14.0 * (1 + again))
        * triton.cdiv(tiles, problem["shares"])
        + problem["taps"] * 20.0 / each,
        held=6.0,
    )


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    """Inputs, slopes and results of a lane's elements wait in registers, about seven for each."""
    lanes = settings["num_warps"] * (64 if device.target.startswith("gfx9") else 32)
    each = settings["BLOCK_D"] * settings["GROUPS"] * settings["EACH"] / lanes
    return each <= 32 and fits(problem, settings, device)


BACKWARD = Space(
    kernel="causal_conv1d_backward_kernel",
    axes=axes,
    fits=_fits,
    seconds=_seconds,
    classes=("batch", "length", "shares"),
)

__all__ = [
    "BACKWARD",
    "causal_conv1d_backward",
    "causal_conv1d_backward_reference",
    "gradient",
    "setup",
]
