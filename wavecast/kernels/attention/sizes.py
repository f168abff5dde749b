"""How many pairs of a query and a key attention is about."""

from __future__ import annotations

import numpy as np


def scores(queries: int, keys: int, left: int, right: int) -> int:
    """Pairs of one head that the window lets through, exactly; -1: no such side."""
    place = np.arange(queries, dtype=np.int64) + (keys - queries)
    last = np.full_like(place, keys - 1) if right < 0 else np.minimum(place + right, keys - 1)
    first = np.zeros_like(place) if left < 0 else np.maximum(place - left, 0)
    return int(np.maximum(last - first + 1, 0).sum())


__all__ = ["scores"]
