"""What every view of a report says: grouping by launch, the main loop, a sentence in plain words.

No figure is computed here; the code chooses, orders and words what the floors below found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wavecast.report import units

if TYPE_CHECKING:
    from wavecast.analyze.result import CodeAnalysis, LoopAnalysis, NextStep, Occupancy
    from wavecast.arch import Device
    from wavecast.compile.codeobject import Argument
    from wavecast.isa.instruction import SourceLocation
    from wavecast.pipeline.result import Explanation, Report
    from wavecast.rules.finding import Finding

SEVERITIES = ("error", "warning", "note")
"""Gravest first."""

PIPE_LABELS = {
    "matrix": "matrix",
    "valu": "VALU",
    "trans": "trans",
    "salu": "SALU",
    "smem": "SMEM",
    "lds": "LDS",
    "vmem": "VMEM",
    "branch": "branch",
    "issue": "issue",
}
_RESOURCES = {
    "vgpr": "VGPRs",
    "agpr": "AGPRs",
    "sgpr": "SGPRs",
    "registers": "registers",
    "lds": "LDS",
    "waves": "wave slots",
    "workgroups": "workgroup slots",
    "workgroup": "workgroup size",
    "barriers": "barriers",
}
_VENDOR = re.compile(r"^(AMD|NVIDIA)\s+(Instinct\s+|Radeon\s+|Ryzen\s+)?")
UNKNOWN_TRIPS = 32
"""Weight of a loop level whose trip count is unknown, to order loops only."""


@dataclass(frozen=True, slots=True)
class KernelGroup:
    """One launch on every device it was explained for. `label` is unique within the report."""

    label: str
    kernel: str
    explanations: tuple[Explanation, ...]


def groups(report: Report) -> tuple[KernelGroup, ...]:
    """The report's explanations by launch, in order of first appearance.

    Launches are the same when kernel, configuration, constants and arguments agree; the grid may
    follow the device. A device's second launch that agrees in all of them starts a new group.
    """
    seen: Counter[object] = Counter()
    found: dict[object, list[Explanation]] = {}
    for explanation in report.explanations:
        key = _launch_key(explanation)
        occurrence = (key, explanation.device.id)
        seen[occurrence] += 1
        found.setdefault((key, seen[occurrence]), []).append(explanation)
    members = list(found.values())
    labels = _labels([group[0] for group in members])
    return tuple(
        KernelGroup(label, group[0].code.kernel, tuple(group))
        for label, group in zip(labels, members, strict=True)
    )


def _launch_key(explanation: Explanation) -> object:
    launch, code = explanation.launch, explanation.code
    constants = tuple((p.name, repr(p.constant)) for p in code.parameters if p.offset is None)
    if launch is None:
        return code.kernel, constants
    arguments = tuple(argument_text(a) for a in launch.arguments if a.kind != "pointer")
    return code.kernel, constants, launch.configuration, arguments


def _labels(firsts: Sequence[Explanation]) -> list[str]:
    names = [e.code.kernel for e in firsts]
    labels = []
    for name, explanation in zip(names, firsts, strict=True):
        configuration = explanation.launch.configuration if explanation.launch else ""
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
    if argument.shape or argument.dtype:
        shape = ", ".join(str(extent) for extent in argument.shape)
        return f"{argument.name}: {argument.dtype}[{shape}]"
    return f"{argument.name} = {argument.value}"


def short_name(device: Device) -> str:
    """The device's marketing name without the vendor: `MI300X`."""
    return _VENDOR.sub("", device.name)


def resource_label(resource: str) -> str:
    """A limiting resource in words; names without a wording stand as they are."""
    names = [_RESOURCES.get(part.strip(), part.strip()) for part in resource.split(",")]
    return " and ".join(names) if len(names) < 3 else ", ".join(names)


def severity_counts(findings: Sequence[Finding]) -> dict[str, int]:
    """Number of findings by severity, all severities present."""
    counts = Counter(finding.severity for finding in findings)
    return {severity: counts[severity] for severity in SEVERITIES}


def sorted_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Gravest first, then by source line, then by rule."""
    return sorted(
        findings,
        key=lambda f: (
            SEVERITIES.index(f.severity),
            f.location.outermost.line if f.location else 1 << 30,
            f.rule,
        ),
    )


def line_of(location: SourceLocation | None) -> int | None:
    """The line in the kernel's own body, None when unknown."""
    return location.outermost.line if location is not None else None


