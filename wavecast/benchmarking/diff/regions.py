"""Loops of two versions matched, with what each takes and its code side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from wavecast.analyze.result import LoopAnalysis
from wavecast.benchmarking.diff.assembly import side_by_side
from wavecast.benchmarking.diff.line_matcher import LineMatcher, LinePair
from wavecast.benchmarking.diff.result import Delta, DiffRegion
from wavecast.isa.instruction import Instruction
from wavecast.pipeline.explain.result import Explanation

Weights = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True, slots=True)
class _Loops:
    """The loops of a version: analyses by index, children by parent, line pair by index."""

    analyses: dict[int, LoopAnalysis]
    children: dict[int | None, list[int]]
    pairs: dict[int, LinePair | None]


def regions(
    before: Explanation, after: Explanation, weights: Weights, matcher: LineMatcher
) -> tuple[DiffRegion, ...]:
    """The code outside of loops, then every loop of either version, outer before inner."""
    sides = (before, after)
    loops = tuple(_loops(explanation, matcher, side) for side, explanation in enumerate(sides))
    diff_regions = [_region(sides, weights, (None, None), loops, matcher)]
    diff_regions += [
        _region(sides, weights, pair, loops, matcher) for pair in _match_loops(loops[0], loops[1])
    ]
    return tuple(diff_regions)


def responsible(diff_regions: Sequence[DiffRegion]) -> DiffRegion | None:
    """The region with most of the change of the whole; where the whole takes as long
    as before, the one that changed most; None where none did."""
    changes = [region.spent.difference for region in diff_regions]
    total = sum(changes)
    largest = max((abs(change) for change in changes), default=0.0)
    if not largest:
        return (
            max(diff_regions, key=lambda region: region.changes, default=None)
            if any(region.changes for region in diff_regions)
            else None
        )
    sign = 1.0 if total > 0 else -1.0
    if abs(total) < 1e-9 * largest:
        return diff_regions[max(range(len(diff_regions)), key=lambda i: abs(changes[i]))]
    return diff_regions[max(range(len(diff_regions)), key=lambda i: sign * changes[i])]


def _loops(explanation: Explanation, matcher: LineMatcher, side: int) -> _Loops:
    analyses = {loop.index: loop for loop in explanation.analysis.loops}
    children: dict[int | None, list[int]] = {}
    if explanation.program is not None:
        for loop in explanation.program.loops:
            children.setdefault(loop.parent, []).append(loop.index)
    else:  # only depths are known: outer loops come before inner ones
        open_: list[LoopAnalysis] = []
        for loop in explanation.analysis.loops:
            while open_ and open_[-1].depth >= loop.depth:
                open_.pop()
            children.setdefault(open_[-1].index if open_ else None, []).append(loop.index)
            open_.append(loop)
    located = {index: matcher.of(loop.location, side) for index, loop in analyses.items()}
    return _Loops(analyses, children, located)


def _match_loops(
    before: _Loops,
    after: _Loops,
    parents: tuple[int | None, int | None] = (None, None),
) -> Iterable[tuple[int | None, int | None]]:
    """Pairs of loops at one depth, in matched parents: first those on one source line, then, where
    as many are left between two that match, in order."""
    first, second = before.children.get(parents[0], []), after.children.get(parents[1], [])
    mine: list[LinePair | int] = [before.pairs[i] or i for i in first]
    its: list[LinePair | int] = [after.pairs[i] or i for i in second]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, mine, its, autojunk=False).get_opcodes():
        paired = min(i2 - i1, j2 - j1) if tag in ("equal", "replace") else 0
        for offset in range(paired):
            pair = first[i1 + offset], second[j1 + offset]
            yield pair
            yield from _match_loops(before, after, pair)
        for index in first[i1 + paired : i2]:
            yield from _alone(before, index, 0)
        for index in second[j1 + paired : j2]:
            yield from _alone(after, index, 1)


def _alone(loops: _Loops, index: int, side: int) -> Iterable[tuple[int | None, int | None]]:
    yield (index, None) if side == 0 else (None, index)
    for child in loops.children.get(index, []):
        yield from _alone(loops, child, side)


def _region(
    sides: tuple[Explanation, Explanation],
    weights: Weights,
    pair: tuple[int | None, int | None],
    loops: tuple[_Loops, ...],
    matcher: LineMatcher,
) -> DiffRegion:
    outside = pair == (None, None)
    code: list[list[Instruction]] = []
    lines: list[int] = []
    text = ""
    for side, (explanation, index) in enumerate(zip(sides, pair, strict=True)):
        code.append(_instructions(explanation, index) if outside or index is not None else [])
        line = None if index is None else loops[side].pairs[index]
        lines.append((line[1], line[2])[side] if line else 0)
        text = (matcher.text(line) if line else "") or text
    analyses = [
        None if index is None else loops[side].analyses[index] for side, index in enumerate(pair)
    ]
    costs = [
        sum(weight[i.index] for i in mine) if weight else _slowest(loop)
        for mine, weight, loop in zip(code, weights, analyses, strict=True)
    ]
    return DiffRegion(
        loop=not outside,
        before=analyses[0],
        after=analyses[1],
        lines=(lines[0], lines[1]),
        text=text,
        spent=Delta("outside of loops" if outside else "loop", costs[0], costs[1]),
        rows=side_by_side(code[0], code[1])
        if all(explanation.program for explanation in sides)
        else (),
    )


def _slowest(loop: LoopAnalysis | None) -> float | None:
    """Without its instructions: cycles of an iteration on the pipe that takes longest."""
    return None if loop is None else max(loop.cycles.values(), default=0.0)


def _instructions(explanation: Explanation, loop: int | None) -> list[Instruction]:
    """A loop's own instructions (None: those outside of loops), in the order of the program."""
    program = explanation.program
    if program is None:
        return []
    return [
        instruction
        for block in program.blocks
        if program.innermost_loop[block.index] == loop
        for instruction in program.instructions[block.start : block.stop]
    ]


__all__ = ["Weights", "regions", "responsible"]
