"""Two sides compared, kernel by kernel and device by device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from wavecast.benchmarking.diff.figures import counts, deltas, figures, resources
from wavecast.benchmarking.diff.line_matcher import LineMatcher, LinePair
from wavecast.benchmarking.diff.regions import Weights, regions, responsible
from wavecast.benchmarking.diff.result import Delta, Diff, DiffLine, KernelDiff
from wavecast.benchmarking.diff.sides import Side
from wavecast.benchmarking.diff.spent import basis_of, instruction_costs
from wavecast.pipeline.explain.result import Explanation
from wavecast.rules.finding import Finding

Pair = tuple[Explanation | None, Explanation | None]


def compare(before: Side, after: Side) -> Diff:
    """What changed between two sides; kernels that only one of them has are entries, too."""
    kernels: list[KernelDiff] = []
    notes: list[str] = []
    for old, new in _by_device(before, after):
        pairs = match_kernels(old, new)
        numbers: dict[str, int] = {}
        for pair in pairs:
            first, second = pair
            explanation = second or first
            assert explanation is not None
            name = explanation.code.kernel
            if first and second and first.code.kernel != name:
                name = f"{first.code.kernel} → {name}"
                notes.append(f"{name} are compared: the only kernels left on either side")
            numbers[name] = numbers.get(name, 0) + 1
            roots = before.root, after.root
            kernels.append(_kernel(name, numbers[name], pair, roots))
    return Diff(
        before.label,
        after.label,
        tuple(kernels),
        before.report.failures,
        after.report.failures,
        tuple(dict.fromkeys([*before.report.notes, *after.report.notes, *notes])),
    )


def match_kernels(before: Sequence[Explanation], after: Sequence[Explanation]) -> list[Pair]:
    """Pairs of kernels of one device: by name, of one name those with equal arguments first, then
    in order; a single name left over on each side is one kernel, renamed."""
    names = dict.fromkeys(explanation.code.kernel for explanation in (*before, *after))
    mine = {
        name: [explanation for explanation in before if explanation.code.kernel == name]
        for name in names
    }
    its = {
        name: [explanation for explanation in after if explanation.code.kernel == name]
        for name in names
    }
    alone = [name for name in names if not its[name]]
    new = [name for name in names if not mine[name]]
    if len(alone) == len(new) == 1:
        its[alone[0]] = its.pop(new[0])
        mine.pop(new[0])
    return [pair for name in mine for pair in _in_order(mine[name], its.get(name, []))]


def _in_order(before: list[Explanation], after: list[Explanation]) -> list[Pair]:
    rest = list(after)
    pairs: dict[int, Explanation] = {}
    for number, explanation in enumerate(before):
        for other in rest:
            if _call(explanation) == _call(other):
                pairs[number] = other
                rest = [candidate for candidate in rest if candidate is not other]
                break
    matches: list[Pair] = []
    for number, explanation in enumerate(before):
        other = pairs.get(number)
        if other is None and rest:
            other = rest.pop(0)
        matches.append((explanation, other))
    return [*matches, *((None, other) for other in rest)]


def _call(explanation: Explanation) -> tuple:
    """What a launch was called with; memory is numbered again in every run."""
    launch = explanation.launch
    if launch is None:
        return ()
    arguments = tuple(replace(argument, storage=0) for argument in launch.arguments)
    return launch.grid, launch.block, launch.configuration, repr(arguments)


def _by_device(before: Side, after: Side) -> Iterator[tuple[list[Explanation], list[Explanation]]]:
    ids = dict.fromkeys(
        explanation.device.id
        for side in (before, after)
        for explanation in side.report.explanations
    )
    for device in ids:
        sides = [
            [
                explanation
                for explanation in side.report.explanations
                if explanation.device.id == device
            ]
            for side in (before, after)
        ]
        yield sides[0], sides[1]


def _kernel(name: str, number: int, pair: Pair, roots: tuple[Path, Path]) -> KernelDiff:
    before, after = pair
    explanation = after or before
    assert explanation is not None
    entry = KernelDiff(
        name,
        number,
        explanation.device,
        before,
        after,
        figures=deltas(*(figures(side) if side else {} for side in pair)),
        resources=deltas(*(resources(side) if side else {} for side in pair)),
    )
    if before is None or after is None:
        return entry
    basis = basis_of(before, after)
    matcher = LineMatcher(before.code, after.code, roots)
    weights = instruction_costs(before, basis), instruction_costs(after, basis)
    parts = regions(before, after, weights, matcher)
    old, new = _findings(before, after, matcher)
    return replace(
        entry,
        mix=counts(before.analysis.instructions, after.analysis.instructions),
        basis=basis,
        regions=parts,
        responsible=responsible(parts),
        lines=_lines(before, after, weights, matcher),
        findings_gone=old,
        findings_new=new,
        same_code=before.code.digest == after.code.digest,
    )


def _lines(
    before: Explanation, after: Explanation, weights: Weights, matcher: LineMatcher
) -> tuple[DiffLine, ...]:
    """Source lines by how much they changed, the largest change first."""
    if not all(weights):
        return ()
    totals: tuple[dict[LinePair, float], dict[LinePair, float]] = ({}, {})
    for side, explanation in enumerate((before, after)):
        assert explanation.program is not None
        cache: dict[int, LinePair | None] = {}
        for instruction in explanation.program.instructions:
            key = id(instruction.location)
            if key not in cache:
                cache[key] = matcher.of(instruction.location, side)
            pair = cache[key] or ("", 0, 0)
            totals[side][pair] = totals[side].get(pair, 0.0) + weights[side][instruction.index]
    lines = [
        DiffLine(*pair, matcher.text(pair), Delta("line", totals[0].get(pair, 0.0),
                                               totals[1].get(pair, 0.0)))
        for pair in dict.fromkeys([*totals[0], *totals[1]])
    ]  # fmt: skip
    return tuple(sorted(lines, key=lambda line: -abs(line.spent.difference)))


def _findings(
    before: Explanation, after: Explanation, matcher: LineMatcher
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Findings gone and new: those of one rule are the same on the same line, then in order."""
    old, new = list(before.findings), list(after.findings)
    for by_line in (True, False):
        for finding in list(old):
            key = _finding(finding, matcher, 0, by_line)
            same = next((o for o in new if _finding(o, matcher, 1, by_line) == key), None)
            if same is not None:
                old = [candidate for candidate in old if candidate is not finding]
                new = [candidate for candidate in new if candidate is not same]
    return tuple(old), tuple(new)


def _finding(finding: Finding, matcher: LineMatcher, side: int, by_line: bool) -> tuple:
    pair = matcher.of(finding.location, side) if by_line else None
    return finding.rule, finding.severity, pair


__all__ = ["compare", "match_kernels"]
