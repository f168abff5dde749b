"""Products of rows sorted by expert with fp8 weights that have a scale per 128x128, and activations
rounded to fp8.

Codes are e4m3fn on every GPU, so that results differ by no more than sums in float32 do. Where the
matrix pipes have no e4m3fn they multiply an exact substitute: on gfx942 its own e4m3fnuz, in which
a code is worth half (and one code, that of -0, is another); elsewhere float16.
"""

from typing import Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice
from wavecast.kernels.describe import Axes, Device, KernelSpec, Problem, Settings
from wavecast.kernels.moe import tiling
from wavecast.kernels.moe.activations import Gate
from wavecast.kernels.moe.blocks import gated, rows_of, store_rows, tile_at, weight_rows
from wavecast.kernels.quantise.formats import LEAST, codes_of, constants, sizes_of
from wavecast.kernels.strides import adjacent
from wavecast.launch import gpu
from wavecast.perfmodel.ranking import GroupedProduct

SQUARE: Final = 128
"""Rows and columns of weights, and channels of activations, that share a scale."""
DIRECT: Final = 0
HALVED: Final = 1
WIDENED: Final = 2
"""How codes are multiplied: as they are, as codes of half the value, as float16."""


@triton.jit
def _widened(code):
    """float16 values of e4m3fn codes."""
    bits = code.to(tl.uint16)
    half = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
    return half.to(tl.float16, bitcast=True) * 256.0


@triton.jit
def weights_of(code, VARIANT: tl.constexpr, ROWS: tl.constexpr):
    """What the matrix pipes multiply for codes of weights, half the value for HALVED: codes
    [128, ROWS], or [ROWS, 32] of four in a word, which are changed four, or two, at once."""
    if VARIANT == 0:
        value = code.to(tl.float8e4nv, bitcast=True)
    elif code.dtype == tl.uint8:
        if VARIANT == 1:
            value = tl.where(code == 0x80, 0, code).to(tl.uint8).to(tl.float8e4b8, bitcast=True)
        else:
            value = _widened(code)
    elif VARIANT == 1:
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
def activations_of(stored, VARIANT: tl.constexpr):
    """What the matrix pipes multiply for what `moe_round_kernel` stored."""
    if VARIANT == 0:
        value = stored.to(tl.float8e4nv, bitcast=True)
    elif VARIANT == 1:
        value = stored.to(tl.float8e4b8, bitcast=True)
    else:
        value = stored
    return value


