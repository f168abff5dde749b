"""How much of a wave's time each loop takes, from its trips and the cycles of an iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wavecast.analyze.result import CodeAnalysis, LoopAnalysis

UNKNOWN_TRIPS: Final = 32
"""Trips of a loop whose trip count is not known."""


@dataclass(frozen=True, slots=True)
class LoopWeights:
    """Cycles of a launch by loop: `own` without inner loops, `total` with them; `straight` those of
    code in no loop."""

    own: dict[int, float]
    total: dict[int, float]
    straight: float

    def share(self, loop: int | None) -> float:
        """The share of all cycles that code in a loop and in no inner one takes, or for None code
        in no loop; 0 where nothing has a cost."""
        everything = self.straight + sum(self.own.values())
        cycles = self.straight if loop is None else self.own.get(loop, 0.0)
        return cycles / everything if everything else 0.0


def weights(analysis: CodeAnalysis) -> LoopWeights:
    """The weights of a kernel's loops. Pipes work at once: the busiest counts, or the chain of
    dependencies where it is longer."""
    executions: dict[int, float] = {}
    cycles: dict[int, float] = {}
    for loop in analysis.loops:  # outer loops come first
        trips = UNKNOWN_TRIPS if loop.trip_count is None else loop.trip_count
        outer = 1.0 if loop.parent is None else executions.get(loop.parent, 1.0)
        executions[loop.index] = trips * outer
        cycles[loop.index] = executions[loop.index] * _cycles(loop.body)
    total = dict(cycles)
    for loop in reversed(analysis.loops):
        if loop.parent in total:
            total[loop.parent] += total[loop.index]
    return LoopWeights(cycles, total, max(analysis.straight.values(), default=0.0))


def _cycles(loop: LoopAnalysis) -> float:
    return max([*loop.cycles.values(), loop.critical_path, 0.0])


def main_loop(analysis: CodeAnalysis) -> LoopAnalysis | None:
    """The loop that takes the time: the innermost one with most of the time of the loop around it;
    None for a kernel without loops."""
    loop_weights = weights(analysis)
    current: LoopAnalysis | None = None
    inner = [loop for loop in analysis.loops if loop.parent not in loop_weights.total]
    while inner:
        heaviest = max(inner, key=lambda loop: loop_weights.total[loop.index])
        if (
            current is not None
            and 2 * loop_weights.total[heaviest.index] < loop_weights.total[current.index]
        ):
            break
        current = heaviest
        inner = [loop for loop in analysis.loops if loop.parent == heaviest.index]
    return current


__all__ = ["UNKNOWN_TRIPS", "LoopWeights", "main_loop", "weights"]
