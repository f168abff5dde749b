"""The rows and the last releases of many workgroups, joined: arrays over blocks of workgroups.

Joining two of them compares a few arrays, however many workgroups have released something. Blocks
that no side adds to are shared.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

Rows = dict[int, np.ndarray]
"""Group -> uint32[waves, columns]: by wave of the workgroup, the numbers that its accesses have
reached (`clocks.py`). Arrays are not changed once they are made."""
_GROUPS: Final = 64
"""Workgroups of a block."""
_JOINS: Final = 32
"""Joins that rows remember."""
BlockKey = tuple[int, int]
"""The number of a block, and the waves of its workgroups: launches of any number of waves follow
each other."""


@dataclass(frozen=True, slots=True)
class RowBlock:
    """`rows` (uint32[groups, waves, columns]) and, by wave, the `order` of its last release
    (int64[groups, waves]; 0: none). Not changed once others have it."""

    rows: np.ndarray
    order: np.ndarray

    @classmethod
    def empty(cls, waves: int, columns: int) -> RowBlock:
        return cls(
            np.zeros((_GROUPS, waves, columns), np.uint32), np.zeros((_GROUPS, waves), np.int64)
        )

    def copy(self) -> RowBlock:
        return RowBlock(self.rows.copy(), self.order.copy())

    def join(self, other: RowBlock) -> RowBlock:
        """The later of both; itself where the other knows no more."""
        rows, order = np.maximum(self.rows, other.rows), np.maximum(self.order, other.order)
        for whole in (self, other):
            if _equal(order, whole.order) and _equal(rows, whole.rows):
                return whole
        return RowBlock(rows, order)


def _equal(first: np.ndarray, second: np.ndarray) -> bool:
    return first.tobytes() == second.tobytes()


class JoinedRows:
    """What is known of workgroups, in `blocks`. Not changed once it is made."""

    __slots__ = ("__weakref__", "_joins", "blocks")

    def __init__(self, blocks: Mapping[BlockKey, RowBlock]) -> None:
        self.blocks = blocks
        self._joins: dict[int, tuple[weakref.ref[JoinedRows], weakref.ref[JoinedRows]]] = {}
        """The last ones that it was joined with, and the results: many waves learn the same."""

    def __bool__(self) -> bool:
        return bool(self.blocks)

    def join(self, other: JoinedRows) -> JoinedRows:
        """What any of both knows; itself where the other knows no more."""
        if other is self or not other.blocks:
            return self
        if not self.blocks:
            return other
        entry = self._joins.get(id(other))
        if entry is not None and entry[0]() is other:
            result = entry[1]()
            if result is not None:
                return result
        result = self._join(other)
        if len(self._joins) >= _JOINS:
            self._joins.clear()
        self._joins[id(other)] = weakref.ref(other), weakref.ref(result)
        return result

    def _join(self, other: JoinedRows) -> JoinedRows:
        total: dict[BlockKey, RowBlock] | None = None
        for key, theirs in other.blocks.items():
            mine = self.blocks.get(key)
            joined = theirs if mine is None or mine is theirs else mine.join(theirs)
            if joined is not mine:
                total = dict(self.blocks) if total is None else total
                total[key] = joined
        if total is None:
            return self
        if len(total) == len(other.blocks) and all(
            other.blocks.get(key) is block for key, block in total.items()
        ):
            return other
        return JoinedRows(total)

    def order(self, group: int, wave: int) -> int:
        """That of the last release of a workgroup's wave, 0 for none."""
        for _, block in self._blocks(group // _GROUPS):
            if wave < block.order.shape[1] and (order := int(block.order[group % _GROUPS, wave])):
                return order
        return 0

    def rows(self, group: int) -> np.ndarray | None:
        """What is known of the accesses of a workgroup, None for nothing."""
        for _, block in self._blocks(group // _GROUPS):
            if block.order[group % _GROUPS].any():
                return block.rows[group % _GROUPS]
        return None

    def items(self) -> Iterator[tuple[int, np.ndarray]]:
        """The workgroups of which anything is known, and their rows."""
        for (number, _), block in self.blocks.items():
            for index in np.flatnonzero(block.order.any(axis=1)).tolist():
                yield number * _GROUPS + index, block.rows[index]

    def rows_between(self, first: int, end: int) -> np.ndarray | None:
        """The rows of any workgroup from `first` to before `end`, None where none is known."""
        for number in range(first // _GROUPS, (end - 1) // _GROUPS + 1):
            for _, block in self._blocks(number):
                for index in np.flatnonzero(block.order.any(axis=1)).tolist():
                    if first <= number * _GROUPS + index < end:
                        return block.rows[index]
        return None

    def _blocks(self, number: int) -> list[tuple[BlockKey, RowBlock]]:
        return [(key, block) for key, block in self.blocks.items() if key[0] == number]


class RowsBuilder:
    """Joins rows and releases into new blocks."""

    def __init__(self) -> None:
        self._blocks: dict[BlockKey, RowBlock] = {}
        self._own: set[BlockKey] = set()
        """Blocks that nobody else has."""

    def join(self, known: JoinedRows) -> None:
        """Add what is known."""
        for key, theirs in known.blocks.items():
            mine = self._blocks.get(key)
            if mine is None:
                self._blocks[key] = theirs
            elif key in self._own:
                np.maximum(mine.rows, theirs.rows, out=mine.rows)
                np.maximum(mine.order, theirs.order, out=mine.order)
            elif mine is not theirs:
                self._blocks[key] = mine.join(theirs)

    def add(self, group: int, wave: int, rows: np.ndarray, order: int) -> None:
        """Add a release of a wave of a workgroup."""
        number, index = divmod(group, _GROUPS)
        key = number, len(rows)
        if key not in self._own:
            before = self._blocks.get(key)
            self._blocks[key] = RowBlock.empty(*rows.shape) if before is None else before.copy()
            self._own.add(key)
        block = self._blocks[key]
        mine = block.rows[index]
        np.maximum(mine, rows, out=mine)
        if block.order[index, wave] < order:
            block.order[index, wave] = order

    def build(self) -> JoinedRows:
        """What has been added. Nothing more may be added."""
        return JoinedRows(self._blocks)


NO_ROWS: Final = JoinedRows({})


def joined_rows(first: Rows, second: Mapping[int, np.ndarray]) -> Rows:
    """The later of both by workgroup; `first` itself where the second knows no more."""
    if first is second:
        return first
    total: Rows | None = None
    for group, rows in second.items():
        before = first.get(group)
        if before is rows:
            continue
        if before is None or (rows > before).any():
            total = dict(first) if total is None else total
            total[group] = rows if before is None else np.maximum(before, rows)
    return first if total is None else total


__all__ = ["NO_ROWS", "JoinedRows", "Rows", "RowsBuilder", "joined_rows"]
