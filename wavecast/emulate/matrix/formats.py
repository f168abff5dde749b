"""Number formats of matrix elements, by the element types of the opcode table.

Encodings are those of the dtype registry (`wavecast.dtypes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wavecast.arch import capabilities
from wavecast.dtypes import Encoding, Spelling, Variant, lookup
from wavecast.isa.targets import isa_target


@dataclass(frozen=True, slots=True)
class Integer:
    """A two's complement or unsigned integer of `bits`."""

    bits: int
    signed: bool


ElementFormat = Encoding | Integer

F8F6F4: Final = ("fp8", "bf8", "fp6", "bf6", "fp4")
"""Element types of an f8f6f4 operand by the value of cbsz (A) or blgp (B)."""


def element_format(name: str, target: str) -> ElementFormat:
    """The format of an element type of the opcode table on `target`. `xf32` has the encoding of
    f32: instructions round it. `iu8` and `iu4` are unsigned unless a modifier says otherwise."""
    fnuz = capabilities(isa_target(target)).fp8_fnuz
    dtype = lookup("f32" if name == "xf32" else name, Spelling.OPCODE)
    if dtype.is_integer:
        return Integer(dtype.bits, signed=not name.startswith("iu"))
    return encoding(dtype.in_variant(Variant.FNUZ if fnuz else Variant.OCP).name)


def encoding(name: str) -> Encoding:
    """The encoding of a float dtype. Raises UnknownName, ValueError for a dtype without one."""
    kind = lookup(name).encoding
    if kind is None:
        raise ValueError(f"{name} has no floating-point encoding")
    return kind


F32: Final = encoding("float32")
F16: Final = encoding("float16")
