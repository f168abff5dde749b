"""Parts of a text back to the values of their fields.

A part knows how it prints an index. What prints a given text is found among the few indices that
its registers suggest, or among those of all named operands and constants; so no table is written
twice, and what is found is what the decoder prints.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from wavecast.isa.encoding.operands import FIRST_VGPR, Undecodable
from wavecast.isa.encoding.text_plan import Part

_REGISTER: Final = re.compile(r"(?:\b[vas]|ttmp)\[?(\d+)")
_FIRST_TTMP: Final = 108
_FIRST_NAMED: Final = 102
_LEAST_CODES: Final = 0x7F
"""The mask of the narrowest field with the number of a register."""
_MANY: Final = 1 << 9


def indices(part: Part, text: str, word_mask: int, word: int) -> tuple[int, ...]:
    """The indices for which a part prints `text`. The bits of `word_mask` are those of `word`."""
    if not part.gathers:
        return (0,) if part.texts[0] == text else ()
    fixed = bits = 0
    for shift, mask, at in part.gathers:
        fixed |= (word_mask >> shift & mask) << at
        bits |= (word >> shift & mask) << at
    return _matching_indices(part, text, fixed, bits & fixed)


@lru_cache(maxsize=1 << 16)
def _matching_indices(part: Part, text: str, fixed: int, bits: int) -> tuple[int, ...]:
    """The indices with the bits `bits` where `fixed` is set."""
    domain = sum(mask << at for _, mask, at in part.gathers)
    if part.value is not None:
        try:
            index = part.value(text) if text else 0
        except (KeyError, ValueError, IndexError):
            return ()
        if -domain // 2 <= index < 0:
            index &= domain
        return () if index & ~domain or (index ^ bits) & fixed else (index,)
    register = _REGISTER.search(text)
    if register is None or part.gathers[0][1] < _LEAST_CODES:
        return _by_text(part, fixed, bits).get(text, ())
    low = part.gathers[0][1]
    codes = [code for code in _codes(int(register[1]), low) if not (code ^ bits) & fixed & low]
    uppers = _all(domain & ~fixed & ~low, bits & ~low)
    return tuple(
        code | upper for upper in uppers for code in codes if _text(part, code | upper) == text
    )


@lru_cache(maxsize=1 << 12)
def _by_text(part: Part, fixed: int, bits: int) -> dict[str, tuple[int, ...]]:
    """The indices of every text, those of registers left out where there are many."""
    domain = sum(mask << at for _, mask, at in part.gathers)
    choices = _all(domain & ~fixed, bits)
    if len(choices) > _MANY:
        low = part.gathers[0][1]
        codes = [code for code in range(_FIRST_NAMED, FIRST_VGPR) if code <= low]
        codes = [code for code in codes if not (code ^ bits) & fixed & low]
        uppers = _all(domain & ~fixed & ~low, bits & ~low)
        choices = [code | upper for upper in uppers for code in codes]
    by_text: dict[str, tuple[int, ...]] = {}
    for index in choices:
        text = _text(part, index)
        if text is not None:
            by_text[text] = (*by_text.get(text, ()), index)
    return by_text


def _text(part: Part, index: int) -> str | None:
    try:
        return part.texts[index]
    except (Undecodable, IndexError):
        return None


def _all(bits: int, base: int) -> list[int]:
    """Every value of these bits, with the bits `base`."""
    values, bit = [base], 1
    while bit <= bits:
        if bits & bit:
            values += [index | bit for index in values]
        bit <<= 1
    return values


def _codes(first: int, mask: int) -> list[int]:
    """The codes that an operand with this register number can have."""
    codes = {first, first ^ 1, first & ~1, first >> 1, first >> 2, first | 0x80}
    codes |= {FIRST_VGPR + code for code in (first, first | 0x80)} | {_FIRST_TTMP + first}
    return sorted(code for code in codes if code <= mask)
