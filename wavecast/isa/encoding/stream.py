"""The instructions of a section of machine code.

Instructions are read one behind the other, from the start and from every address a branch goes to.
Equal words share one decoding.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from wavecast.isa.collector import no_collections
from wavecast.isa.encoding.decoder import MOST_WORDS, Decoding, machine_decoder
from wavecast.isa.encoding.opcodes import EncodedRow, encoded_rows
from wavecast.isa.opcode import OpcodeFlag

_WORD = 4
_new: Final = tuple.__new__
"""Makes named tuples in a third of the time of calling their class."""

_LONG: Final = range(3, MOST_WORDS + 1)
"""Words of long instructions."""


class _Unread(Enum):
    """What a list of decodings has where no instruction is read."""

    UNREAD = 0


_UNREAD: Final = _Unread.UNREAD


class Placed(NamedTuple):
    """One instruction, or one word of data (`decoding` None), at its address."""

    address: int
    decoding: Decoding | None
    word: int

    @property
    def target(self) -> int | None:
        """The address a branch goes to."""
        if self.decoding is None or self.decoding.target is None:
            return None
        return self.address + _WORD * (self.decoding.words + self.decoding.target)


@cache
def _modes(target: str) -> frozenset[EncodedRow]:
    """The rows of a target that select the upper bits of register numbers."""
    return frozenset(
        row
        for rows in encoded_rows(target).values()
        for row in rows
        if OpcodeFlag.VGPR_MSB in row.row.flags
    )


class CodeReader:
    """Reads machine code of one target and wave size; decodings are shared by all it reads."""

    def __init__(self, target: str, wave_lanes: int) -> None:
        self._decoder = machine_decoder(target, wave_lanes)
        self._modes = _modes(self._decoder.target)
        self._known: tuple[dict[int, Decoding], ...] = tuple({} for _ in range(MOST_WORDS + 1))
        self._known_upper: dict[tuple[int, int], Decoding | None] = {}

    @no_collections()
    def read(self, code: bytes, address: int, starts: Iterable[int] = ()) -> list[Placed]:
        """The instructions of `code`, which lies at `address`, in order.

        Other words are data. An address of `starts`, and one that a branch
        goes to, is the start of an instruction: data in front of it does not hide it.
        """
        array = np.frombuffer(code[: len(code) // _WORD * _WORD], dtype="<u4")
        words = array.tolist()
        pairs = (array[:-1] | array[1:].astype(np.uint64) << np.uint64(32)).tolist()
        pairs.append(-1)
        decodings: list[Decoding | _Unread | None] = [_UNREAD] * len(words)
        order: list[int] = []
        pending = [0, *((start - address) // _WORD for start in starts)]
        walks = 0
        while pending:
            position = pending.pop()
            if not 0 <= position < len(words) or decodings[position] is not _UNREAD:
                continue
            walks += 1
            pending += self._walk(code, words, pairs, position, decodings, order)
        if walks > 1:
            order.sort()
        items = [_new(Placed, (address + _WORD * at, decodings[at], words[at])) for at in order]
        if walks > 1:
            items = _without_overlap(items)
        return self._apply_vgpr_msb(items, code) if self._modes else items

    def _apply_vgpr_msb(self, items: list[Placed], code: bytes) -> list[Placed]:
        """With complete numbers of registers behind `s_set_vgpr_msb`, which selects their upper
        bits for all that follows."""
        modes = self._modes
        upper, completed = 0, []
        start = items[0].address if items else 0
        for item in items:
            address, decoding, word = item
            if decoding is not None:
                if decoding.row in modes:
                    upper = word & 0xFF
                elif upper:
                    first = address - start
                    instruction_bytes = code[first : first + _WORD * decoding.words]
                    again = self._with_upper(
                        int.from_bytes(instruction_bytes, "little"), decoding.words, upper
                    )
                    item = _new(Placed, (address, again, word))
            completed.append(item)
        return completed

    def _with_upper(self, value: int, words: int, upper: int) -> Decoding | None:
        """The decoding of an instruction of `words` words with upper bits of its registers."""
        key = (value, upper << 8 | words)
        if key not in self._known_upper:
            self._known_upper[key] = self._decoder.decode(value, words, upper)
        return self._known_upper[key]

    def _walk(
        self,
        code: bytes,
        words: list[int],
        pairs: list[int],
        position: int,
        decodings: list[Decoding | _Unread | None],
        order: list[int],
    ) -> list[int]:
        """Reads from a word on until what is read already, into `decodings` and its position into
        `order`; returns the indices of the words that branches go to. `pairs` has every two words
        that follow each other."""
        targets = []
        count = len(words)
        one_word, two_words = self._known[1].get, self._known[2].get
        while position < count and decodings[position] is _UNREAD:
            decoding = one_word(words[position]) or two_words(pairs[position])
            if decoding is None:
                decoding = self._longer(code, words, position)
            decodings[position] = decoding
            order.append(position)
            if decoding is None:
                position += 1
                continue
            _, size, _, target = decoding
            position += size
            if target is not None:
                targets.append(position + target)
        return targets

    def _longer(self, code: bytes, words: list[int], position: int) -> Decoding | None:
        """The instruction at a word that is neither alone nor with the next one a known one."""
        first = _WORD * position
        available = min(len(words) - position, MOST_WORDS)
        key = int.from_bytes(code[first : first + _WORD * available], "little")
        for size in _LONG[: max(0, available - 2)]:
            cache_entry = self._known[size].get(key & (1 << 32 * size) - 1)
            if cache_entry is not None:
                return cache_entry
        decoding = self._decoder.decode(key, available)
        if decoding is not None:
            size = decoding.words
            self._known[size][key & (1 << 32 * size) - 1] = decoding
        return decoding


def _without_overlap(items: list[Placed]) -> list[Placed]:
    """Without instructions that a later start shows to be data."""
    result: list[Placed] = []
    for item in items:
        while result and result[-1].decoding is not None:
            before = result[-1]
            assert before.decoding is not None
            if before.address + _WORD * before.decoding.words <= item.address:
                break
            result.pop()
            for offset in range((item.address - before.address) // _WORD):
                result.append(Placed(before.address + _WORD * offset, None, 0))
        result.append(item)
    return result
