"""Waves of a SIMD that queue for its pipes.

A wave goes through matrix pipe, vector pipe and LDS in turn, then waits for loads. While it has one
pipe, others may use the rest. Mean-value analysis of such a closed network (Reiser and Lavenberg
1980) gives the rate of n waves from that of n - 1: a wave that arrives at a pipe finds there, on
average, what a network with one wave less has in it,

    R_i(n) = D_i · (1 + Q_i(n - 1)),   X(n) = n / (Z + Σ R_i(n)),   Q_i(n) = X(n) · R_i(n)

for demands D_i of the pipes and a wait Z. One wave alone needs the sum of everything, many need the
longest demand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoopOfTile:
    """Clocks of a CU per score: that LDS transfers, and that a wave waits."""

    lds: float
    waits: float


def clocks_per_score(demands: Sequence[float], wait: float, waves: float) -> float:
    """Clocks between two results of `waves` waves per SIMD, which each need `demands` clocks of
    every pipe and `wait` clocks of none per result.

    Waves are a mean: between whole numbers the rate is interpolated; fewer than one leave SIMDs
    empty.
    """
    alone = sum(demands) + wait
    if waves <= 1.0:
        return alone / waves
    rate, waiting = 1.0 / alone, [demand / alone for demand in demands]
    for number in range(2, math.ceil(waves) + 1):
        times = [demand * (1.0 + ahead) for demand, ahead in zip(demands, waiting, strict=True)]
        before, rate = rate, number / (wait + sum(times))
        waiting = [rate * time for time in times]
        if number > waves:
            rate = before + (rate - before) * (waves - number + 1)
    return 1.0 / rate


__all__ = ["LoopOfTile", "clocks_per_score"]
