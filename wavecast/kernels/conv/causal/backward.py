"""Gradients of `causal_conv1d`."""

# pyright: reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import choice
from wavecast.kernels.conv.causal import forward
from wavecast.kernels.conv.causal.times import filters, store_times, times
from wavecast.kernels.conv.combine import combine
from wavecast.kernels.describe import Device, KernelSpec, Problem, Settings, Signature, widened
from wavecast.kernels.pointwise.functions import sigmoid
from wavecast.launch import gpu

_PROGRAMS_PER_UNIT = 8
"""Programs per compute unit among which a block of channels is shared, where there are few."""
_SHARED_CHANNELS = 256
"""Channels of a block, where they are innermost."""
_LEAST_TIMES = 256
"""Times a program has at least."""
TENSORS = Signature(
    "dy: [batch, channels, length] float",
    "dnext: [batch, channels, taps - 1] float",
    *forward.ARGUMENTS,
    returns=(
        "dx: [batch, channels, length] =x",
        "dweight: [channels, taps] =weight",
        "dbias: [channels] =weight",
        "dstate: [batch, channels, taps - 1] =x",
    ),
)


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
    mask = channel < channels
    if WIDE:
        channel = channel.to(tl.int64)
    weights = filters(weight_ptr, channel, mask, W, TAPS, LAST)
    base = tl.zeros((BLOCK_D, 1), tl.float32)
    if BIAS:
        base += tl.load(bias_ptr + channel, mask, 0.0).to(tl.float32)
    dweights = ()
    for _ in tl.static_range(W):
        dweights = dweights + (tl.zeros((BLOCK_D, GROUPS), tl.float32),)  # noqa: RUF005 -- Triton
    dbias = tl.zeros((BLOCK_D, GROUPS), tl.float32)
    tiles = tl.cdiv(length, GROUPS * EACH)
    tiles_per_share = tl.cdiv(batches * tiles, shares)
    begin = share * tiles_per_share
    for tile in range(begin, tl.minimum(begin + tiles_per_share, batches * tiles)):
        batch = tile // tiles
        start = tile % tiles * (GROUPS * EACH)
        if WIDE:
            batch, start = batch.to(tl.int64), start.to(tl.int64)
        row = batch * channels + channel
        x = times(
            x_ptr + batch * x_batch, state_ptr + batch * state_batch if STATE else state_ptr,
            start, channel, mask, length, x_channel, x_step, state_channel, state_step,
            1 - W, EACH + 2 * (W - 1), W, STATE, LAST, EACH, GROUPS,
        )  # fmt: skip
        dy = times(
            dy_ptr + batch * dy_batch, state_ptr, start, channel, mask, length,
            dy_channel, dy_step, 0, 0, 0, EACH + W - 1, W, False, LAST, EACH, GROUPS,
        )  # fmt: skip
        grads = ()
        for i in tl.static_range(EACH + W - 1):
            grad = dy[i].to(tl.float32)
            if SILU:
                acc = base
                for tap in tl.static_range(W):
                    acc += x[i + tap].to(tl.float32) * weights[tap]
                gate = sigmoid(acc)
                grad = grad * (gate + (acc * gate) * (1.0 - gate))
            grads = grads + (grad,)  # noqa: RUF005 -- Triton
        for i in tl.static_range(EACH):
            dbias += grads[i]
        accs = ()
        for tap in tl.static_range(W):
            acc = dweights[tap]
            for i in tl.static_range(EACH):
                acc += x[i + tap].to(tl.float32) * grads[i]
            accs = accs + (acc,)  # noqa: RUF005 -- Triton
        dweights = accs
        dxs = ()
        for i in tl.static_range(EACH):
            acc = grads[i + W - 1] * weights[0]
            for tap in tl.static_range(1, W):
                acc += grads[i + W - 1 - tap] * weights[tap]
            dxs = dxs + (acc,)  # noqa: RUF005 -- Triton
        if start + GROUPS * EACH > length - (W - 1):
            # the last inputs are the new state, too
            first = start + (tl.arange(0, GROUPS) * EACH)[None, :] - (length - (W - 1))
            with_next = ()
            for i in tl.static_range(EACH):
                next_mask = mask & (first + i >= 0) & (first + i < W - 1)
                grad_next = tl.load(dnext_ptr + row * (W - 1) + first + i, next_mask, 0.0)
                with_next = with_next + (dxs[i] + grad_next.to(tl.float32),)  # noqa: RUF005 -- Triton
            dxs = with_next
        store_times(
            dx_ptr + batch * dx_batch, dxs, start, channel, mask, length, dx_channel, dx_step,
            LAST, EACH, GROUPS,
        )  # fmt: skip
        if start == 0:
            state_mask = mask & (tl.arange(0, GROUPS) == 0)[None, :]
            for i in tl.static_range(W - 1):
                acc = grads[i] * weights[0]
                for tap in tl.static_range(1, i + 1):
                    acc += grads[i - tap] * weights[tap]
                state_offs = tl.broadcast_to(row * (W - 1) + i, (BLOCK_D, GROUPS))
                if i >= length:
                    acc += tl.load(dnext_ptr + state_offs - length, mask, 0.0).to(tl.float32)
                tl.store(dstate_ptr + state_offs, acc.to(dstate_ptr.dtype.element_ty), state_mask)
    dweight_ptr += share * (channels * (W + 1))
    dbias_ptr += share * (channels * (W + 1))
    for tap in tl.static_range(W):
        acc = tl.sum(dweights[tap], axis=1, keep_dims=True)
        tl.store(dweight_ptr + channel * W + tap, acc.to(dweight_ptr.dtype.element_ty), mask)
    acc = tl.sum(dbias, axis=1, keep_dims=True)
    tl.store(dbias_ptr + channel, acc.to(dbias_ptr.dtype.element_ty), mask)


