"""Experts with fp8 weights: a scale per 128x128 of the weights, one per 128 of every activation.

Codes are e4m3fn on every GPU, so that results differ by no more than sums in float32 do. Where the
matrix pipes have no e4m3fn they multiply what stands for it exactly: on gfx942 its own e4m3fnuz,
in which a code is worth half (and one code, that of -0, is another); elsewhere float16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.moe import activations, experts, products, steps
from wavecast.kernels.moe.activations import activate
from wavecast.kernels.operator import Operator, Tolerance
from wavecast.kernels.quantise.formats import LEAST, codes_of, constants, sizes_of
from wavecast.kernels.quantise.group import quantise_fp8_group_reference
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import tile_of, xcds
from wavecast.model.bounds import Work

_SQUARE: Final = 128
"""Rows and columns of weights, and channels of activations, that share a scale."""
_DIRECT: Final = 0
_HALVED: Final = 1
_WIDENED: Final = 2


@triton.jit
def _widened(code):
    """float16 values of e4m3fn codes."""
    bits = code.to(tl.uint16)
    half = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
    return half.to(tl.float16, bitcast=True) * 256.0


@triton.jit
def _weights(code, WAY: tl.constexpr, ROWS: tl.constexpr):
    """What the matrix pipes multiply for codes of weights, half the value for _HALVED: codes
    [128, ROWS], or [ROWS, 32] of four in a word, which are changed four, or two, at once."""
    if WAY == 0:
        value = code.to(tl.float8e4nv, bitcast=True)
    elif code.dtype == tl.uint8:
        if WAY == 1:
            value = tl.where(code == 0x80, 0, code).to(tl.uint8).to(tl.float8e4b8, bitcast=True)
        else:
            value = _widened(code)
    elif WAY == 1:
        # The sign stays where another bit of the code is set.
        other = (code & 0x7F7F7F7F) + 0x7F7F7F7F
        code = code & (other | 0x7F7F7F7F)
        even = tl.join(code.to(tl.uint8), (code >> 16).to(tl.uint8))
        odd = tl.join((code >> 8).to(tl.uint8), (code >> 24).to(tl.uint8))
        codes = tl.reshape(tl.join(even, odd), (ROWS, 128))
        value = tl.trans(codes.to(tl.float8e4b8, bitcast=True))
    else:
        # Codes in the upper bytes of halves: float16 but for the sign, a bit too far up.
        above = code & 0x7F007F00
        below = code & 0x007F007F
        odd = (code ^ above ^ (code & 0x00FF00FF)) | (above >> 1)
        even = ((code & 0x00800080) << 8) | (below << 7)
        even = tl.join(even.to(tl.uint16), (even >> 16).to(tl.uint16))
        odd = tl.join(odd.to(tl.uint16), (odd >> 16).to(tl.uint16))
        halves = tl.reshape(tl.join(even, odd), (ROWS, 128)).to(tl.float16, bitcast=True)
        value = tl.trans(halves * 256.0)
    return value


@triton.jit
def _activations(stored, WAY: tl.constexpr):
    """What the matrix pipes multiply for what `moe_round_kernel` stored."""
    if WAY == 0:
        value = stored.to(tl.float8e4nv, bitcast=True)
    elif WAY == 1:
        value = stored.to(tl.float8e4b8, bitcast=True)
    else:
        value = stored
    return value


@triton.jit
def moe_round_kernel(
    x_ptr, rounded_ptr, scale_ptr, experts_ptr, count, columns, across, stride, least, experts,
    ROUTED: tl.constexpr, WAY: tl.constexpr, GROUPS: tl.constexpr, WIDE: tl.constexpr,
    KIND: tl.constexpr,
    MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Groups of 128 columns with their scales, as `quantise_fp8_group` has them; codes that
    `_weights` has to change are changed here. Rows of slots without an expert, which hold nothing,
    are left out (ROUTED)."""
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    row = group // across
    column = ((group % across) * 128)[:, None] + tl.arange(0, 128)[None, :]
    if WIDE:
        row = row.to(tl.int64)
    real = group < count
    if ROUTED:
        expert = tl.load(experts_ptr + row, mask=real, other=-1)
        real = real & (expert >= 0) & (expert < experts)
    inside = real[:, None] & (column < columns)
    x = tl.load(x_ptr + row[:, None] * stride + column, mask=inside, other=0.0).to(tl.float32)
    largest = tl.maximum(tl.max(sizes_of(x), axis=1), least.to(tl.uint32, bitcast=True))
    largest = largest.to(tl.float32, bitcast=True)
    most = tl.full((GROUPS,), MOST, tl.float32)
    tl.store(scale_ptr + group, tl.div_rn(largest, most), mask=real)
    factor = tl.div_rn(most, largest)
    code = codes_of(x * factor[:, None], KIND, MANTISSA, BIAS, MOST, NATIVE)
    if WAY == 1:
        stored = tl.where(code == 0x80, 0, code).to(tl.uint8)
    elif WAY == 2:
        stored = _widened(code)
    else:
        stored = code
    tl.store(rounded_ptr + row[:, None] * columns + column, stored, mask=inside)


