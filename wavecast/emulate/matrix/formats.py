"""Number formats of matrix elements, as data.

Sources: OCP 8-bit floating point specification (fp8 = E4M3, bf8 = E5M2), OCP microscaling formats
(fp6 = E2M3, bf6 = E3M2, fp4 = E2M1, E8M0 scales), AMD CDNA3 ISA (fnuz: one NaN 0x80, no infinities,
no negative zero, exponent bias one larger).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from wavecast.arch import capabilities
from wavecast.isa.targets import isa_target


class Special(Enum):
    """What the encodings at the ends of a floating format mean."""

    IEEE = "ieee"  # the largest exponent is infinity and NaN
    ONE_NAN = "one_nan"  # all ones is NaN, no infinity
    FNUZ = "fnuz"  # negative zero is NaN, no infinity
    NONE = "none"  # every encoding is a number


@dataclass(frozen=True, slots=True)
class Integer:
    """A two's complement or unsigned integer of `bits`."""

    bits: int
    signed: bool


@dataclass(frozen=True, slots=True)
class FloatElement:
    """A sign bit, `exponent` bits with `bias`, `mantissa` bits."""

    exponent: int
    mantissa: int
    bias: int
    special: Special

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa


F64: Final = FloatElement(11, 52, 1023, Special.IEEE)
F32: Final = FloatElement(8, 23, 127, Special.IEEE)
F16: Final = FloatElement(5, 10, 15, Special.IEEE)
BF16: Final = FloatElement(8, 7, 127, Special.IEEE)
FP8: Final = FloatElement(4, 3, 7, Special.ONE_NAN)
BF8: Final = FloatElement(5, 2, 15, Special.IEEE)
FP8_FNUZ: Final = FloatElement(4, 3, 8, Special.FNUZ)
BF8_FNUZ: Final = FloatElement(5, 2, 16, Special.FNUZ)
FP6: Final = FloatElement(2, 3, 1, Special.NONE)
BF6: Final = FloatElement(3, 2, 3, Special.NONE)
FP4: Final = FloatElement(2, 1, 1, Special.NONE)

Format = FloatElement | Integer

_FORMATS: Final[dict[str, Format]] = {
    "f64": F64,
    "f32": F32,
    "xf32": F32,
    "f16": F16,
    "bf16": BF16,
    "fp8": FP8,
    "bf8": BF8,
    "fp6": FP6,
    "bf6": BF6,
    "fp4": FP4,
    "i32": Integer(32, True),
    "i8": Integer(8, True),
    "iu8": Integer(8, False),
    "iu4": Integer(4, False),
}
_FNUZ: Final = {"fp8": FP8_FNUZ, "bf8": BF8_FNUZ}

F8F6F4: Final = ("fp8", "bf8", "fp6", "bf6", "fp4")
"""Element types of an f8f6f4 operand by the value of cbsz (A) or blgp (B)."""


def element_format(name: str, target: str) -> Format:
    """The format of an element type of the opcode table on `target`."""
    if name in _FNUZ and capabilities(isa_target(target)).fp8_fnuz:
        return _FNUZ[name]
    return _FORMATS[name]