def causal_conv1d_backward(
    dy: Tensor, dnext: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None,
    state: Tensor | None = None, activation: str = "silu",
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of `causal_conv1d` with respect to `x`, `weight`, `bias` and `state`, in the
    dtypes of `x`, `weight`, `weight` and `x`; those of arguments that were not given are what they
    would be for zeros. That of `x` has channels innermost where `x` has them so.

    `dy` is the gradient of the result, `dnext` [batch, channels, W - 1] that of the new state. Sums
    are in float32 in a fixed order. Raises ArgumentError.
    """
    operands = {"dy": dy, "dnext": dnext, "x": x, "weight": weight, "bias": bias, "state": state}
    bound = forward.check(TENSORS, "causal_conv1d_backward", operands, activation)
    batch, channels, length = x.shape
    taps = weight.shape[1]
    dx, (_, dw, db, ds) = forward.like(x), TENSORS.empty(operands, bound)
    if not x.numel():
        return dx, dw.zero_(), db.zero_(), dnext.to(x.dtype).clone()
    problem = forward.describe_problem(operands, activation)
    blocks = triton.cdiv(channels, _SHARED_CHANNELS if problem["last"] else 1)
    target_shares = triton.cdiv(_PROGRAMS_PER_UNIT * gpu.launching().compute_units, blocks)
    shares = problem["shares"] = min(target_shares, triton.cdiv(batch * length, _LEAST_TIMES))
    parts = torch.empty(
        (shares if shares > 1 else 0, channels * (taps + 1)), dtype=torch.float32, device=x.device
    )
    choice.run(
        BACKWARD, problem, **operands, **forward.arguments(operands, problem), dx=dx, dstate=ds,
        batches=batch, dweight=parts if shares > 1 else dw,
        dbias=parts[:, channels * taps :] if shares > 1 else db,
    )  # fmt: skip
    if shares > 1:
        combine(parts, None, dw, "none", db)
    return dx, dw, db, ds


def causal_conv1d_backward_reference(
    dy, dnext, x, weight, bias=None, state=None, activation="silu"
):  # fmt: skip
    channels, taps = weight.shape
    before = x.new_zeros((x.shape[0], channels, taps - 1)) if state is None else state
    whole = widened(torch.cat((before, x), 2))
    wide, grad = weight.to(whole.dtype), dy.to(whole.dtype)
    windows = [whole[:, :, tap : tap + x.shape[2]] for tap in range(taps)]
    if activation == "silu":
        total = torch.zeros_like(grad)
        for tap, window in enumerate(windows):
            total = total + window * wide[:, tap, None]
        total = total if bias is None else total + bias.to(whole.dtype)[:, None]
        gate = torch.sigmoid(total)
        grad = grad * gate * (1 + total * (1 - gate))
    dw = torch.stack([(window * grad).sum((0, 2)) for window in windows], 1)
    pad = torch.nn.functional.pad
    dwhole = pad(dnext.to(whole.dtype), (x.shape[2], 0))
    for tap in range(taps):
        dwhole = dwhole + pad(grad * wide[:, tap, None], (tap, taps - 1 - tap))
    dwhole = dwhole.to(x.dtype)
    return (
        forward.like(x).copy_(dwhole[:, :, taps - 1 :]),
        dw.to(weight.dtype),
        grad.sum((0, 2)).to(weight.dtype),
        dwhole[:, :, : taps - 1].contiguous(),
    )


def _read(problem: Problem, settings: Settings) -> float:
    return forward.size(problem, settings) * (2 + 3 * forward.beyond(problem, settings))


def _written_bytes(problem: Problem, settings: Settings) -> float:
    parts = 4.0 * problem["channels"] * problem["shares"]
    return forward.size(problem, settings) + (problem["taps"] + 1) * parts


def _instructions(problem: Problem, settings: Settings) -> float:
    taps, each = problem["taps"], settings["EACH"]
    again = (taps - 1) / each
    per_tile = taps * (3.0 + again) + 14.0 * (1 + again)
    tiles = forward.tiles(problem, settings)[0]
    return per_tile * triton.cdiv(tiles, problem["shares"]) + taps * 20.0 / each


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    """Inputs, gradients and results of a lane stay in registers, about seven for each element."""
    lanes = settings["num_warps"] * device.wave_lanes
    elements = settings["BLOCK_D"] * settings["GROUPS"] * settings["EACH"]
    return elements / lanes <= 32 and forward.fits(problem, settings, device)


BACKWARD = KernelSpec.streaming(
    causal_conv1d_backward_kernel,
    grid="cdiv(channels, BLOCK_D), shares",
    axes=forward.AXES,
    fits=_fits,
    read=_read,
    written=_written_bytes,
    elements="BLOCK_D * EACH * GROUPS",
    instructions=_instructions,
    live_registers=6.0,
    strides=forward.strides("dy", "x", "dx"),
    contiguous=("weight", "bias", "dnext"),
    rounded=("batch", "length", "shares"),
)
