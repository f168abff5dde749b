"""Check mode: observers for the code, shadow memory for the launch, reports at its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

import numpy as np

from wavecast import limits
from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.source_accesses import SourceAccess
from wavecast.emulate import hostmemory
from wavecast.emulate.bounds import AccessBounds, arrays_of, source_accesses, sources
from wavecast.emulate.check import log
from wavecast.emulate.check.clocks import records
from wavecast.emulate.check.clocks.atomicity import ATOMIC, Atomicity, ProgramAtomicity, accesses
from wavecast.emulate.check.clocks.events import ClockLaunch
from wavecast.emulate.check.clocks.launch_clocks import Clocks
from wavecast.emulate.check.clocks.missing_order import (
    MIXED,
    VOLATILE,
    Lack,
    RaceSide,
    Unordered,
    explanation,
)
from wavecast.emulate.check.clocks.release_memory import ReleaseMemory
from wavecast.emulate.check.counters import WAVES, Counters, Progress
from wavecast.emulate.check.findings import LaunchFindings, Sources
from wavecast.emulate.check.formats.declared import format_reports
from wavecast.emulate.check.formats.stored import StoredFormats
from wavecast.emulate.check.formats.uses import FormatUse, format_uses
from wavecast.emulate.check.gpus.order import CheckedLaunch, GpuOrder
from wavecast.emulate.check.intermediate import intermediate_reports, narrowed_divisions
from wavecast.emulate.check.lanes.beyond_wave import BeyondWaveChecks
from wavecast.emulate.check.lanes.lane_halves import LaneSites, UpperLaneChecks
from wavecast.emulate.check.lds.aside import ASIDE_WORDS
from wavecast.emulate.check.lds.records import READ_WORDS
from wavecast.emulate.check.log import CheckRecord, Log
from wavecast.emulate.check.memory import MemoryChecks
from wavecast.emulate.check.numbers.divisions import DivisionChecks
from wavecast.emulate.check.numbers.special import NumberMemory, SpecialNumbers
from wavecast.emulate.check.pointers.alignment import AlignmentChecks
from wavecast.emulate.check.pointers.owners import Owners
from wavecast.emulate.check.pointers.pointer_tags import PointerTags
from wavecast.emulate.check.pointers.provenance import Provenance, provenance
from wavecast.emulate.check.pointers.reach import ReachChecks
from wavecast.emulate.check.registers.inactive import ExchangeChecks, exchanges
from wavecast.emulate.check.registers.undefined import RegisterChecks, Undefined
from wavecast.emulate.check.scratch_shadow import ScratchChecks
from wavecast.emulate.check.static import static_reports
from wavecast.emulate.check.updates.arrivals import Arrival, ArrivalChecks, arrivals
from wavecast.emulate.check.updates.lost_updates import UPDATE_WORDS, LostUpdates
from wavecast.emulate.check.updates.unreset import LaunchArrivals, UnresetCounters
from wavecast.emulate.check.workgroups.exits import ExitChecks, Exits
from wavecast.emulate.check.workgroups.residency import residency, starvation_report
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import state
from wavecast.emulate.lower.observer import Observer, Observers
from wavecast.emulate.reports import Kind, Report
from wavecast.emulate.tensors import AddressInterval, element_at, tensors_of
from wavecast.emulate.written_bytes import WrittenBytes, innermost
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import OpcodeFlag, Space
from wavecast.isa.program import Kernel, Program
from wavecast.isa.scopes import is_system

_LONGEST = 1 << 16
"""Instructions a record's field can name."""


_SIGNALLING = frozenset({Atomicity.AGENT, Atomicity.UPDATE, Atomicity.STORED})
_OF_MEMORY = frozenset(
    {
        *(Kind.GLOBAL_RACE, Kind.WORKGROUP_RACE, Kind.REPLICATED_READ, Kind.SAME_VALUE),
        Kind.UNINITIALISED_GLOBAL,
    }
)


class ProgramWorks(Protocol):
    """The works of a program with streams. `active`: they need records of all memory."""

    @property
    def active(self) -> bool: ...

    def on_launch(
        self,
        program: Program,
        ranges: Sequence[AddressInterval],
        shadows: Sequence[tuple[np.ndarray, ...]],
        name_of: Callable[[int], str],
    ) -> list[Report]:
        """A launch has ended, with records (`records.py`) by range: what races with it."""
        ...


