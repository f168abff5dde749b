"""`causal_conv1d`: all times at once."""

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
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.conv.causal.arguments import check, dense
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import contiguous


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
    check(name, x, weight, bias, state, activation)
    batch, channels, length = x.shape
    taps = weight.shape[1]
    y = torch.empty_like(x) if dense(x) else torch.empty(x.shape, dtype=x.dtype, device=x.device)
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
                *(x, weight.contiguous(), contiguous(bias), state, y, after, channels, length),
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
            *(x, weight.contiguous(), contiguous(bias), state, y, after, channels, length),
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
    y = x.to(kind)
    if x.numel():
        y = torch.nn.functional.conv1d(
            whole.to(kind), weight.to(kind).unsqueeze(1), wide, groups=channels
        )
    y = torch.nn.functional.silu(y) if activation == "silu" else y
    out = torch.empty_like(x) if dense(x) else x.new_empty(x.shape)
    return out.copy_(y), whole[:, :, x.shape[2] :].contiguous()
    return out.copy_(y), whole[:, :, x.shape[2] :].contiguous()


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


def fits(problem: Problem, settings: Settings, device: Device) -> bool:
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


FORWARD = Space(
    kernel="causal_conv1d_kernel",
    axes=_axes,
    fits=fits,
    seconds=_seconds,
    classes=("batch", "length"),
)
VECTOR = replace(FORWARD, kernel="causal_conv1d_vector_kernel")

__all__ = [
    "FORWARD",
    "VECTOR",
    "causal_conv1d",
    "causal_conv1d_reference",
    "fits",
    "inputs_at",
]
