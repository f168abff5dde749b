"""Instructions to machine code, by the tables of the decoder.

An encoding is looked for part by part (`inverse`) and decoded again: what comes out always prints
as the instruction that went in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import combinations
from typing import Final, NamedTuple

from wavecast.isa.decode import Decoder
from wavecast.isa.encoding import operands
from wavecast.isa.encoding.decoder import machine_decoder
from wavecast.isa.encoding.formats import Format, formats
from wavecast.isa.encoding.inverse import indices
from wavecast.isa.encoding.opcodes import EncodedRow, encoded_rows
from wavecast.isa.encoding.operands import LITERAL, LITERAL64, Undecodable
from wavecast.isa.encoding.plans import pair_plan, plan
from wavecast.isa.encoding.text_plan import Part, TextPlan
from wavecast.isa.instruction import Decoded, Operand, OperandClass
from wavecast.isa.opcode import OperandKind
from wavecast.isa.operand import print_operand
from wavecast.isa.table import TableError
from wavecast.isa.targets import isa_target

_BEHIND: Final = {
    "SDWA": operands.SDWA,
    "DPP": operands.DPP,
    "DPP8": operands.DPP8,
    "DPP8_FI": operands.DPP8_FI,
}
"""Format of the word behind an instruction -> its first source."""
_SMALL: Final = range(-16, 65)


class EncodeError(ValueError):
    """An instruction that has no encoding, or whose encoding these tables do not have."""


class MachineWords(NamedTuple):
    """Machine code of one instruction: its value, the first word lowest, and its words."""

    value: int
    words: int

    @property
    def content(self) -> bytes:
        """The bytes in memory."""
        return self.value.to_bytes(4 * self.words, "little")


class _Wanted(NamedTuple):
    """What the parts of a plan have to print."""

    operands: tuple[tuple[str, ...], ...]
    """For each operand the texts it may be printed with, best first."""
    modifiers: Mapping[str, str]


class MachineEncoder:
    """Encodes instructions of one target and wave size."""

    def __init__(self, target: str, wave_lanes: int) -> None:
        self.target = isa_target(target)
        self.wave_lanes = wave_lanes
        self._decoder = machine_decoder(self.target, wave_lanes)
        self._texts = Decoder(self.target, wave_lanes)
        self._rows = _by_row(self.target)
        self._known: dict[str, MachineWords] = {}

    def encode(self, text: str) -> MachineWords:
        """The machine code of an instruction as LLVM prints it. A branch has its distance in words
        as its operand. Raises EncodeError, DecodeError for other texts."""
        encoding = self._known.get(text)
        if encoding is None:
            encoding = self._known[text] = self.machine_code(self._texts.decode(text))
        return encoding

    def machine_code(
        self, decoded: Decoded, texts: Mapping[int, str] | None = None
    ) -> MachineWords:
        """The machine code of a decoded instruction; `texts` are those of operands by position that
        replace a label or an expression. Raises EncodeError."""
        texts = texts or {}
        for value, words in self._candidates(decoded, texts):
            decoding = self._decoder.decode(value, words)
            if decoding is None or decoding.words != words:
                continue
            if self._same(decoding.text, decoded, texts):
                return MachineWords(value, words)
        raise EncodeError(f"no encoding of {decoded.text!r} on {self.target}")

    def _candidates(self, decoded: Decoded, texts: Mapping[int, str]) -> Iterator[tuple[int, int]]:
        if decoded.second is not None:
            yield from self._pairs(decoded, decoded.second)
            return
        spellings = _operand_texts(decoded, texts)
        for shape, number, row in self._rows.get(decoded.opcode.name, ()):
            for following in _following(decoded):
                try:
                    text_plan = plan(self.target, self.wave_lanes, shape, row, following)
                except TableError:
                    continue
                if decoded.encoding and text_plan.mnemonic != decoded.mnemonic:
                    continue
                mask, value = _identity(shape, number, "op")
                words = shape.words
                if following:
                    first = shape.fields["src0"]
                    mask |= first.mask << first.low
                    value |= _BEHIND[following] << first.low
                    words += 1
                for solved, literals in _solutions(
                    [(text_plan, spellings)], mask, value, text_plan.rest
                ):
                    yield _with_literals(solved, words, literals)

    def _pairs(self, x: Decoded, y: Decoded) -> Iterator[tuple[int, int]]:
        for shape, number, row in self._rows.get(x.opcode.name, ()):
            if "opx" not in shape.fields:
                continue
            for other, other_number, other_row in self._rows.get(y.opcode.name, ()):
                if other is not shape:
                    continue
                mask, value = _identity(shape, number, "opx")
                other_known, other_value = _identity(shape, other_number, "opy")
                arguments = self.target, self.wave_lanes, shape
                halves = [
                    (pair_plan(*arguments, row, "x"), _operand_texts(x, {})),
                    (pair_plan(*arguments, other_row, "y"), _operand_texts(y, {})),
                ]
                for solved, literals in _solutions(
                    halves, mask | other_known, value | other_value, shape.rest
                ):
                    yield _with_literals(solved, shape.words, literals)

    def _same(self, text: str, decoded: Decoded, texts: Mapping[int, str]) -> bool:
        """Whether a text is the instruction, whatever the spelling of its numbers."""
        if text == decoded.text:
            return True
        candidate: Decoded | None = self._texts.decode(text)
        reference: Decoded | None = decoded
        while candidate is not None and reference is not None:
            if candidate.opcode.name != reference.opcode.name:
                return False
            reference_operands = [
                operand
                for position, operand in enumerate(reference.operands)
                if not _is_spelled(reference, position) and position not in texts
            ]
            candidate_operands = [
                operand
                for position, operand in enumerate(candidate.operands)
                if not _is_spelled(candidate, position) and position not in texts
            ]
            if len(candidate_operands) != len(reference_operands) or not all(
                map(_equal, candidate_operands, reference_operands)
            ):
                return False
            if not _equal_modifiers(candidate.modifiers, reference.modifiers):
                return False
            candidate, reference = candidate.second, reference.second
        return candidate is reference


@cache
def _by_row(target: str) -> Mapping[str, tuple[tuple[Format, int, EncodedRow], ...]]:
    """Row -> its formats with opcode numbers, the shortest first."""
    encodings: dict[str, list[tuple[Format, int, EncodedRow]]] = {}
    shapes: dict[str, list[Format]] = {}
    for shape in formats(target):
        shapes.setdefault(shape.name, []).append(shape)
    for (name, number), rows in encoded_rows(target).items():
        for row in rows:
            for shape in shapes[name]:
                encodings.setdefault(row.row.name, []).append((shape, number, row))
    return {
        name: tuple(sorted(items, key=lambda item: item[0].words))
        for name, items in encodings.items()
    }


def _identity(shape: Format, number: int, field: str) -> tuple[int, int]:
    """Mask and value of the bits that an opcode number decides."""
    bits = shape.fields[field]
    return shape.mask | bits.mask << bits.low, shape.value | number << bits.low


def _following(decoded: Decoded) -> tuple[str, ...]:
    """The formats of the word behind an instruction that its mnemonic allows."""
    if decoded.encoding.endswith("sdwa"):
        return ("SDWA",)
    if decoded.encoding.endswith("dpp8"):
        return ("DPP8_FI",) if decoded.modifiers.get("fi") == "1" else ("DPP8",)
    return ("DPP",) if decoded.encoding.endswith("dpp") else ("",)


def _operand_texts(decoded: Decoded, texts: Mapping[int, str]) -> _Wanted:
    spellings = []
    modifiers = dict(decoded.modifiers)
    for position, operand in enumerate(decoded.operands):
        if position in texts:
            spellings.append((texts[position],))
        else:
            spellings.append(_spellings(operand))
    if decoded.opcode.form == "SMEM" and "offset" in modifiers and spellings:
        behind = f" offset:{modifiers.pop('offset')}"
        spellings[-1] = tuple(text + behind for text in spellings[-1])
    return _Wanted(tuple(spellings), modifiers)


def _spellings(operand: Operand) -> tuple[str, ...]:
    """The texts that an operand may be printed with: its own, that of its lower half, and those of
    its number as an inline constant and as a literal."""
    text = print_operand(operand).partition("/*")[0].rstrip()
    flags = operand.absolute | operand.negate << 1
    if operand.kind is OperandClass.VGPR and operand.count == 1 and not operand.half:
        return (text, operands.with_modifiers(f"v{operand.first}.l", flags, constant=False))
    if operand.kind is not OperandClass.CONSTANT or operand.value is None:
        return (text,)
    spellings = [text]
    if "lit" not in text and operand.value in _SMALL:
        spellings.append(operands.with_modifiers(str(operand.value), flags, constant=True))
    for literal in (LITERAL, LITERAL64):
        plain = f"{literal}{operand.value & 0xFFFFFFFFFFFFFFFF:x};"
        spellings += [
            operands.with_modifiers(plain, flags, constant=False),
            operands.with_modifiers(plain, flags, constant=True),
        ]
    return tuple(dict.fromkeys(spellings))


def _solutions(
    plans: Sequence[tuple[TextPlan, _Wanted]], mask: int, value: int, rest: int
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The values of instructions whose plans print what is wanted, with the literals in them."""
    arrangements: list[list[tuple[Part, tuple[str, ...]]]] = [[]]
    for text_plan, target in plans:
        modifiers = _shown_modifiers(text_plan.modifiers, target.modifiers)
        if modifiers is None:
            return
        arrangements = [
            [*before, *modifiers, *operand_parts]
            for before in arrangements
            for operand_parts in _arrangements(text_plan.operands, target.operands)
        ]
    for pieces in arrangements:
        yield from _search(pieces, mask, value, rest)


