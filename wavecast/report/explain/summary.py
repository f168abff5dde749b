"""What every view of a report picks: launches over devices, the main loop, findings in order.

No figure is computed here; the code chooses and orders what the floors below found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wavecast.analyze.weights import main_loop, weights
from wavecast.compile.names import readable

if TYPE_CHECKING:
    from wavecast.analyze.result import CodeAnalysis, LoopAnalysis
    from wavecast.compile.codeobject import Argument
    from wavecast.isa.instruction import SourceLocation
    from wavecast.pipeline.explain.result import ExplainReport, Explanation
    from wavecast.rules.finding import Finding

SEVERITIES = ("error", "warning", "note")
"""Gravest first."""


@dataclass(frozen=True, slots=True)
class KernelGroup:
    """One launch on every device it was explained for. `label` is unique within the report."""

    label: str
    kernel: str
    explanations: tuple[Explanation, ...]


def groups(report: ExplainReport) -> tuple[KernelGroup, ...]:
    """The report's explanations by launch, in order of first appearance.

    Launches are the same when kernel, configuration, constants and arguments agree; the grid may
    follow the device. A device's second launch that agrees in all of them starts a new group. Where
    no two devices share a launch of a kernel and each has as many, they are matched in order: a
    script that sizes its work by the device makes the same calls with other arguments.
    """
    counts: Counter[object] = Counter()
    by_launch: dict[object, list[Explanation]] = {}
    ordinal = _sized_by_device(report)
    for explanation in report.explanations:
        name = explanation.code.common_symbol
        key = name if name in ordinal else _launch_key(explanation)
        occurrence = (key, explanation.device.id)
        counts[occurrence] += 1
        by_launch.setdefault((key, counts[occurrence]), []).append(explanation)
    members = list(by_launch.values())
    labels = _labels(members)
    return tuple(
        KernelGroup(label, group[0].code.kernel, tuple(group))
        for label, group in zip(labels, members, strict=True)
    )


def _sized_by_device(report: ExplainReport) -> set[str]:
    """Kernels of which every device has as many launches, none of them one of another device."""
    launches: dict[str, dict[str, list[object]]] = {}
    for explanation in report.explanations:
        of_kernel = launches.setdefault(explanation.code.common_symbol, {})
        of_kernel.setdefault(explanation.device.id, []).append(_launch_key(explanation))
    return {
        kernel
        for kernel, by_device in launches.items()
        if len({len(keys) for keys in by_device.values()}) == 1
        and len({key for keys in by_device.values() for key in keys})
        == sum(len(keys) for keys in by_device.values())
    }


def _launch_key(explanation: Explanation) -> object:
    launch, code = explanation.launch, explanation.code
    constants = tuple((p.name, repr(p.constant)) for p in code.parameters if p.offset is None)
    if launch is None:
        return code.common_symbol, constants
    arguments = tuple(argument_text(a) for a in launch.arguments if a.kind != "pointer")
    return code.common_symbol, constants, launch.configuration, arguments


def _labels(members: Sequence[Sequence[Explanation]]) -> list[str]:
    labels = []
    for group in members:
        name = readable(group[0].code.kernel)
        tuned = {e.launch.configuration if e.launch else "" for e in group}
        configuration = tuned.pop() if len(tuned) == 1 else ""
        labels.append(f"{name} [{configuration}]" if configuration else name)
    total = Counter(labels)
    number: Counter[str] = Counter()
    unique = []
    for label in labels:
        number[label] += 1
        unique.append(f"{label} #{number[label]}" if total[label] > 1 else label)
    return unique


def argument_text(argument: Argument) -> str:
    """`x: bfloat16[4096, 4096]`, `n = 4096`."""
    value = argument_value(argument)
    if argument.kind in ("tensor", "descriptor", "pointer"):
        return f"{argument.name}: {value}"
    return f"{argument.name} = {value}"


def argument_value(argument: Argument) -> str:
    """`bfloat16[4096, 4096]` for a tensor, the value of a scalar."""
    if argument.kind in ("tensor", "descriptor"):
        return f"{argument.dtype}[{', '.join(str(extent) for extent in argument.shape)}]"
    if argument.kind == "pointer":
        return f"pointer to {argument.dtype}" if argument.dtype else "pointer"
    return str(argument.value)


def severity_counts(findings: Sequence[Finding]) -> dict[str, int]:
    """Number of findings by severity, all severities present."""
    counts = Counter(finding.severity for finding in findings)
    return {severity: counts[severity] for severity in SEVERITIES}


def sorted_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Errors, then by the time that their fixes save, by severity, by source line and by rule."""
    return sorted(
        findings,
        key=lambda f: (
            f.severity != "error",
            -(f.time_saved or 0.0),
            SEVERITIES.index(f.severity),
            f.location.outermost.line if f.location else 1 << 30,
            f.rule,
        ),
    )


def line_of(location: SourceLocation | None) -> int | None:
    """The line in the kernel's own body; None when unknown and for code the compiler made."""
    return (location.outermost.line or None) if location is not None else None


def lines_of(finding: Finding) -> list[int]:
    """The lines of the kernel's body that a finding is about, in order."""
    locations = finding.locations or (finding.location,)
    return sorted({line for location in locations if (line := line_of(location)) is not None})


def pipes_by_cost(loop: LoopAnalysis) -> list[tuple[str, float]]:
    """Pipes a loop uses with their cycles, the busiest first."""
    return sorted(
        ((pipe, value) for pipe, value in loop.cycles.items() if value > 0),
        key=lambda item: -item[1],
    )


def loops_by_weight(analysis: CodeAnalysis) -> list[LoopAnalysis]:
    """The main loop, then the others by the time they take without their inner loops."""
    main, self_weights = main_loop(analysis), weights(analysis).own
    return sorted(
        analysis.loops, key=lambda loop: (loop is not main, -self_weights[loop.index], loop.index)
    )


def equal_loops(analysis: CodeAnalysis) -> list[list[LoopAnalysis]]:
    """`loops_by_weight`, those that cost the same together: a compiler repeats an operation as a
    loop per descriptor ("waterfall")."""
    groups: list[list[LoopAnalysis]] = []
    for loop in loops_by_weight(analysis):
        same = (group for group in groups if _costs(group[0]) == _costs(loop))
        if (group := next(same, None)) is not None:
            group.append(loop)
        else:
            groups.append([loop])
    return groups


def _costs(loop: LoopAnalysis) -> LoopAnalysis:
    """A loop without what tells it from others that cost the same."""
    return replace(loop, index=0, location=None, blocks=0, parent=None, without_inner=None)


def latency_bound(loop: LoopAnalysis) -> bool:
    """True when the loop-carried chain is longer than the work of any pipe."""
    return loop.critical_path > max(loop.cycles.values(), default=0.0)