class CheckMode:
    """Finds races, missing waits, uninitialised reads and misused barriers.

    `found` is called with the reports of every launch that has any. `canary` is the 64-bit pattern
    that fills memory which was allocated and not written, 0 where nothing is filled. `numbers`
    adds the first NaN and the first infinity, which a kernel may make on purpose. `written` is the
    memory whose bytes are followed one by one, by default that of the session. With `gpus`,
    launches of several GPUs run at once, and are compared with each other. `device` is the GPU that
    holds the workgroups, by default the usual one of the code's target.
    """

    def __init__(
        self,
        report: Callable[[list[Report]], None],
        canary: int = 0,
        *,
        numbers: bool = False,
        written: WrittenBytes | None = None,
        gpus: GpuOrder | None = None,
        device: Device | None = None,
    ) -> None:
        self.found = report
        self.gpus = gpus
        self.device = device
        self.works: ProgramWorks | None = None
        """What compares launches with other works, of a HIP program."""
        self.followed = written
        self.canary = canary
        self.numbers = numbers
        self._sources: dict[str, dict[int, tuple[str, ...]]] = {}
        self._arrays: dict[str, dict[int, tuple[AddressInterval, ...]]] = {}
        self._called: dict[str, dict[int, SourceAccess]] = {}
        self._static: dict[str, list[Report]] = {}
        self._accesses: dict[str, ProgramAtomicity] = {}
        self._provenance: dict[str, Provenance] = {}
        self.lane_sites = LaneSites()
        self.stored_formats = StoredFormats()
        self.unreset = UnresetCounters()
        self._arrivals: dict[str, list[Arrival]] = {}
        self._format_uses: dict[str, list[FormatUse]] = {}
        self._special: dict[str, SpecialNumbers] = {}

    @property
    def written(self) -> WrittenBytes:
        """The memory whose bytes are followed: that of the session around a launch by default."""
        written = innermost() if self.followed is None else self.followed
        return WrittenBytes() if written is None else written

    def key(self, target: str) -> str:
        del target
        several = f"+gpus{self.gpus.count}" if self.gpus is not None else ""
        return f"check{several}{'+numbers' if self.numbers else ''}"

    def observer(self, kernel: Kernel) -> Observer:
        """Raises Unsupported for a program too long for the records."""
        if len(kernel.program.instructions) >= _LONGEST:
            raise Unsupported(f"{kernel.name}: checks of more than {_LONGEST} instructions")
        counters = Counters(kernel)
        atomicity, peers = (
            self._accesses_of(kernel),
            self.gpus.count - 1 if self.gpus is not None else 0,
        )
        memory = MemoryChecks(counters, atomicity, peers)
        origins = provenance(kernel)
        checks: tuple[Observer, ...] = (
            counters, ReachChecks(origins.accesses), memory, RegisterChecks(kernel),
            ExitChecks(), DivisionChecks(kernel.program),
            BeyondWaveChecks(kernel.program), AlignmentChecks(), ScratchChecks(kernel),
            UpperLaneChecks(kernel), LostUpdates(kernel.program),
        )  # fmt: skip
        if exchanges(kernel.program):
            checks = (*checks, ExchangeChecks(kernel))
        if origins.accesses:
            checks = (*checks, PointerTags(kernel, origins))
        if self.gpus is None and (compared := arrivals(kernel.program)):
            checks = (*checks, ArrivalChecks(compared))
        if self.numbers:
            checks = (*checks, *SpecialNumbers.of(kernel.program).observers())
        return Observers(checks)

    def sources(self, kernel: Kernel, code: CodeObject) -> dict[int, tuple[str, ...]]:
        """The pointer arguments addresses come from."""
        arguments = self._sources.get(code.digest)
        if arguments is None:
            arguments = self._sources[code.digest] = sources(kernel, code)
        return arguments

    def arrays(self, kernel: Kernel, code: CodeObject) -> dict[int, tuple[AddressInterval, ...]]:
        """The arrays of LDS and scratch that addresses come from."""
        intervals = self._arrays.get(code.digest)
        if intervals is None:
            intervals = self._arrays[code.digest] = arrays_of(kernel, code)
        return intervals

    def called(self, kernel: Kernel, code: CodeObject) -> dict[int, SourceAccess]:
        """What the source calls accesses."""
        source_kinds = self._called.get(code.digest)
        if source_kinds is None:
            source_kinds = self._called[code.digest] = source_accesses(kernel, code)
        return source_kinds

    def format_uses(self, kernel: Kernel, code: CodeObject) -> list[FormatUse]:
        """The arguments that are read or stored as 8-bit floats."""
        uses = self._format_uses.get(code.digest)
        if uses is None:
            uses = format_uses(kernel, code, self.sources(kernel, code))
            self._format_uses[code.digest] = uses
        return uses

    def static(self, kernel: Kernel, code: CodeObject) -> list[Report]:
        """What is wrong with the code itself: a report of every launch of it."""
        reports = self._static.get(code.digest)
        if reports is None:
            reports = static_reports(kernel) + intermediate_reports(code)
            self._static[code.digest] = reports
        return reports

    def accesses(self, kernel: Kernel, code: CodeObject) -> ProgramAtomicity:
        """How atomic the program's accesses are."""
        atomicity = self._accesses.get(code.digest)
        if atomicity is None:
            atomicity = self._accesses[code.digest] = self._accesses_of(kernel)
        return atomicity

    def _accesses_of(self, kernel: Kernel) -> ProgramAtomicity:
        """Launches of several GPUs are ordered, whatever the program does."""
        atomicity = accesses(kernel.program)
        return atomicity if self.gpus is None else replace(atomicity, ordered=True)

    def arrivals(self, kernel: Kernel, code: CodeObject) -> list[Arrival]:
        """The comparisons that find the last arrival; none with several GPUs, whose launches run at
        once."""
        comparisons = self._arrivals.get(code.digest)
        if comparisons is None:
            comparisons = [] if self.gpus is not None else arrivals(kernel.program)
            self._arrivals[code.digest] = comparisons
        return comparisons

    def provenance(self, kernel: Kernel, code: CodeObject) -> Provenance:
        """The accesses whose pointers are followed as the kernel runs."""
        origins = self._provenance.get(code.digest)
        if origins is None:
            origins = self._provenance[code.digest] = provenance(kernel)
        return origins

    def special_numbers(self, kernel: Kernel, code: CodeObject) -> SpecialNumbers | None:
        """What is looked at in the program; None where numbers are not checked."""
        if not self.numbers:
            return None
        special = self._special.get(code.digest)
        if special is None:
            special = self._special[code.digest] = SpecialNumbers.of(kernel.program)
        return special

    def watch(
        self, native: NativeKernel, launch: Launch, ranges: Sequence[tuple[int, int]]
    ) -> CheckWatch:
        """Raises Unsupported for more workgroups than records can name."""
        groups = math.prod(launch.grid)
        if groups > records.MOST_GROUPS:
            raise Unsupported(f"{native.kernel.name}: checks of {groups} workgroups")
        return CheckWatch(self, native, launch, ranges)