@triton.jit
def moe_up_fp8_kernel(
    x_ptr, x_scale_ptr, order_ptr, owners_ptr, used_ptr, w_ptr, w_scale_ptr, y_ptr, slots, top_k,
    alpha, limit, N: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr, WAY: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr, XCDS: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """As `moe_up_kernel`, in steps of 128 of K. Where 128 divides N a tile has one scale of gates
    and one of ups."""
    across: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    DEEP: tl.constexpr = (K + 127) // 128
    UNIFORM: tl.constexpr = N % 128 == 0
    TIMES: tl.constexpr = 4.0 if WAY == 1 else 1.0  # pyright: ignore[reportAssignmentType]
    UNIT: tl.constexpr = 4 if w_ptr.dtype.element_ty == tl.int32 else 1  # pyright: ignore[reportAssignmentType]
    number = tl.program_id(0)
    down = tl.load(used_ptr) // BLOCK_M
    if number >= down * across:
        return
    line, column = tile_of(number, down, across, GROUP, XCDS)
    expert = tl.load(owners_ptr + line).to(tl.int64)
    slot = tl.load(order_ptr + line * BLOCK_M + tl.arange(0, BLOCK_M))
    first = tl.load(order_ptr + line * BLOCK_M)  # no block begins with padding
    token = tl.where(slot < slots, slot, first) // top_k
    at = column * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = at < N
    if WIDE:
        slot = slot.to(tl.int64)
        token = token.to(tl.int64)
    w_ptr += expert * (2 * N * K // UNIT)
    w_scale_ptr += expert * (((2 * N + 127) // 128) * DEEP)
    safe = at if N % BLOCK_N == 0 else tl.minimum(at, N - 1)
    place = tl.arange(0, 128)
    from_x = token[:, None] * K + place[None, :]
    if UNIT == 4:
        from_gate = safe[:, None] * (K // 4) + tl.arange(0, 32)[None, :]
    else:
        from_gate = safe[None, :] * K + place[:, None]
    from_up = from_gate + N * (K // UNIT)
    if UNIFORM:
        gate_scales = w_scale_ptr + (column * BLOCK_N // 128) * DEEP
        up_scales = gate_scales + (N // 128) * DEEP
    else:
        gate_scales = w_scale_ptr + (safe // 128) * DEEP
        up_scales = w_scale_ptr + ((safe + N) // 128) * DEEP
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(DEEP):
        start = step * 128
        if K % 128 == 0:
            x = tl.load(x_ptr + from_x + start)
            w = tl.load(w_ptr + from_gate + start // UNIT)
            v = tl.load(w_ptr + from_up + start // UNIT)
        else:
            valid = place < K - start
            x = tl.load(x_ptr + from_x + start, mask=valid[None, :], other=0)
            w = tl.load(w_ptr + from_gate + start, mask=valid[:, None], other=0)
            v = tl.load(w_ptr + from_up + start, mask=valid[:, None], other=0)
        scale = tl.load(x_scale_ptr + token * DEEP + step) * TIMES
        gate_scale = tl.load(gate_scales + step)
        up_scale = tl.load(up_scales + step)
        a = _activations(x, WAY)
        one = tl.dot(a, _weights(w, WAY, BLOCK_N), out_dtype=tl.float32)
        if UNIFORM:
            gate += one * (scale * gate_scale)[:, None]
        else:
            gate += one * (scale[:, None] * gate_scale[None, :])
        two = tl.dot(a, _weights(v, WAY, BLOCK_N), out_dtype=tl.float32)
        if UNIFORM:
            up += two * (scale * up_scale)[:, None]
        else:
            up += two * (scale[:, None] * up_scale[None, :])
    y = activate(gate, up, alpha, limit, KIND).to(y_ptr.dtype.element_ty)
    to = y_ptr + slot[:, None] * N + at[None, :]
    tl.store(to, y, mask=(slot < slots)[:, None] & inside[None, :])


@triton.jit
def moe_product_fp8_kernel(
    x_ptr, x_scale_ptr, order_ptr, owners_ptr, used_ptr, w_ptr, w_scale_ptr, y_ptr, slots,
    N: tl.constexpr, K: tl.constexpr, WAY: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, GROUP: tl.constexpr, XCDS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """y[slot] = x[slot] · wᵀ, in steps of 128 of K; tiles divide blocks of 128 columns."""
    across: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    DEEP: tl.constexpr = (K + 127) // 128
    TIMES: tl.constexpr = 4.0 if WAY == 1 else 1.0  # pyright: ignore[reportAssignmentType]
    UNIT: tl.constexpr = 4 if w_ptr.dtype.element_ty == tl.int32 else 1  # pyright: ignore[reportAssignmentType]
    number = tl.program_id(0)
    down = tl.load(used_ptr) // BLOCK_M
    if number >= down * across:
        return
    line, column = tile_of(number, down, across, GROUP, XCDS)
    expert = tl.load(owners_ptr + line).to(tl.int64)
    slot = tl.load(order_ptr + line * BLOCK_M + tl.arange(0, BLOCK_M))
    first = tl.load(order_ptr + line * BLOCK_M)  # no block begins with padding
    row = tl.where(slot < slots, slot, first)
    at = column * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = at < N
    if WIDE:
        slot = slot.to(tl.int64)
        row = row.to(tl.int64)
    w_ptr += expert * (N * K // UNIT)
    w_scales = w_scale_ptr + expert * (((N + 127) // 128) * DEEP)
    w_scales += (column * BLOCK_N // 128) * DEEP
    safe = at if N % BLOCK_N == 0 else tl.minimum(at, N - 1)
    place = tl.arange(0, 128)
    from_x = row[:, None] * K + place[None, :]
    if UNIT == 4:
        from_w = safe[:, None] * (K // 4) + tl.arange(0, 32)[None, :]
    else:
        from_w = safe[None, :] * K + place[:, None]
    y = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(DEEP):
        start = step * 128
        if K % 128 == 0:
            x = tl.load(x_ptr + from_x + start)
            w = tl.load(w_ptr + from_w + start // UNIT)
        else:
            valid = place < K - start
            x = tl.load(x_ptr + from_x + start, mask=valid[None, :], other=0)
            w = tl.load(w_ptr + from_w + start, mask=valid[:, None], other=0)
        scale = tl.load(x_scale_ptr + row * DEEP + step)
        scale = scale * (tl.load(w_scales + step) * TIMES)
        one = tl.dot(_activations(x, WAY), _weights(w, WAY, BLOCK_N), out_dtype=tl.float32)
        y += one * scale[:, None]
    to = y_ptr + slot[:, None] * N + at[None, :]
    mask = (slot < slots)[:, None] & inside[None, :]
    tl.store(to, y.to(y_ptr.dtype.element_ty), mask=mask)


def moe_experts_fp8(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
) -> torch.Tensor:
    """`moe_experts` with fp8 weights as DeepSeek-V3 has them, and activations rounded to fp8.

    `w1` [experts, 2 · inter, model] and `w2` [experts, model, inter] are of float8_e4m3fn; `scale1`
    [experts, ceil(2 · inter / 128), ceil(model / 128)] and `scale2`
    [experts, ceil(model / 128), ceil(inter / 128)] of float32 have a factor per square of 128.
    `hidden`, and what the activation makes, are rounded to float8_e4m3fn with a scale per 128
    channels (`quantise_fp8_group`); the activation's result is rounded to the dtype of `hidden`
    before. Everything else is as in `moe_experts`. Raises ArgumentError.
    """
    name = "moe_experts_fp8"
    _check(hidden, weights, experts, w1, scale1, w2, scale2)
    kind = activations.number(name, activation)
    if not hidden.numel():
        return torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    device = gpu.launching()
    way = way_of(device)
    count, model, inter = w2.shape
    order = steps.Order.of(experts, count, w1.dtype, 128 if way == _WIDENED else 256)
    y = torch.empty((order.slots, inter), dtype=hidden.dtype, device=hidden.device)
    x, x_scale = _round(hidden, None, order.count, way, device)
    shared = {"WAY": way, "XCDS": xcds(device)}
    launch(
        moe_up_fp8_kernel,
        order.grid(inter),
        (
            *(x, x_scale, order.rows, order.owners, order.used),
            *(_codes(w1, way, device), scale1.contiguous(), y),
            *(order.slots, order.top_k, alpha, limit),
        ),
        UP,
        problem(order, inter, model, way, kind=kind),
        N=inter,
        K=model,
        KIND=kind,
        WIDE=checks.wide(x, y),
        **shared,
    )
    each = torch.empty((order.slots, model), dtype=hidden.dtype, device=hidden.device)
    x, x_scale = _round(y, order.experts, order.count, way, device)
    launch(
        moe_product_fp8_kernel,
        order.grid(model),
        (
            *(x, x_scale, order.rows, order.owners, order.used),
            *(_codes(w2, way, device), scale2.contiguous(), each, order.slots),
        ),
        PRODUCT,
        problem(order, model, inter, way),
        N=model,
        K=inter,
        WIDE=checks.wide(x, each),
        **shared,
    )
    return steps.combine(each, order, weights.contiguous(), hidden.dtype)


def _round(
    x: torch.Tensor, experts: torch.Tensor | None, count: int, way: int, device: Device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows rounded to fp8 as the matrix pipes take them, and the scales of their groups; those of
    `experts` that are none of the `count` are left out."""
    rows, columns = x.shape
    across = triton.cdiv(columns, _SQUARE)
    kind = torch.float16 if way == _WIDENED else torch.uint8
    rounded = torch.empty((rows, columns), dtype=kind, device=x.device)
    scale = torch.empty((rows, across), dtype=torch.float32, device=x.device)
    x = x if x.stride(1) == 1 else x.contiguous()
    launch(
        moe_round_kernel,
        lambda settings: (triton.cdiv(rows * across, settings["GROUPS"]),),
        (
            *(x, rounded, scale, rounded if experts is None else experts),
            *(rows * across, columns, across, x.stride(0), LEAST, count),
        ),
        ROUND,
        {
            "groups": rows * across,
            "bytes": x.element_size(),
            "way": way,
            "routed": experts is not None,
        },
        ROUTED=experts is not None,
        WAY=way,
        WIDE=checks.wide(x, rounded),
        **constants("e4m3fn", device),
    )
    return rounded, scale


def _codes(w: torch.Tensor, way: int, device: Device) -> torch.Tensor:
    """Codes of weights; where CDNA changes them, four in a word if steps of 128 leave no rest (with
    words, RDNA3 spills)."""
    w = w.contiguous()
    if way == _DIRECT or w.shape[-1] % _SQUARE or not device.target.startswith("gfx9"):
        return w.view(torch.uint8)
    return (w.clone() if w.storage_offset() % 4 else w).view(torch.int32)


def way_of(device: Device) -> int:
    """How e4m3fn codes are multiplied on a device."""
    if device.target == "gfx942":
        return _HALVED
    direct = ("gfx950", "gfx1200", "gfx1201", "gfx1250", "sm_89", "sm_90", "sm_100", "sm_120")
    return _DIRECT if device.target in direct else _WIDENED


def moe_experts_fp8_reference(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
) -> torch.Tensor:
    """Weights times their scales, in float32 at least, of every expert for every token."""
    kind = torch.promote_types(hidden.dtype, torch.float32)
    x = _rounded(hidden.to(kind))
    y = torch.zeros_like(x)
    for expert in range(w1.shape[0]):
        gate, up = (x @ _scaled(w1[expert], scale1[expert], kind).T).chunk(2, dim=-1)
        act = activations.reference(activation, gate, up, alpha, limit).to(hidden.dtype)
        one = _rounded(act.to(kind)) @ _scaled(w2[expert], scale2[expert], kind).T
        chosen = experts == expert
        share = torch.where(chosen, weights.to(kind), 0.0).sum(1, keepdim=True)
        y = y + torch.where(chosen.any(1, keepdim=True), one * share, 0.0)
    return y.to(hidden.dtype).contiguous()


def moe_experts_fp8_fake(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
    activation: str = "silu",
    alpha: float = 1.702,
    limit: float = 7.0,
) -> torch.Tensor:
    """The shape of the result, without a loop over experts."""
    return hidden.new_empty(hidden.shape)


def _rounded(x: torch.Tensor) -> torch.Tensor:
    """Rounded to fp8 with a scale per 128 columns."""
    codes, scale = quantise_fp8_group_reference(x)
    each = scale.to(x.dtype).repeat_interleave(_SQUARE, -1)[..., : x.shape[-1]]
    return codes.to(x.dtype) * each


def _scaled(w: torch.Tensor, scale: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    rows, columns = w.shape
    each = scale.to(kind).repeat_interleave(_SQUARE, 0)[:rows]
    return w.to(kind) * each.repeat_interleave(_SQUARE, 1)[:, :columns]


def _check(
    hidden: torch.Tensor,
    weights: torch.Tensor,
    experts_: torch.Tensor,
    w1: torch.Tensor,
    scale1: torch.Tensor,
    w2: torch.Tensor,
    scale2: torch.Tensor,
) -> None:
    name = "moe_experts_fp8"
    checks.dtype_in(name, "hidden", hidden, checks.FLOATS)
    checks.dtype_in(name, "weights", weights, checks.FLOATS)
    checks.dtype_in(name, "experts", experts_, (torch.int32,))
    checks.dtype_in(name, "w1", w1, (torch.float8_e4m3fn,))
    checks.dtype_in(name, "w2", w2, (torch.float8_e4m3fn,))
    checks.dtype_in(name, "scale1", scale1, (torch.float32,))
    checks.dtype_in(name, "scale2", scale2, (torch.float32,))
    experts.check_shapes(name, hidden, weights, experts_, w1, w2, None, None)
    for which, scale, w in (("scale1", scale1, w1), ("scale2", scale2, w2)):
        squares = (triton.cdiv(size, _SQUARE) for size in w.shape[1:])
        checks.shape_is(name, which, scale, (w.shape[0], *squares))
    checks.same_device(name, hidden=hidden, scale1=scale1, scale2=scale2)


def problem(order: steps.Order, n: int, k: int, way: int, **flags: Any) -> dict[str, Any]:
    """What the configuration of a product depends on."""
    return {
        "slots": order.slots, "experts": order.count, "block": order.block, "n": n, "k": k,
        "way": way, **flags,
    }  # fmt: skip


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    rows, way = problem["block"], problem["way"]
    # Every wave changes the codes that it multiplies: the fewer, the less work.
    amd = device.target.startswith("gfx")
    words = way != _DIRECT and device.target.startswith("gfx9")
    few = (2, 4) if amd else (4,)
    waves = few if rows < 64 else (4,) if words and rows < 256 else (4, 8)
    stages = (2,) if amd else (2, 3)
    kept = {
        "BLOCK_M": (rows,),
        "BLOCK_N": (32, 64, 128),
        "GROUP": (4,),
        "num_warps": waves,
        "num_stages": (1,) if words and way == _WIDENED and rows >= 64 else stages,
    }
    if device.target.startswith("gfx9"):
        kept["matrix_instr_nonkdim"] = (16,)
    return kept


def _deep(settings: Settings) -> dict[str, Any]:
    return {**settings, "BLOCK_K": _SQUARE}


def _fits(factor: int) -> Any:
    def fits(problem: Problem, settings: Settings, device: Device) -> bool:
        # What is multiplied lies in the LDS: float16 where codes are widened. A step's own products
        # take accumulators besides those of the sum.
        size = 2 if problem["way"] == _WIDENED else 1
        deep = _deep(settings)
        columns = factor * settings["BLOCK_N"]
        own = {**deep, "BLOCK_M": settings["BLOCK_M"]}
        return products.fits(problem, own, device, columns, size) and products.fits(
            problem, own, device, columns + settings["BLOCK_N"], 0
        )

    return fits


def _seconds(factor: int) -> Any:
    def seconds(problem: Problem, settings: Settings, device: Device) -> float:
        widened = problem["way"] == _WIDENED
        return products.seconds(
            problem,
            _deep(settings),
            device,
            factor * settings["BLOCK_N"],
            factor * problem["n"],
            1,
            dtype="fp16" if widened else "fp8",
            weight="fp8" if widened else "",
            scaling="block",
        )

    return seconds


def _round_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {"GROUPS": (2, 4, 8, 16), "num_warps": (1, 2, 4), "num_stages": (1,)}


def _round_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    elements = problem["groups"] * _SQUARE
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(problem["groups"], settings["GROUPS"]),
        read=elements * problem["bytes"],
        written=elements * (2 if problem["way"] == _WIDENED else 1),
        elements=settings["GROUPS"] * _SQUARE,
        operations=16.0 if problem["way"] == _DIRECT else 32.0,
        held=3.0,
    )


ROUND = Space(
    kernel="moe_round_kernel", axes=_round_axes, seconds=_round_seconds, classes=("groups",)
)
UP = Space(
    kernel="moe_up_fp8_kernel", axes=_axes, fits=_fits(2), seconds=_seconds(2), classes=("slots",)
)
PRODUCT = Space(
    kernel="moe_product_fp8_kernel",
    axes=_axes,
    fits=_fits(1),
    seconds=_seconds(1),
    classes=("slots",),
)


def _inputs(
    make: Make, tokens: int, experts: int, model: int, inter: int, top_k: int, dtype: str,
    activation: str = "silu", routing: str = "even",
) -> dict[str, Any]:  # fmt: skip
    if routing == "even":
        chosen = (make.permutation(tokens * top_k, "int32") % experts).reshape(tokens, top_k)
    else:
        chosen = make.integers((tokens, top_k), -1, experts, "int32")

    def squares(*sizes: int) -> tuple[int, ...]:
        return experts, *(triton.cdiv(size, _SQUARE) for size in sizes)

    kind = "float8_e4m3fn"
    return {
        "hidden": make.normal((tokens, model), dtype),
        "weights": make.uniform((tokens, top_k), "float32", 0.1, 1.0),
        "experts": chosen,
        "w1": make.normal((experts, 2 * inter, model), kind, 32.0),
        "scale1": make.uniform(squares(2 * inter, model), "float32", 0.5, 1.0) * model**-0.5 / 16,
        "w2": make.normal((experts, model, inter), kind, 32.0),
        "scale2": make.uniform(squares(model, inter), "float32", 0.5, 1.0) * inter**-0.5 / 32,
        "activation": activation,
    }


def _work(
    tokens: int, experts: int, model: int, inter: int, top_k: int, dtype: str, **flags: Any
) -> Work:
    size = getattr(torch, dtype).itemsize
    slots = tokens * top_k
    hit = min(experts, slots)
    read = 3 * hit * model * inter * (1 + 4 / _SQUARE**2) + tokens * model * size + 8 * slots
    flops = {"fp8": 6.0 * slots * model * inter}
    return Work(flops, read, tokens * model * size, "formula", "formula")


OPERATORS = (
    Operator(
        name="moe_experts_fp8",
        summary="moe_experts with block-scaled fp8 weights",
        call=moe_experts_fp8,
        reference=moe_experts_fp8_reference,
        fake=moe_experts_fp8_fake,
        inputs=_inputs,
        work=_work,
        cases=(
            {"tokens": 5, "experts": 3, "model": 160, "inter": 40, "top_k": 2}
            | {"dtype": "bfloat16", "routing": "odd"},
            {"tokens": 70, "experts": 3, "model": 128, "inter": 256, "top_k": 2}
            | {"dtype": "float16", "activation": "gelu", "routing": "odd"},
            {"tokens": 33, "experts": 2, "model": 256, "inter": 128, "top_k": 1}
            | {"dtype": "float32"},
        ),
        thorough=(
            {"tokens": 40, "experts": 2, "model": 136, "inter": 200, "top_k": 2}
            | {"dtype": "bfloat16", "activation": "clamped_swiglu"},
            {"tokens": 20, "experts": 2, "model": 384, "inter": 72, "top_k": 2}
            | {"dtype": "float16", "activation": "gelu_tanh"},
        ),
        shapes=experts.SHAPES[:4] + experts.SHAPES[5:],
        spaces=(ROUND, UP, PRODUCT, products.COMBINE),
        tolerance=Tolerance(ulps=3.0, accumulated=5e-3),
        exact=("hidden", "weights", "w1", "w2", "scale1", "scale2"),
        notes="A NaN among the weights counts as a finite number where a GPU lacks e4m3fn.",
    ),
)
