"""What trace mode saw, as JSON, schema `wavecast.trace/1` (docs/trace.md), and by source line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from wavecast.emulate.trace.layout import per_lane
from wavecast.emulate.trace.result import MemoryCounts, Stream, Trace
from wavecast.isa.instruction import SourceLocation
from wavecast.isa.opcode import Space
from wavecast.isa.waits import awaits
from wavecast.version import __version__

SCHEMA = "wavecast.trace/1"
_CACHED = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT})


@dataclass(slots=True)
class Line:
    """What waves executed of one source line, at its call site in the kernel.

    `executions` are wave-instructions; `vector` those of them that run once per active lane, with
    their active lanes `lanes` and the executions with `partial` and `empty` masks. `memory` holds
    the line's accesses of vector memory and LDS.
    """

    file: str
    line: int
    executions: int = 0
    vector: int = 0
    lanes: int = 0
    partial: int = 0
    empty: int = 0
    memory: list[MemoryCounts] = field(default_factory=list)

    def lines_per_request(self, size: int) -> float | None:
        """Blocks of 32, 64 or 128 bytes of cached memory one request touches; None without any."""
        found = [m for m in self.memory if m.space in _CACHED and m.requests]
        requests = sum(m.requests for m in found)
        return sum(m.blocks(size) for m in found) / requests if requests else None

    def conflict_ways(self) -> float | None:
        """LDS turns over turns without conflicts; None without LDS accesses."""
        groups = sum(m.groups for m in self.memory)
        return sum(m.passes for m in self.memory) / groups if groups else None


def by_line(trace: Trace) -> list[Line]:
    """Source lines, the most executed first; code without a line is line 0 of ""."""
    found: dict[tuple[str, int], Line] = {}
    counts = trace.instruction_counts.tolist()
    active, partial, empty = (a.tolist() for a in (trace.active_lanes, trace.partial, trace.empty))
    for instruction, executions in zip(trace.program.instructions, counts, strict=True):
        if not executions:
            continue
        where = instruction.location.outermost if instruction.location else None
        key = (where.file, where.line) if where is not None else ("", 0)
        line = found.setdefault(key, Line(*key))
        line.executions += executions
        index = instruction.index
        if per_lane(instruction):
            line.vector += executions
            line.lanes += active[index]
            line.partial += partial[index]
            line.empty += empty[index]
        if index in trace.memory:
            line.memory.append(trace.memory[index])
    return sorted(found.values(), key=lambda line: (-line.executions, line.file, line.line))


def barriers(trace: Trace) -> int:
    """Barriers waves waited at."""
    counts = trace.instruction_counts.tolist()
    return sum(
        count
        for instruction, count in zip(trace.program.instructions, counts, strict=True)
        if awaits(instruction.opcode)
    )


def document(traces: Sequence[Trace]) -> dict[str, Any]:
    """The traces as plain dicts, lists, strings and numbers."""
    return {
        "schema": SCHEMA,
        "wavecast": __version__,
        "launches": [_launch(trace) for trace in traces],
    }


def dumps(traces: Sequence[Trace]) -> str:
    """The document as JSON text."""
    return json.dumps(document(traces), ensure_ascii=False, allow_nan=False)


@cache
def _schema_text() -> str:
    return (resources.files("wavecast.report") / "schema" / "trace-1.json").read_text(
        encoding="utf-8"
    )


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of `document`, a fresh copy."""
    return json.loads(_schema_text())


def _launch(trace: Trace) -> dict[str, Any]:
    return {
        "kernel": trace.program.name,
        "arch": trace.target,
        "digest": trace.digest,
        "grid": list(trace.grid),
        "block": list(trace.block),
        "lanes": trace.lanes,
        "launches": trace.launches,
        "complete": trace.complete,
        "workgroups": trace.workgroups,
        "waves": trace.waves,
        "instructions": trace.instructions,
        "barriers": barriers(trace),
        "classes": _classes(trace),
        "blocks": _blocks(trace),
        "lines": [_line(line) for line in by_line(trace)],
        "memory": [_memory(trace, counts) for counts in trace.memory.values()],
        "streams": [_stream(stream) for stream in trace.streams],
    }


def _classes(trace: Trace) -> dict[str, dict[str, int]]:
    lanes: dict[str, int] = {}
    for instruction, active in zip(
        trace.program.instructions, trace.active_lanes.tolist(), strict=True
    ):
        name = instruction.opcode.cost_class
        lanes[name] = lanes.get(name, 0) + active
    return {
        name: {"executions": count, "active_lanes": lanes[name]}
        for name, count in trace.class_counts().items()
    }


def _blocks(trace: Trace) -> list[dict[str, Any]]:
    return [
        {
            "index": block.index,
            "label": block.label,
            "first": block.start,
            "instructions": block.stop - block.start,
            "executions": count,
            "taken": taken,
            "successors": list(block.successors),
        }
        for block, count, taken in zip(
            trace.program.blocks, trace.block_counts.tolist(), trace.taken.tolist(), strict=True
        )
    ]


def _line(line: Line) -> dict[str, Any]:
    return {
        "file": line.file,
        "line": line.line,
        "executions": line.executions,
        "vector": line.vector,
        "active_lanes": line.lanes,
        "partial": line.partial,
        "empty": line.empty,
        "conflict_ways": line.conflict_ways(),
    }


def _memory(trace: Trace, counts: MemoryCounts) -> dict[str, Any]:
    instruction = trace.program.instructions[counts.index]
    return {
        "index": counts.index,
        "text": instruction.decoded.text,
        "location": _location(instruction.location),
        "space": counts.space.value,
        "kind": counts.kind,
        "width": counts.width,
        "executions": counts.executions,
        "requests": counts.requests,
        "lanes": counts.lanes,
        "bytes": counts.bytes,
        "blocks_32": counts.blocks_32,
        "blocks_64": counts.blocks_64,
        "blocks_128": counts.blocks_128,
        "contiguous": counts.contiguous,
        "broadcast": counts.broadcast,
        "collisions": counts.collisions,
        "least_stride": counts.least_stride,
        "most_stride": counts.most_stride,
        "passes": counts.passes,
        "groups": counts.groups,
        "conflicted": counts.conflicted,
        "worst": counts.worst,
    }


def _stream(stream: Stream) -> dict[str, Any]:
    return {
        "workgroup": list(stream.workgroup),
        "wave": stream.wave,
        "complete": stream.complete,
        "accesses": len(stream.instructions),
        "blocks": [[block, count] for block, count in runs(stream.blocks.tolist())],
    }


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Equal neighbours as (number, how many)."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][0] == number:
            found[-1] = number, found[-1][1] + 1
        else:
            found.append((number, 1))
    return found


def _location(location: SourceLocation | None) -> dict[str, Any] | None:
    if location is None:
        return None
    outer = location.outermost
    return {"file": outer.file, "line": outer.line, "column": outer.column}


__all__ = ["Line", "barriers", "by_line", "document", "dumps", "runs", "schema"]
