"""The beginning of a simulated compute unit as a Chrome trace-event file, which Perfetto shows.

Format: "Trace Event Format" of the Chromium project; complete events (`ph` X), one process per
launch, one thread per wave slot of a SIMD. The axis is time at the predicted clock.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wavecast.compile.codeobject import CodeObject
from wavecast.isa.program import Program
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.report.execution.perfetto import complete, name_event
from wavecast.report.explain import source
from wavecast.version import __version__

EVENTS = 60_000
"""Instructions a timeline shows of each launch."""


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """One simulated launch, with the events of its unit."""

    code: CodeObject
    program: Program
    timing: LaunchTiming


def dumps(timelines: Sequence[Timeline]) -> str:
    """The file's text."""
    events: list[dict[str, Any]] = []
    for number, timeline in enumerate(timelines, 1):
        events += _launch(timeline, number)
    document = {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "wavecast": __version__,
            "axis": "time at the predicted clock",
            "shown": f"the first {EVENTS} instructions of one compute unit per launch",
        },
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _launch(timeline: Timeline, process: int) -> list[dict[str, Any]]:
    timing, instructions = timeline.timing, timeline.program.instructions
    device = timing.chip.device
    clock = f"time at {timing.clock / 1e9:.2f} GHz"
    title = f"{timeline.code.kernel} on {device.name}, one compute unit ({clock})"
    events = [name_event("process_name", process, 0, title)]
    micro = 1e6 / timing.clock
    lanes = sorted({(int(simd), int(slot)) for _, simd, slot, *_ in timing.unit.events.tolist()})
    thread = {lane: number for number, lane in enumerate(lanes, 1)}
    for (simd, slot), number in thread.items():
        events.append(name_event("thread_name", process, number, f"SIMD {simd}, wave slot {slot}"))
    for start, simd, slot, index, clocks in timing.unit.events.tolist():
        instruction = instructions[int(index)]
        event = complete(
            instruction.mnemonic,
            instruction.opcode.cost_class,
            process,
            thread[int(simd), int(slot)],
            start * micro,
            clocks * micro,
        )
        location = instruction.location
        arguments: dict[str, Any] = {"instruction": instruction.decoded.text, "clock": start}
        if location is not None:
            outer = location.outermost
            arguments["line"] = outer.line
            arguments["source"] = source.line_text(timeline.code, outer.file, outer.line).strip()
        events.append({**event, "args": arguments})
    return events


__all__ = ["EVENTS", "Timeline", "dumps"]
