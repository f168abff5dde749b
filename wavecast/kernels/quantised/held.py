"""How a GPU multiplies fp8 operands that its matrix instructions do not take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.quantise.formats import FP8, half_of, native, values_of
from wavecast.kernels.space import Problem, Settings, Space

ROWS: Final = 64
"""Up to that many rows of A operands are widened as they are read, beyond it before: the kernel of
many rows reads them often."""
_HALVED: Final = {("gfx942", torch.float8_e4m3fn): torch.float8_e4m3fnuz}
"""Formats whose codes stand for half as much in another that a target multiplies."""
_WORDS: Final = 1024
"""Up to that many rows of A every tile changes the codes of such formats, beyond it `recode_kernel`
before: vector instructions of the one take longer than the launches and traffic of the other. Half
as many where a compute unit has one tile, and nothing to do beside those instructions."""


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
    first = tl.program_id(0)
    if WIDE:
        first = first.to(tl.int64)
    at = first * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    code = tl.load(from_ptr + at, mask=inside, other=0)
    if HALVED:
        size = code & 0x7F
        code = tl.where(size == 0, 0, code)
        tl.store(to_ptr + at, tl.where(size == 0x7F, 0x80, code).to(tl.uint8), mask=inside)
    else:
        tl.store(to_ptr + at, half_of(values_of(code, KIND)), mask=inside)


def early(rows: int, device: Device) -> bool:
    """Whether operands are recoded before a product of that many rows: also of few on RDNA, whose
    lanes hold every operand twice and have no registers left to widen it."""
    return rows > ROWS or device.limits().wave_lanes == 32


def in_words(kind: torch.dtype, rows: int, columns: int, device: Device) -> bool:
    """Whether a product of so many rows of A and columns takes a format's codes four to a word, as
    `halved_tile` has them."""
    if (device.target, kind) not in _HALVED:
        return False
    several = triton.cdiv(rows, 128) * triton.cdiv(columns, 128) > device.compute_units
    return rows <= (_WORDS if several else _WORDS // 2)


def words(operand: torch.Tensor) -> torch.Tensor:
    """Codes of two dimensions, of which each row is adjacent, four to a word: a copy where rows do
    not begin at words."""
    if operand.stride(0) % 4 or operand.storage_offset() % 4:
        operand = operand.clone(memory_format=torch.contiguous_format)
    return operand.view(torch.int32)


def multiplied(operand: torch.Tensor, device: Device) -> tuple[torch.Tensor, float]:
    """An fp8 operand of two dimensions as a device multiplies it, and what one of its values is
    in those: itself, e4m3fnuz, or bfloat16."""
    if native(FP8[operand.dtype], device):
        return operand, 1.0
    operand = operand.contiguous()
    halved = _HALVED.get((device.target, operand.dtype))
    found = torch.empty(operand.shape, dtype=halved or torch.bfloat16, device=operand.device)
    count = operand.numel()
    raw = halved is not None
    launch(
        recode_kernel,
        lambda settings: (triton.cdiv(count, settings["BLOCK"]),),
        (
            operand.view(torch.uint8),
            found.view(torch.uint8) if raw else found,
            count,
        ),
        RECODE,
        {"count": count, "kind": FP8[operand.dtype], "halved": raw},
        KIND=FP8[operand.dtype],
        HALVED=raw,
        WIDE=checks.wide(operand),
    )
    return found, 2.0 if raw else 1.0


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {"BLOCK": (1024, 2048, 4096, 8192), "num_warps": (4, 8), "num_stages": (1,)}


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    per_lane = settings["BLOCK"] / (settings["num_warps"] * device.limits().wave_lanes)
    gaps = 1.0 if per_lane <= (16 if problem["halved"] else 8) else 1.4
    return gaps * estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(problem["count"], settings["BLOCK"]),
        read=problem["count"],
        written=problem["count"] * (1 if problem["halved"] else 2),
        elements=settings["BLOCK"],
        operations=6.0,
    )


RECODE = Space(kernel="recode_kernel", axes=_axes, seconds=_seconds, classes=("count",))

__all__ = ["RECODE", "ROWS", "early", "halved_tile", "in_words", "multiplied", "words"]