def _arrangements(
    parts: Sequence[Part], texts: Sequence[tuple[str, ...]]
) -> Iterator[list[tuple[Part, tuple[str, ...]]]]:
    """The parts with the texts they print; optional ones can print nothing."""
    missing = len(parts) - len(texts)
    if missing < 0:
        return
    optional = [position for position, part in enumerate(parts) if part.optional]
    for empty in combinations(optional, missing):
        text_iterator = iter(texts)
        yield [
            (part, ("",) if position in empty else next(text_iterator))
            for position, part in enumerate(parts)
        ]


def _shown_modifiers(
    parts: Sequence[Part], modifiers: Mapping[str, str]
) -> list[tuple[Part, tuple[str, ...]]] | None:
    """The parts with the modifiers they print; None where one is left."""
    leftover = dict(modifiers)
    pieces: list[tuple[Part, tuple[str, ...]]] = []
    for part in parts:
        if part.value is not None:
            name = next(iter(part.names))
            text = leftover.pop(name, "0")
            pieces.append((part, (text,)))
            continue
        words = [
            f" {name}:{value}" if value else f" {name}"
            for name, value in leftover.items()
            if name in _names(part)
        ]
        for name in _names(part):
            leftover.pop(name, None)
        pieces.append((part, ("".join(words), "".join(reversed(words)))))
    return None if leftover else pieces


