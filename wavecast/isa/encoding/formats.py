"""The bit fields of instruction formats (`formats.tbl`)."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from wavecast.isa.table import TableError
from wavecast.isa.targets import TARGET_SETS

_FIELD = re.compile(r"(?P<name>\w*)\[(?P<high>\d+)(?::(?P<low>\d+))?\](?:=(?P<value>\w+))?")


@dataclass(frozen=True, slots=True)
class BitField:
    """Bits `[low, low + width)` of an instruction, counted from bit 0 of its first word."""

    low: int
    width: int

    @property
    def mask(self) -> int:
        """The largest value of the field."""
        return (1 << self.width) - 1

    def of(self, word: int) -> int:
        """The field's value in an instruction."""
        return word >> self.low & self.mask


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """One layout: `words` of 32 bits; an instruction has it where `word & mask == value`.

    `rest` has the bits that assemblers set where no operand or modifier decides them.
    """

    name: str
    words: int
    mask: int
    value: int
    fields: Mapping[str, BitField]
    rest: int = 0

    def has(self, word: int) -> bool:
        """Whether an instruction of at least `words` words has this format."""
        return word & self.mask == self.value


@cache
def traits(target: str) -> frozenset[str]:
    """What the encoding of a target has: the names of `traits.csv`."""
    text = (resources.files("wavecast.isa.encoding") / "traits.csv").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    rows = csv.DictReader(lines)
    return frozenset(row["trait"] for row in rows if target in TARGET_SETS[row["targets"]])


_FOLLOWING = frozenset({"DPP", "DPP8", "SDWA"})
"""Formats of a word that follows an instruction."""


@cache
def _rows() -> tuple[tuple[frozenset[str], Format], ...]:
    text = (resources.files("wavecast.isa.encoding") / "formats.tbl").read_text(encoding="utf-8")
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = [column.strip() for column in line.split("|")]
        if len(columns) not in (5, 6) or columns[1] not in TARGET_SETS:
            raise TableError(
                f"formats.tbl:{number}: expected name, targets, words, identity, fields, rest"
            )
        name, targets, words, identity, fields, *others = columns
        mask = value = 0
        for match in _FIELD.finditer(identity):
            bits = _bits(match)
            mask |= bits.mask << bits.low
            value |= int(match["value"], 0) << bits.low
        layout = {match["name"]: _bits(match) for match in _FIELD.finditer(fields)}
        rest = 0
        for match in _FIELD.finditer(others[0] if others else ""):
            rest |= int(match["value"], 0) << _bits(match).low
        rows.append((TARGET_SETS[targets], Format(name, int(words), mask, value, layout, rest)))
    return tuple(rows)


def _bits(match: re.Match[str]) -> BitField:
    high = int(match["high"])
    low = int(match["low"] or high)
    return BitField(low, high - low + 1)


@cache
def formats(target: str) -> tuple[Format, ...]:
    """The formats of a target; those with the longest identity first."""
    shapes = [f for targets, f in _rows() if target in targets and f.name not in _FOLLOWING]
    return tuple(sorted(shapes, key=lambda item: -item.mask.bit_count()))


@cache
def layout(target: str, name: str) -> Format:
    """The format called `name` on a target. Raises TableError for one it does not have."""
    for targets, shape in _rows():
        if target in targets and shape.name == name:
            return shape
    raise TableError(f"{target} has no format {name}")


def format_of(target: str, word: int, words: int) -> Format | None:
    """The format of an instruction, given with `words` words; None for bits of no format."""
    for shape in formats(target):
        if shape.words <= words and shape.has(word):
            return shape
    return None
