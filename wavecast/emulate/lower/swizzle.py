"""ds_swizzle: which lane every lane reads, from the offset as a number or as LLVM spells it.

Source: AMD instruction set architecture guides, DS_SWIZZLE_B32; LLVM AMDGPU documentation,
"swizzle" operand.
"""

from __future__ import annotations

import re

from wavecast.emulate.errors import Unsupported

_CALL = re.compile(r"swizzle\((?P<mode>\w+)\s*,\s*(?P<rest>.*)\)")
_BITS = {"0": (0, 0, 0), "1": (0, 1, 0), "p": (1, 0, 0), "i": (1, 0, 1)}
"""A character of a bit mask: what AND, OR and XOR do to that bit of the lane number."""


def source_lanes(text: str, lanes: int) -> list[int]:
    """For every lane, the lane it reads; groups of 32 lanes on their own. Raises Unsupported."""
    number = offset_number(text)
    if number >= 0xE000:
        raise Unsupported("the FFT swizzle")
    if number >= 0xC000:
        return [_rotate(number, lane) for lane in range(lanes)]
    if number & 0x8000:
        return [lane & ~3 | number >> 2 * (lane & 3) & 3 for lane in range(lanes)]
    keep, set_, flip = number & 31, number >> 5 & 31, number >> 10 & 31
    return [lane & ~31 | (((lane & 31) & keep | set_) ^ flip) for lane in range(lanes)]


def _rotate(number: int, lane: int) -> int:
    amount, fixed = number >> 5 & 31, number & 31
    step = -amount if number >> 10 & 1 else amount
    return lane & ~31 | (lane & fixed) | (lane + step) & ~fixed & 31


def offset_number(text: str) -> int:
    """The 16-bit offset of a spelled or numeric swizzle. Raises Unsupported."""
    match = _CALL.fullmatch(text)
    if match is None:
        return int(text, 0) & 0xFFFF
    mode, rest = match["mode"], match["rest"]
    if mode == "BITMASK_PERM":
        parts = [_BITS[char] for char in rest.strip().strip('"')]
        fields = [int("".join(str(part[index]) for part in parts), 2) for index in range(3)]
        return fields[0] | fields[1] << 5 | fields[2] << 10
    values = [int(value, 0) for value in rest.split(",")]
    if mode == "QUAD_PERM":
        return 0x8000 | sum(value << 2 * index for index, value in enumerate(values))
    if mode == "SWAP":
        return 31 | values[0] << 10
    if mode == "REVERSE":
        return 31 | (values[0] - 1) << 10
    if mode == "BROADCAST":
        return ~(values[0] - 1) & 31 | values[1] << 5
    if mode == "ROTATE":
        return 0xC000 | values[0] << 10 | values[1] << 5
    if mode == "FFT":
        return 0xE000 | values[0]
    raise Unsupported(f"the swizzle {mode}")


__all__ = ["offset_number", "source_lanes"]