@lru_cache(maxsize=4096)
def _names(part: Part) -> frozenset[str]:
    """The names of the modifiers that a part prints for any of its values."""
    names = set()
    width = sum(mask.bit_length() for _, mask, _ in part.gathers)
    for index in range(1 << width):
        try:
            text = part.texts[index]
        except (Undecodable, IndexError):
            continue
        names |= {word.partition(":")[0] for word in text.split()}
    return frozenset(names)


def _search(
    pieces: Sequence[tuple[Part, tuple[str, ...]]], fixed_mask: int, value: int, rest: int
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The values of the bits not `fixed_mask` for which every part prints one of its texts, with
    those of `rest` that no part decides."""
    if not pieces:
        yield value | rest & ~fixed_mask, ()
        return
    part, texts = min(pieces, key=lambda piece: _free_bits(piece[0], fixed_mask))
    others = [piece for piece in pieces if piece[0] is not part]
    for text in texts:
        plain, _, literal = text.partition(LITERAL if LITERAL in text else LITERAL64)
        pattern, number = text, ""
        if literal:
            number, _, end = literal.partition(";")
            sign = LITERAL if LITERAL in text else LITERAL64
            pattern, number = plain + sign + end, sign + number
        candidates = indices(part, pattern, fixed_mask, value)
        for index in sorted(
            candidates, key=lambda index: ((index ^ part.usual).bit_count(), index)
        ):
            mask, bits = _index_bits(part, index)
            for solved, literals in _search(others, fixed_mask | mask, value & ~mask | bits, rest):
                yield solved, (number, *literals) if number else literals
        if candidates:
            return


def _free_bits(part: Part, fixed_mask: int) -> int:
    return sum((mask & ~(fixed_mask >> shift)).bit_count() for shift, mask, _ in part.gathers)


def _index_bits(part: Part, index: int) -> tuple[int, int]:
    """Mask and value of an instruction's bits that have an index."""
    fixed_mask = value = 0
    for shift, mask, at in part.gathers:
        fixed_mask |= mask << shift
        value |= (index >> at & mask) << shift
    return fixed_mask, value


def _with_literals(value: int, words: int, literals: tuple[str, ...]) -> tuple[int, int]:
    """Value and words of an instruction with its literals behind it; equal ones share a word."""
    for literal in dict.fromkeys(literals):
        number = int(literal[1:], 16)
        if literal[0] == LITERAL:
            value |= (number & 0xFFFFFFFF) << 32 * words
            words += 1
        else:
            value |= number << 32 * words
            words += 2
    return value, words


def _is_spelled(decoded: Decoded, position: int) -> bool:
    """Whether an operand is an immediate of a field, which has several spellings and may be left
    out; the value of a text is unambiguous."""
    role = decoded.roles[position]
    return role.kind is OperandKind.IMMEDIATE and decoded.opcode.form in ("SOPP", "SOPK", "SOP1")


def _equal(operand: Operand, other: Operand) -> bool:
    """Whether two operands are the same, however they are spelled."""
    if operand.kind is not other.kind:
        return False
    signs = (operand.negate, operand.absolute, operand.sign_extend)
    if signs != (other.negate, other.absolute, other.sign_extend):
        return False
    if operand.kind is OperandClass.CONSTANT:
        return not ((operand.value or 0) ^ (other.value or 0)) & 0xFFFFFFFF
    if operand.kind is OperandClass.VGPR and operand.count == 1:
        return operand.first == other.first and (operand.half or "l") == (other.half or "l")
    return print_operand(operand).partition("/*")[0] == print_operand(other).partition("/*")[0]


def _equal_modifiers(modifiers: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return modifiers.keys() == other.keys() and all(
        value == other[name] or _number(value) == _number(other[name]) is not None
        for name, value in modifiers.items()
    )


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


@lru_cache(maxsize=32)
def machine_encoder(target: str, wave_lanes: int) -> MachineEncoder:
    """The encoder of a target, made once."""
    return MachineEncoder(target, wave_lanes)
