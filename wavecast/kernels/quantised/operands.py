"""Operands in the form in which a GPU multiplies them: fp8 values in other codes, and scales in the
order in which lanes read them.

A step of a product reads a few scales of each row of a tile. Where those of a row are adjacent,
every row costs a whole cache line, as much as its operands; transposed, lanes read adjacent rows.
"""

from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import choice
from wavecast.kernels.describe import Device, KernelSpec, Problem, Settings, coefficient
from wavecast.kernels.quantise.formats import FP8, half_of, native, values_of

_FAMILY: Final = "ranking_quantised"
_PITCH: Final = 256
"""Rows of scales are padded with zeros to a multiple of this, so that whole tiles can be read."""


@triton.jit
def halved_codes(code):
    """The e4m3fnuz codes of half the values of e4m3fn codes, four to a word: -0 becomes 0, and NaN
    the code of -0."""
    size = code & 0x7F7F7F7F
    nan = ((size + 0x01010101) >> 7) & 0x01010101
    sign = code & (size + 0x7F7F7F7F) & -0x7F7F7F80
    return (size + nan) | sign


@triton.jit
def halved_tile(words, ROWS: tl.constexpr):
    """Words of four e4m3fn codes [ROWS, 32] as e4m3fnuz [ROWS, 128] of half the value."""
    words = halved_codes(words)
    even = tl.join(words.to(tl.uint8), (words >> 16).to(tl.uint8))
    odd = tl.join((words >> 8).to(tl.uint8), (words >> 24).to(tl.uint8))
    codes = tl.reshape(tl.join(even, odd), (ROWS, 128))
    return codes.to(tl.float8e4b8, bitcast=True)


