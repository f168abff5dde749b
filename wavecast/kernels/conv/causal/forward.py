"""`causal_conv1d`: all times at once."""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.conv.causal.arguments import check, dense
from wavecast.kernels.conv.causal.times import filters, store_times, times
from wavecast.kernels.pointwise.functions import sigmoid
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import contiguous


@triton.jit
def causal_conv1d_kernel(
    x_ptr, weight_ptr, bias_ptr, state_ptr, y_ptr, next_ptr, channels, length,
    x_batch, x_channel, x_step, state_batch, state_channel, state_step,
    y_batch, y_channel, y_step,
    W: tl.constexpr, TAPS: tl.constexpr, BIAS: tl.constexpr, STATE: tl.constexpr,
    SILU: tl.constexpr, LAST: tl.constexpr, WIDE: tl.constexpr,
    BLOCK_D: tl.constexpr, GROUPS: tl.constexpr, EACH: tl.constexpr,
):  # fmt: skip
    """One tile of BLOCK_D channels by GROUPS of EACH times. The program of the last times also
    writes the new state."""
    tiles = tl.cdiv(length, GROUPS * EACH)
    number = tl.program_id(0)
    batch = number // tiles
    start = number % tiles * (GROUPS * EACH)
    channel = (tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D))[:, None]
    known = channel < channels
    wide = batch
    if WIDE:
        wide, channel, start = batch.to(tl.int64), channel.to(tl.int64), start.to(tl.int64)
    x_ptr += wide * x_batch
    y_ptr += wide * y_batch
    if STATE:
        state_ptr += wide * state_batch
    x = times(
        x_ptr, state_ptr, start, channel, known, length, x_channel, x_step,
        state_channel, state_step, 1 - W, EACH + W - 1, W, STATE, LAST, EACH, GROUPS,
    )  # fmt: skip
    weights = filters(weight_ptr, channel, known, W, TAPS, LAST)
    base = tl.zeros((BLOCK_D, 1), tl.float32)
    if BIAS:
        base += tl.load(bias_ptr + channel, known, 0.0).to(tl.float32)
    sums = ()
    for place in tl.static_range(EACH):
        total = base
        for tap in tl.static_range(W):
            total += x[place + tap].to(tl.float32) * weights[tap]
        if SILU:
            total = total * sigmoid(total)
        sums = sums + (total,)  # noqa: RUF005 -- Triton
    store_times(y_ptr, sums, start, channel, known, length, y_channel, y_step, LAST, EACH, GROUPS)
    if start + GROUPS * EACH >= length:
        for tap in tl.static_range(W - 1):
            end = length - (W - 1) + tap
            kept = tl.load(x_ptr + channel * x_channel + end * x_step, known & (end >= 0), 0.0)
            if STATE:
                before = state_ptr + channel * state_channel + (length + tap) * state_step
                kept += tl.load(before, known & (end < 0), 0.0)
            tl.store(next_ptr + (wide * channels + channel) * (W - 1) + tap, kept, known)


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
    problem = described(x, weight, bias, state, activation)

    launch(
        causal_conv1d_kernel,
        lambda settings: (
            batch * triton.cdiv(length, settings["GROUPS"] * settings["EACH"]),
            triton.cdiv(channels, settings["BLOCK_D"]),
        ),
        (
            *(x, weight.contiguous(), contiguous(bias), state, y, after, channels, length),
            *x.stride(),
            *held.stride(),
            *y.stride(),
        ),
        FORWARD,
        problem,
        W=taps,
        TAPS=triton.next_power_of_2(taps),
        BIAS=bias is not None,
        STATE=state is not None,
        SILU=activation == "silu",
        LAST=problem["last"],
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


def described(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor | None,
    activation: str,
) -> dict[str, Any]:
    """All that a configuration and the code depend on."""
    batch, channels, length = x.shape
    times_first = x.stride(2) == 1
    return {
        "batch": batch,
        "channels": channels,
        "length": length,
        "taps": weight.shape[1],
        "bytes": x.element_size(),
        "last": x.stride(1) == 1 and channels > 1,
        "aligned": times_first and not (length % 16 or x.stride(0) % 16 or x.stride(1) % 16),
        "bias": bias is not None,
        "state": state is not None,
        "silu": activation == "silu",
    }


def axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    length, channels = problem["length"], triton.next_power_of_2(problem["channels"])
    if problem["last"]:
        return {
            "BLOCK_D": tuple(n for n in (64, 128, 256, 512) if n <= channels) or (channels,),
            "GROUPS": (1, 2, 4, 8, 16),
            "EACH": (4, 8, 16),
            "num_warps": (1, 2, 4),
            "num_stages": (1,),
        }
    vector = 16 // problem["bytes"]
    groups = triton.next_power_of_2(triton.cdiv(length, vector))
    return {
        "BLOCK_D": (1, 2, 4, 8),
        "GROUPS": tuple(n for n in (16, 32, 64, 128, 256) if n <= groups) or (groups,),
        "EACH": (vector, 2 * vector),
        "num_warps": (1, 2, 4),
        "num_stages": (1,),
    }


def fits(problem: Problem, settings: Settings, device: Device) -> bool:
    """A lane holds one group of times, where they are adjacent, and else a vector of channels."""
    lanes = settings["num_warps"] * (64 if device.target.startswith("gfx9") else 32)
    held = settings["BLOCK_D"] * settings["GROUPS"]
    all_channels = triton.next_power_of_2(problem["channels"])
    all_groups = triton.next_power_of_2(triton.cdiv(problem["length"], settings["EACH"]))
    if problem["last"]:
        wide = min(16 // problem["bytes"], all_channels)
        wanted = (lanes * wide, lanes * wide // 2)
        most = all_channels * min(all_groups, 16)
    else:
        wanted = (lanes,)
        most = min(all_channels, 8) * min(all_groups, 256)
    small = settings["num_warps"] == 1 and held == most < min(wanted)
    return held in wanted or small


def beyond(problem: Problem, settings: Settings) -> float:
    """Share of its inputs that a tile reads beyond its own times, before or after them. Most of it
    comes from a cache; where times are adjacent, it is a line."""
    own = settings["GROUPS"] * settings["EACH"]
    more = problem["taps"] - 1 if problem["last"] else 128 / problem["bytes"]
    return 0.3 * more / own


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    channels, each = settings["BLOCK_D"], settings["EACH"]
    size = problem["batch"] * problem["channels"] * problem["length"] * problem["bytes"]
    across = triton.cdiv(problem["channels"], channels)
    tiles = triton.cdiv(problem["length"], each * settings["GROUPS"])
    return estimates.streaming(
        device,
        settings,
        workgroups=problem["batch"] * across * tiles,
        read=size * (1 + beyond(problem, settings)),
        written=size,
        elements=channels * each * settings["GROUPS"],
        operations=problem["taps"] * 1.5 + 12.0,
        held=1.5,
    )


FORWARD = Space(
    kernel="causal_conv1d_kernel",
    axes=axes,
    fits=fits,
    seconds=_seconds,
    classes=("batch", "length"),
)

__all__ = [
    "FORWARD",
    "axes",
    "beyond",
    "causal_conv1d",
    "causal_conv1d_reference",
    "described",
    "fits",
]
