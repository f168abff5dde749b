"""What the host touches of the memory of several GPUs, and of memory that copies still use.

A call of the host waits for the current stream of its tensors' GPUs. Kernels of other streams and
of other GPUs may touch the same memory, and copies to or from pinned memory may be under way: what
neither the stream, an event nor the host orders before the call is a race.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from wavecast.emulate.check.clocks.atomicity import ATOMIC
from wavecast.emulate.check.clocks.queries import reaches
from wavecast.emulate.check.clocks.records import (
    BYTES,
    HIDES,
    LAUNCH,
    NUMBER,
    PART_WORDS,
    MemoryRecord,
)
from wavecast.emulate.check.gpus.memory import MemoryRecords
from wavecast.emulate.check.gpus.order import CheckedLaunch, GpuOrder
from wavecast.emulate.check.gpus.stream_order import Before
from wavecast.emulate.check.shadow import DWORD_BYTES
from wavecast.emulate.program_lines import caller_name, program_location
from wavecast.emulate.reports import Kind, Report
from wavecast.emulate.tensors import AddressInterval
from wavecast.isa.instruction import SourceLocation

_SECONDS: Final = 60.0
"""The longest wait for launches that may touch what the host does."""
_NUMBERS: Final = np.uint64(NUMBER.mask << NUMBER.first)


@dataclass(frozen=True, slots=True)
class HostAccess:
    """What a call on the host touches: rows of bytes of the memory `storage`. `verb` and `line` say
    who does (`copy_`, line 12 of a file). It happens behind `before`."""

    verb: str
    line: tuple[str, int] | None
    gpu: int | None
    storage: AddressInterval
    rows: Sequence[AddressInterval]
    stores: bool
    before: Before

    @property
    def location(self) -> SourceLocation | None:
        return None if self.line is None else SourceLocation(*self.line)


@dataclass(frozen=True, slots=True)
class PendingCopy:
    """A copy that the host has not waited for: what it touches, and whether that is in `ended`."""

    access: HostAccess
    has_ended: Callable[[Before], bool]


class HostAccesses:
    """The accesses of the host threads of a program. `add` takes reports; `settle` waits for
    launches as `GpuNode.settle` does."""

    def __init__(
        self,
        order: GpuOrder,
        target: str,
        add: Callable[[list[Report]], None],
        settle: Callable[[Callable[[], bool], float], None],
    ) -> None:
        self.order, self.target = order, target
        self._add, self._settle = add, settle
        self._lock = threading.Lock()
        self._submitted: dict[int, Sequence[AddressInterval]] = {}
        self._submissions = 0
        self.are_followed = False
        """Whether a call has touched memory of a GPU, or copied it."""

    def on_submit(self, ranges: Sequence[AddressInterval]) -> int:
        """A launch is queued that may touch some ranges. Returns its number for `on_end`."""
        with self._lock:
            self._submissions += 1
            self._submitted[self._submissions] = ranges
            return self._submissions

    def on_end(self, submission: int) -> None:
        """It has ended, or failed."""
        with self._lock:
            self._submitted.pop(submission, None)

    def is_followed(self, storage: AddressInterval) -> bool:
        """Whether a launch may touch memory, or has."""
        with self.order.lock:
            has_records = self.order.memory.at(storage) is not None
        return has_records or self._is_used(storage)

    def compare(self, access: HostAccess) -> None:
        """Report launches that touch the same memory, and are not ordered before an access."""
        self._settle(lambda: self._is_used(access.storage), _SECONDS)
        with self.order.lock:
            reports = [self._launch_report(access, *race) for race in self._races(access)]
        if reports:
            self._add(reports)

    def compare_copies(self, access: HostAccess, copies: Sequence[PendingCopy]) -> None:
        """Report copies that touch the same memory and have not ended before an access."""
        for pending in copies:
            copy = pending.access
            if not (copy.stores or access.stores) or pending.has_ended(access.before):
                continue
            if _overlap(copy.rows, access.rows):
                self._add([self._copy_report(access, copy)])

    def _is_used(self, storage: AddressInterval) -> bool:
        first, end = storage
        with self._lock:
            return any(
                start < end and first < stop
                for ranges in self._submitted.values()
                for start, stop in ranges
            )

    def _races(self, access: HostAccess) -> Iterator[tuple[CheckedLaunch, MemoryRecord, bool, int]]:
        """Launch, record, whether that is of a store, and an address, by instruction."""
        memory = self.order.memory.at(access.storage)
        if memory is None:
            return
        seen: set[tuple[int, int, bool]] = set()
        for first, end in access.rows:
            start, stop = (first - access.storage[0]) // 4, (end - access.storage[0] + 3) // 4
            for records, numbers, stored in _records_of(memory, slice(start, stop), access.stores):
                touched = _bytes_touched(records, first, end)
                for record, dword in self._unordered(touched, numbers, access, stored=stored):
                    key = record.launch, record.instruction, stored
                    if key not in seen:
                        seen.add(key)
                        address = access.storage[0] + 4 * (start + dword)
                        yield self.order.launch(record.launch), record, stored, max(address, first)

    def _unordered(
        self, records: np.ndarray, numbers: np.ndarray, access: HostAccess, *, stored: bool
    ) -> Iterator[tuple[MemoryRecord, int]]:
        """The records of some dwords that are not ordered before an access, and their dwords."""
        if not records.any():
            return
        launches = numbers >> np.uint64(LAUNCH.first)
        for launch in np.unique(launches[records != 0]).tolist():
            if self.order.is_before(launch, access.before):
                continue
            there = np.flatnonzero((launches == launch) & (records != 0))
            keys, indices = np.unique(records[there], return_inverse=True)
            last_numbers = np.zeros(len(keys), np.uint64)
            np.maximum.at(last_numbers, indices, numbers[there] & _NUMBERS)
            for at, (who, number) in enumerate(
                zip(keys.tolist(), last_numbers.tolist(), strict=True)
            ):
                record = MemoryRecord.of(who, number | launch << LAUNCH.first)
                is_flag = record.atomicity in ATOMIC and record.system and not access.stores
                if not is_flag and not self._is_known(record, access.before, stored=stored):
                    yield record, int(there[np.argmax(indices == at)])

    @staticmethod
    def _is_known(record: MemoryRecord, before: Before, *, stored: bool) -> bool:
        """Whether a record of a launch that may run is behind what others have acquired of it."""
        launch_rows = before.partial.get(record.launch)
        if launch_rows is None:
            return False
        if record.group is None:
            return bool(launch_rows.rows)
        rows = launch_rows.rows.get(record.group)
        return rows is not None and reaches(rows, record, stored=stored)

    def _launch_report(
        self, access: HostAccess, launch: CheckedLaunch, record: MemoryRecord, stored: bool,
        address: int,
    ) -> Report:  # fmt: skip
        program, name = launch.side.program, caller_name(launch.launch)
        instruction = program.instructions[record.instruction]
        location = program_location(instruction.location, launch.launch)
        is_kernels = location is instruction.location
        did = "writes" if stored else "reads"
        group = record.group
        report = self._report(
            access,
            f"what {name} on GPU {launch.gpu} {did}"
            f"{self.order.memory.memory_label(address)}, and the host has not waited for it: "
            "synchronise with its stream, an event behind it, or its GPU",
            address,
        )
        return replace(
            report,
            other=record.instruction,
            other_text=instruction.decoded.text if is_kernels else name,
            other_location=location,
            other_kernel=program.name,
            other_gpu=launch.gpu,
            other_workgroup=None
            if group is None
            else launch.launch.workgroup(group - launch.first),
        )

    def _copy_report(self, access: HostAccess, copy: HostAccess) -> Report:
        did = "writes" if copy.stores else "reads"
        line = "" if copy.line is None else f" at {Path(copy.line[0]).name}:{copy.line[1]}"
        report = self._report(
            access,
            f"pinned memory that the copy{line} {did}, and the host has not waited for it: a copy "
            "with non_blocking=True returns before it is done; synchronise with its stream or an "
            "event behind it",
            copy.rows[0][0],
        )
        return replace(
            report, other_text=copy.verb, other_location=copy.location, other_gpu=copy.gpu
        )

    def _report(self, access: HostAccess, what: str, address: int) -> Report:
        return Report(
            kind=Kind.HOST_RACE,
            kernel="the host",
            target=self.target,
            message=f"{'overwrites' if access.stores else 'reads'} {what}",
            instruction=0 if access.line is None else access.line[1],
            text=access.verb,
            location=access.location,
            addresses=(address,),
            gpu=access.gpu,
        )


def _records_of(
    memory: MemoryRecords, dwords: slice, stores: bool
) -> Iterator[tuple[np.ndarray, np.ndarray, bool]]:
    """The records of some dwords that an access may race with, their second words, and whether they
    are of stores."""
    records, numbers = (array[dwords] for array in memory.writes)
    yield records, numbers, True
    if (records >> np.uint64(HIDES.first) & np.uint64(1)).any():
        rows = memory.parts.reshape(-1, PART_WORDS)[dwords]
        hides = records >> np.uint64(HIDES.first) & np.uint64(1) != 0
        for byte in range(DWORD_BYTES):
            bit = np.uint64(1 << BYTES.first + byte)
            others = np.uint64(BYTES.mask << BYTES.first) ^ bit
            hidden = hides & (records & bit == 0)
            whose = np.where(hidden, rows[:, byte] & ~others, np.uint64(0))
            yield whose, rows[:, DWORD_BYTES + byte], True
    if stores:
        for records, numbers in memory.reads:
            yield records[dwords], numbers[dwords], False


def _bytes_touched(records: np.ndarray, first: int, end: int) -> np.ndarray:
    """The records of the dwords of a row of bytes, 0 where they are of other bytes."""
    touched = np.full(len(records), BYTES.mask, np.uint64)
    if len(touched):
        touched[0] &= BYTES.mask << first % 4 & BYTES.mask
        touched[-1] &= BYTES.mask >> -end % 4
    bytes_ = records >> np.uint64(BYTES.first) & touched
    return np.where(bytes_ != 0, records, np.uint64(0))


def _overlap(rows: Sequence[AddressInterval], others: Sequence[AddressInterval]) -> bool:
    return any(a < d and c < b for a, b in rows for c, d in others)


__all__ = ["HostAccess", "HostAccesses", "PendingCopy"]
