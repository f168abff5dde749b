"""Sub-dword addressing (SDWA, gfx9): sources and destinations that are part of a register.

Source: AMD instruction set architecture guide of MI300 (CDNA3), "SDWA".
"""

from __future__ import annotations

from wavecast.analyze.values.domain import WaveOps
from wavecast.analyze.values.kinds import Value

_FIELDS = {
    "BYTE_0": (0, 8),
    "BYTE_1": (8, 8),
    "BYTE_2": (16, 8),
    "BYTE_3": (24, 8),
    "WORD_0": (0, 16),
    "WORD_1": (16, 16),
    "DWORD": (0, 32),
}
"""Selector -> first bit and number of bits."""

MODIFIERS = frozenset({"src0_sel", "src1_sel", "dst_sel", "dst_unused"})


def select_source(ops: WaveOps, value: Value, selector: str, signed: bool) -> Value:
    """The part of a register a source selector names, extended to 32 bits."""
    first, count = _FIELDS[selector]
    if count == 32:
        return value
    up = ops.shl(value, 32 - first - count, 32)
    return (ops.ashr if signed else ops.lshr)(up, 32 - count, 32)


def merge_destination(ops: WaveOps, old: Value, value: Value, selector: str, unused: str) -> Value:
    """A result put where a destination selector says; `unused` says what the other bits become."""
    first, count = _FIELDS[selector]
    if count == 32:
        return value
    if unused == "UNUSED_SEXT":
        up = ops.shl(value, 32 - count, 32)
        return ops.shl(ops.ashr(up, 32 - count, 32), first, 32)
    mask = (1 << count) - 1
    placed = ops.shl(ops.and_(value, mask, 32), first, 32)
    if unused == "UNUSED_PRESERVE":
        old_bits = ops.and_(old, 0xFFFFFFFF & ~(mask << first), 32)
        return ops.or_(old_bits, placed, 32)
    return placed