ORDERED_QUANTUM: Final = 1 << 12
"""Instructions after which another workgroup may run, in launches that synchronise workgroups:
every poll of a loop with a barrier is an event of the clocks, of about 0.2 ms."""
_GUARDED_SLICE: Final = 1 << 8
"""Instructions that a wave executes at once where records may not fit into memory, at most: host
threads look at what is left between slices."""
_TOUCHED: Final = 64 * 8 * hostmemory.PAGE
"""Bytes that one instruction may take: each lane touches a page of up to four arrays, and each page
may be the first of a page table."""


class CheckWatch:
    """The memory of one launch's checks."""

    def __init__(
        self,
        mode: CheckMode,
        native: NativeKernel,
        launch: Launch,
        ranges: Sequence[tuple[int, int]],
    ) -> None:
        self.mode, self.native, self.launch, self.ranges = mode, native, launch, ranges
        self.workgroups: np.ndarray | None = None
        self.quantum: int | None = None
        self.slice: int | None = None
        self.known = mode.sources(native.kernel, launch.code)
        self.tensors = tensors_of(launch, native.descriptor, ranges)
        origins = mode.provenance(native.kernel, launch.code)
        arguments = {n: names for n, names in self.known.items() if n not in origins.loaded}
        kernel = native.kernel
        self.arrays = mode.arrays(kernel, launch.code)
        self.called = mode.called(kernel, launch.code)
        self.bounds = AccessBounds(kernel, self.tensors, arguments, self.arrays, self.called)
        for followed_bytes in mode.written.within(ranges[1:]):
            if not self.bounds.follow(kernel, followed_bytes):
                mode.written.forget(followed_bytes.first)
        self.accesses = mode.accesses(kernel, launch.code)
        self.format_uses = mode.format_uses(kernel, launch.code)
        self.format_reports = mode.stored_formats.reports(
            kernel.program, launch, self.format_uses, self.tensors
        )
        self.log = Log(len(kernel.program.instructions))
        lanes = native.layout.lanes
        waves = -(-math.prod(launch.block) // lanes)
        self.scratch_bytes = waves * lanes * native.descriptor.scratch_bytes
        self.checked: CheckedLaunch | None = None
        self._kept: list[object] = []
        observed, stored = self._observable_ranges(), self.bounds.stored(kernel, ranges)
        if mode.works is not None and mode.works.active:
            stored = set(range(len(ranges)))
        if mode.gpus is not None:
            self.checked = self._begin(mode.gpus)
            self.shadows = _lasting(mode.gpus, ranges, self.checked.gpu, observed, self._kept)
        else:
            atomics = self.bounds.reached(self.accesses.atomic, ranges)
            self.shadows = _shadows(ranges, stored, observed, atomics)
        self.reserve = _reserve(kernel, self.shadows)
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
        self.residency = residency(launch, native.descriptor, mode.device)
        self.residents = self.residency.workgroups if self.residency is not None else None
        self._crowded: list[Report] = []
        self.owners = Owners(self.tensors, ranges)
        self.tag_words = origins.total
        special = mode.special_numbers(kernel, launch.code)
        self.numbers = None if special is None else NumberMemory(special, kernel.program)
        counting = mode.arrivals(kernel, launch.code)
        range_numbers = self.bounds.reached({arrival.atomic for arrival in counting}, ranges)
        self.arrivals = LaunchArrivals(counting, range_numbers, ranges)

    def _begin(self, gpus: GpuOrder) -> CheckedLaunch:
        """This launch among those of all GPUs."""
        side = RaceSide(self.native.kernel.program, self.accesses)
        return gpus.begin(self.launch, math.prod(self.launch.grid), side)

    def _clocks(
        self, target: str, waves: int, tracked: Sequence[tuple[int, int, np.ndarray]]
    ) -> Clocks:
        checked, gpus = self.checked, self.mode.gpus
        if checked is None or gpus is None:
            return Clocks(target, waves, ReleaseMemory(tracked))
        program = self.native.kernel.program
        system = frozenset(i.index for i in program.instructions if is_system(i.decoded, target))
        ended_launches = checked.known
        launch = ClockLaunch(
            checked.number,
            checked.gpu,
            checked.first,
            system,
            lambda other: bool(ended_launches[other]),
        )
        return Clocks(target, waves, gpus.memory.releases, launch, gpus, gpus.lock)

    def _of_compiler(self, entry: CheckRecord) -> bool:
        """Whether Triton's compiler has made what a record tells of. A program has no statement
        that reads another lane: the compiler writes exchanges, and reads the zeros of lanes that
        are not active. Control flow without a source line may depend on registers that are
        undefined in lanes which a loop around an atomic operation leaves waiting."""
        if self.launch.code.origin != "triton":
            return False
        if entry.kind is Kind.LOST_UPDATE:  # shared memory is the compiler's
            memory = self.native.kernel.program.instructions[entry.instruction].memory
            return memory is not None and memory.space is Space.LDS
        if entry.kind is Kind.UNINITIALISED_REGISTER:
            return self.native.kernel.program.instructions[entry.instruction].location is None
        return entry.kind in (Kind.INACTIVE_LANE, Kind.BEYOND_WAVE)

    def _observable_ranges(self) -> set[int]:
        """The numbers of the ranges whose releases another workgroup may observe."""
        if not self.accesses.ordered:
            return set()
        observing = self.accesses.observing
        if self.mode.gpus is not None:  # another launch may observe what this one releases
            observing |= {
                i for i, atomicity in self.accesses.atomicity.items() if atomicity in _SIGNALLING
            }
        return self.bounds.reached(observing, self.ranges)

    def on_starvation(self, instruction: int) -> None:
        """Workgroups wait for others that cannot start."""
        assert self.residency is not None
        kernel = self.native.kernel
        self._crowded.append(starvation_report(kernel, self.launch, self.residency, instruction))

    def check_memory(self) -> None:
        if self.reserve is not None:
            self.reserve.check()

    def attach(self, context: np.ndarray) -> None:
        self.log.attach(context)
        progress, undefined, exits = Progress(), Undefined(WAVES), Exits()
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
        context[log.SHADOWS] = self.table.ctypes.data
        if self.checked is not None:
            context[log.FIRST_GROUP] = self.checked.first
            context[log.LAUNCH_BITS] = self.checked.number << records.LAUNCH.first
            context[log.KNOWN_LAUNCHES] = self.checked.known.ctypes.data
        context[log.CANARY] = self.mode.canary
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
        self._kept += [updates, progress, undefined, exits, writes, reads, aside, tags, scratch]

    def close(self, *, failed: bool) -> None:
        """Report what was seen, also when the launch broke off: it may say why."""
        if self.mode.gpus is not None and self.checked is not None:
            self.mode.gpus.end(self.checked, self.clocks.acquired())
        if self.clocks.error is not None:
            raise self.clocks.error
        kernel = self.native.kernel
        entries = self._in_bounds(self.log.read())
        upper = [e for e in entries if e.kind is Kind.ASSUMES_32_LANES]
        entries = [e for e in entries if e not in upper and not self._of_compiler(e)]
        if self.numbers is not None:
            entries = self.numbers.merge_by_line(entries)
        missing = self._missing(entries)
        address_sources = Sources(self.known, self.arrays)
        gpus = self.mode.gpus
        several = (gpus.launch, gpus.memory.named) if gpus is not None else (None, None)
        numbers = self.numbers.message if self.numbers is not None else None
        context = LaunchFindings(
            kernel, self.launch, self.owners, address_sources, self.checked, *several, numbers
        )
        reports = self._divisions_located(context.reports(entries, missing)) + self._crowded
        if self.mode.works is not None:
            where = partial(element_at, self.owners.tensors)
            reports += self.mode.works.on_launch(kernel.program, self.ranges, self.shadows, where)
        reports += self.mode.static(kernel, self.launch.code)
        reports += self.mode.lane_sites.reports(kernel, self.launch, upper)
        reports += format_reports(kernel.program, self.tensors) + self.format_reports
        if not failed:
            self.mode.stored_formats.note(self.launch.code, self.format_uses, self.tensors)
            where = partial(element_at, self.owners.tensors)
            reports += self.arrivals.reports(
                self.mode.unreset, kernel.program, self.launch, self.shadows, where
            )
        if reports:
            self.mode.found(reports)

    def _divisions_located(self, reports: list[Report]) -> list[Report]:
        """The reports with Triton's divisions of 16 bits at their own line."""
        program = self.native.kernel.program
        if not any(_is_division(program.instructions[r.instruction]) for r in reports):
            return reports
        lines = narrowed_divisions(self.launch.code)
        return [
            replace(report, location=lines.get(report.location, report.location))
            if report.location and _is_division(program.instructions[report.instruction])
            else report
            for report in reports
        ]

    def _in_bounds(self, entries: Sequence[CheckRecord]) -> list[CheckRecord]:
        """Records without those that follow from an access out of bounds: a race there, or memory
        that nobody has written."""
        beyond = {entry.instruction for entry in entries if entry.kind is Kind.OUT_OF_BOUNDS}

        def follows(entry: CheckRecord) -> bool:
            return entry.kind in _OF_MEMORY and any(
                index in beyond and not self.bounds.allows(index, entry.address)
                for index in (entry.instruction, *self._own_others(entry))
            )

        return [entry for entry in entries if not follows(entry)]

    def _own_others(self, entry: CheckRecord) -> tuple[int, ...]:
        """The other instruction of a record, if it is of this launch."""
        same_launch = self.checked is None or entry.launch == self.checked.number
        return (entry.other - 1,) if same_launch else ()

    def _missing(self, entries: Sequence[CheckRecord]) -> dict[tuple[int, int, int], str]:
        """What would order the accesses of each race between workgroups, by instructions and the
        launch of the other one."""
        triples = {
            (entry.instruction, entry.other - 1, entry.launch)
            for entry in entries
            if entry.kind is Kind.WORKGROUP_RACE and entry.other
        }
        program, nothing = self.native.kernel.program, Unordered(Lack.NOTHING_SHARED)
        unordered, gpus = self.clocks.unordered, self.mode.gpus
        mine = self.checked.side if self.checked is not None else RaceSide(program, self.accesses)
        explanations = {}
        for access, other, launch in triples:
            here = gpus is None or (self.checked is not None and launch == self.checked.number)
            theirs = mine if here or gpus is None else gpus.launch(launch).side
            lack = unordered.get((access, other, launch), nothing)
            volatile = self._volatile(access, other) if here else ""
            explanations[access, other, launch] = volatile or explanation(
                mine, theirs, lack, access, other
            )
        return explanations

    def _volatile(self, access: int, other: int) -> str:
        """What is missing where two accesses look atomic, and one or both are volatile."""
        volatile = [self.called.get(n) is SourceAccess.VOLATILE for n in (access, other)]
        atomic = [self.accesses.atomicity.get(n) in ATOMIC for n in (access, other)]
        if all(volatile):
            return VOLATILE
        return MIXED if any(volatile) and all(atomic) else ""


def _is_division(instruction: Instruction) -> bool:
    return OpcodeFlag.DIVISION_END in instruction.opcode.flags


def _lasting(
    gpus: GpuOrder, ranges: Sequence[tuple[int, int]], gpu: int, observed: set[int], keepalive: list
) -> list[tuple[np.ndarray, ...]]:
    """The arrays of records that launches of several GPUs share, for one of a GPU; none for the
    argument segment. What native code has pointers to goes to `keepalive`."""
    nothing = (np.zeros(0, np.uint64),) * (records.ASIDE + 1)
    with gpus.lock:  # launches of several GPUs begin at once
        memory_records = [
            gpus.memory.of(memory, tracked=number in observed)
            for number, memory in enumerate(ranges[1:], 1)
        ]
    keepalive += memory_records
    return [nothing, *(entry.row(gpu) for entry in memory_records)]


def _shadows(
    ranges: Sequence[tuple[int, int]], written: set[int], observed: set[int], atomics: set[int]
) -> list[tuple[np.ndarray, ...]]:
    """The arrays of records of each range, once per range; none for the first, which holds the
    arguments, and for those whose number is not in `written`. Releases are kept of those in
    `observed`, and records next to atomic ones of those in `atomics`. Pages nobody touches take
    no memory."""
    by_interval: dict[tuple[int, int], tuple[np.ndarray, ...]] = {}
    none = np.zeros(0, np.uint64)
    nothing = (none,) * (records.ASIDE + 1)
    shadows = [nothing]
    for number, (first, end) in enumerate(ranges[1:], 1):
        if number not in written:
            shadows.append(nothing)
            continue
        if (first, end) not in by_interval:
            dwords = (end - first + 3) // 4
            release_dwords = dwords if number in observed else 0
            aside = 2 * records.ASIDE_RECORDS * dwords if number in atomics else 0
            by_interval[first, end] = (
                *(hostmemory.sparse_zeros(dwords, np.uint64) for _ in range(records.RELEASES)),
                hostmemory.sparse_zeros(release_dwords, np.uint32),
                none,
                hostmemory.sparse_zeros(aside, np.uint64),
            )
        shadows.append(by_interval[first, end])
    return shadows


def guarded_slice(reserve: int) -> int:
    """The instructions after which the slices of all host threads together have taken half of a
    reserve of memory at most."""
    together = _TOUCHED * limits.available_processors()
    return max(1, min(_GUARDED_SLICE, reserve // 2 // together))


def _reserve(
    kernel: Kernel, shadows: Sequence[tuple[np.ndarray, ...]]
) -> limits.MemoryReserve | None:
    """What records must leave of the memory; None where they fit if every page is touched."""
    sizes = {array.ctypes.data: array.nbytes for arrays in shadows for array in arrays}
    if sum(sizes.values()) <= limits.available_memory():
        return None
    return limits.MemoryReserve.now(f"a check of all that {kernel.name} accesses")


__all__ = ["CheckMode", "CheckWatch", "guarded_slice"]