@triton.jit
def recode_kernel(
    from_ptr, to_ptr, count, KIND: tl.constexpr, HALVED: tl.constexpr, WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Other codes for fp8 values: bfloat16, or with HALVED e4m3fnuz for e4m3fn, where only -0 and
    NaN have other codes."""
    pid = tl.program_id(0)
    if WIDE:
        pid = pid.to(tl.int64)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < count
    code = tl.load(from_ptr + offs, mask=mask, other=0)
    if HALVED:
        size = code & 0x7F
        code = tl.where(size == 0, 0, code)
        tl.store(to_ptr + offs, tl.where(size == 0x7F, 0x80, code).to(tl.uint8), mask=mask)
    else:
        tl.store(to_ptr + offs, half_of(values_of(code, KIND)), mask=mask)


@triton.jit
def transpose_kernel(
    from_ptr, to_ptr, rows, columns, pitch, row_step, column_step, WIDE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """to[column, row] = from[row, column], 0 beyond the rows up to `pitch`."""
    offs_m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offs_n = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (offs_m < rows)[:, None] & (offs_n < columns)[None, :]
    if WIDE:
        offs_m, offs_n = offs_m.to(tl.int64), offs_n.to(tl.int64)
    tile = tl.load(
        from_ptr + offs_m[:, None] * row_step + offs_n[None, :] * column_step, mask=mask, other=0
    )
    out_mask = (offs_m < pitch)[:, None] & (offs_n < columns)[None, :]
    tl.store(to_ptr + offs_n[None, :] * pitch + offs_m[:, None], tile, mask=out_mask)


def widened_in_tiles(rows: int, device: Device) -> bool:
    """Whether the tiles of a product with so many rows widen their operands as they read them:
    beyond some rows they read them too often."""
    return rows <= coefficient(_FAMILY, "rows_widened_in_tiles").of(device)


def recoded_first(rows: int, device: Device) -> bool:
    """Whether operands are recoded before a product of that many rows: also of few on RDNA, whose
    lanes hold every operand twice and have no registers left to widen it."""
    return not widened_in_tiles(rows, device) or device.wave_lanes == 32


def in_words(dtype: torch.dtype, rows: int, columns: int, device: Device) -> bool:
    """Whether a product of so many rows of A and columns takes codes four to a word, as
    `halved_tile` has them."""
    if _fnuz_equivalent(dtype, device) is None:
        return False
    most = coefficient(_FAMILY, "rows_recoded_in_tiles").of(device)
    several = triton.cdiv(rows, 128) * triton.cdiv(columns, 128) > device.compute_units
    return rows <= (most if several else most // 2)


def words(operand: Tensor) -> Tensor:
    """Codes of two dimensions, of which each row is adjacent, four to a word: a copy where rows do
    not begin at words."""
    if operand.stride(0) % 4 or operand.storage_offset() % 4:
        operand = operand.clone(memory_format=torch.contiguous_format)
    return operand.view(torch.int32)


def recode(operand: Tensor, device: Device) -> tuple[Tensor, float]:
    """An fp8 operand of two dimensions as a device multiplies it, and what one of its values is
    in those: itself, e4m3fnuz, or bfloat16."""
    name = FP8[operand.dtype]
    if native(name, device):
        return operand, 1.0
    operand = operand.contiguous()
    halved = _fnuz_equivalent(operand.dtype, device)
    output = torch.empty(operand.shape, dtype=halved or torch.bfloat16, device=operand.device)
    problem = {"count": operand.numel(), "kind": name, "halved": halved is not None}
    to = output if halved is None else output.view(torch.uint8)
    choice.run(RECODE, problem, **{"from": operand.view(torch.uint8), "to": to})
    return output, 1.0 if halved is None else 2.0


def to_column_major(scale: Tensor) -> Tensor:
    """A copy of a matrix [rows, columns] whose rows are adjacent in memory, with rows of zeros
    after them up to a multiple of 256."""
    rows, columns = scale.shape
    pitch = triton.cdiv(rows, _PITCH) * _PITCH
    output = torch.empty((columns, pitch), dtype=scale.dtype, device=scale.device)
    problem = {"rows": rows, "columns": columns, "bytes": scale.element_size()}
    choice.run(TRANSPOSE, problem, **{"from": scale, "to": output}, pitch=pitch)
    return output.T


def _fnuz_equivalent(dtype: torch.dtype, device: Device) -> torch.dtype | None:
    """The format that a device multiplies in which the codes of `dtype` are half the values."""
    formats = device.capabilities.matrix_fp8
    fits = dtype == torch.float8_e4m3fn and "float8_e4m3fnuz" in formats
    return torch.float8_e4m3fnuz if fits else None


def _recode_slowed(kernel: Any, problem: Problem, settings: Settings, device: Device) -> float:
    codes = kernel.elements / (settings["num_warps"] * device.wave_lanes)
    gaps = codes > (16 if problem["halved"] else 8)
    return coefficient(_FAMILY, "load_gaps").of(device) if gaps else 1.0


RECODE = KernelSpec.streaming(
    recode_kernel,
    grid="cdiv(count, BLOCK)",
    axes={"BLOCK": (1024, 2048, 4096, 8192), "num_warps": (4, 8)},
    read="count",
    written="count * (1 if halved else 2)",
    elements="BLOCK",
    instructions=6.0,
    slowed=_recode_slowed,
    rounded=("count",),
)
TRANSPOSE = KernelSpec.streaming(
    transpose_kernel,
    grid=f"cdiv(cdiv(rows, {_PITCH}) * {_PITCH}, ROWS), cdiv(columns, COLUMNS)",
    axes={"ROWS": (32, 64, 128), "COLUMNS": (32, 64, 128), "num_warps": (4,)},
    # a line is read and written whole, whatever part of it a tile has
    read="rows * columns * bytes * max(1.0, 128 / (min(columns, COLUMNS) * bytes))",
    written="rows * columns * bytes * max(1.0, 128 / (min(rows, ROWS) * bytes))",
    elements="ROWS * COLUMNS",
    instructions=8.0,
    strides={"from": "row_step column_step"},
    rounded=("rows", "columns"),
)
