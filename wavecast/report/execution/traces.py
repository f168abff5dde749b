"""What trace mode saw, as JSON, schema `wavecast.trace/1` (docs/trace.md), and by source line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wavecast import json_objects
from wavecast.documents.fidelity import KernelFidelityJson
from wavecast.documents.trace import (
    AccessCountsJson,
    BlockCountsJson,
    ClassCountsJson,
    LineCountsJson,
    RecordedWaveJson,
    TracedLaunchJson,
    TraceDocument,
)
from wavecast.emulate.trace.layout import per_lane
from wavecast.emulate.trace.result import MemoryCounts, Stream, Trace
from wavecast.isa.opcode import Space
from wavecast.isa.waits import awaits
from wavecast.json_schema import json_schema
from wavecast.report.kit.locations import call_site
from wavecast.version import __version__

_CACHED = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT})


@dataclass(slots=True)
class TracedLine:
    """What waves executed of one source line, at its call site in the kernel.

    `executions` are wave-instructions; `vector` those of them that run once per active lane, with
    their active lanes `lanes` and the executions with `partial` and `empty` masks. `memory` holds
    the line's accesses of vector memory and LDS.
    """

    file: str | None
    line: int | None
    executions: int = 0
    vector: int = 0
    lanes: int = 0
    partial: int = 0
    empty: int = 0
    memory: list[MemoryCounts] = field(default_factory=list)

    def lines_per_request(self, size: int) -> float | None:
        """Blocks of 32, 64 or 128 bytes of cached memory one request touches; None without any."""
        accesses = [m for m in self.memory if m.space in _CACHED and m.requests]
        requests = sum(m.requests for m in accesses)
        return sum(m.blocks(size) for m in accesses) / requests if requests else None

    def conflict_ways(self) -> float | None:
        """LDS passes over passes without conflicts; None without LDS accesses."""
        groups = sum(m.groups for m in self.memory)
        return sum(m.passes for m in self.memory) / groups if groups else None


def by_line(trace: Trace) -> list[TracedLine]:
    """Source lines, the most executed first; code without a line is the line None of None."""
    lines: dict[tuple[str | None, int | None], TracedLine] = {}
    counts = trace.instruction_counts.tolist()
    active, partial, empty = (a.tolist() for a in (trace.active_lanes, trace.partial, trace.empty))
    for instruction, executions in zip(trace.program.instructions, counts, strict=True):
        if not executions:
            continue
        where = instruction.location.outermost if instruction.location else None
        key = (where.file, where.line) if where is not None and where.line else (None, None)
        line = lines.setdefault(key, TracedLine(*key))
        line.executions += executions
        index = instruction.index
        if per_lane(instruction):
            line.vector += executions
            line.lanes += active[index]
            line.partial += partial[index]
            line.empty += empty[index]
        if index in trace.memory:
            line.memory.append(trace.memory[index])
    return sorted(lines.values(), key=lambda one: (-one.executions, one.file or "", one.line or 0))


def barriers(trace: Trace) -> int:
    """Barriers waves waited at."""
    counts = trace.instruction_counts.tolist()
    return sum(
        count
        for instruction, count in zip(trace.program.instructions, counts, strict=True)
        if awaits(instruction.opcode)
    )


def document(
    traces: Sequence[Trace], fidelity: list[KernelFidelityJson] | None = None
) -> dict[str, Any]:
    """The traces as plain dicts, lists, strings and numbers."""
    return json_objects.values(trace_document(traces, fidelity))


def trace_document(
    traces: Sequence[Trace], fidelity: list[KernelFidelityJson] | None = None
) -> TraceDocument:
    """The traces, schema `wavecast.trace/1`."""
    launches = [_launch(trace) for trace in traces]
    return TraceDocument(wavecast=__version__, launches=launches, fidelity=fidelity)


def dumps(traces: Sequence[Trace], fidelity: list[KernelFidelityJson] | None = None) -> str:
    """The document as JSON text."""
    return json_objects.dumps(document(traces, fidelity))


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of `document`, a fresh copy."""
    return json_schema(TraceDocument)


def _launch(trace: Trace) -> TracedLaunchJson:
    return TracedLaunchJson.of(
        trace,
        kernel=trace.program.name,
        arch=trace.target,
        barriers=barriers(trace),
        classes=_classes(trace),
        blocks=_blocks(trace),
        lines=[_line(line) for line in by_line(trace)],
        memory=[_memory(trace, counts) for counts in trace.memory.values()],
        streams=[_stream(stream) for stream in trace.streams],
    )


def _classes(trace: Trace) -> dict[str, ClassCountsJson]:
    lanes: dict[str, int] = {}
    for instruction, active in zip(
        trace.program.instructions, trace.active_lanes.tolist(), strict=True
    ):
        name = instruction.opcode.cost_class
        lanes[name] = lanes.get(name, 0) + active
    return {
        name: ClassCountsJson(executions=count, active_lanes=lanes[name])
        for name, count in trace.class_counts().items()
    }


def _blocks(trace: Trace) -> list[BlockCountsJson]:
    return [
        BlockCountsJson.of(
            block,
            first=block.start,
            instructions=block.stop - block.start,
            executions=count,
            taken=taken,
        )
        for block, count, taken in zip(
            trace.program.blocks, trace.block_counts.tolist(), trace.taken.tolist(), strict=True
        )
    ]


def _line(line: TracedLine) -> LineCountsJson:
    return LineCountsJson.of(line, active_lanes=line.lanes, conflict_ways=line.conflict_ways())


def _memory(trace: Trace, counts: MemoryCounts) -> AccessCountsJson:
    instruction = trace.program.instructions[counts.index]
    return AccessCountsJson.of(
        counts, text=instruction.decoded.text, location=call_site(instruction.location)
    )


def _stream(stream: Stream) -> RecordedWaveJson:
    return RecordedWaveJson.of(
        stream,
        accesses=len(stream.instructions),
        blocks=[[block, count] for block, count in runs(stream.blocks.tolist())],
    )


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Equal neighbours as (number, how many)."""
    pairs: list[tuple[int, int]] = []
    for number in numbers:
        if pairs and pairs[-1][0] == number:
            pairs[-1] = number, pairs[-1][1] + 1
        else:
            pairs.append((number, 1))
    return pairs


__all__ = ["TracedLine", "barriers", "by_line", "document", "dumps", "runs", "schema"]