@triton.jit
def moe_round_kernel(
    x_ptr, rounded_ptr, scale_ptr, experts_ptr, count, columns, across, stride, least, num_experts,
    ROUTED: tl.constexpr, VARIANT: tl.constexpr, GROUPS: tl.constexpr, WIDE: tl.constexpr,
    KIND: tl.constexpr,
    MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Groups of 128 columns with their scales, as `quantise_fp8_group` has them; codes that
    `weights_of` has to change are changed here. Rows of slots without an expert, which hold
    nothing, are left out (ROUTED)."""
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    row = group // across
    offs_n = ((group % across) * 128)[:, None] + tl.arange(0, 128)[None, :]
    if WIDE:
        row = row.to(tl.int64)
    mask_m = group < count
    if ROUTED:
        expert = tl.load(experts_ptr + row, mask=mask_m, other=-1)
        mask_m = mask_m & (expert >= 0) & (expert < num_experts)
    mask = mask_m[:, None] & (offs_n < columns)
    x = tl.load(x_ptr + row[:, None] * stride + offs_n, mask=mask, other=0.0).to(tl.float32)
    amax = tl.maximum(tl.max(sizes_of(x), axis=1), least.to(tl.uint32, bitcast=True))
    amax = amax.to(tl.float32, bitcast=True)
    fp8_max = tl.full((GROUPS,), MOST, tl.float32)
    tl.store(scale_ptr + group, tl.div_rn(amax, fp8_max), mask=mask_m)
    factor = tl.div_rn(fp8_max, amax)
    if VARIANT == 1:
        # gfx942 converts to e4m3fnuz: of half the value, the same code but for that of -0
        half = x * (0.5 * factor)[:, None]
        code = codes_of(half, "e4m3fnuz", 3, 8, 0.5 * MOST, True)  # pyright: ignore[reportArgumentType]
    else:
        code = codes_of(x * factor[:, None], KIND, MANTISSA, BIAS, MOST, NATIVE)
        if VARIANT == 2:
            code = _widened(code)
    tl.store(rounded_ptr + row[:, None] * columns + offs_n, code, mask=mask)


def variant_of(device: Device) -> int:
    """How e4m3fn codes are multiplied on a device."""
    formats = device.capabilities.matrix_fp8
    if "float8_e4m3fnuz" in formats:
        return HALVED
    return DIRECT if "float8_e4m3fn" in formats else WIDENED


def quantise_rows(x: Tensor, experts: Tensor | None, count: int) -> tuple[Tensor, Tensor]:
    """Rows rounded to fp8 as the matrix pipes take them, and the scales of their groups; those of
    `experts` that are none of the `count` are left out."""
    device = gpu.launching()
    variant = variant_of(device)
    rows, columns = x.shape
    across = triton.cdiv(columns, SQUARE)
    dtype = torch.float16 if variant == WIDENED else torch.uint8
    codes = torch.empty((rows, columns), dtype=dtype, device=x.device)
    scale = torch.empty((rows, across), dtype=torch.float32, device=x.device)
    x = adjacent(x)
    problem = {"groups": rows * across, "bytes": x.element_size(), "variant": variant}
    choice.run(
        ROUND, {**problem, "routed": experts is not None}, **constants("e4m3fn", device), x=x,
        rounded=codes, scale=scale, experts=codes if experts is None else experts,
        count=rows * across, columns=columns, across=across, stride=x.stride(0), least=LEAST,
        num_experts=count, WIDE=checks.wide(x, codes),
    )  # fmt: skip
    return codes, scale


def codes_to_multiply(w: Tensor, variant: int, device: Device) -> Tensor:
    """Codes of weights; where CDNA changes them, four in a word if steps of 128 leave no rest (with
    words, RDNA3 spills)."""
    w = w.contiguous()
    mfma = device.capabilities.matrix_unit == "mfma"
    if variant == DIRECT or w.shape[-1] % SQUARE or not mfma:
        return w.view(torch.uint8)
    return (w.clone() if w.storage_offset() % 4 else w).view(torch.int32)


ROUND = KernelSpec.streaming(
    moe_round_kernel,
    grid="cdiv(groups, GROUPS)",
    axes={"GROUPS": (2, 4, 8, 16), "num_warps": (1, 2, 4)},
    read=f"groups * {SQUARE} * bytes",
    written=f"groups * {SQUARE} * (2 if variant == {WIDENED} else 1)",
    elements=f"GROUPS * {SQUARE}",
    instructions=f"32.0 if variant == {WIDENED} else 16.0",
    live_registers=3.0,
    rounded=("groups",),
)


@triton.jit
def moe_product_fp8_kernel(
    x_ptr, x_scale_ptr, order_ptr, owners_ptr, starts_ptr, w_ptr, w_scale_ptr, y_ptr,
    slots, shared, alpha, limit,
    EXPERTS: tl.constexpr, N: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr,
    GATES: tl.constexpr, VARIANT: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    GROUP: tl.constexpr, XCDS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """As `moe_product_kernel`, in steps of 128 of K, whose products are times their scales. Where
    tiles divide squares of 128, the columns of a tile's half, gates or ups, have one."""
    tiles_n: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    DEEP: tl.constexpr = (K + 127) // 128
    HALVES: tl.constexpr = 1 if GATES == 0 else 2  # pyright: ignore[reportAssignmentType]
    UNIFORM: tl.constexpr = GATES == 0 or N % 128 == 0
    TIMES: tl.constexpr = 4.0 if VARIANT == 1 else 1.0  # pyright: ignore[reportAssignmentType]
    UNIT: tl.constexpr = 4 if w_ptr.dtype.element_ty == tl.int32 else 1  # pyright: ignore[reportAssignmentType]
    pid = tl.program_id(0)
    tiles_m = tl.load(starts_ptr + EXPERTS) // BLOCK_M
    if pid >= tiles_m * tiles_n:
        return
    pid_m, pid_n, expert = tile_at(
        pid, tiles_m, tiles_n, owners_ptr, starts_ptr, BLOCK_M, GROUP, XCDS
    )
    slot, read_slot = rows_of(order_ptr, pid_m, slots, BLOCK_M, WIDE)
    row = read_slot // shared
    w_rows = weight_rows(pid_n, N, BLOCK_N, GATES)
    w_ptr += expert * (HALVES * N * K // UNIT)
    w_scale_ptr += expert * (((HALVES * N + 127) // 128) * DEEP)
    offs_k = tl.arange(0, 128)
    x_offs = row[:, None] * K + offs_k[None, :]
    if UNIT == 4:
        w_offs = w_rows[:, None] * (K // 4) + tl.arange(0, 32)[None, :]
    else:
        w_offs = w_rows[None, :] * K + offs_k[:, None]
    if UNIFORM:
        half = tl.arange(0, HALVES)
        w_scales = w_scale_ptr + (pid_n * BLOCK_N // 128 + half * (N // 128)) * DEEP
        acc = tl.zeros((BLOCK_M, HALVES, BLOCK_N), tl.float32)
    else:
        w_scales = w_scale_ptr + w_rows // 128 * DEEP
        acc = tl.zeros((BLOCK_M, HALVES * BLOCK_N), tl.float32)
    for step in range(DEEP):
        start = step * 128
        if K % 128 == 0:
            x = tl.load(x_ptr + x_offs + start)
            w = tl.load(w_ptr + w_offs + start // UNIT)
        else:
            mask_k = offs_k < K - start
            x = tl.load(x_ptr + x_offs + start, mask=mask_k[None, :], other=0)
            w = tl.load(w_ptr + w_offs + start, mask=mask_k[:, None], other=0)
        x_scale = tl.load(x_scale_ptr + row * DEEP + step) * TIMES
        scale = x_scale[:, None] * tl.load(w_scales + step)[None, :]
        w = weights_of(w, VARIANT, HALVES * BLOCK_N)
        partial = tl.dot(activations_of(x, VARIANT), w, out_dtype=tl.float32)
        if UNIFORM:
            acc += tl.reshape(partial, (BLOCK_M, HALVES, BLOCK_N)) * scale[:, :, None]
        else:
            acc += partial * scale
    acc = tl.reshape(acc, (BLOCK_M, HALVES * BLOCK_N))
    acc = gated(acc, alpha, limit, KIND, GATES, BLOCK_M, BLOCK_N)
    store_rows(y_ptr, acc, slot, slot < slots, pid_n, N, BLOCK_M, BLOCK_N)


def product_fp8(
    x: Tensor, x_scale: Tensor, order: tiling.Order, w: Tensor, w_scale: Tensor, *, shared: int,
    dtype: torch.dtype, gate: Gate | None = None,
) -> Tensor:  # fmt: skip
    """`products.product` of what `rounded` made, and of codes [experts, rows, k] with
    their scales, in `dtype`."""
    device = gpu.launching()
    variant = variant_of(device)
    k, n = w.shape[2], w.shape[1] // (2 if gate else 1)
    return tiling.launch(
        PRODUCT, x, order, n, k, gate, dtype, {"variant": variant}, x_scale=x_scale, shared=shared,
        w=codes_to_multiply(w, variant, device), w_scale=w_scale,
    )  # fmt: skip


def _axes(problem: Problem, device: Device) -> Axes:
    # Every wave changes the codes that it multiplies: the fewer, the less work.
    words = problem["variant"] == WIDENED and device.capabilities.matrix_unit == "mfma"
    further = {"num_stages": (1,)} if words and problem["block"] >= 64 else {}
    return {**tiling.axes(problem, device, 1), "BLOCK_N": (32, 64, 128), **further}


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    # Codes that are widened lie in the LDS as float16. A step's own products take accumulators
    # besides those of the sum.
    settings, columns = {**settings, "BLOCK_K": SQUARE}, tiling.columns(problem, settings)
    size = 2 if problem["variant"] == WIDENED else 1
    wide = tiling.fits(settings, device, 2 * columns, 0)
    return wide and tiling.fits(settings, device, columns, size)


def _product_demand(problem: Problem, settings: Settings, device: Device) -> GroupedProduct:
    settings, widened = {**settings, "BLOCK_K": SQUARE}, problem["variant"] == WIDENED
    dtype, weight = ("fp16", "fp8") if widened else ("fp8", "")
    return tiling.demand(problem, settings, 1, dtype=dtype, weight=weight, scaling="block")


PRODUCT = tiling.kernel(moe_product_fp8_kernel, _axes, _fits, _product_demand, ("w_scale",))
