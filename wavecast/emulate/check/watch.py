"""One launch in check mode: its shadow memory, and reports at its end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from wavecast.compile.codeobject import Launch
from wavecast.emulate import hostmemory
from wavecast.emulate.bounds import AccessBounds
from wavecast.emulate.check import log, named_barriers
from wavecast.emulate.check.clocks import records
from wavecast.emulate.check.clocks.atomicity import Atomicity
from wavecast.emulate.check.clocks.events import ClockLaunch
from wavecast.emulate.check.clocks.launch_clocks import Clocks
from wavecast.emulate.check.clocks.missing_order import RaceSide
from wavecast.emulate.check.clocks.release_memory import ReleaseMemory
from wavecast.emulate.check.code import CodeFacts
from wavecast.emulate.check.counters import WAVES, Progress
from wavecast.emulate.check.findings import LaunchFindings, Sources
from wavecast.emulate.check.formats.declared import format_reports
from wavecast.emulate.check.gpus.order import CheckedLaunch
from wavecast.emulate.check.intermediate import at_narrowed_divisions
from wavecast.emulate.check.lds.aside import ASIDE_WORDS
from wavecast.emulate.check.lds.records import READ_WORDS
from wavecast.emulate.check.lds.tags import TagMemory
from wavecast.emulate.check.log import Log
from wavecast.emulate.check.numbers.special import NumberMemory
from wavecast.emulate.check.pointers.owners import Owners
from wavecast.emulate.check.race_explanations import RaceExplanations
from wavecast.emulate.check.record_arrays import (
    guarded_slice,
    lasting_records,
    launch_records,
    memory_reserve,
)
from wavecast.emulate.check.record_filters import is_by_hand, is_of_compiler, without_consequences
from wavecast.emulate.check.registers.undefined import Undefined
from wavecast.emulate.check.session import CheckSession
from wavecast.emulate.check.shadow import DWORD_BYTES
from wavecast.emulate.check.updates.lost_updates import UPDATE_WORDS
from wavecast.emulate.check.updates.unreset import LaunchArrivals
from wavecast.emulate.check.workgroups.exits import Exits
from wavecast.emulate.check.workgroups.residency import starvation_report
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.lower import state
from wavecast.emulate.program_lines import at_program_lines
from wavecast.emulate.reports import Kind, Report
from wavecast.emulate.team import Team
from wavecast.emulate.tensors import element_at, tensors_of

_SIGNALLING = frozenset({Atomicity.AGENT, Atomicity.UPDATE, Atomicity.STORED})
ORDERED_QUANTUM: Final = 1 << 12
"""Instructions after which another workgroup may run, in launches that synchronise workgroups:
every poll of a loop with a barrier is an event of the clocks, of about 0.2 ms."""


class CheckWatch:
    """The memory of one launch's checks."""

    def __init__(
        self,
        session: CheckSession,
        code: CodeFacts,
        native: NativeKernel,
        launch: Launch,
        ranges: Sequence[tuple[int, int]],
        host_calls: tuple[int, int] | None = None,
    ) -> None:
        self.session, self.code, self.native = session, code, native
        self.launch, self.ranges = launch, ranges
        self.workgroups: np.ndarray | None = None
        self.quantum: int | None = None
        self.slice: int | None = None
        self.tensors = tensors_of(launch, native.descriptor, ranges)
        origins, kernel, written = code.provenance, native.kernel, session.written
        arguments = {n: names for n, names in code.sources.items() if n not in origins.loaded}
        self.bounds = AccessBounds(
            kernel, self.tensors, arguments, code.arrays, code.source_accesses
        )
        for followed_bytes in written.within(ranges[1:]):
            if not self.bounds.follow(kernel, followed_bytes):
                written.forget(followed_bytes.first)
        self.format_reports = session.stored_formats.reports(
            kernel.program, launch, code.format_uses, self.tensors
        )
        self.log = Log(len(kernel.program.instructions))
        lanes = native.layout.lanes
        waves = -(-math.prod(launch.block) // lanes)
        self.waves = waves
        self.scratch_bytes = waves * lanes * native.descriptor.scratch_bytes
        self.checked: CheckedLaunch | None = None
        self._kept: list[object] = []
        observed, stored = self._observable_ranges(), self.bounds.stored_ranges(kernel, ranges)
        if session.works is not None and session.works.active:
            stored = set(range(len(ranges)))
        of_kernel = {number for number, memory in enumerate(ranges) if memory != host_calls}
        observed, stored = observed & of_kernel, stored & of_kernel
        self.side = RaceSide(kernel.program, code.accesses)
        if session.gpus is not None:
            self.checked = session.gpus.begin(launch, math.prod(launch.grid), self.side)
            self.side = self.checked.side
            self.shadows = lasting_records(
                session.gpus, ranges, of_kernel, self.checked.gpu, observed, self._kept
            )
        else:
            atomics = self.bounds.accessed_ranges(code.accesses.atomic, ranges)
            parted = self.bounds.accessed_ranges(code.partial_stores, ranges)
            self.shadows = launch_records(ranges, stored, observed, atomics, parted)
        self.reserve = memory_reserve(kernel, self.shadows)
        self.table = np.zeros((len(ranges), records.TABLE_WORDS), np.uint64)
        for row, arrays in zip(self.table, self.shadows, strict=True):
            row[: len(arrays)] = [array.ctypes.data if array.size else 0 for array in arrays]
        tracked = {
            first: (first, end, arrays[records.RELEASES])
            for (first, end), arrays in zip(ranges, self.shadows, strict=True)
            if arrays[records.RELEASES].size
        }
        self.clocks = self._clocks(kernel.program.target, waves, list(tracked.values()))
        if tracked:
            self.quantum = ORDERED_QUANTUM
        if self.reserve is not None:
            self.quantum = self.slice = guarded_slice(self.reserve.size)
        self.residency = code.residency(launch, native.descriptor, session.device)
        self.residents = self.residency.workgroups if self.residency is not None else None
        self._crowded: list[Report] = []
        self._fault: Report | None = None
        self.owners = Owners(self.tensors, ranges)
        self.tag_words = origins.total
        self.numbers = (
            NumberMemory(code.special_numbers, kernel.program) if session.numbers else None
        )
        counters = self.bounds.accessed_ranges(
            {arrival.atomic for arrival in code.arrivals}, ranges
        )
        self.arrivals = LaunchArrivals(code.arrivals, counters & of_kernel, ranges)

    def _clocks(
        self, target: str, waves: int, tracked: Sequence[tuple[int, int, np.ndarray]]
    ) -> Clocks:
        checked, gpus = self.checked, self.session.gpus
        if checked is None or gpus is None:
            return Clocks(target, waves, ReleaseMemory(tracked))
        ended_launches = checked.known
        launch = ClockLaunch(
            checked.number,
            checked.gpu,
            checked.first,
            self.code.system_accesses,
            lambda other: bool(ended_launches[other]),
        )
        return Clocks(target, waves, gpus.memory.releases, launch, gpus, gpus.lock)

    def _observable_ranges(self) -> set[int]:
        """The numbers of the ranges whose releases another workgroup may observe."""
        accesses = self.code.accesses
        if not accesses.ordered:
            return set()
        observing = accesses.observing
        if self.session.gpus is not None:  # another launch may observe what this one releases
            observing |= {
                i for i, atomicity in accesses.atomicity.items() if atomicity in _SIGNALLING
            }
        return self.bounds.accessed_ranges(observing, self.ranges)

    def on_starvation(self, instruction: int) -> None:
        """Workgroups wait for others that cannot start."""
        assert self.residency is not None
        kernel = self.native.kernel
        self._crowded.append(starvation_report(kernel, self.launch, self.residency, instruction))

    def check_memory(self) -> None:
        if self.reserve is not None:
            self.reserve.check()

    def follow(self, team: Team) -> None:
        gpus = self.session.gpus
        if gpus is not None:
            kernel = self.native.kernel.program.name
            self.clocks.reactions = gpus.reactions.of_launch(kernel, team.let_others_react)

    def on_worker_end(self) -> None:
        self.clocks.on_worker_end()

    def attach(self, context: np.ndarray) -> None:
        self.log.attach(context)
        named = self.code.named_barriers
        progress = Progress(named_barriers.WORDS) if named else Progress()
        undefined, exits = Undefined(WAVES), Exits()
        progress.attach(context)
        exits.attach(context)
        self.clocks.attach(context, progress.words)
        undefined.attach(context)
        dwords = int(context[state.LDS_BYTES]) // 4 + 1
        writes = hostmemory.zeros(dwords, np.uint64)
        reads = hostmemory.zeros(READ_WORDS * dwords, np.uint64)
        aside = hostmemory.zeros(ASIDE_WORDS * dwords, np.uint64)
        context[log.LDS_WRITES], context[log.LDS_READS] = writes.ctypes.data, reads.ctypes.data
        context[log.LDS_ASIDE] = aside.ctypes.data
        parts = hostmemory.zeros(DWORD_BYTES * (dwords + 1), np.uint64)
        context[log.LDS_PARTS] = parts.ctypes.data
        loaders = hostmemory.zeros(dwords * WAVES if named else 0, np.uint64)
        context[log.LDS_LOADERS] = loaders.ctypes.data
        tags_of_lds = TagMemory(dwords, self.waves)
        tags_of_lds.attach(context)
        context[log.SHADOWS] = self.table.ctypes.data
        if self.checked is not None:
            context[log.FIRST_GROUP] = self.checked.first
            context[log.LAUNCH_BITS] = self.checked.number << records.LAUNCH.first
            context[log.KNOWN_LAUNCHES] = self.checked.known.ctypes.data
        context[log.CANARY] = self.session.canary
        context[log.BOUNDS] = self.bounds.rows.ctypes.data
        self.arrivals.attach(context)
        tags = hostmemory.zeros(max(self.tag_words * WAVES, 1), np.uint32)
        context[log.TAGS], context[log.OWNERS] = tags.ctypes.data, self.owners.table.ctypes.data
        scratch = hostmemory.zeros(self.scratch_bytes + 1, np.uint8)
        context[log.SCRATCH] = scratch.ctypes.data
        if self.numbers is not None:
            self._kept.append(self.numbers.attach(context))
        updates = hostmemory.zeros(UPDATE_WORDS, np.uint64)
        context[log.UPDATES] = updates.ctypes.data
        self._kept += [
            tags_of_lds,
            updates,
            progress,
            undefined,
            exits,
            writes,
            reads,
            aside,
            parts,
            loaders,
            tags,
            scratch,
        ]

    def on_fault(self, report: Report) -> None:
        self._fault = report

    def close(self, *, failed: bool) -> None:
        """Report what was seen, also when the launch broke off: it may say why."""
        session, code, gpus = self.session, self.code, self.session.gpus
        if gpus is not None and self.checked is not None:
            gpus.end(self.checked, self.clocks.acquired_clocks())
        if self.clocks.error is not None:
            raise self.clocks.error
        kernel = self.native.kernel
        number = self.checked.number if self.checked is not None else None
        entries = without_consequences(self.log.read(), self.bounds, number)
        upper = [e for e in entries if e.kind is Kind.ASSUMES_32_LANES]
        entries = [
            entry
            for entry in entries
            if entry not in upper
            and not is_of_compiler(entry, kernel.program, self.launch.code)
            and not is_by_hand(entry, kernel.descriptor, self.launch.code)
        ]
        if self.numbers is not None:
            entries = self.numbers.merge_by_line(entries)
        races = RaceExplanations(
            self.side, code.source_accesses, self.clocks.unordered, gpus, self.checked
        )
        address_sources = Sources(code.sources, code.arrays)
        several = (gpus.launch, gpus.memory.memory_label) if gpus is not None else (None, None)
        numbers = self.numbers.message if self.numbers is not None else None
        context = LaunchFindings(
            kernel, self.launch, self.owners, address_sources, self.checked, *several, numbers
        )
        reports = context.reports(entries, races.by_access(entries))
        reports = at_narrowed_divisions(reports, kernel.program, self.launch.code) + self._crowded
        where = partial(element_at, self.owners.tensors)
        if session.works is not None:
            reports += session.works.on_launch(kernel.program, self.ranges, self.shadows, where)
        reports += code.static
        reports += session.lane_sites.reports(kernel, self.launch, upper)
        reports += format_reports(kernel.program, self.tensors) + self.format_reports
        if not failed:
            session.stored_formats.note(self.launch, code.format_uses, self.tensors)
            reports += self.arrivals.reports(
                session.unreset, kernel.program, self.launch, self.shadows, where
            )
        reports += self._unreported_fault(reports)
        if reports:
            session.report([at_program_lines(report, self.launch) for report in reports])

    def _unreported_fault(self, reports: Sequence[Report]) -> list[Report]:
        """The access that ended the launch, of which no bounds are known."""
        there = {(one.kind, one.instruction) for one in reports}
        fault = self._fault
        unreported = fault is not None and (fault.kind, fault.instruction) not in there
        return [fault] if fault is not None and unreported else []


__all__ = ["CheckWatch"]
