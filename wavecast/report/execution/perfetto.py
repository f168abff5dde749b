"""Recorded waves as a Chrome trace-event file, which Perfetto shows.

Format: "Trace Event Format" of the Chromium project; complete events (`ph` X), one process per
workgroup, one thread per wave. The axis counts instructions a wave executed and is not time: one
microsecond on it is one instruction. Waves that meet at a barrier continue together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from wavecast.compile.names import readable
from wavecast.emulate.trace.result import Stream, Trace
from wavecast.isa.waits import awaits
from wavecast.report.explain import source
from wavecast.version import __version__

AXIS = "1 µs on the axis is one instruction executed by the wave; it is not time"
_MOST_EVENTS = 500_000
"""Slices a file may hold; Perfetto becomes slow with more."""


def document(traces: Sequence[Trace]) -> dict[str, Any]:
    """The recorded waves of all launches, as plain values."""
    events: list[dict[str, Any]] = []
    cut = False
    number = 0
    for launch, trace in enumerate(traces):
        for workgroup, streams in groupby(trace.streams, key=lambda stream: stream.workgroup):
            number += 1
            kernel = readable(trace.program.name)
            name = f"launch {launch}: {kernel} {workgroup} (instructions, not time)"
            events.append(name_event("process_name", number, 0, name))
            cut = _workgroup(trace, list(streams), number, events) or cut
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"wavecast": __version__, "axis": AXIS, "complete": not cut},
    }


def dumps(traces: Sequence[Trace]) -> str:
    """The document as JSON text."""
    return json.dumps(document(traces), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class _Slice:
    """Instructions of a block executed `times` times in a row; `length` counts them all. With
    `barrier` the wave stops there."""

    block: int
    times: int
    length: int
    barrier: bool


def _workgroup(
    trace: Trace, streams: list[Stream], number: int, events: list[dict[str, Any]]
) -> bool:
    """Add a workgroup's waves; True where some were left out because there are too many."""
    names = [_name(trace, block) for block in range(len(trace.program.blocks))]
    stops = [_barriers(trace, block) for block in range(len(trace.program.blocks))]
    waves = []
    for stream in streams:
        events.append(name_event("thread_name", number, stream.wave + 1, f"wave {stream.wave}"))
        waves.append((stream.wave + 1, _slices(trace, stream, stops)))
    now = 0
    while waves:
        arrivals: list[tuple[int, Iterator[_Slice], int]] = []
        for thread, slices in waves:
            clock = now
            for piece in slices:
                if len(events) >= _MOST_EVENTS:
                    return True
                if piece.length:
                    events.append(_slice(names[piece.block], number, thread, clock, piece))
                clock += piece.length
                if piece.barrier:
                    arrivals.append((thread, slices, clock))
                    break
        now = max((clock for _, _, clock in arrivals), default=now)
        for thread, _, clock in arrivals:
            if clock < now:
                waiting = complete("barrier", "barrier", number, thread, clock, now - clock)
                events.append({**waiting, "args": {}})
        waves = [(thread, slices) for thread, slices, _ in arrivals]
    return False


def _slices(trace: Trace, stream: Stream, stops: list[list[int]]) -> Iterator[_Slice]:
    """The path of a wave; repetitions of a block without barriers are one slice."""
    for block, same in groupby(stream.blocks.tolist()):
        times = sum(1 for _ in same)
        span = trace.program.blocks[block]
        if not stops[block]:
            yield _Slice(block, times, times * (span.stop - span.start), barrier=False)
            continue
        for _ in range(times):
            start = span.start
            for stop in stops[block]:
                yield _Slice(block, 1, stop + 1 - start, barrier=True)
                start = stop + 1
            yield _Slice(block, 1, span.stop - start, barrier=False)


def _barriers(trace: Trace, block: int) -> list[int]:
    """Instructions of a block at which a wave stops until the others have come."""
    return [
        instruction.index
        for instruction in trace.program.block_instructions(block)
        if awaits(instruction.opcode)
    ]


def _name(trace: Trace, block: int) -> str:
    """The source line most of a block's instructions come from."""
    counts: dict[tuple[str, int], int] = {}
    for instruction in trace.program.block_instructions(block):
        if instruction.location is not None:
            where = instruction.location.outermost
            key = where.file, where.line
            counts[key] = counts.get(key, 0) + 1
    label = trace.program.blocks[block].label or f"block {block}"
    if not counts:
        return label
    file, line = max(counts, key=lambda key: counts[key])
    text = source.file_line(file, line).strip()
    return f"{line}: {text}" if text else f"line {line}"


def _slice(name: str, process: int, thread: int, start: int, piece: _Slice) -> dict[str, Any]:
    event = complete(name, "block", process, thread, start, piece.length)
    return {**event, "args": {"block": piece.block, "times": piece.times}}


def complete(
    name: str, kind: str, process: int, thread: int, start: float, length: float
) -> dict[str, Any]:
    """A complete event; start and length in microseconds of the axis."""
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": start,
        "dur": length,
        "pid": process,
        "tid": thread,
    }


def name_event(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    """A metadata event that names a process or a thread."""
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


__all__ = ["AXIS", "complete", "document", "dumps", "name_event"]
