"""What each code generator costs or brings over several kernels, against the program's own code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Annotated, Final, Protocol

from wavecast.json_objects import Count, JsonObject, NonNegative, doc
from wavecast.lab.compilers import PROGRAM, CompilerRow
from wavecast.lab.figures import CodeFigures

NOTICED: Final = 0.01
"""The least difference of a time that counts as faster or slower: smaller ones say little."""


ALL: Final = "all"
"""The target of a ranking over several."""


class ComparedKernel(Protocol):
    """The rows of a kernel on a device."""

    @property
    def kernel(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def rows(self) -> Sequence[CompilerRow]: ...


class CompilerRank(JsonObject):
    """A code generator on the kernels of a target. Times are those of a kernel over the time of the
    program's code."""

    name: str
    target: Annotated[str, doc("gfx942 …")]
    kernels: Annotated[Count, doc("kernels with a predicted time")]
    refused: Annotated[Count, doc("kernels that it refuses")]
    time: Annotated[NonNegative | None, doc("geometric mean of the times")]
    faster: Annotated[Count, doc("kernels that are faster by 1 % or more")]
    slower: Annotated[Count, doc("kernels that are slower by 1 % or more")]
    best: Annotated[str, doc("the kernel with the least time")]
    best_time: NonNegative | None
    worst: Annotated[str, doc("the kernel with the most time")]
    worst_time: NonNegative | None
    instructions: Annotated[NonNegative | None, doc("geometric mean, over the program's code")]
    spills: Annotated[Count, doc("VGPRs that all kernels spill")]
    faults: Annotated[Count, doc("waits and wait states that are missing")]


@dataclass(frozen=True, slots=True)
class _Pair:
    kernel: str
    target: str
    own: CodeFigures
    figures: CodeFigures

    @property
    def time(self) -> float:
        assert self.figures.seconds is not None
        assert self.own.seconds
        return self.figures.seconds / self.own.seconds


def rank(comparisons: Iterable[ComparedKernel]) -> tuple[CompilerRank, ...]:
    """The code generators of every target by their mean time, those without one last."""
    targets: dict[str, list[ComparedKernel]] = {}
    for comparison in comparisons:
        targets.setdefault(comparison.target, []).append(comparison)
    ranks: list[CompilerRank] = []
    for target, group in targets.items():
        names = dict.fromkeys(row.name for comparison in group for row in comparison.rows)
        of_target = [_rank(name, target, group) for name in names]
        ranks += sorted(of_target, key=lambda each: (each.time is None, each.time, each.refused))
    return tuple(ranks)


def rank_common(comparisons: Sequence[ComparedKernel]) -> tuple[CompilerRank, ...]:
    """The code generators that compile any kernel, on the kernels of all targets (`all`) that each
    of them compiles to code with a predicted time."""
    names = dict.fromkeys(row.name for each in comparisons for row in each.rows if row.figures)
    common = [each for each in comparisons if all([*_pairs(name, [each])] for name in names)]
    ranks = [_rank(name, ALL, common) for name in names]
    return tuple(sorted(ranks, key=lambda each: (each.time is None, each.time)))


def _rank(name: str, target: str, comparisons: Sequence[ComparedKernel]) -> CompilerRank:
    rows = [row for each in comparisons for row in each.rows if row.name == name]
    pairs = [*_pairs(name, comparisons)]
    ordered = sorted(pairs, key=lambda pair: pair.time)
    best, worst = (ordered[0], ordered[-1]) if ordered else (None, None)
    figures = [row.figures for row in rows if row.figures is not None]
    return CompilerRank(
        name=name,
        target=target,
        kernels=len(pairs),
        refused=sum(row.figures is None for row in rows),
        time=_mean(pair.time for pair in pairs),
        faster=sum(pair.time <= 1 - NOTICED for pair in pairs),
        slower=sum(pair.time >= 1 + NOTICED for pair in pairs),
        best=_named(best, target),
        best_time=best and best.time,
        worst=_named(worst, target),
        worst_time=worst and worst.time,
        instructions=_mean(pair.figures.instructions / pair.own.instructions for pair in pairs),
        spills=sum(each.spills for each in figures),
        faults=sum(len(each.faults) for each in figures),
    )


def _named(pair: _Pair | None, target: str) -> str:
    """The kernel of a pair, with its target in a ranking over several."""
    if pair is None:
        return ""
    return f"{pair.kernel} {pair.target}" if target == ALL else pair.kernel


def _pairs(name: str, comparisons: Sequence[ComparedKernel]) -> Iterator[_Pair]:
    """The kernels that both the program and a code generator have a time of."""
    for comparison in comparisons:
        by_name = {row.name: row.figures for row in comparison.rows}
        own, figures = by_name.get(PROGRAM), by_name.get(name)
        if own is not None and figures is not None and own.seconds and figures.seconds is not None:
            yield _Pair(comparison.kernel, comparison.target, own, figures)


def _mean(values: Iterable[float]) -> float | None:
    """The geometric mean of positive numbers."""
    logarithms = [log(value) for value in values if value > 0]
    return exp(sum(logarithms) / len(logarithms)) if logarithms else None


__all__ = ["ALL", "NOTICED", "ComparedKernel", "CompilerRank", "rank", "rank_common"]
