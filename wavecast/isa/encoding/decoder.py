"""One instruction of machine code to its text."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from wavecast.isa.encoding import operands
from wavecast.isa.encoding.formats import Format, formats, traits
from wavecast.isa.encoding.opcodes import EncodedRow, encoded_rows
from wavecast.isa.encoding.operands import LITERAL, LITERAL64, Undecodable
from wavecast.isa.encoding.plans import pair_plan, plan
from wavecast.isa.encoding.text_plan import TextPlan
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


class Decoding(NamedTuple):
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
        self._readers: dict[tuple[Format, EncodedRow], _RowReader] = {}
        self._by_upper: dict[int, _RowReader] = {}
        """Upper half of the first word -> the reader of instructions with it, where it alone tells
        the row."""

    def decode(self, word: int, available: int = MOST_WORDS, upper: int = 0) -> Decoding | None:
        """The instruction at the start of `word`, which has `available` words; None for other
        bits."""
        top = word >> 16 & 0xFFFF
        direct = self._by_upper.get(top)
        if direct is not None and direct.least_words <= available:
            try:
                return direct.read(word, available, upper)
            except Undecodable:
                return None
        for shape in self._candidates(top):
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
        reader = self._readers.get((shape, row))
        if reader is None:
            reader = _RowReader(self.target, self.wave_lanes, shape, row)
            self._readers[shape, row] = reader
        top = word >> 16 & 0xFFFF
        if len(rows) == 1 and _is_in_upper_half(shape) and self._candidates(top) == (shape,):
            self._by_upper[top] = reader
        return reader.read(word, available, upper)

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


def _is_in_upper_half(shape: Format) -> bool:
    """Whether identity and opcode number of a format are in the upper half of its first word."""
    number = shape.fields["op"]
    return number.low >= 16 and number.low + number.width <= 32 and not shape.mask & ~0xFFFF0000


class _RowReader:
    """Reads the instructions of one row in one format; what no bit of them changes is computed
    once."""

    def __init__(self, target: str, wave_lanes: int, shape: Format, row: EncodedRow) -> None:
        self._arguments = target, wave_lanes, shape, row
        self._row = row
        self._marked = not _has_immediate(row)
        self._branches = bool(row.row.operands) and row.row.operands[-1].kind is OperandKind.LABEL
        self._plans: dict[str, TextPlan] = {}
        self._words = self._own_words = self.least_words = shape.words
        own = _immediate_words(shape, row)
        self._own_words += own
        known = traits(target)
        self._first, self._first_mask = 0, 0
        self._behind: dict[int, str] = {}
        self._sources: tuple[tuple[int, int], ...] = ()
        self._literals: dict[int, int] = {}
        if own:
            return
        if shape.name in _FIRST_SOURCE and (shape.name in _ONE_WORD or "vector_dpp" in known):
            first = shape.fields["src0"]
            self._first, self._first_mask = first.low, first.mask
            self._behind = {code: name for code, name in _BEHIND.items() if _TRAITS[name] in known}
        self._sources = _literal_sources(shape, row, known)
        self._literals = {operands.CODE_LITERAL: 1}
        if "literal_64" in known:
            self._literals[operands.CODE_LITERAL64] = 2

    def read(self, word: int, available: int, upper: int) -> Decoding | None:
        """The instruction, None where it has more than `available` words. Raises Undecodable for a
        field without a meaning."""
        following, words = "", self._own_words
        if self._behind:
            following = self._behind.get(word >> self._first & self._first_mask, "")
        if following:
            words = self._words + 1
        else:
            for low, mask in self._sources:
                code = word >> low & mask
                if code in self._literals:
                    words += self._literals[code]
                    break
        if words > available:
            return None
        found = self._plans.get(following)
        if found is None:
            found = self._plans[following] = plan(*self._arguments, following)
        text = found.text(word, upper)
        if LITERAL in text:
            value = word >> 32 * (words - 1) & 0xFFFFFFFF
            text = text.replace(LITERAL, _literal_text(value, self._marked))
        elif LITERAL64 in text:
            value = word >> 32 * (words - 2) & 0xFFFFFFFFFFFFFFFF
            text = text.replace(LITERAL64, f"{value:#x}")
        target = None
        if self._branches:
            offset = word & 0xFFFF
            target = offset - ((offset & 0x8000) << 1)
        return Decoding(text, words, self._row, target)


def _immediate_words(shape: Format, encoded: EncodedRow) -> int:
    """Words of the immediates behind an instruction whose row always has them."""
    row = encoded.row
    if not _has_immediate(encoded):
        return 0
    if shape.name in ("VOP2", "SOP2"):
        return 2 if row.operands[0].dwords == 2 else 1
    if shape.name == "SOPK" and all(role.kind is _IMMEDIATE for role in row.operands[-2:]):
        return len(row.operands) - 1
    return 0


def _literal_sources(
    shape: Format, encoded: EncodedRow, known: frozenset[str]
) -> tuple[tuple[int, int], ...]:
    """First bit and mask of the fields that can name a literal."""
    name, fields = shape.name, shape.fields
    names: tuple[str, ...] = ()
    if name in ("VOP3", "VOP3P") and "literal_in_vop3" in known:
        names = ("src0", "src1", "src2")[: _sources(encoded)]
    elif name in _SCALAR:
        names = ("src0", "src1")[: _sources(encoded)]
    elif name in _ONE_WORD:
        names = ("src0",)
    return tuple((fields[item].low, fields[item].mask) for item in names if item in fields)


def _literal_text(value: int, marked: bool) -> str:
    """A literal; `lit()` keeps the assembler from choosing an inline constant of the same value."""
    return f"lit({value:#x})" if marked and value in _INLINE else f"{value:#x}"


def _has_immediate(encoded: EncodedRow) -> bool:
    return any(role.kind is _IMMEDIATE for role in encoded.row.operands)


def _sources(encoded: EncodedRow) -> int:
    return sum(role.access not in _WRITES for role in encoded.row.operands)


@lru_cache(maxsize=32)
def machine_decoder(target: str, wave_lanes: int) -> MachineDecoder:
    """The decoder of a target, made once."""
    return MachineDecoder(target, wave_lanes)
