"""`causal_conv1d_update`: one more time, for generation."""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOperatorIssue=false

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels.conv.causal import forward
from wavecast.kernels.describe import KernelSpec, Signature, checks, choice, widened
from wavecast.kernels.pointwise.functions import sigmoid

TENSORS = Signature(
    "x: [batch, channels] float",
    "state: [batch, channels, taps - 1] =x",
    "weight: [channels, taps] float",
    "bias?: [channels] float",
    returns=("y: [batch, channels] =x",),
)


@triton.jit
def causal_conv1d_update_kernel(
    x_ptr, weight_ptr, bias_ptr, state_ptr, y_ptr, count, channels,
    state_batch, state_channel, state_step,
    W: tl.constexpr, BIAS: tl.constexpr, SILU: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One step of [batch, channels], flat; the state moves on by one in place."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < count
    channel = offs % channels
    batch = (offs // channels).to(tl.int64)
    state = state_ptr + batch * state_batch + channel * state_channel
    new = tl.load(x_ptr + offs, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + channel * W + (W - 1), mask=mask, other=0.0)
    acc = new.to(tl.float32) * weight.to(tl.float32)
    if BIAS:
        acc += tl.load(bias_ptr + channel, mask=mask, other=0.0).to(tl.float32)
    for tap in tl.static_range(W - 1):
        x = tl.load(state + tap * state_step, mask=mask, other=0.0)
        weight = tl.load(weight_ptr + channel * W + tap, mask=mask, other=0.0)
        acc += x.to(tl.float32) * weight.to(tl.float32)
        if tap > 0:
            tl.store(state + (tap - 1) * state_step, x, mask=mask)
    if W > 1:
        newest = state + (W - 2) * state_step
        tl.store(newest, new.to(state_ptr.dtype.element_ty), mask=mask)
    if SILU:
        acc = acc * sigmoid(acc)
    tl.store(y_ptr + offs, acc.to(y_ptr.dtype.element_ty), mask=mask)


def causal_conv1d_update(
    x: Tensor, state: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "silu"
) -> Tensor:
    """One more step of `causal_conv1d`: `x` [batch, channels] is the next input, `state` [batch,
    channels, W - 1] is moved on in place, with any strides. Returns [batch, channels]. Raises
    ArgumentError."""
    name = "causal_conv1d_update"
    operands = {"x": x, "state": state, "weight": weight, "bias": bias}
    bound = forward.check(TENSORS, name, operands, activation)
    checks.check_no_overlap(name, "state", state)
    checks.require(x.numel() < 2**31, name, "x has 2**31 elements or more")
    y = TENSORS.empty(operands, bound)
    if not x.numel():
        return y
    problem = {
        "count": x.numel(),
        "taps": bound["taps"],
        "bytes": x.element_size(),
        "bias": bias is not None,
        "silu": activation == "silu",
    }
    choice.run(UPDATE, problem, **operands, y=y, channels=x.shape[1], W=bound["taps"])
    return y


def causal_conv1d_update_reference(x, state, weight, bias=None, activation="silu"):
    window = torch.cat((state, x.unsqueeze(2)), 2)
    wide = widened(x).dtype
    y = (window.to(wide) * weight.to(wide)).sum(2)
    y = y if bias is None else y + bias.to(wide)
    state.copy_(window[:, :, 1:])
    y = torch.nn.functional.silu(y) if activation == "silu" else y
    return y.to(x.dtype).contiguous()


UPDATE = KernelSpec.streaming(
    causal_conv1d_update_kernel,
    grid="cdiv(count, BLOCK)",
    axes={"BLOCK": (64, 128, 256, 512, 1024), "num_warps": (1, 2, 4)},
    fits="BLOCK >= 64 * num_warps",
    read="count * bytes * (taps * 2 + 1)",
    written="count * bytes * taps",
    elements="BLOCK",
    instructions="taps * 8.0",
    live_registers=4.0,
    contiguous=("x", "weight", "bias"),
    strides={"state": "state_batch state_channel state_step"},
    rounded=("count",),
)
