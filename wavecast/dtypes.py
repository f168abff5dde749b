"""The registry of dtypes: size, family, encoding, and the spellings of every source.

`dtypes.csv` has one row per dtype; `lookup` finds it by any spelling. A dtype has a unique `name`,
PyTorch's where PyTorch has one (`float8_e4m3fn`), and a `short` name, which predictors and reports
use and which several dtypes may share (`fp8`).

`fp8` and `bf8` without a variant are E4M3 and E5M2 in the encoding of the target: AMD's opcodes
name them so. `Dtype.in_variant` gives the OCP or the FNUZ encoding.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from wavecast.errors import UnknownName


class Family(Enum):
    """What a dtype is. `MX` has elements in blocks that share a scale."""

    FLOAT = "float"
    BFLOAT = "bfloat"
    FP8 = "fp8"
    FP6 = "fp6"
    FP4 = "fp4"
    MX = "mx"
    INT = "int"
    UINT = "uint"
    BOOL = "bool"
    COMPLEX = "complex"


class Variant(Enum):
    """Encodings of 8-bit floats. FNUZ is that of gfx942, OCP that of every later chip."""

    OCP = "ocp"
    FNUZ = "fnuz"


class SpecialValues(Enum):
    """Which encodings are not finite numbers."""

    IEEE = "ieee"  # the largest exponent has infinity and the NaNs
    ONE_NAN = "one_nan"  # no infinity; all ones is NaN
    FNUZ = "fnuz"  # no infinity, no -0: the encoding of -0 is NaN
    NONE = "none"  # every encoding is a finite number


class Spelling(Enum):
    """Who spells a dtype; the value is the column of `dtypes.csv`."""

    TORCH = "torch"
    NUMPY = "numpy"
    TRITON = "triton"  # also the formats of `tl.dot_scaled`
    MLIR = "mlir"
    OPCODE = "opcode"  # element types of AMD's opcode table
    SASS = "sass"
    CXX = "cxx"  # HIP, OpenCL and the C++ of PyTorch


@dataclass(frozen=True, slots=True)
class Encoding:
    """A binary floating-point format: `exponent` bits with `bias`, `mantissa` bits."""

    exponent: int
    mantissa: int
    bias: int
    specials: SpecialValues

    @property
    def bits(self) -> int:
        """Bits of a number: its sign, exponent and mantissa."""
        return 1 + self.exponent + self.mantissa

    @property
    def largest(self) -> float:
        """The largest finite number."""
        top, fraction = (1 << self.exponent) - 1, 2.0 - 2.0**-self.mantissa
        if self.specials is SpecialValues.IEEE or (
            self.specials is SpecialValues.ONE_NAN and not self.mantissa
        ):
            top -= 1
        elif self.specials is SpecialValues.ONE_NAN:
            fraction -= 2.0**-self.mantissa
        return fraction * 2.0 ** (top - self.bias)


@dataclass(frozen=True, slots=True)
class Dtype:
    """One row of the registry.

    `bits` is the size of one element in memory. `rate` names the peak rates of a device that hold
    for it (`fp8` for every 8-bit float, `int8` for `uint8`), "" where matrix instructions have no
    such dtype. An MX dtype has an `element` dtype and a `scale` dtype, one scale per `block`
    elements; a complex one has the `element` dtype of its parts. `struct` is the code of Python's
    module `struct`. `spellings` are those of each source, the usual one first.
    """

    name: str
    short: str
    family: Family
    bits: int
    rate: str
    encoding: Encoding | None
    generic: str
    variant: Variant | None
    element: str
    block: int
    scale: str
    struct: str
    spellings: dict[Spelling, tuple[str, ...]]
    aliases: tuple[str, ...]

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    @property
    def bytes(self) -> float:
        """Bytes of one element, without block scales: 0.5 for `float4_e2m1fn`."""
        return self.bits / 8

    @property
    def scale_bytes(self) -> float:
        """Bytes of block scales per element: 1/32 for `mxfp4`, 0.0 without block scales."""
        return lookup(self.scale).bytes / self.block if self.block else 0.0

    @property
    def is_float(self) -> bool:
        """Whether elements are real floating-point numbers, MX elements included."""
        return self.family in _FLOATS

    @property
    def is_integer(self) -> bool:
        """Whether elements are integers, with or without sign; `bool` is not."""
        return self.family in (Family.INT, Family.UINT)

    def spelling(self, source: Spelling) -> str:
        """How `source` spells it. Raises UnknownName if it has no such dtype."""
        spellings = self.spellings[source]
        if not spellings:
            raise UnknownName(f"{source.value} dtype", self.name, _by_source(source))
        return spellings[0]

    def in_variant(self, variant: Variant) -> Dtype:
        """`fp8`, `bf8` or an 8-bit float in the encoding of `variant`; any other dtype itself."""
        generic = self.generic or self.name
        for candidate in DTYPES.values():
            if candidate.generic == generic and candidate.variant is variant:
                return candidate
        return self


_FLOATS: Final = frozenset(
    {Family.FLOAT, Family.BFLOAT, Family.FP8, Family.FP6, Family.FP4, Family.MX}
)


@lru_cache(maxsize=1024)
def lookup(name: str, source: Spelling | None = None) -> Dtype:
    """The dtype of a spelling: `bf16`, `torch.float8_e4m3fn`, `fp8e4nv`, `f8E4M3FN`, `__half`.

    With a `source`, the dtype that this source spells exactly so. Without one, that of any source;
    case and punctuation do not matter, and a short name that several dtypes share means the first
    of them in the table. Raises UnknownName.
    """
    if source is not None:
        by_spelling = _by_source(source)
        if name not in by_spelling:
            raise UnknownName(f"{source.value} dtype", name, by_spelling)
        return by_spelling[name]
    dtype = DTYPES.get(name) or _by_plain_name().get(_plain(name))
    if dtype is None:
        raise UnknownName("dtype", name, _every_spelling())
    return dtype


def is_dtype(name: str, source: Spelling | None = None) -> bool:
    """Whether `lookup` finds a dtype of this spelling."""
    if source is not None:
        return name in _by_source(source)
    return name in DTYPES or _plain(name) in _by_plain_name()


def element_bytes(name: str) -> float:
    """Bytes of one element of a dtype of any spelling, without scales. Raises UnknownName."""
    return lookup(name).bytes


def _plain(name: str) -> str:
    return "".join(char for char in name.removeprefix("torch.").lower() if char.isalnum())


def _parts(text: str) -> tuple[str, ...]:
    return tuple(text.split("|")) if text else ()


def _read() -> dict[str, Dtype]:
    path = Path(__file__).with_suffix(".csv")
    with path.open(encoding="utf-8", newline="") as file:
        return {row["name"]: _row(row) for row in csv.DictReader(file)}


def _row(row: dict[str, str]) -> Dtype:
    encoding = None
    if row["specials"]:
        exponent, mantissa, bias = (int(row[key]) for key in ("exponent", "mantissa", "bias"))
        encoding = Encoding(exponent, mantissa, bias, SpecialValues(row["specials"]))
    return Dtype(
        name=row["name"],
        short=row["short"],
        family=Family(row["family"]),
        bits=int(row["bits"]),
        rate=row["rate"],
        encoding=encoding,
        generic=row["generic"],
        variant=Variant(row["variant"]) if row["variant"] else None,
        element=row["element"],
        block=int(row["block"] or 0),
        scale=row["scale"],
        struct=row["struct"],
        spellings={source: _parts(row[source.value]) for source in Spelling},
        aliases=_parts(row["aliases"]),
    )


DTYPES: Final = _read()
"""Every dtype by its name."""


@cache
def _by_source(source: Spelling) -> dict[str, Dtype]:
    return {spelling: dtype for dtype in DTYPES.values() for spelling in dtype.spellings[source]}


@cache
def _by_plain_name() -> dict[str, Dtype]:
    """Every spelling without case and punctuation; a row's own names win over aliases."""
    by_name: dict[str, Dtype] = {}
    for dtype in DTYPES.values():
        by_name.setdefault(_plain(dtype.name), dtype)
    for dtype in DTYPES.values():
        for spelling in _spellings(dtype):
            by_name.setdefault(_plain(spelling), dtype)
    return by_name


@cache
def _every_spelling() -> tuple[str, ...]:
    return tuple(spelling for dtype in DTYPES.values() for spelling in _spellings(dtype))


def _spellings(dtype: Dtype) -> tuple[str, ...]:
    """Every spelling of a dtype, its short name included where no other dtype shares it."""
    registry_spellings = (part for parts in dtype.spellings.values() for part in parts)
    return (dtype.name, dtype.short, *registry_spellings, *dtype.aliases)


__all__ = [
    "DTYPES",
    "Dtype",
    "Encoding",
    "Family",
    "SpecialValues",
    "Spelling",
    "Variant",
    "element_bytes",
    "is_dtype",
    "lookup",
]
