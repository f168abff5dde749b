"""The texts of operand fields: registers, inline constants and literals, as LLVM spells them.

A field is printed by a `Texts`, from the field's value to its text, filled as values occur.
Source: AMD instruction set architecture guides, "Scalar operands" and "Vector operands"; LLVM
AMDGPUInstPrinter.cpp for the spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from wavecast.isa.encoding.formats import traits

LITERAL: Final = "\x01"
"""Stands for the 32-bit literal behind the instruction until it is read."""
LITERAL64: Final = "\x02"
"""Stands for the 64-bit literal behind the instruction."""
HALF: Final = 1 << 9
"""Bit of a vector operand's index: the upper half of a 16-bit register."""

SDWA: Final = 249
DPP: Final = 250
DPP8: Final = 233
DPP8_FI: Final = 234
CODE_LITERAL64: Final = 254
CODE_LITERAL: Final = 255
FIRST_VGPR: Final = 256

EXEC: Final = 126

_VCC, _TTMP, _ZERO = 106, 108, 128
_LAST_POSITIVE, _LAST_NEGATIVE = 192, 208
_PAIRS: Final = {_VCC: "vcc", EXEC: "exec"}
_FLOATS: Final = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0")
_FIRST_FLOAT, _INVERSE_2_PI = 240, 248
_NAMES: Final = {
    230: "src_flat_scratch_base_lo",
    231: "src_flat_scratch_base_hi",
    235: "src_shared_base",
    236: "src_shared_limit",
    237: "src_private_base",
    238: "src_private_limit",
    239: "src_pops_exiting_wave_id",
    251: "src_vccz",
    252: "src_execz",
    253: "src_scc",
    254: "src_lds_direct",
}


class Undecodable(ValueError):
    """A field has a value without a meaning."""


class Texts(dict[int, str]):
    """Texts of a field by its value, made when they are first needed."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[int], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, value: int) -> str:
        text = self[value] = self._make(value)
        return text


def register(prefix: str, first: int, dwords: int) -> str:
    """`v5` or `v[5:6]`."""
    return f"{prefix}{first}" if dwords <= 1 else f"{prefix}[{first}:{first + dwords - 1}]"


def scalar_text(target: str, code: int, dwords: int) -> str:
    """The scalar register of a code below 128."""
    if 102 <= code < _VCC and "trap_registers_at_102" in traits(target):
        name = "flat_scratch" if code < 104 else "xnack_mask"
        return name if dwords > 1 else f"{name}_{'hi' if code & 1 else 'lo'}"
    if code < _VCC:
        if code + dwords > _VCC:
            raise Undecodable(f"scalar register {code + dwords - 1}")
        return register("s", code, dwords)
    if _TTMP <= code < 124:
        if code + dwords > 124:
            raise Undecodable(f"trap register {code + dwords - 1 - _TTMP}")
        return register("ttmp", code - _TTMP, dwords)
    if code in (124, 125):
        return "null" if (code == 124) is ("null_at_124" in traits(target)) else "m0"
    pair = _PAIRS.get(code & ~1)
    if pair is None:
        raise Undecodable(f"scalar operand {code}")
    return pair if dwords > 1 else f"{pair}_{'hi' if code & 1 else 'lo'}"


def source_text(target: str, code: int, dwords: int, element: str = "") -> str:
    """A source other than a vector register: scalar register, constant or literal."""
    if code < _ZERO:
        return scalar_text(target, code, dwords)
    if code <= _LAST_POSITIVE:
        return str(code - _ZERO)
    if code <= _LAST_NEGATIVE:
        return str(_LAST_POSITIVE - code)
    if _FIRST_FLOAT <= code < _INVERSE_2_PI:
        return _FLOATS[code - _FIRST_FLOAT]
    if code == _INVERSE_2_PI:
        wide = dwords == 2 and "x" not in element
        return "0.15915494309189532" if wide else "0.15915494"
    if code == CODE_LITERAL:
        return LITERAL
    if code == CODE_LITERAL64 and "literal_64" in traits(target):
        return LITERAL64
    name = _NAMES.get(code)
    if name is None:
        raise Undecodable(f"source operand {code}")
    return name


def vector_text(target: str, number: int, dwords: int, prefix: str = "v") -> str:
    """Vector registers from `number` on, eight bits. Only tuples of gfx1250 that begin at an even
    number may cross register 255. Source: LLVM SIRegisterInfo.td (`VReg_*_Align2`)."""
    if number + dwords > FIRST_VGPR and (
        prefix != "v" or number & 1 or "tuples_cross_v255" not in traits(target)
    ):
        raise Undecodable(f"vector register {number + dwords - 1}")
    return register(prefix, number, dwords)


def _narrow(number: int, narrow: bool) -> str:
    """A 16-bit half: bit 7 of the number (one-word formats) or the index bit HALF tells which."""
    high = number & HALF
    number &= ~HALF
    if narrow and number & 0x80:
        high, number = HALF, number & 0x7F
    return f"v{number}.{'h' if high else 'l'}"


@cache
def scalar_codes(target: str) -> dict[str, int]:
    """The codes of single scalar registers by their text."""
    codes: dict[str, int] = {}
    for code in range(_ZERO):
        try:
            codes.setdefault(scalar_text(target, code, 1), code)
        except Undecodable:
            continue
    return codes


@cache
def scalars(target: str, dwords: int) -> Texts:
    """Texts of a 7-bit scalar field."""
    return Texts(lambda code: scalar_text(target, code, dwords))


@cache
def scalar_sources(target: str, dwords: int, element: str) -> Texts:
    """Texts of an 8-bit scalar source field."""
    return Texts(lambda code: source_text(target, code, dwords, element))


@cache
def vectors(target: str, dwords: int, accumulators: bool = False) -> Texts:
    """Texts of an 8-bit vector register field; bit 8 set means an AGPR where there are any."""
    if not accumulators:
        return Texts(lambda code: vector_text(target, code, dwords))
    return Texts(lambda code: vector_text(target, code & 0xFF, dwords, "a" if code >> 8 else "v"))


@cache
def halves(narrow: bool) -> Texts:
    """Texts of a vector register field of 16 bits; `narrow` in one-word formats."""
    return Texts(lambda code: _narrow(code, narrow))


@cache
def sources(target: str, dwords: int, element: str, half: bool, narrow: bool) -> Texts:
    """Texts of a 9-bit source field with its modifiers: bit 9 the upper half, bit 10 absolute,
    bit 11 negated."""

    def text(index: int) -> str:
        code = index & 0x1FF
        if code >= FIRST_VGPR:
            number = code - FIRST_VGPR
            upper = index & HALF
            plain = _narrow(number | upper, narrow) if half else vector_text(target, number, dwords)
        else:
            plain = source_text(target, code, dwords, element)
            if half and index & HALF and code < _ZERO:
                plain += ".h"
        return with_modifiers(plain, index >> 10, _ZERO <= code < FIRST_VGPR)

    return Texts(text)


def with_modifiers(plain: str, flags: int, constant: bool) -> str:
    """A source with its modifiers: bit 0 absolute, bit 1 negated."""
    absolute, negated = flags & 1, flags & 2
    if absolute:
        plain = f"|{plain}|"
    if not negated:
        return plain
    return f"neg({plain})" if constant and not absolute else f"-{plain}"
