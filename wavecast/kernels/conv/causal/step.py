"""`causal_conv1d_update`: one more time, for generation."""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.conv.causal.arguments import check
from wavecast.kernels.pointwise.functions import sigmoid
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import contiguous


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
        total = total * sigmoid(total)
    tl.store(y_ptr + place, total.to(y_ptr.dtype.element_ty), mask=known)


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
    check(name, x.unsqueeze(2), weight, bias, state, activation)
    checks.written(name, "state", state)
    checks.require(x.numel() < 2**31, name, "x has 2**31 elements or more")
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
            *(x.contiguous(), weight.contiguous(), contiguous(bias), state, y, count, channels),
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

__all__ = ["UPDATE", "causal_conv1d_update", "causal_conv1d_update_reference"]
