"""Where in the course of a wave its requests come."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, Any]


@numba.njit(cache=True)
def positions(blocks, starts, lengths, slots, instructions):  # pragma: no cover
    """How many instructions a wave issued before each of its requests, i64[m].

    It went through `blocks`, which start at instructions `starts` and have `lengths`; an
    instruction makes up to `slots` requests (fewer when all lanes are off); `instructions` are
    those of the requests, in order.
    """
    found = np.zeros(len(instructions), np.int64)
    at = 0
    issued = 0
    for block in blocks:
        first = starts[block]
        for step in range(first, first + lengths[block]):
            taken = 0
            while taken < slots[step] and at < len(instructions) and instructions[at] == step:
                found[at] = issued
                at += 1
                taken += 1
            issued += 1
    return found


__all__ = ["positions"]
