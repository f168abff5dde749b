"""Words of shared memory that the warps of a workgroup exchange, where they are known."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

WORDS: Final = 1 << 16
"""Words that are followed, from address 0; a block has at most 228 KiB."""
_ADDRESS: Final = np.uint64(4 * WORDS - 1)
"""Addresses begin with the number of the SM's window; a block's own are the lower bits."""


class SharedWords:
    """The shared memory of some workgroups. `groups` (i64[warps]) is the workgroup of each warp."""

    def __init__(self, groups: Array) -> None:
        self._group = groups[:, None]
        count = int(groups.max()) + 1 if len(groups) else 0
        self._words = np.zeros((count, WORDS), np.uint32)
        self._known = np.zeros((count, WORDS), bool)

    def store(self, address: Array | None, offset: int, active: Array, value: Array | None) -> None:
        """Store a word per active lane (bool[warps, 32]) at `address` + `offset`; a store to an
        unknown address makes all words of the workgroups unknown."""
        if address is None:
            self._known[np.unique(np.broadcast_to(self._group, active.shape)[active])] = False
            return
        group, at = self._offsets(address, offset, active)
        self._known[group, at] = value is not None
        if value is not None:
            self._words[group, at] = np.broadcast_to(value, active.shape)[active]

    def load(self, address: Array, offset: int, active: Array) -> Array | None:
        """The words (u32[warps, 32]) of active lanes, None where one is unknown."""
        group, at = self._offsets(address, offset, active)
        if not self._known[group, at].all():
            return None
        words = np.zeros(active.shape, np.uint32)
        words[active] = self._words[group, at]
        return words

    def _offsets(self, address: Array, offset: int, active: Array) -> tuple[Array, Array]:
        whole = np.broadcast_to(address + np.uint64(offset), active.shape)[active]
        group = np.broadcast_to(self._group, active.shape)[active]
        return group, ((whole & _ADDRESS) >> np.uint64(2)).astype(np.int64)


__all__ = ["SharedWords"]
