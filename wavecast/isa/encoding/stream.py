"""The instructions of a section of machine code.

Instructions are read one behind the other, from the start and from every address a branch goes to.
Equal words share one decoding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from wavecast.isa.encoding.decoder import MOST_WORDS, Decoding, machine_decoder
from wavecast.isa.opcode import OpcodeFlag

_WORD = 4


@dataclass(frozen=True, slots=True)
class Placed:
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


class CodeReader:
    """Reads machine code of one target and wave size; decodings are shared by all it reads."""

    def __init__(self, target: str, wave_lanes: int) -> None:
        self._decoder = machine_decoder(target, wave_lanes)
        self._known: dict[int, dict[int, Decoding | None]] = {}

    def read(self, code: bytes, address: int, starts: Iterable[int] = ()) -> list[Placed]:
        """The instructions of `code`, which lies at `address`, in order.

        Other words are data. An address of `starts`, and one that a branch
        goes to, is the start of an instruction: data in front of it does not hide it.
        """
        words = np.frombuffer(code[: len(code) // _WORD * _WORD], dtype="<u4").tolist()
        found: dict[int, Placed] = {}
        pending = [0, *((start - address) // _WORD for start in starts)]
        while pending:
            position = pending.pop()
            for item in self._walk(words, position, address, found):
                target = item.target
                if target is None:
                    continue
                index, odd = divmod(target - address, _WORD)
                if not odd and 0 <= index < len(words) and index not in found:
                    pending.append(index)
        return self._completed(_without_overlap([found[index] for index in sorted(found)]), words)

    def _completed(self, items: list[Placed], words: list[int]) -> list[Placed]:
        """With complete numbers of registers behind `s_set_vgpr_msb`, which selects their upper
        bits for all that follows."""
        upper, completed = 0, []
        for item in items:
            decoding = item.decoding
            if decoding is not None and upper and OpcodeFlag.VGPR_MSB not in decoding.row.row.flags:
                first = (item.address - items[0].address) // _WORD
                value = 0
                for shift, word in enumerate(words[first : first + decoding.words]):
                    value |= word << 32 * shift
                again = self._decoder.decode(value, decoding.words, upper)
                item = Placed(item.address, again, item.word)
            elif decoding is not None and OpcodeFlag.VGPR_MSB in decoding.row.row.flags:
                upper = item.word & 0xFF
            completed.append(item)
        return completed

    def _walk(
        self, words: list[int], position: int, address: int, found: dict[int, Placed]
    ) -> list[Placed]:
        """Reads from a word on until what is read already, into `found`; returns what is new."""
        new = []
        count = len(words)
        decode = self._one
        while position < count and position not in found:
            decoding = decode(words, position)
            placed = Placed(address + _WORD * position, decoding, words[position])
            found[position] = placed
            new.append(placed)
            position += decoding.words if decoding is not None else 1
        return new

    def _one(self, words: list[int], position: int) -> Decoding | None:
        first = words[position]
        known = self._known.get(first)
        if known is None:
            known = self._known[first] = {}
        else:
            single = known.get(-1)
            if single is not None:
                return single
        window = words[position : position + MOST_WORDS]
        key = 0
        for shift, word in enumerate(window):
            key |= word << 32 * shift
        for size in (2, 3):
            hit = known.get(key & (1 << 32 * size) - 1 | 1 << 200 + size)
            if hit is not None:
                return hit
        decoding = self._decoder.decode(key, len(window))
        if decoding is not None:
            if decoding.words == 1:
                known[-1] = decoding
            elif decoding.words <= 3:
                size = decoding.words
                known[key & (1 << 32 * size) - 1 | 1 << 200 + size] = decoding
        return decoding


def _without_overlap(items: list[Placed]) -> list[Placed]:
    """Without instructions that a later start shows to be data."""
    kept: list[Placed] = []
    for item in items:
        while kept and kept[-1].decoding is not None:
            before = kept[-1]
            assert before.decoding is not None
            if before.address + _WORD * before.decoding.words <= item.address:
                break
            kept.pop()
            for offset in range((item.address - before.address) // _WORD):
                kept.append(Placed(before.address + _WORD * offset, None, 0))
        kept.append(item)
    return kept
