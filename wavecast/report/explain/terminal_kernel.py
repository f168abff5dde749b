"""The sections of one kernel on one device, as rich renderables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from wavecast.report.explain import source, summary, words
from wavecast.report.explain import terminal_prediction as time
from wavecast.report.explain.inventory import describe_kernel
from wavecast.report.explain.pressure import downsample
from wavecast.report.explain.terminal_findings import findings
from wavecast.report.explain.terminal_tables import loops, memory, source_lines
from wavecast.report.kit import units
from wavecast.report.kit.terminal import heading, safe

if TYPE_CHECKING:
    from wavecast.analyze.result import CodeAnalysis, Pressure
    from wavecast.compile.codeobject import Launch
    from wavecast.pipeline.explain.result import Explanation

_SPARKS = "▁▂▃▄▅▆▇█"
_LABEL_WIDTH = 10


def sections(explanation: Explanation, width: int, *, full: bool) -> Iterator[RenderableType]:
    """Everything below the headline, in reading order: what to do first, then why."""
    yield from findings(explanation, brief=False)
    yield heading("Launch and code")
    yield _facts(explanation, width, full=full)
    analysis = explanation.analysis
    prediction = explanation.predicted.prediction
    if prediction is not None:
        yield from time.sections(
            prediction, explanation.code, width, words.of(explanation.device), full=full
        )
    if analysis.loops:
        yield from loops(explanation, width, full=full)
    if analysis.memory:
        yield from memory(explanation, full=full)
    if full and analysis.lines:
        yield from source_lines(explanation)
    left_out_of = (*analysis.not_modelled, *(prediction.not_modelled if prediction else ()))
    if left_out_of:
        yield Text("")
        left_out = "; ".join(safe(item) for item in left_out_of)
        yield Text(f"not modelled: {left_out}", style="dim")


def _facts(explanation: Explanation, width: int, *, full: bool) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", width=_LABEL_WIDTH, no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in _fact_rows(explanation, full=full):
        table.add_row(label, value)
    pressure = explanation.analysis.pressure
    if pressure is not None and pressure.vgpr:
        table.add_row("pressure", _sparkline(pressure, width - _LABEL_WIDTH - 4))
    return table


def _fact_rows(explanation: Explanation, *, full: bool) -> Iterator[tuple[str, Text]]:
    analysis = explanation.analysis
    if explanation.code.origin == "elf" and (library := describe_kernel(explanation.code.kernel)):
        yield "library", Text(safe(library))
    if explanation.launch is not None:
        yield "launch", _launch(explanation)
        if lines := source.model_lines(explanation.launch.model_lines):
            yield "model", Text("\n".join(map(safe, lines)))
    yield "time", _time(explanation)
    yield "registers", _registers(explanation)
    say = words.of(explanation.device)
    label = "shared" if explanation.device.vendor == "nvidia" else "LDS"
    yield label, Text(f"{units.size(analysis.lds_bytes)} per {say.workgroup}")
    yield "occupancy", _occupancy(explanation)
    yield "mix", _mix(analysis.instructions, say)
    if analysis.matrix_kinds:
        kinds = (f"{count}× {safe(name)}" for name, count in analysis.matrix_kinds.items())
        yield "matrix", Text(", ".join(kinds))
    yield "roofline", _roofline(explanation)
    if full:
        options = (f"{safe(k)}={safe(str(v))}" for k, v in explanation.code.options.items())
        yield "compiler", Text(" ".join((safe(explanation.code.compiler), *options)))
        extra = ", ".join(f"{safe(k)} {safe(str(v))}" for k, v in analysis.extra.items())
        if extra:
            yield "also", Text(extra)


def _time(explanation: Explanation) -> Text:
    predicted_time = explanation.predicted
    if predicted_time.prediction is None:
        hint = f"; {safe(predicted_time.hint)}" if predicted_time.hint else ""
        return Text(f"not predicted: {safe(predicted_time.why_not)}{hint}", style="dim")
    return time.summary(predicted_time.prediction, words.of(explanation.device))


def _launch(explanation: Explanation) -> Text:
    launch = explanation.launch
    assert launch is not None
    parts = [
        f"{name} " + "×".join(str(n) for n in size) if all(size) else f"{name} not given (--{name})"
        for name, size in (("grid", launch.grid), ("block", launch.block))
    ]
    if launch.dynamic_lds:
        parts.append(f"{units.size(launch.dynamic_lds)} dynamic {words.of(explanation.device).lds}")
    if launch.count > 1:
        parts.append(f"seen {launch.count} times")
    arguments = ", ".join(safe(text) for text in _arguments(launch, explanation.analysis))
    text = Text(" · ".join(parts))
    return text.append(f"\n{arguments}", style="dim") if arguments else text


def _arguments(launch: Launch, analysis: CodeAnalysis) -> Iterator[str]:
    """The arguments; of a structure that points to tensors those that the code accesses, in place
    of its integers."""
    used = analysis.arguments_read | analysis.arguments_written | analysis.arguments_updated
    for argument in launch.arguments:
        members = [
            member
            for member in launch.members
            if member.name.startswith(f"{argument.name} (byte ")
            and (member.name in used or not analysis.arguments_complete)
        ]
        yield from map(summary.argument_text, members or [argument])


def _registers(explanation: Explanation) -> Text:
    registers, lane = explanation.analysis.registers, words.of(explanation.device).lane
    if explanation.device.vendor == "nvidia":
        parts = [f"{registers.vgpr} per thread"]
    else:
        parts = [f"{registers.vgpr} VGPR"]
        if registers.agpr:
            parts.append(f"{registers.agpr} AGPR")
        parts.append(f"{registers.sgpr} SGPR")
    text = Text(" + ".join(parts[:2]) if registers.agpr else parts[0])
    for part in parts[2 if registers.agpr else 1 :]:
        text.append(f" · {part}")
    if registers.spilled:
        noun = words.of(explanation.device).resource("vgpr")
        spilled = f"{units.amount(registers.spilled, noun)} spilled"
        text.append(" · ").append(spilled, style="bold red")
    else:
        text.append(" · no VGPR spills" if registers.spilled_sgpr else " · no spills")
    if registers.spilled_sgpr:
        text.append(f" · {units.amount(registers.spilled_sgpr, 'SGPRs')} spilled to VGPR lanes")
    if registers.scratch_bytes:
        text.append(" · ").append(
            f"{units.size(registers.scratch_bytes)} scratch per {lane}", "red"
        )
    return text


def _occupancy(explanation: Explanation) -> Text:
    occupancy, say = explanation.analysis.occupancy, words.of(explanation.device)
    if not occupancy.fits:
        text = Text(f"one {say.workgroup} does not fit the {say.unit}", style="bold red")
    else:
        waves = f"{occupancy.waves_per_simd} of {occupancy.max_waves_per_simd} {say.residency}"
        text = Text(f"{waves} · {units.plural(occupancy.workgroups, say.workgroup)} per {say.unit}")
    wave_limits = words.limits(explanation)
    limits = ", ".join(f"{say.resource(name)} {waves}" for name, waves in wave_limits)
    if limits:
        text.append(f"\neach alone allows: {limits}", style="dim")
    step = words.next_step(explanation)
    return text.append(f"\nnext: {step}", style="green") if step else text


def _mix(instructions: Mapping[str, int], say: words.Words) -> Text:
    total = sum(instructions.values())
    text = Text(f"{units.count(total)} instructions: ")
    ordered = sorted(instructions.items(), key=lambda item: -item[1])
    for position, (name, count) in enumerate(ordered):
        text.append(", " if position else "").append(
            f"{say.instruction_class(name)} {units.count(count)}"
        )
        text.append(f" ({units.percent(count, total)})", style="dim")
    return text


def _roofline(explanation: Explanation) -> Text:
    roofline = explanation.roofline
    work = roofline.work
    unit = units.operations(work.flops or ())
    flops = f"unknown {unit}s" if work.flops is None else units.si(sum(work.flops.values()), unit)
    most = "at most " if work.bytes_at_most else ""
    parts = [flops, "unknown bytes" if work.bytes is None else most + units.si(work.bytes, "B")]
    text = Text(" over ".join(parts))
    if roofline.intensity is not None:
        text.append(f" = {units.count(round(roofline.intensity, 2))} {unit}/B")
    if roofline.ridge is not None:
        text.append(f" (ridge {units.count(round(roofline.ridge, 1))})", style="dim")
    if roofline.floor_seconds is not None:
        text.append(f" · {roofline.bound}-bound · floor {units.seconds(roofline.floor_seconds)}")
    if roofline.sustained_seconds is not None:
        text.append(f", {units.seconds(roofline.sustained_seconds)} at sustained rates")
    if roofline.note:
        text.append(f"\n{safe(roofline.note)}", style="dim")
    if work.bytes_at_most:
        text.append(f"\nbytes {safe(work.bytes_source)}", style="dim")
    return text


def _sparkline(pressure: Pressure, width: int) -> Text:
    points = downsample(pressure, max(16, min(width, 120)))
    values = [vgpr + agpr for _, vgpr, agpr, _ in points]
    top = max(max(values), 1)
    text = Text()
    for (index, *_), value in zip(points, values, strict=True):
        spark = _SPARKS[min(7, value * 8 // (top + 1))]
        text.append(spark, style="bold red" if index == pressure.peak_index else "")
    at = f" at {words.where(pressure.peak_location)}" if pressure.peak_location else ""
    text.append(f"\npeak {pressure.peak_vgpr} VGPRs live{at}, instruction {pressure.peak_index}")
    return text