def where(location: SourceLocation | None) -> str:
    """`line 14`, or `line 14 (via standard.py:290)` for code inlined from elsewhere."""
    if location is None:
        return "an unknown line"
    outer = location.outermost
    if outer is location:
        return f"line {outer.line}"
    file = location.file.rsplit("/", 1)[-1]
    return f"line {outer.line} (via {file}:{location.line})"


def pipes_by_cost(loop: LoopAnalysis) -> list[tuple[str, float]]:
    """Pipes a loop uses with their cycles, the busiest first."""
    return sorted(
        ((pipe, value) for pipe, value in loop.cycles.items() if value > 0),
        key=lambda item: -item[1],
    )


def loops_by_weight(analysis: CodeAnalysis) -> list[LoopAnalysis]:
    """Loops with the one most time goes to first.

    The weight is the limiting pipe's cycles times the trips, where an unknown trip count and
    every enclosing loop count the same, so that nesting decides. Loops whose cycles already hold
    their inner loops' come last among equals.
    """

    def weight(loop: LoopAnalysis) -> float:
        cycles = max([*loop.cycles.values(), loop.critical_path, 0.0])
        trips = UNKNOWN_TRIPS if loop.trip_count is None else loop.trip_count
        return cycles * trips * UNKNOWN_TRIPS ** (loop.depth - 1)

    return sorted(analysis.loops, key=lambda loop: (loop.includes_inner, -weight(loop), loop.index))


def main_loop(analysis: CodeAnalysis) -> LoopAnalysis | None:
    """The loop most time goes to, None for a kernel without loops."""
    loops = loops_by_weight(analysis)
    return loops[0] if loops else None


def latency_bound(loop: LoopAnalysis) -> bool:
    """True when the loop-carried chain is longer than the work of any pipe."""
    return loop.critical_path > max(loop.cycles.values(), default=0.0)


def headline(explanation: Explanation) -> str:
    """The most important things about one kernel on one device, in plain words."""
    device, analysis = explanation.device, explanation.analysis
    parts = [*_blockers(explanation), _occupancy_words(analysis)]
    loop = main_loop(analysis)
    if loop is not None:
        parts.append(_loop_words(loop))
    parts.append(_bound_words(explanation))
    sentences = ". ".join(part[:1].upper() + part[1:] for part in parts if part)
    return f"{device.target} ({short_name(device)}): {sentences}."


def _blockers(explanation: Explanation) -> list[str]:
    analysis = explanation.analysis
    words = []
    if not analysis.occupancy.fits:
        limiter = resource_label(analysis.occupancy.limiter)
        words.append(f"cannot launch: one workgroup does not fit a compute unit ({limiter})")
    if analysis.registers.spilled:
        spilled = units.plural(analysis.registers.spilled, "register")
        words.append(f"spills {spilled} to scratch memory")
    return words


def _occupancy_words(analysis: CodeAnalysis) -> str:
    occupancy, registers = analysis.occupancy, analysis.registers
    if not occupancy.fits:
        return ""
    waves = f"{occupancy.waves_per_simd} of {occupancy.max_waves_per_simd} waves/SIMD"
    if occupancy.waves_per_simd >= occupancy.max_waves_per_simd:
        return f"{waves}, the most there can be"
    has = {"vgpr": registers.vgpr + registers.agpr, "sgpr": registers.sgpr}
    has["registers"] = registers.vgpr
    detail = []
    first = occupancy.limiter.split(",")[0].strip()
    if first in has:
        detail.append(f"{has[first]:,}")
    elif first == "lds":
        detail.append(units.size(analysis.lds_bytes))
    step = next_step(occupancy)
    if step:
        detail.append(step)
    inside = f" ({'; '.join(detail)})" if detail else ""
    return f"{waves}, limited by {resource_label(occupancy.limiter)}{inside}"


def next_step(occupancy: Occupancy) -> str:
    """`14 VGPRs fewer → 3 waves/SIMD`, "" at the top."""
    step = occupancy.next
    if step is None:
        return ""
    needs = " and ".join(_need(part) for part in (step, *step.also))
    return f"{needs} → {step.waves_per_simd} waves/SIMD"


