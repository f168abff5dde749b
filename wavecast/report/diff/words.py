"""What of a comparison is shown, and how it reads; for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from wavecast.benchmarking.diff.bisect import Found
from wavecast.benchmarking.diff.result import (
    Basis,
    Delta,
    DiffLine,
    DiffRegion,
    DiffRow,
    KernelDiff,
)
from wavecast.benchmarking.kpis import KPIS
from wavecast.pipeline.explain.result import Failure
from wavecast.report.kit.units import count, cycles, seconds, size
from wavecast.rules.finding import Finding

FIGURES: Final = ("predicted_seconds", "findings", "code_instructions")
"""KPIs shown; the others are what `resources` say in more detail."""
LINES: Final = 6
"""Source lines shown, as long as they changed by `LEAST` of the one that changed most."""
LEAST: Final = 0.02
SIGNS: Final = {"same": " ", "operands": "~", "changed": "|", "gone": "<", "new": ">"}

Direction = Literal["", "good", "bad"]


@dataclass(frozen=True, slots=True)
class NumberRow:
    """A number that changed, as text; `direction` says whether that is good."""

    name: str
    before: str
    after: str
    change: str
    direction: Direction


def failure_text(failure: Failure) -> str:
    """What could not be explained, and why."""
    hint = f" ({failure.hint})" if failure.hint else ""
    return f"{failure.kernel} for {failure.target}: {failure.message}{hint}"


def title(kernel: KernelDiff) -> str:
    """`softmax on AMD Instinct MI300X (gfx942)`."""
    number = f" #{kernel.number}" if kernel.number > 1 else ""
    return f"{kernel.name}{number} on {kernel.device.name} ({kernel.device.target})"


def change(delta: Delta) -> str:
    """The change in percent, `+3` from zero, "" where a side is unknown."""
    if delta.before is None or delta.after is None or not delta.changed:
        return ""
    if not delta.before:
        return f"{delta.difference:+.3g}"
    return f"{delta.difference / delta.before:+.1%}".replace("-", "−")


def shows(delta: Delta) -> bool:
    """Whether a change is one in print: fractions, such as seconds, that move by less than their
    three digits tell read the same."""
    if delta.before is None or delta.after is None or not delta.before:
        return delta.changed
    whole = float(delta.before).is_integer() and float(delta.after).is_integer()
    return delta.changed and (whole or abs(delta.difference) >= 5e-4 * abs(delta.before))


def direction(name: str, delta: Delta | None) -> Direction:
    """Whether a change of a KPI or resource is one for the better; more waves are, more of anything
    else is not."""
    if delta is None or delta.before is None or delta.after is None or not delta.changed:
        return ""
    return "good" if (delta.difference > 0) == name.startswith("waves") else "bad"


def figure_text(name: str, value: float | None) -> str:
    """A KPI with its unit."""
    match KPIS[name].unit:
        case "s":
            return seconds(value)
        case "B":
            return size(value)
    return count(value)


def number_rows(kernel: KernelDiff) -> list[NumberRow]:
    """Predicted time, resources and classes of instructions that changed."""
    rows = []
    for name in FIGURES:
        delta = kernel.figure(name)
        if delta is not None and shows(delta):
            both = figure_text(name, delta.before), figure_text(name, delta.after)
            label = name.replace("_", " ")
            rows.append(NumberRow(label, *both, change(delta), direction(name, delta)))
    for delta in kernel.resources:
        if delta.changed:
            both = count(delta.before), count(delta.after)
            rows.append(NumberRow(delta.name, *both, change(delta), direction(delta.name, delta)))
    for delta in kernel.mix:
        if delta.changed:
            both = count(delta.before), count(delta.after)
            rows.append(NumberRow(f"{delta.name} instructions", *both, change(delta), ""))
    return rows


def same_words(kernel: KernelDiff) -> list[str]:
    """The predicted time and resources that did not change, without zeros."""
    time = kernel.figure("predicted_seconds")
    texts = []
    if time is not None and not shows(time) and time.before is not None:
        texts.append(f"predicted {seconds(time.before)}")
    return texts + [
        f"{delta.name} {count(delta.before)}"
        for delta in kernel.resources
        if delta.before and not delta.changed
    ]


def weight(value: float | None, basis: Basis) -> str:
    """What a part of the code takes."""
    return seconds(value) if basis == "seconds" else f"{cycles(value)} cycles"


def signed_weight(value: float, basis: Basis) -> str:
    """A difference with its sign."""
    return f"{'+' if value > 0 else '−'}{weight(abs(value), basis)}"


def part_text(kernel: KernelDiff, region: DiffRegion) -> str:
    """What a part of the code takes before and after, and its share of the whole change."""
    delta, basis = region.spent, kernel.basis
    if not shows(delta):
        return f"{weight(delta.before, basis)} before and after"
    total = sum(part.spent.difference for part in kernel.regions)
    both = f"{weight(delta.before, basis)} → {weight(delta.after, basis)}"
    return f"{both}: {signed_weight(delta.difference, basis)} of {signed_weight(total, basis)}"


def position(region: DiffRegion) -> str:
    """`loop at line 58`, `loop at line 58 → 61`, `code outside of loops`."""
    if not region.loop:
        return "code outside of loops"
    before, after = (str(line) if line else "?" for line in region.lines)
    if region.before is None:
        return f"loop at line {after}, new"
    if region.after is None:
        return f"loop at line {before}, gone"
    return f"loop at line {before}" if before == after else f"loop at line {before} → {after}"


def line_position(line: DiffLine) -> str:
    """`matmul.py:60`, with both numbers where they differ, `–` on a side without the line."""
    if not line.file:
        return "no source line"
    if line.before == line.after:
        return f"{line.file}:{line.after}"
    return f"{line.file}:{line.before or '–'}→{line.after or '–'}"


def moved_lines(kernel: KernelDiff) -> list[DiffLine]:
    """The source lines whose time changed most."""
    most = max((abs(line.spent.difference) for line in kernel.lines), default=0.0)
    return [line for line in kernel.lines[:LINES] if abs(line.spent.difference) > LEAST * most]


def pipe_words(region: DiffRegion) -> str:
    """Cycles per iteration on every pipe, before and after; "" outside of loops."""
    loops = [loop for loop in (region.before, region.after) if loop is not None]
    if not loops:
        return ""
    names = dict.fromkeys(pipe for loop in loops for pipe, n in loop.cycles.items() if n)
    parts = [f"{name} {_both(cycles(loop.cycles.get(name, 0.0)) for loop in loops)}"
             for name in names]  # fmt: skip
    parts.append(f"chain {_both(cycles(loop.critical_path) for loop in loops)}")
    waves = _both(str(loop.waves_per_simd) for loop in loops)
    limits = _both(loop.limiter or "–" for loop in loops)
    trips = _both(count(loop.trip_count) for loop in loops)
    return (
        f"cycles of an iteration of {waves} waves: {', '.join(parts)}; limited by {limits}; "
        f"iterations: {trips}"
    )


def _both(texts: Iterable[str]) -> str:
    return " → ".join(dict.fromkeys(texts))


def finding_text(finding: Finding) -> str:
    """`register-spills (warning) at line 60: …`."""
    where = f" at line {finding.location.outermost.line}" if finding.location else ""
    return f"{finding.rule} ({finding.severity}){where}: {finding.message}"


def outcome(region: DiffRegion) -> str:
    """What the change did to a region: `regressed`, `improved`, or `changed` at the same cost."""
    difference = region.spent.difference
    return "regressed" if difference > 0 else "improved" if difference < 0 else "changed"


def row_words(region: DiffRegion) -> str:
    """How many rows there are of each kind."""
    kinds = {kind: sum(row.kind == kind for row in region.rows) for kind in SIGNS}
    return (
        f"{kinds['same']} same up to register renaming, {kinds['operands']} with other "
        f"operands (~), {kinds['changed']} changed (|), {kinds['gone']} gone (<), "
        f"{kinds['new']} new (>)"
    )


def hunks(rows: Sequence[DiffRow], context: int) -> list[DiffRow | int]:
    """Changes with `context` rows around them; a number is a count of rows left out."""
    near = [False] * len(rows)
    for index, row in enumerate(rows):
        if row.kind != "same":
            for other in range(max(0, index - context), min(len(rows), index + context + 1)):
                near[other] = True
    pieces: list[DiffRow | int] = []
    left_out = 0
    for row, is_near in zip(rows, near, strict=True):
        if not is_near:
            left_out += 1
            continue
        if left_out:
            pieces.append(left_out)
            left_out = 0
        pieces.append(row)
    return [*pieces, left_out] if left_out else pieces


def conclusion(search: Found) -> str:
    """The answer of a search in a sentence."""
    if not search.first_worse:
        return f"{search.kpi.name} is not worse with Triton {search.last_good}"
    if search.undecided:
        maybe = ", ".join(search.undecided)
        return (
            f"{search.kpi.name} became worse after Triton {search.last_good}, by "
            f"{search.first_worse} at the latest; {maybe} could not be asked"
        )
    return f"{search.kpi.name} became worse with Triton {search.first_worse}"


__all__ = [
    "SIGNS",
    "NumberRow",
    "change",
    "conclusion",
    "direction",
    "failure_text",
    "figure_text",
    "finding_text",
    "hunks",
    "line_position",
    "moved_lines",
    "number_rows",
    "part_text",
    "pipe_words",
    "position",
    "row_words",
    "same_words",
    "shows",
    "signed_weight",
    "title",
    "weight",
]
