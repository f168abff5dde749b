"""Trace mode: what a launch executes, touches and records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from wavecast.analyze.values.banks import phases
from wavecast.arch import resolve
from wavecast.compile.codeobject import Launch
from wavecast.compile.digest import digest
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower.observer import Observer, Observers
from wavecast.emulate.mode import LaunchWatch
from wavecast.emulate.trace import layout, selection
from wavecast.emulate.trace.flow_observer import FlowObserver
from wavecast.emulate.trace.layout import TracePlan
from wavecast.emulate.trace.logs import Logs, Reduce
from wavecast.emulate.trace.memory_flow import FlowMemory, FlowPlan
from wavecast.emulate.trace.observer import TraceObserver
from wavecast.emulate.trace.result import MemoryCounts, Stream, Trace
from wavecast.emulate.trace.selection import Workgroup
from wavecast.errors import UsageError
from wavecast.isa.opcode import Space
from wavecast.isa.program import Kernel, Program
from wavecast.isa.waits import is_named

_WIDTHS: Final = (1, 2, 4, 8, 12, 16)
"""Bytes per lane an LDS access may have."""
STREAM_BYTES: Final = 256 << 20
"""How much the recordings of one launch may take."""
STREAM_ENTRIES: Final = 1 << 62
"""How many blocks and accesses may be recorded of one wave."""


class TraceMode:
    """Counts executions of blocks and branches and active lanes; optionally more.

    `memory`: transactions and bank conflicts of every memory instruction. `workgroups`: the only
    ones to count (default: all), and with `only` the only ones to run; by number, x fastest, or by
    coordinates. `streams`: workgroups whose waves are recorded with every address, or how many,
    distributed over the grid; `limit_bytes` bounds the recordings of a launch, `limit_entries`
    those of a wave: the blocks it enters and its accesses together. `reduce` makes of the accesses
    of streams, some at a time and as they come, what `Trace.reduced` then holds instead. `traces`
    collects one `Trace` per launch, also of those that broke off, or with `together` one for all
    launches of the same code with the same grid: programs of very many launches need that.
    `values` follows values whose result documentation leaves open through memory
    (`memory_flow.py`).

    Raises UsageError for an empty choice, and at a launch for a workgroup outside the grid.
    """

    def __init__(
        self,
        *,
        memory: bool = True,
        workgroups: Sequence[Workgroup] | None = None,
        only: bool = False,
        streams: int | Sequence[Workgroup] = 0,
        limit_bytes: int = STREAM_BYTES,
        limit_entries: int = STREAM_ENTRIES,
        reduce: Reduce | None = None,
        together: bool = False,
        values: bool = False,
    ) -> None:
        if only and workgroups is None:
            raise UsageError("only=True needs the workgroups to run")
        if workgroups is not None and not workgroups:
            raise UsageError("workgroups names none: leave it out to count all")
        if isinstance(streams, int) and streams < 0:
            raise UsageError(f"streams must not be negative, not {streams}")
        self.memory = memory
        self.workgroups = workgroups
        self.only = only
        self.streams = streams
        self.limit_bytes = limit_bytes
        self.limit_entries = limit_entries
        self.reduce = reduce
        self.together = together
        self.values = values
        self._plans: dict[int, tuple[NativeKernel, TracePlan]] = {}
        self._flows: dict[int, tuple[Kernel, FlowPlan]] = {}
        self.traces: list[Trace] = []

    def key(self, target: str) -> str:
        banks = lds_banks(target)
        served = [
            (bank_phases.groups, bank_phases.banks)
            for width in _WIDTHS
            for write in (False, True)
            for lanes in (32, 64)
            for bank_phases in (phases(target, width, write, lanes, banks),)
        ]
        return digest("trace", self.memory, bool(self.streams), self.values, served)

    def plan(self, native: NativeKernel) -> TracePlan:
        """The plan of a kernel, made once."""
        entry = self._plans.get(id(native))
        if entry is None:
            entry = self._plans[id(native)] = native, TracePlan.of(native.kernel.program)
        return entry[1]

    def flow(self, kernel: Kernel) -> FlowPlan | None:
        """What is followed in the memory of a kernel, None for nothing. Raises as `FlowPlan.of`."""
        if not self.values:
            return None
        entry = self._flows.get(id(kernel))
        if entry is None:
            entry = self._flows[id(kernel)] = kernel, FlowPlan.of(kernel)
        return entry[1] if entry[1].regions else None

    def add(self, trace: Trace) -> None:
        """Collect the trace of a launch."""
        if self.together:
            for number, total in enumerate(self.traces):
                if total.same_launch(trace):
                    self.traces[number] = total.plus(trace)
                    return
        self.traces.append(trace)

    def observer(self, kernel: Kernel) -> Observer:
        """Raises Unsupported where waves would wait at named barriers, which no replay knows."""
        if self.streams and any(map(is_named, kernel.program.instructions)):
            raise Unsupported(f"{kernel.name}: samples of named barriers are not supported")
        counts = TraceObserver(
            kernel.program,
            memory=self.memory,
            streams=bool(self.streams),
            banks=lds_banks(kernel.program.target),
        )
        flow = self.flow(kernel)
        return counts if flow is None else Observers((counts, FlowObserver(flow)))

    def watch(
        self,
        native: NativeKernel,
        launch: Launch,
        ranges: Sequence[tuple[int, int]],
        host_calls: tuple[int, int] | None = None,
    ) -> TraceWatch:
        del host_calls
        return TraceWatch(self, native, launch, ranges)


def lds_banks(target: str) -> int:
    """Banks of the LDS of a target, where nothing better is known of an access."""
    return resolve(target).device.facts.integer("lds_banks")


class TraceWatch(LaunchWatch):
    """One launch being traced."""

    def __init__(
        self,
        mode: TraceMode,
        native: NativeKernel,
        launch: Launch,
        ranges: Sequence[tuple[int, int]],
    ) -> None:
        self.mode, self.native, self.launch = mode, native, launch
        self.ranges = tuple(ranges)
        self.plan = mode.plan(native)
        x, y, z = launch.block
        self.waves = -(-x * y * z // native.layout.lanes)
        self.counted = None
        if mode.workgroups is not None:
            self.counted = selection.numbers(launch.grid, mode.workgroups)
            self.workgroups = self.counted if mode.only else None
        if isinstance(mode.streams, int):
            self.sampled = selection.sample_workgroups(launch.grid, mode.streams, self.counted)
        else:
            self.sampled = selection.numbers(launch.grid, mode.streams)
        self.logs = Logs(native.layout.lanes, mode.limit_bytes, mode.reduce)
        recorded = len(self.sampled) * self.waves if mode.streams else 0
        self.room = np.full(recorded + 1, mode.limit_entries, np.int64)
        flow = mode.flow(native.kernel)
        scratch = self.waves * native.layout.lanes * native.descriptor.scratch_bytes
        self.flow = None if flow is None else FlowMemory(flow, ranges, scratch)
        self._counters: list[np.ndarray] = []
        self._discarded: list[np.ndarray] = []

    def attach(self, context: np.ndarray) -> None:
        counters = self.plan.counters()
        self._counters.append(counters)
        context[layout.COUNTERS] = counters.ctypes.data
        if self.counted is not None:
            self._discarded.append(self.plan.counters())
            context[layout.DISCARDED] = self._discarded[-1].ctypes.data
            context[layout.COUNTED] = self.counted.ctypes.data
            context[layout.COUNTED_LENGTH] = len(self.counted)
        context[layout.SAMPLED] = self.sampled.ctypes.data
        context[layout.SAMPLED_LENGTH] = len(self.sampled)
        context[layout.WAVES] = self.waves
        context[layout.ROOM] = self.room.ctypes.data
        if self.mode.streams:
            self.logs.attach(context)
        if self.flow is not None:
            self.flow.attach(context)

    def close(self, *, failed: bool) -> None:
        self.mode.add(self._trace(complete=not failed))

    def _trace(self, *, complete: bool) -> Trace:
        plan, program, lanes = self.plan, self.native.kernel.program, self.native.layout.lanes
        total = _merge_counters(plan, self._counters)
        self.logs.close()
        counts = total[: plan.blocks]
        of_instruction = np.repeat(counts, [b.stop - b.start for b in program.blocks])
        words = total[plan.region_word(0) : plan.memory_word(0)].reshape(-1, layout.REGION_WORDS)
        words = np.vstack([words, np.zeros((1, layout.REGION_WORDS), np.uint64)])[plan.region_of]
        empty = words[:, layout.EMPTY]
        full = np.where(plan.region_of < 0, 0, of_instruction * np.uint64(lanes))
        x, y, z = self.launch.grid
        groups = x * y * z if self.counted is None else len(self.counted)
        code = self.launch.code
        return Trace(
            kernel=self.native.kernel,
            digest=code.digest if code is not None else "",
            grid=self.launch.grid,
            block=self.launch.block,
            lanes=lanes,
            workgroups=groups,
            waves=groups * self.waves,
            block_counts=counts,
            taken=total[plan.blocks : 2 * plan.blocks],
            active_lanes=(full - words[:, layout.INACTIVE]).astype(np.uint64),
            partial=words[:, layout.PARTIAL] - empty,
            empty=empty,
            memory=_memory(program, plan, total, of_instruction) if self.mode.memory else {},
            streams=self._streams(program),
            ranges=self.ranges,
            reduced=tuple(self.logs.reduced),
            complete=complete,
            links=frozenset() if self.flow is None else self.flow.links(),
        )

    def _streams(self, program: Program) -> tuple[Stream, ...]:
        if not self.mode.streams:
            return ()
        blocks, accesses = self.logs.blocks(), self.logs.accesses()
        none = np.zeros((0, self.logs.words), np.uint64)
        streams = []
        for stream in sorted(blocks):
            group, wave = divmod(stream, self.waves)
            path, records = blocks[stream], accesses.get(stream, none)
            streams.append(
                Stream(
                    self.launch.workgroup(int(self.sampled[group])),
                    wave,
                    path,
                    records[:, 0].astype(np.uint32),
                    records[:, 1],
                    records[:, 2:],
                    self.logs.used <= self.logs.limit
                    and self.room[stream] > 0
                    and len(path) > 0
                    and not program.blocks[path[-1]].successors,
                )
            )
        return tuple(streams)


_MERGED = {
    layout.WORST: np.maximum,
    layout.LEAST_STRIDE: np.minimum,
    layout.MOST_STRIDE: np.maximum,
}


def _merge_counters(plan: TracePlan, threads: list[np.ndarray]) -> np.ndarray:
    """The counters of all host threads as one."""
    total = np.asarray(np.sum(threads, axis=0, dtype=np.uint64))
    start = plan.memory_word(0)
    table = total[start:].reshape(-1, layout.MEMORY_WORDS).view(np.int64)
    parts = [t[start:].reshape(-1, layout.MEMORY_WORDS).view(np.int64) for t in threads]
    for word, merge in _MERGED.items():
        table[:, word] = merge.reduce([part[:, word] for part in parts])
    return total


def _memory(
    program: Program, plan: TracePlan, total: np.ndarray, executions: np.ndarray
) -> dict[int, MemoryCounts]:
    by_index = {}
    for number, index in enumerate(plan.memory):
        start = plan.memory_word(number)
        words = total[start : start + layout.MEMORY_WORDS].view(np.int64).tolist()
        decoded = program.instructions[index].decoded
        assert decoded.memory is not None
        counts = MemoryCounts(
            index=index,
            space=decoded.memory.space,
            kind=decoded.memory.kind.value,
            width=decoded.memory.bytes // decoded.opcode.memory_form.offsets,
            executions=int(executions[index]),
            requests=words[layout.REQUESTS],
            lanes=words[layout.LANES],
            blocks_32=words[layout.BLOCKS_32],
            blocks_64=words[layout.BLOCKS_64],
            blocks_128=words[layout.BLOCKS_128],
            contiguous=words[layout.CONTIGUOUS],
            broadcast=words[layout.BROADCAST],
            collisions=words[layout.COLLISIONS],
            passes=words[layout.PASSES],
            groups=words[layout.GROUPS],
            conflicted=words[layout.CONFLICTED],
            worst=words[layout.WORST],
        )
        if words[layout.LEAST_STRIDE] != layout.NO_STRIDE and decoded.memory.space in _STRIDED:
            counts = replace(
                counts,
                least_stride=words[layout.LEAST_STRIDE],
                most_stride=words[layout.MOST_STRIDE],
            )
        by_index[index] = counts
    return by_index


_STRIDED = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT, Space.SCRATCH})

__all__ = ["STREAM_BYTES", "TraceMode", "TraceWatch", "lds_banks"]
