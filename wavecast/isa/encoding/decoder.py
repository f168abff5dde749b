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
_new: Final = tuple.__new__
"""Makes named tuples in a third of the time of calling their class."""


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
        self._formats = tuple(
            (_PairFormatReader if "opx" in shape.fields else _FormatReader)(
                self.target, wave_lanes, shape
            )
            for shape in formats(self.target)
        )
        self._by_top: dict[int, tuple[_FormatReader, ...]] = {}

    def decode(self, word: int, available: int = MOST_WORDS, upper: int = 0) -> Decoding | None:
        """The instruction at the start of `word`, which has `available` words; None for other
        bits. `upper` has the upper bits of its registers (`TextPlan.text_with_upper`)."""
        top = word >> 16 & 0xFFFF
        for reader in self._by_top.get(top) or self._candidates(top):
            if word & reader.mask != reader.value or reader.words > available:
                continue
            try:
                row = reader.rows.get(word & reader.deciding) or reader.row(word)
                decoding = row.read(word, available, upper) if row is not None else None
            except Undecodable:
                continue
            if decoding is not None:
                return decoding
        return None

    def _candidates(self, top: int) -> tuple[_FormatReader, ...]:
        """The formats that an instruction with this upper half of its first word can have."""
        readers = self._by_top[top] = tuple(
            reader
            for reader in self._formats
            if reader.value & 0xFFFF0000 == top << 16 & reader.mask & 0xFFFF0000
        )
        return readers


class _FormatReader:
    """The rows of one format. `rows` has the readers made so far by the bits of `deciding`."""

    __slots__ = ("_arguments", "_encoded", "deciding", "mask", "rows", "value", "words")

    def __init__(self, target: str, wave_lanes: int, shape: Format) -> None:
        self._arguments = target, wave_lanes, shape
        self._encoded = encoded_rows(target)
        self.words, self.mask, self.value = shape.words, shape.mask, shape.value
        self.rows: dict[int, _RowReader | _PairReader] = {}
        self.deciding = shape.mask
        for name in ("op", "opx", "opy", "lds"):
            if name in shape.fields:
                self.deciding |= shape.fields[name].mask << shape.fields[name].low

    def row(self, word: int) -> _RowReader | _PairReader | None:
        """The reader of the row that an instruction has; None where no row has its number."""
        _, _, shape = self._arguments
        rows = self._encoded.get((shape.name, shape.fields["op"].of(word)))
        if rows is None:
            return None
        row = rows[0] if len(rows) == 1 else _select_row(shape, rows, word)
        reader = self.rows[word & self.deciding] = _RowReader(*self._arguments, row)
        return reader


class _PairFormatReader(_FormatReader):
    """The pairs of rows of a VOPD format."""

    __slots__ = ()

    def row(self, word: int) -> _PairReader | None:
        """The reader of a pair of two rows."""
        _, _, shape = self._arguments
        rows = []
        for half in ("x", "y"):
            row = self._encoded.get((shape.name, shape.fields[f"op{half}"].of(word)))
            if row is None:
                return None
            rows.append(row[0])
        reader = self.rows[word & self.deciding] = _PairReader(*self._arguments, *rows)
        return reader


def _select_row(shape: Format, rows: tuple[EncodedRow, ...], word: int) -> EncodedRow:
    """The row that bits besides the opcode number name."""
    if "lds" in shape.fields:
        to_lds = bool(shape.fields["lds"].of(word))
        for row in rows:
            memory = row.row.memory
            if memory is not None and (memory.kind is MemoryKind.LOAD_TO_LDS) is to_lds:
                return row
    return rows[0]


class _PairReader:
    """Reads the pairs of two rows: operations that issue together (VOPD)."""

    def __init__(
        self, target: str, wave_lanes: int, shape: Format, x: EncodedRow, y: EncodedRow
    ) -> None:
        self._row = x
        self._words = shape.words
        self._halves = tuple(
            pair_plan(target, wave_lanes, shape, row, half) for row, half in ((x, "x"), (y, "y"))
        )

    def read(self, word: int, available: int, upper: int) -> Decoding | None:
        """The pair, None where it has more than `available` words. Raises Undecodable."""
        x, y = self._halves
        if upper:
            text = f"{x.text_with_upper(word, upper)} :: {y.text_with_upper(word, upper)}"
        else:
            text = f"{x.text(word)} :: {y.text(word)}"
        words = self._words
        if LITERAL in text:
            words += 1
            if words > available:
                return None
            text = text.replace(LITERAL, f"{word >> 32 * (words - 1) & 0xFFFFFFFF:#x}")
        return _new(Decoding, (text, words, self._row, None))


