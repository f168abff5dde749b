"""Where in the course of a wave its requests come."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavecast.compile.loops import loop

Array = np.ndarray[Any, Any]


def positions(
    blocks: Array, starts: Array, lengths: Array, slots: Array, instructions: Array
) -> Array:
    """How many instructions a wave issued before each of its requests, i64[m].

    It went through `blocks`, which start at instructions `starts` and have `lengths`; an
    instruction makes up to `slots` requests (fewer when all lanes are off); `instructions` are
    those of the requests, in order.
    """
    indices = np.zeros(len(instructions), np.int64)
    _find(blocks, starts, lengths, slots, instructions, indices)
    return indices


@loop
def _find(blocks, starts, lengths, slots, instructions, indices):  # pragma: no cover
    at = 0
    issued = 0
    for block in blocks:
        first = starts[block]
        for step in range(first, first + lengths[block]):
            slot = 0
            while slot < slots[step] and at < len(instructions) and instructions[at] == step:
                indices[at] = issued
                at += 1
                slot += 1
            issued += 1


__all__ = ["positions"]
