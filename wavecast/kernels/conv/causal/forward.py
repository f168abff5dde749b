"""`causal_conv1d`: all times at once."""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, describe
from wavecast.kernels.conv.causal.times import filters, store_times, times
from wavecast.kernels.describe import Device, KernelSpec, Problem, Settings, Signature, coefficient
from wavecast.kernels.pointwise.functions import sigmoid

ACTIVATIONS = ("none", "silu")
MOST_TAPS = 16
ARGUMENTS = (
    "x: [batch, channels, length] float",
    "weight: [channels, taps] float",
    "bias?: [channels] float",
    "state?: [batch, channels, taps - 1] =x",
)
TENSORS = Signature(
    *ARGUMENTS, returns=("y: [batch, channels, length] =x", "next: [batch, channels, taps - 1] =x")
)


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
    pid = tl.program_id(0)
    batch = pid // tiles
    start = pid % tiles * (GROUPS * EACH)
    channel = (tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D))[:, None]
    mask = channel < channels
    wide = batch
    if WIDE:
        wide, channel, start = batch.to(tl.int64), channel.to(tl.int64), start.to(tl.int64)
    x_ptr += wide * x_batch
    y_ptr += wide * y_batch
    if STATE:
        state_ptr += wide * state_batch
    x = times(
        x_ptr, state_ptr, start, channel, mask, length, x_channel, x_step,
        state_channel, state_step, 1 - W, EACH + W - 1, W, STATE, LAST, EACH, GROUPS,
    )  # fmt: skip
    weights = filters(weight_ptr, channel, mask, W, TAPS, LAST)
    base = tl.zeros((BLOCK_D, 1), tl.float32)
    if BIAS:
        base += tl.load(bias_ptr + channel, mask, 0.0).to(tl.float32)
    sums = ()
    for i in tl.static_range(EACH):
        acc = base
        for tap in tl.static_range(W):
            acc += x[i + tap].to(tl.float32) * weights[tap]
        if SILU:
            acc = acc * sigmoid(acc)
        sums = sums + (acc,)  # noqa: RUF005 -- Triton
    store_times(y_ptr, sums, start, channel, mask, length, y_channel, y_step, LAST, EACH, GROUPS)
    if start + GROUPS * EACH >= length:
        for tap in tl.static_range(W - 1):
            end = length - (W - 1) + tap
            carry = tl.load(x_ptr + channel * x_channel + end * x_step, mask & (end >= 0), 0.0)
            if STATE:
                before = state_ptr + channel * state_channel + (length + tap) * state_step
                carry += tl.load(before, mask & (end < 0), 0.0)
            tl.store(next_ptr + (wide * channels + channel) * (W - 1) + tap, carry, mask)


def causal_conv1d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, state: Tensor | None = None,
    activation: str = "silu",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """A convolution along time that sees the past only, with one filter per channel:

        y[b, d, t] = activation(bias[d] + Σ_w weight[d, w] · x[b, d, t - W + 1 + w])

    `x` is [batch, channels, length] of float32, float16 or bfloat16, `weight` [channels, W] with W
    up to 16 and `bias` [channels] of any of these; `state` [batch, channels, W - 1], of the dtype
    of `x`, holds the inputs before the first (None: zeros). `activation` is silu or none.

    Returns the result, of the dtype of `x` and with channels innermost in memory where `x` has them
    so, and the state after the last input. Sums are in float32. Raises ArgumentError.
    """
    operands = {"x": x, "weight": weight, "bias": bias, "state": state}
    bound = check(TENSORS, "causal_conv1d", operands, activation)
    y, after = like(x), TENSORS.empty(operands, bound)[1]
    if not x.numel():
        return y, after.zero_() if state is None else after.copy_(state)
    problem = describe_problem(operands, activation)
    choice.run(FORWARD, problem, **operands, y=y, next=after, **arguments(operands, problem))
    return y, after


def causal_conv1d_reference(x, weight, bias=None, state=None, activation="silu"):
    wide = describe.widened(x)
    channels, taps = weight.shape
    before = x.new_zeros((x.shape[0], channels, taps - 1)) if state is None else state
    whole, y = torch.cat((before, x), 2), wide
    if x.numel():
        filters_, bias = weight.to(y.dtype)[:, None], None if bias is None else bias.to(y.dtype)
        y = torch.nn.functional.conv1d(whole.to(y.dtype), filters_, bias, groups=channels)
    y = torch.nn.functional.silu(y) if activation == "silu" else y
    return like(x).copy_(y), whole[:, :, x.shape[2] :].contiguous()