class _RowReader:
    """Reads the instructions of one row in one format; what no bit of them changes is computed
    once."""

    def __init__(self, target: str, wave_lanes: int, shape: Format, row: EncodedRow) -> None:
        self._arguments = target, wave_lanes, shape, row
        self._row = row
        self._marked = not _has_immediate(row)
        self._literal_mask = 0xFFFF if _is_short(row) else 0xFFFFFFFF
        self._branches = bool(row.row.operands) and row.row.operands[-1].kind is OperandKind.LABEL
        self._plan = plan(target, wave_lanes, shape, row, "")
        self._plans: dict[str, TextPlan] = {}
        self._words = self._own_words = shape.words
        immediate_words = _immediate_words(shape, row)
        self._own_words += immediate_words
        target_traits = traits(target)
        self._first, self._first_mask = 0, 0
        self._behind: dict[int, str] = {}
        self._sources: tuple[tuple[int, int], ...] = ()
        self._literals: dict[int, int] = {}
        if immediate_words:
            return
        if shape.name in _FIRST_SOURCE and (
            shape.name in _ONE_WORD or "vector_dpp" in target_traits
        ):
            first = shape.fields["src0"]
            self._first, self._first_mask = first.low, first.mask
            self._behind = {
                code: name for code, name in _BEHIND.items() if _TRAITS[name] in target_traits
            }
        self._sources = _literal_sources(shape, row, target_traits)
        self._literals = {operands.CODE_LITERAL: 1}
        if "literal_64" in target_traits:
            self._literals[operands.CODE_LITERAL64] = 2

    def read(self, word: int, available: int, upper: int) -> Decoding | None:
        """The instruction, None where it has more than `available` words. Raises Undecodable for a
        field without a meaning."""
        words, text_plan = self._own_words, self._plan
        if self._behind and (code := word >> self._first & self._first_mask) in self._behind:
            words, text_plan = self._words + 1, self._plan_behind(self._behind[code])
        else:
            for low, mask in self._sources:
                code = word >> low & mask
                if code in self._literals:
                    words += self._literals[code]
                    break
        if words > available:
            return None
        text = text_plan.text(word) if not upper else text_plan.text_with_upper(word, upper)
        if words > self._words:
            text = self._with_literal(text, word, words)
        if LITERAL in text or LITERAL64 in text:
            raise Undecodable("a literal in a format without one")
        target = None
        if self._branches:
            offset = word & 0xFFFF
            target = offset - ((offset & 0x8000) << 1)
        return _new(Decoding, (text, words, self._row, target))

    def _plan_behind(self, following: str) -> TextPlan:
        text_plan = self._plans.get(following)
        if text_plan is None:
            text_plan = self._plans[following] = plan(*self._arguments, following)
        return text_plan

    def _with_literal(self, text: str, word: int, words: int) -> str:
        if LITERAL in text:
            value = word >> 32 * (words - 1) & self._literal_mask
            return text.replace(LITERAL, _literal_text(value, self._marked))
        if LITERAL64 in text:
            value = word >> 32 * (words - 2) & 0xFFFFFFFFFFFFFFFF
            return text.replace(LITERAL64, f"{value:#x}")
        return text


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
    shape: Format, encoded: EncodedRow, target_traits: frozenset[str]
) -> tuple[tuple[int, int], ...]:
    """First bit and mask of the fields that can name a literal."""
    name, fields = shape.name, shape.fields
    names: tuple[str, ...] = ()
    if name in ("VOP3", "VOP3P") and "literal_in_vop3" in target_traits:
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


def _is_short(encoded: EncodedRow) -> bool:
    """Whether a row has integers of 16 bits for sources, of whose literal the upper half is not
    read."""
    types = {role.type for role in encoded.row.operands if role.access not in _WRITES}
    return bool(types) and types <= {"i16", "u16", "b16"}


def _sources(encoded: EncodedRow) -> int:
    return sum(role.access not in _WRITES for role in encoded.row.operands)


@lru_cache(maxsize=32)
def machine_decoder(target: str, wave_lanes: int) -> MachineDecoder:
    """The decoder of a target, made once."""
    return MachineDecoder(target, wave_lanes)
