"""How one instruction is printed: mnemonic, operands and modifiers as lookups in tables of text.

A `TextPlan` belongs to a format, an opcode number and what else decides the layout (the word behind
the instruction, the wave size). It is made once; printing an instruction is one expression of
lookups in tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from wavecast.isa.encoding.formats import BitField
from wavecast.isa.encoding.immediates import Immediate
from wavecast.isa.encoding.operands import Texts, Undecodable
from wavecast.isa.registers import VGPR_COUNT

Gather = tuple[int, int, int]
"""Shift and mask of bits of an instruction, and their first bit in an index."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A piece of text that depends on fields: the index its gathers give, looked up in `texts`,
    which raises Undecodable for an index without a meaning. `optional` parts can be "". `value` is
    the index of a text where texts are too many to look through; it raises ValueError or KeyError.
    `names` are those of the modifiers that a part with a `value` prints. `usual` are the bits of an
    index that assemblers set where several print the same."""

    gathers: tuple[Gather, ...]
    texts: Texts
    optional: bool = False
    value: Callable[[str], int] | None = None
    names: frozenset[str] = frozenset()
    usual: int = 0

    def index(self, word: int) -> int:
        """The part's index in `texts` for an instruction."""
        index = 0
        for shift, mask, position in self.gathers:
            index |= (word >> shift & mask) << position
        return index


def gather(texts: Texts, *fields: BitField, optional: bool = False) -> Part:
    """The text of fields, joined to one index: the first field has its lowest bits."""
    gathers, position = [], 0
    for bits in fields:
        gathers.append((bits.low, bits.mask, position))
        position += bits.width
    return Part(tuple(gathers), texts, optional)


def immediate(number_format: Immediate, bits: BitField) -> Part:
    """A number in one field."""
    return Part(((bits.low, bits.mask, 0),), Texts(number_format.text), value=number_format.value)


def constant(text: str) -> Part:
    """A text that depends on no field."""
    return Part((), Texts(lambda _: text))


class TextPlan:
    """The text of the instructions of one opcode number: mnemonic, operands, modifiers.

    `slots`: for each operand the position of its upper bits in the mode of `s_set_vgpr_msb`, -1 for
    one without any. `rest` has the bits that assemblers set where no part decides them. `text` is
    the instruction of a word; a literal is still `LITERAL`.
    """

    __slots__ = ("mnemonic", "modifiers", "operands", "rest", "slots", "text")

    def __init__(
        self,
        mnemonic: str,
        operands: tuple[Part, ...],
        modifiers: tuple[Part, ...],
        slots: tuple[int, ...],
        rest: int,
    ) -> None:
        self.mnemonic = mnemonic
        self.operands = operands
        self.modifiers = modifiers
        self.slots = slots
        self.rest = rest
        self.text = _printer(mnemonic, operands, modifiers)

    def text_with_upper(self, word: int, upper: int) -> str:
        """The text where `upper` has two bits for each of src0, src1, src2 and the destination,
        which are above the eight bits of their register numbers (gfx1250). Raises Undecodable."""
        texts = [part.texts[part.index(word)] for part in self.operands]
        operand_texts = [
            _with_upper(text, upper >> 2 * slot & 3) if slot >= 0 else text
            for text, slot in zip(texts, self.slots, strict=True)
            if text
        ]
        text = f"{self.mnemonic} {', '.join(operand_texts)}" if operand_texts else self.mnemonic
        return text + "".join([part.texts[part.index(word)] for part in self.modifiers])