def check(
    signature: Signature, operator: str, operands: Mapping[str, Any], activation: str
) -> dict[str, Any]:
    """The sizes that the arguments of a causal convolution bind. Raises ArgumentError."""
    bound = signature.check(operator, operands)
    taps = bound["taps"]
    in_range = 1 <= taps <= MOST_TAPS
    checks.require(in_range, operator, f"weight has {taps} taps, not 1 to {MOST_TAPS}")
    checks.one_of(operator, "activation", activation, ACTIVATIONS)
    return bound


def like(x: Tensor) -> Tensor:
    """A tensor like `x`, with its strides if it is dense, else contiguous; not filled."""
    dense = x.is_contiguous() or x.transpose(1, 2).is_contiguous()
    return torch.empty_like(x) if dense else torch.empty(x.shape, dtype=x.dtype, device=x.device)


def describe_problem(operands: Mapping[str, Any], activation: str) -> dict[str, Any]:
    """All that a configuration and the code depend on."""
    x, weight = operands["x"], operands["weight"]
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
        "bias": operands["bias"] is not None,
        "state": operands["state"] is not None,
        "silu": activation == "silu",
    }


def strides(*names: str) -> dict[str, str]:
    """The parameters that take the strides of tensors [batch, channels, times]."""
    return {name: f"{name}_batch {name}_channel {name}_step" for name in names}


def arguments(operands: Mapping[str, Any], problem: Problem) -> dict[str, int]:
    """How many taps a filter has, and the strides of the state; without one those of x, which
    nothing reads."""
    state = operands["x"] if operands["state"] is None else operands["state"]
    steps = dict(zip(strides("state")["state"].split(), state.stride(), strict=True))
    return {"W": problem["taps"], "TAPS": triton.next_power_of_2(problem["taps"]), **steps}


AXES = {
    "BLOCK_D": "up_to(next_power_of_2(channels), 64, 128, 256, 512) if last else (1, 2, 4, 8)",
    "GROUPS": "(1, 2, 4, 8, 16) if last else "
    "up_to(next_power_of_2(cdiv(length, 16 // bytes)), 16, 32, 64, 128, 256)",
    "EACH": "(4, 8, 16) if last else (16 // bytes, 32 // bytes)",
    "num_warps": (1, 2, 4),
}
"""With channels innermost a tile has many of them, else a lane has a vector of times, or two."""


def fits(problem: Problem, settings: Settings, device: Device) -> bool:
    """A lane takes one group of times where they are adjacent, and else a vector of channels."""
    lanes = settings["num_warps"] * device.wave_lanes
    elements = settings["BLOCK_D"] * settings["GROUPS"]
    all_channels = triton.next_power_of_2(problem["channels"])
    all_groups = triton.next_power_of_2(triton.cdiv(problem["length"], settings["EACH"]))
    if problem["last"]:
        wide = min(16 // problem["bytes"], all_channels)
        tile_sizes = (lanes * wide, lanes * wide // 2)
        most = all_channels * min(all_groups, 16)
    else:
        tile_sizes = (lanes,)
        most = min(all_channels, 8) * min(all_groups, 256)
    small = settings["num_warps"] == 1 and elements == most < min(tile_sizes)
    return elements in tile_sizes or small


def tiles(problem: Problem, settings: Settings) -> tuple[int, int]:
    """Tiles along the times of all batches, and along the channels."""
    times = triton.cdiv(problem["length"], settings["GROUPS"] * settings["EACH"])
    return problem["batch"] * times, triton.cdiv(problem["channels"], settings["BLOCK_D"])


def size(problem: Problem, _: Settings) -> float:
    """Bytes of the input."""
    return problem["batch"] * problem["channels"] * problem["length"] * problem["bytes"]


def beyond(problem: Problem, settings: Settings) -> float:
    """Share of its inputs that a tile reads from memory beyond its own times, before or after them:
    where times are adjacent, of a line."""
    tile_times = settings["GROUPS"] * settings["EACH"]
    more = problem["taps"] - 1 if problem["last"] else 128 / problem["bytes"]
    return (
        coefficient("ranking", "causal_conv_missed_overlap").values["default"] * more / tile_times
    )


FORWARD = KernelSpec.streaming(
    causal_conv1d_kernel,
    grid=tiles,
    axes=AXES,
    fits=fits,
    read=lambda problem, settings: size(problem, settings) * (1 + beyond(problem, settings)),
    written=size,
    elements="BLOCK_D * EACH * GROUPS",
    instructions="taps * 1.5 + 12.0",
    live_registers=1.5,
    strides=strides("x", "y"),
    contiguous=("weight", "bias"),
    rounded=("batch", "length"),
)
