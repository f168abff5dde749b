"""Floating-point formats as data: widths, bias, and what the all-ones exponent means.

Sources: IEEE 754-2019 (binary16, 32 and 64); OCP 8-bit floating point specification 1.0 (e4m3,
e5m2); OCP microscaling formats specification 1.0 (e2m3, e3m2, e2m1, e8m0); AMD CDNA3 instruction
set architecture guide for the `fnuz` variants gfx942 calls fp8 and bf8.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from wavecast.arch import capabilities


class Specials(Enum):
    """Which bit patterns of a format are no numbers."""

    IEEE = "ieee"  # the highest exponent holds infinity (fraction 0) and NaN
    ALL_ONES = "all_ones"  # no infinity; NaN is exponent and fraction all ones
    NEGATIVE_ZERO = "negative_zero"  # no infinity, no -0: that pattern is the one NaN
    NONE = "none"  # numbers only


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format: sign, `exponent` bits, `fraction` bits.

    A number with a biased exponent e > 0 is (1 + f / 2^fraction) * 2^(e - bias), one with e = 0 is
    f / 2^fraction * 2^(1 - bias).
    """

    name: str
    exponent: int
    fraction: int
    bias: int
    specials: Specials = Specials.IEEE

    @property
    def bits(self) -> int:
        """Width of a bit pattern."""
        return 1 + self.exponent + self.fraction

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.bits - 1)

    @property
    def exponent_mask(self) -> int:
        """The exponent field; with `Specials.IEEE` also the pattern of +infinity."""
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def quiet(self) -> int:
        """The fraction bit that tells a quiet NaN from a signalling one (`Specials.IEEE`)."""
        return 1 << (self.fraction - 1)

    @property
    def nan(self) -> int:
        """The NaN an invalid operation gives.

        AMD's guides give 0xffc00000 for the square root, logarithm or quotient that is no number.
        """
        if self.specials is Specials.NEGATIVE_ZERO:
            return self.sign
        if self.specials is Specials.IEEE:
            return self.sign | self.exponent_mask | self.quiet
        return (1 << (self.bits - 1)) - 1

    @property
    def largest(self) -> int:
        """The pattern of the largest finite number."""
        top = (1 << (self.bits - 1)) - 1
        if self.specials is Specials.IEEE:
            return self.exponent_mask - 1
        return top - 1 if self.specials is Specials.ALL_ONES else top

    @property
    def one(self) -> int:
        """The pattern of 1."""
        return self.bias << self.fraction


F16 = FloatFormat("f16", 5, 10, 15)
BF16 = FloatFormat("bf16", 8, 7, 127)
F32 = FloatFormat("f32", 8, 23, 127)
F64 = FloatFormat("f64", 11, 52, 1023)

FP8 = FloatFormat("fp8", 4, 3, 7, Specials.ALL_ONES)
BF8 = FloatFormat("bf8", 5, 2, 15)
FP8_FNUZ = FloatFormat("fp8", 4, 3, 8, Specials.NEGATIVE_ZERO)
BF8_FNUZ = FloatFormat("bf8", 5, 2, 16, Specials.NEGATIVE_ZERO)
FP6 = FloatFormat("fp6", 2, 3, 1, Specials.NONE)
BF6 = FloatFormat("bf6", 3, 2, 3, Specials.NONE)
FP4 = FloatFormat("fp4", 2, 1, 1, Specials.NONE)

_BY_NAME = {item.name: item for item in (F16, BF16, F32, F64, FP8, BF8, FP6, BF6, FP4)}
_FNUZ = {FP8: FP8_FNUZ, BF8: BF8_FNUZ}


def format_of(name: str, target: str = "") -> FloatFormat:
    """The format an operand type names (`f32`, `fp8`). Some targets have
    8-bit formats of their own."""
    found = _BY_NAME[name]
    if found in _FNUZ and capabilities(target).fp8_fnuz:
        return _FNUZ[found]
    return found


def element_format(type_name: str, target: str = "") -> FloatFormat | None:
    """The format of one element of an operand type (`f16x2` has two F16), None for no float."""
    name = type_name.partition("x")[0]
    return format_of(name, target) if name in _BY_NAME else None