def _printer(
    mnemonic: str, operands: tuple[Part, ...], modifiers: tuple[Part, ...]
) -> Callable[[int], str]:
    """The function that prints an instruction, one expression for a layout of parts."""
    pieces: list[str | tuple[Gather, ...]] = [mnemonic]
    tables: list[Texts] = []

    def add(piece: str | Part) -> None:
        if isinstance(piece, Part):
            if piece.gathers:
                pieces.append(_coalesce(piece.gathers))
                tables.append(piece.texts)
                return
            piece = piece.texts[0]
        if isinstance(pieces[-1], str):
            pieces[-1] += piece
        else:
            pieces.append(piece)

    separator = " "
    for position, part in enumerate(operands):
        if not part.optional:
            add(separator)
            add(part)
            separator = ", "
        elif separator == " " and position + 1 < len(operands):
            add(separator)
            add(Part(part.gathers, _with_comma(part.texts)))
            separator = ""
        else:
            add(Part(part.gathers, _with_separator(part.texts, separator)))
    if modifiers:
        add(_concatenate(modifiers))
    layout = tuple(None if isinstance(piece, str) else piece for piece in pieces)
    return _maker(layout)(*[piece for piece in pieces if isinstance(piece, str)], *tables)


def _concatenate(parts: tuple[Part, ...]) -> Part:
    """One part for texts that follow each other."""
    gathers: list[Gather] = []
    pieces: list[tuple[int, int, Texts]] = []
    start = 0
    for part in parts:
        width = max((mask.bit_length() + at for _, mask, at in part.gathers), default=0)
        gathers += [(shift, mask, at + start) for shift, mask, at in part.gathers]
        pieces.append((start, (1 << width) - 1, part.texts))
        start += width

    def text(index: int) -> str:
        return "".join([texts[index >> first & mask] for first, mask, texts in pieces])

    return Part(tuple(gathers), Texts(text))


def _with_comma(texts: Texts) -> Texts:
    return Texts(lambda index: f"{text}, " if (text := texts[index]) else "")


def _with_separator(texts: Texts, separator: str) -> Texts:
    return Texts(lambda index: f"{separator}{text}" if (text := texts[index]) else "")


def _coalesce(gathers: tuple[Gather, ...]) -> tuple[Gather, ...]:
    """The same index from as few gathers as can be: neighbours that stay neighbours are one."""
    result = list(gathers[:1])
    for shift, mask, position in gathers[1:]:
        before, before_mask, before_position = result[-1]
        width = before_mask.bit_length()
        if (shift, position) == (before + width, before_position + width):
            result[-1] = before, before_mask | mask << width, before_position
        else:
            result.append((shift, mask, position))
    return tuple(result)


@cache
def _maker(layout: tuple[tuple[Gather, ...] | None, ...]) -> Callable[..., Callable[[int], str]]:
    """Makes printers of one layout: fixed texts (None) and indices, in order. A maker takes the
    fixed texts and then the tables."""
    fixed, tables, pieces = [], [], []
    for gathers in layout:
        if gathers is None:
            pieces.append(f"s{len(fixed)}")
            fixed.append(pieces[-1])
            continue
        index = " | ".join(
            f"(word >> {shift} & {mask}) << {position}" if position else f"word >> {shift} & {mask}"
            for shift, mask, position in gathers
        )
        pieces.append(f"t{len(tables)}[{index}]")
        tables.append(f"t{len(tables)}")
    body = "".join(f"{{{item}}}" for item in pieces)
    scope: dict[str, Callable[..., Callable[[int], str]]] = {}
    exec(f"def maker({', '.join([*fixed, *tables])}): return lambda word: f'{body}'", scope)
    return scope["maker"]


_REGISTERS = re.compile(r"\bv(?:(\d+)|\[(\d+):(\d+)\])(?P<half>\.[lh])?")


def _with_upper(text: str, upper: int) -> str:
    """A register with its complete number behind it, `v0 /*v256*/`, as LLVM prints it. Raises
    Undecodable for a register that is not there."""
    if not upper:
        return text

    def complete(match: re.Match[str]) -> str:
        groups = match.group(1, 2, 3)
        numbers = [int(number) + 256 * upper for number in groups if number is not None]
        if numbers[-1] >= VGPR_COUNT:
            raise Undecodable(f"vector register {numbers[-1]}")
        whole = f"v{numbers[0]}" if len(numbers) == 1 else f"v[{numbers[0]}:{numbers[1]}]"
        return f"{match[0]} /*{whole}{match['half'] or ''}*/"

    return _REGISTERS.sub(complete, text, count=1)
