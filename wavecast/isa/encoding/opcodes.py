"""The opcode number of every row in each format and target (`opcodes.csv`)."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from wavecast.isa import table
from wavecast.isa.encoding.formats import traits
from wavecast.isa.opcode import Opcode


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRow:
    """A row of the opcode table in one format.

    `suffix`: what its mnemonic ends with there (`e32`, `e64` or ""). `halves`, `accumulators`:
    positions of printed operands that are 16-bit halves of registers, or AGPRs. `words`: modifiers
    that few rows have.
    """

    row: Opcode
    suffix: str
    halves: frozenset[int]
    accumulators: frozenset[int]
    words: frozenset[str]

    def mnemonic(self, target: str) -> str:
        """The printed mnemonic, with suffix."""
        name = self.row.mnemonics[target]
        return f"{name}_{self.suffix}" if self.suffix else name


_POSITION = re.compile(r"[ah]\d")


def _positions(letter: str, words: list[str]) -> frozenset[int]:
    position_words = [word for word in words if _POSITION.fullmatch(word)]
    return frozenset(int(word[1]) for word in position_words if word[0] == letter)


@cache
def encoded_rows(target: str) -> Mapping[tuple[str, int], tuple[EncodedRow, ...]]:
    """(format, opcode number) -> the rows with that number; several where other bits tell them
    apart (a buffer load to LDS, an atomic that returns)."""
    by_number: dict[tuple[str, int], list[EncodedRow]] = {}
    text = (resources.files("wavecast.isa.encoding") / "opcodes.csv").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    rows = {row.name: row for row in table.rows()}
    for record in csv.DictReader(lines):
        number = record[target]
        if number:
            words = record["words"].split()
            entry = EncodedRow(
                rows[record["row"]],
                record["suffix"],
                _positions("h", words) if "named_halves" in traits(target) else frozenset(),
                _positions("a", words),
                frozenset(word for word in words if not _POSITION.fullmatch(word)),
            )
            by_number.setdefault((record["format"], int(number, 16)), []).append(entry)
    return {key: tuple(entries) for key, entries in by_number.items()}
