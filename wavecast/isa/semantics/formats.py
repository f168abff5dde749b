"""Floating-point formats of operand types: encodings of the dtype registry, and bit patterns."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.arch import capabilities
from wavecast.dtypes import SpecialValues, Spelling, Variant, lookup


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
    specials: SpecialValues = SpecialValues.IEEE

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
        """The exponent field; with `SpecialValues.IEEE` also the pattern of +infinity."""
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def quiet(self) -> int:
        """The fraction bit that tells a quiet NaN from a signalling one (`SpecialValues.IEEE`)."""
        return 1 << (self.fraction - 1)

    @property
    def nan(self) -> int:
        """The NaN an invalid operation gives.

        AMD's guides give 0xffc00000 for the square root, logarithm or quotient that is none.
        """
        if self.specials is SpecialValues.FNUZ:
            return self.sign
        if self.specials is SpecialValues.IEEE:
            return self.sign | self.exponent_mask | self.quiet
        return (1 << (self.bits - 1)) - 1

    @property
    def largest(self) -> int:
        """The pattern of the largest finite number."""
        top = (1 << (self.bits - 1)) - 1
        if self.specials is SpecialValues.IEEE:
            return self.exponent_mask - 1
        return top - 1 if self.specials is SpecialValues.ONE_NAN else top

    @property
    def one(self) -> int:
        """The pattern of 1."""
        return self.bias << self.fraction


def _format(name: str, variant: Variant = Variant.OCP) -> FloatFormat:
    """The format of an operand type of the opcode table, 8-bit formats in a variant."""
    encoding = lookup(name, Spelling.OPCODE).in_variant(variant).encoding
    assert encoding is not None
    return FloatFormat(name, encoding.exponent, encoding.mantissa, encoding.bias, encoding.specials)


F16 = _format("f16")
BF16 = _format("bf16")
F32 = _format("f32")
F64 = _format("f64")

FP8 = _format("fp8")
BF8 = _format("bf8")
FP8_FNUZ = _format("fp8", Variant.FNUZ)
BF8_FNUZ = _format("bf8", Variant.FNUZ)
FP6 = _format("fp6")
BF6 = _format("bf6")
FP4 = _format("fp4")

_BY_NAME = {item.name: item for item in (F16, BF16, F32, F64, FP8, BF8, FP6, BF6, FP4)}
_FNUZ = {FP8: FP8_FNUZ, BF8: BF8_FNUZ}


def format_of(name: str, target: str = "") -> FloatFormat:
    """The format an operand type names (`f32`, `fp8`). 8-bit formats are those of
    the target."""
    fmt = _BY_NAME[name]
    if fmt in _FNUZ and capabilities(target).fp8_fnuz:
        return _FNUZ[fmt]
    return fmt


def element_format(type_name: str, target: str = "") -> FloatFormat | None:
    """The format of one element of an operand type (`f16x2` has two F16), None for no float."""
    name = type_name.partition("x")[0]
    return format_of(name, target) if name in _BY_NAME else None
