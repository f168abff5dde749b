"""How one instruction is printed: mnemonic, operands and modifiers as lookups in tables of text.

A `TextPlan` belongs to a format, an opcode number and what else decides the layout (the word behind
the instruction, the wave size). It is made once; printing an instruction is a few table lookups.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from wavecast.isa.encoding.formats import BitField
from wavecast.isa.encoding.operands import Texts

Gather = tuple[int, int, int]
"""Shift and mask of bits of an instruction, and their first bit in an index."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of text that depends on fields: the index its gathers give, looked up in `texts`."""

    gathers: tuple[Gather, ...]
    texts: Texts

    def printer(self) -> Callable[[int], str]:
        """The function from an instruction to the part's text; it raises Undecodable for an index
        without a meaning."""
        gathers, texts = self.gathers, self.texts
        if not gathers:
            text = texts[0]
            return lambda _: text
        if len(gathers) == 1:
            shift, mask, _ = gathers[0]
            return lambda word: texts[word >> shift & mask]
        if len(gathers) == 2:
            (shift, mask, _), (shift1, mask1, at1) = gathers
            return lambda word: texts[word >> shift & mask | (word >> shift1 & mask1) << at1]

        def joined(word: int) -> str:
            index = 0
            for shift, mask, position in gathers:
                index |= (word >> shift & mask) << position
            return texts[index]

        return joined


def gathered(texts: Texts, *fields: BitField) -> Part:
    """The text of fields, joined to one index: the first field has its lowest bits."""
    gathers, position = [], 0
    for bits in fields:
        gathers.append((bits.low, bits.mask, position))
        position += bits.width
    return Part(tuple(gathers), texts)


def constant(text: str) -> Part:
    """A text that depends on no field."""
    return Part((), Texts(lambda _: text))


@dataclass(slots=True)
class TextPlan:
    """The text of the instructions of one opcode number: mnemonic, operands, modifiers."""

    mnemonic: str
    operands: tuple[Part, ...]
    modifiers: Part | None
    slots: tuple[int, ...]
    _printers: tuple[Callable[[int], str], ...] = field(init=False)
    _trailing: Callable[[int], str] | None = field(init=False)

    def __post_init__(self) -> None:
        self._printers = tuple(part.printer() for part in self.operands)
        self._trailing = self.modifiers.printer() if self.modifiers is not None else None

    def text(self, word: int, upper: int = 0) -> str:
        """The instruction; a literal is still `LITERAL`.

        `upper` has two bits for each of src0, src1, src2 and the destination, which are above the
        eight bits of their register numbers (gfx1250, `s_set_vgpr_msb`).
        """
        if not upper:
            shown = [text for printer in self._printers if (text := printer(word))]
        else:
            texts = [printer(word) for printer in self._printers]
            shown = [
                _with_upper(text, upper >> 2 * slot & 3) if slot >= 0 else text
                for text, slot in zip(texts, self.slots, strict=True)
                if text
            ]
        text = f"{self.mnemonic} {', '.join(shown)}" if shown else self.mnemonic
        return text + self._trailing(word) if self._trailing is not None else text


_REGISTERS = re.compile(r"\bv(?:(\d+)|\[(\d+):(\d+)\])")


def _with_upper(text: str, upper: int) -> str:
    """A register with its complete number behind it, `v0 /*v256*/`, as LLVM prints it."""
    if not upper:
        return text

    def complete(found: re.Match[str]) -> str:
        numbers = [int(number) + 256 * upper for number in found.groups() if number is not None]
        whole = f"v{numbers[0]}" if len(numbers) == 1 else f"v[{numbers[0]}:{numbers[1]}]"
        return f"{found[0]} /*{whole}*/"

    return _REGISTERS.sub(complete, text, count=1)
