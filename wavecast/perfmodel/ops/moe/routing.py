"""How tokens spread over experts: each goes to `topk` different experts, all equally likely.

The tokens of one expert are then binomial, B(tokens, topk / experts). A kernel cuts them into
blocks of rows, so that every expert pads its last block.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

_DEVIATIONS = 8.0
"""Counts further from the mean than this many standard deviations are left out (p < 1e-15)."""


def active_experts(tokens: int, experts: int, topk: int) -> float:
    """Expected number of experts that get at least one token."""
    return experts * (1.0 - (1.0 - topk / experts) ** tokens)


@lru_cache(maxsize=65536)
def expected_blocks(
    tokens: int, experts: int, topk: int, rows: tuple[int, ...]
) -> tuple[float, ...]:
    """Expected number of row blocks over all experts, for each block height of `rows`."""
    counts, chance = _load(tokens, topk / experts)
    return tuple(experts * float(chance @ -(-counts // height)) for height in rows)


def _load(tokens: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Tokens an expert may get, and their probabilities."""
    if share >= 1.0:
        return np.array([tokens]), np.ones(1)
    mean = tokens * share
    reach = _DEVIATIONS * (math.sqrt(mean * (1.0 - share)) + 1.0)
    first, last = max(0, int(mean - reach)), min(tokens, math.ceil(mean + reach))
    counts = np.arange(first, last + 1)
    start = (
        math.lgamma(tokens + 1)
        - math.lgamma(first + 1)
        - math.lgamma(tokens - first + 1)
        + first * math.log(share)
        + (tokens - first) * math.log1p(-share)
    )
    ratios = (tokens - counts[:-1]) / (counts[:-1] + 1) * (share / (1.0 - share))
    logs = start + np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    chance = np.exp(logs)
    return counts, chance / chance.sum()


__all__ = ["active_experts", "expected_blocks"]