def _need(step: NextStep) -> str:
    if step.resource == "lds":
        return f"{units.size(step.delta)} less LDS"
    label = resource_label(step.resource)
    return (
        f"{units.count(step.delta)} {label.removesuffix('s') if step.delta == 1 else label} fewer"
    )


def _loop_words(loop: LoopAnalysis) -> str:
    at = f" at {where(loop.location)}" if loop.location else ""
    pipes = pipes_by_cost(loop)
    if not pipes:
        return f"main loop{at} has no modelled cost"
    (pipe, most), rest = pipes[0], pipes[1:3]
    label = PIPE_LABELS.get(pipe, pipe)
    others = ", ".join(f"{PIPE_LABELS.get(p, p)} {units.cycles(c)}" for p, c in rest)
    then = f", then {others}" if others else ""
    if latency_bound(loop):
        chain = units.cycles(loop.critical_path)
        return (
            f"main loop{at} waits on its own dependency chain: {chain} cycles per iteration, "
            f"the busiest pipe ({label}) needs {units.cycles(most)}"
        )
    return f"main loop{at}: {label} pipe binds with {units.cycles(most)} cycles/iteration{then}"


def _bound_words(explanation: Explanation) -> str:
    roofline = explanation.roofline
    if roofline.floor_seconds is None or roofline.bound == "unknown":
        return ""
    floor = units.seconds(roofline.floor_seconds)
    words = f"{roofline.bound}-bound, floor {floor}"
    if roofline.sustained_seconds is not None:
        words += f" ({units.seconds(roofline.sustained_seconds)} at sustained rates)"
    return words


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """Memory instructions alike in line, argument, width and pattern."""

    line: int | None
    argument: str
    space: str
    kind: str
    bytes_per_lane: int
    pattern: str
    stride: int | None
    count: int
    lines: int | None
    transactions_ideal: int | None
    conflict_ways: float | None
    in_loop: bool
    indices: tuple[int, ...]


def memory_groups(analysis: CodeAnalysis) -> list[MemoryGroup]:
    """The kernel's memory instructions, grouped; those in loops first, then by line."""
    found: dict[tuple[object, ...], list[int]] = {}
    for position, access in enumerate(analysis.memory):
        key = (
            access.loop is None,
            line_of(access.location),
            access.space,
            access.kind,
            access.argument,
            access.bytes_per_lane,
            access.pattern,
            access.stride,
            access.lines,
            access.transactions_ideal,
            access.conflict_ways,
        )
        found.setdefault(key, []).append(position)
    result = []
    for positions in found.values():
        first = analysis.memory[positions[0]]
        result.append(
            MemoryGroup(
                line=line_of(first.location),
                argument=first.argument,
                space=first.space,
                kind=first.kind,
                bytes_per_lane=first.bytes_per_lane,
                pattern=first.pattern,
                stride=first.stride,
                count=len(positions),
                lines=first.lines,
                transactions_ideal=first.transactions_ideal,
                conflict_ways=first.conflict_ways,
                in_loop=first.loop is not None,
                indices=tuple(analysis.memory[p].index for p in positions),
            )
        )
    unknown_last = 1 << 30
    return sorted(
        result,
        key=lambda g: (
            not g.in_loop,
            unknown_last if g.line is None else g.line,
            g.space,
            g.kind,
            g.argument,
            -g.bytes_per_lane,
        ),
    )


def access_quality(group: MemoryGroup) -> str:
    """What a full wave pays: `4 lines`, `64 lines, ideal 8`, `2-way conflict`, "" when unknown."""
    if group.conflict_ways is not None:
        if group.conflict_ways <= 1:
            return "no conflict"
        return f"{units.count(group.conflict_ways)}-way conflict"
    if group.lines is None:
        return ""
    lines = units.plural(group.lines, "line")
    if group.transactions_ideal is None or group.lines <= group.transactions_ideal:
        return lines
    return f"{lines}, ideal {group.transactions_ideal}"


def wasteful(group: MemoryGroup) -> bool:
    """Whether a wave pays more than it needs."""
    if group.conflict_ways is not None and group.conflict_ways > 1:
        return True
    if group.lines is None or group.transactions_ideal is None:
        return False
    return group.lines > group.transactions_ideal
