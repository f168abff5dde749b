"""One instruction of machine code to its text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from wavecast.isa.encoding import operands
from wavecast.isa.encoding.formats import Format, formats, traits
from wavecast.isa.encoding.opcodes import EncodedRow, encoded_rows
from wavecast.isa.encoding.operands import LITERAL, LITERAL64, Undecodable
from wavecast.isa.encoding.plans import pair_plan, plan
from wavecast.isa.opcode import MemoryKind, OperandAccess, OperandKind
from wavecast.isa.targets import isa_target

MOST_WORDS: Final = 5
"""Words of the longest instruction: a format of four and a literal."""
_BEHIND: Final = {
    operands.SDWA: "SDWA",
    operands.DPP: "DPP",
    operands.DPP8: "DPP8",
    operands.DPP8_FI: "DPP8_FI",
}
"""First source -> format of the word behind the instruction."""
_TRAITS: Final = {"SDWA": "sdwa", "DPP": "dpp", "DPP8": "dpp8", "DPP8_FI": "dpp8"}
_ONE_WORD: Final = frozenset({"VOP1", "VOP2", "VOPC"})
_INLINE: Final = frozenset(
    {*range(65), *(0xFFFFFFFF - n for n in range(16))}
    | {0x3F000000, 0xBF000000, 0x3F800000, 0xBF800000, 0x40000000, 0xC0000000, 0x40800000}
    | {0xC0800000, 0x3E22F983}
)
"""Literals with the value of an inline constant: integers from -16 to 64, and float32."""
_IMMEDIATE: Final = OperandKind.IMMEDIATE
_WRITES: Final = (OperandAccess.WRITE, OperandAccess.READ_WRITE)
_SCALAR: Final = frozenset({"SOP1", "SOP2", "SOPC"})
_FIRST_SOURCE: Final = frozenset({"VOP1", "VOP2", "VOPC", "VOP3", "VOP3P"})


@dataclass(frozen=True, slots=True)
class Decoding:
    """One instruction: its text, its words, and its row; `target` is the distance in words of a
    branch from the next instruction, None for others."""

    text: str
    words: int
    row: EncodedRow
    target: int | None


class MachineDecoder:
    """Prints the machine code of one target and wave size."""

    def __init__(self, target: str, wave_lanes: int) -> None:
        self.target = isa_target(target)
        self.wave_lanes = wave_lanes
        self._formats = formats(self.target)
        self._rows = encoded_rows(self.target)
        self._traits = traits(self.target)
        self._by_top: dict[int, tuple[Format, ...]] = {}

    def decode(self, word: int, available: int = MOST_WORDS, upper: int = 0) -> Decoding | None:
        """The instruction at the start of `word`, which has `available` words; None for other
        bits."""
        for shape in self._candidates(word >> 16 & 0xFFFF):
            if shape.words > available or not shape.has(word):
                continue
            try:
                found = self._decode(shape, word, available, upper)
            except Undecodable:
                continue
            if found is not None:
                return found
        return None

    def _candidates(self, top: int) -> tuple[Format, ...]:
        found = self._by_top.get(top)
        if found is None:
            found = tuple(
                shape
                for shape in self._formats
                if shape.value & 0xFFFF0000 == top << 16 & shape.mask & 0xFFFF0000
            )
            self._by_top[top] = found
        return found

    def _decode(self, shape: Format, word: int, available: int, upper: int) -> Decoding | None:
        if "opx" in shape.fields:
            return self._pair(shape, word, available, upper)
        rows = self._rows.get((shape.name, shape.fields["op"].of(word)))
        if rows is None:
            return None
        row = rows[0] if len(rows) == 1 else self._chosen(shape, rows, word)
        following, words = self._behind(shape, row, word)
        if words > available:
            return None
        found = plan(self.target, self.wave_lanes, shape, row, following)
        text = found.text(word, upper)
        if LITERAL in text:
            value = word >> 32 * (words - 1) & 0xFFFFFFFF
            text = text.replace(LITERAL, _literal_text(value, not _has_immediate(row)))
        elif LITERAL64 in text:
            value = word >> 32 * (words - 2) & 0xFFFFFFFFFFFFFFFF
            text = text.replace(LITERAL64, f"{value:#x}")
        return Decoding(text, words, row, _branch(row, word))

    def _pair(self, shape: Format, word: int, available: int, upper: int) -> Decoding | None:
        """A VOPD pair: two operations that issue together."""
        halves, rows = [], []
        for half in ("x", "y"):
            found = self._rows.get((shape.name, shape.fields[f"op{half}"].of(word)))
            if found is None:
                return None
            rows.append(found[0])
            made = pair_plan(self.target, self.wave_lanes, shape, found[0], half)
            halves.append(made.text(word, upper))
        text, words = " :: ".join(halves), shape.words
        if LITERAL in text:
            words += 1
            if words > available:
                return None
            text = text.replace(LITERAL, f"{word >> 32 * (words - 1) & 0xFFFFFFFF:#x}")
        return Decoding(text, words, rows[0], None)

    def _chosen(self, shape: Format, rows: tuple[EncodedRow, ...], word: int) -> EncodedRow:
        """The row that bits besides the opcode number name."""
        if "lds" in shape.fields:
            to_lds = bool(shape.fields["lds"].of(word))
            for row in rows:
                memory = row.row.memory
                if memory is not None and (memory.kind is MemoryKind.LOAD_TO_LDS) is to_lds:
                    return row
        return rows[0]

    def _behind(self, shape: Format, encoded: EncodedRow, word: int) -> tuple[str, int]:
        """The format of the word behind, and all words with a literal."""
        name, fields, row = shape.name, shape.fields, encoded.row
        if _has_immediate(encoded):
            if name in ("VOP2", "SOP2"):
                size = 2 if row.operands[0].dwords == 2 else 1
                return "", shape.words + size
            if name == "SOPK" and all(role.kind is _IMMEDIATE for role in row.operands[-2:]):
                return "", shape.words + (len(row.operands) - 1)
        if name in _FIRST_SOURCE:
            first = fields["src0"].of(word)
            following = _BEHIND.get(first, "")
            if following and _TRAITS[following] not in self._traits:
                following = ""
            if following and (name in _ONE_WORD or "vector_dpp" in self._traits):
                return following, shape.words + 1
        return "", shape.words + self._literal(shape, encoded, word)

    def _literal(self, shape: Format, encoded: EncodedRow, word: int) -> int:
        """Words of the literal that a source names."""
        name, fields = shape.name, shape.fields
        if name in ("VOP3", "VOP3P"):
            if "literal_in_vop3" not in self._traits:
                return 0
            names = ("src0", "src1", "src2")[: _sources(encoded)]
        elif name in _SCALAR:
            names = ("src0", "src1")[: _sources(encoded)]
        elif name in _ONE_WORD:
            names = ("src0",)
        else:
            return 0
        for field in names:
            if field not in fields:
                continue
            code = fields[field].of(word)
            if code == operands.CODE_LITERAL:
                return 1
            if code == operands.CODE_LITERAL64 and "literal_64" in self._traits:
                return 2
        return 0


def _literal_text(value: int, marked: bool) -> str:
    """A literal; `lit()` keeps the assembler from choosing an inline constant of the same value."""
    return f"lit({value:#x})" if marked and value in _INLINE else f"{value:#x}"


def _has_immediate(encoded: EncodedRow) -> bool:
    return any(role.kind is _IMMEDIATE for role in encoded.row.operands)


def _sources(encoded: EncodedRow) -> int:
    return sum(role.access not in _WRITES for role in encoded.row.operands)


def _branch(encoded: EncodedRow, word: int) -> int | None:
    operands_ = encoded.row.operands
    if not operands_ or operands_[-1].kind is not OperandKind.LABEL:
        return None
    offset = word & 0xFFFF
    return offset - ((offset & 0x8000) << 1)


@lru_cache(maxsize=32)
def machine_decoder(target: str, wave_lanes: int) -> MachineDecoder:
    """The decoder of a target, made once."""
    return MachineDecoder(target, wave_lanes)
