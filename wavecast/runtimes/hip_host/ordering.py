"""What a checked HIP program tells of its streams, events and waits (`runtime/order.c`)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from wavecast.compile.dwarf import LineTable, line_table
from wavecast.compile.hip_program import with_lines
from wavecast.compile.names import readable
from wavecast.emulate.check.gpus.work_memory import WorkMemory
from wavecast.emulate.check.gpus.work_order import FREE, WorkOrder
from wavecast.emulate.reports import Report
from wavecast.emulate.tensors import AddressInterval
from wavecast.emulate.written_bytes import WrittenBytes
from wavecast.isa import elf
from wavecast.isa.instruction import SourceLocation
from wavecast.isa.program import Program
from wavecast.runtimes.hip_host.protocol import ORDER, OrderEvent

_NEAR: Final = 64
"""Bytes of code in which an instruction that the compiler gives no line takes that of the next."""
_NON_BLOCKING: Final = 1
"""hipStreamNonBlocking."""
_EXECUTABLE: Final = 2
"""e_type of a file that is not moved when it is loaded."""


@dataclass
class ProgramOrder:
    """The order of one program's works on some `devices`. `add` takes reports; `executable` is its
    file, for source lines; `written` has the bytes of its memory that have been written."""

    target: str
    add: Callable[[list[Report]], None]
    executable: Path
    written: WrittenBytes
    devices: int = 1
    memory: WorkMemory = field(init=False)
    allocations: Sequence[AddressInterval] = ()
    """Those that the program has now."""
    _order: WorkOrder = field(default_factory=WorkOrder)
    _launches: tuple[int, int, SourceLocation | None] = (0, 0, None)

    def __post_init__(self) -> None:
        self.memory = WorkMemory(self._order, self.target)
        self.memory.active = self.devices > 1

    def on_allocations(self, allocations: Sequence[AddressInterval]) -> None:
        """The program has these allocations now. New ones have the pattern of unwritten memory;
        what the host shares it may write without telling."""
        for first, end in set(self.allocations) - set(allocations):
            self.written.forget(first)
            self.memory.set_grain((first, end), None)
        for first, end in set(allocations) - set(self.allocations):
            if not any(start <= first < stop for start, stop in self.memory.shared):
                self.written.follow(first, end - first)
        self.allocations = allocations

    def tell(self, message: bytes) -> bytes:
        """Take an event; what the host may not touch now: first address, end, whether a work
        writes it."""
        (event,), (device,), (at,), words = ORDER.read(message)
        location = self._location(at, accesses=event == OrderEvent.HOST_ACCESS)
        self._take(OrderEvent(event), device, location, words)
        records = [
            struct.pack("<3Q", access.first, access.end, access.written)
            for access in self.memory.unwaited_accesses()
        ]
        return b"".join(records)

    @property
    def active(self) -> bool:
        """Whether works or the host can be unordered: launches need records of all memory."""
        return self.memory.active

    def on_launch(
        self,
        program: Program,
        ranges: Sequence[AddressInterval],
        shadows: Sequence[tuple[np.ndarray, ...]],
        name_of: Callable[[int], str],
    ) -> list[Report]:
        """A launch, which the program has told of, has ended: what races with it. `shadows` are
        its records by range, `name_of` is what an address is called."""
        device, stream, location = self._launches
        name = readable(program.name)
        work = self._order.submit(device, stream, name, location, program)
        return self.memory.on_launch(work, ranges, shadows, name_of) if self.active else []

    def _take(
        self, event: OrderEvent, device: int, location: SourceLocation | None, words: Sequence[int]
    ) -> None:
        order, memory = self._order, self.memory
        if event is OrderEvent.STREAM:
            order.create(device, words[0], blocking=not words[1] & _NON_BLOCKING)
            memory.active = True
        elif event is OrderEvent.RECORD:
            order.record(device, words[0], words[1])
        elif event is OrderEvent.STREAM_WAITS:
            order.wait(device, words[0], words[1])
        elif event is OrderEvent.HOST_WAITS_STREAM:
            order.host_waits_for_stream(device, words[0])
        elif event is OrderEvent.HOST_WAITS_EVENT:
            order.host_waits_for_event(words[0])
        elif event is OrderEvent.HOST_WAITS_DEVICE:
            order.host_waits_for_all()
        elif event is OrderEvent.LAUNCHES:
            self._launches = device, words[0], location
        elif event is OrderEvent.HOST_MEMORY:
            memory.active = True
            memory.shared.append((words[0], words[0] + words[1]))
        elif event is OrderEvent.GRAIN:
            memory.set_grain((words[0], words[0] + words[1]), bool(words[2]))
        elif event is OrderEvent.HOST_ACCESS:
            self.add(memory.host_access(words[0], location))
        elif event is not OrderEvent.LAUNCHED:
            self._touch(event, device, location, words)

    def _touch(
        self, event: OrderEvent, device: int, location: SourceLocation | None, words: Sequence[int]
    ) -> None:
        """A copy, a fill or a free."""
        stream, first, pitch, width, rows = words
        if event is OrderEvent.FREES:
            width, rows = pitch, 1
        name = {OrderEvent.FILLS: "the fill", OrderEvent.FREES: FREE}.get(event, "the copy")
        work = self._order.submit(device, stream, name, location)
        within = self._allocation(first)
        if within is None:
            return
        parts = [(first + row * pitch, first + row * pitch + width) for row in range(rows)]
        if event in (OrderEvent.WRITES, OrderEvent.FILLS):
            self.written.mark(parts)
        if not self.memory.active:
            return
        stores = event is not OrderEvent.READS
        self.add(self.memory.on_copy(work, parts, stores=stores, within=within))
        if event is OrderEvent.FREES:
            self.memory.on_free(within[0])

    def _allocation(self, address: int) -> AddressInterval | None:
        """The whole dwords of an allocation."""
        for first, end in self.allocations:
            if first <= address < end:
                return first & ~3, end + 3 & ~3
        return None

    def _location(self, address: int, *, accesses: bool) -> SourceLocation | None:
        """The line of the program that calls, from the address behind the call, or `accesses`
        memory at an address."""
        if not address or self._lines is None:
            return None
        first = self._base + (address if accesses else address - 1)
        rows = (self._lines.at(at) for at in range(first, first + _NEAR))
        row = next((row for row in rows if row is None or row[1]), None)
        if row is None:
            return None
        number, line, column = row
        return SourceLocation("/".join(filter(None, self._lines.files[number])), line, column)

    @cached_property
    def _lines(self) -> LineTable | None:
        data = with_lines(self.executable.read_bytes())
        return line_table(data, elf.read(data))

    @cached_property
    def _base(self) -> int:
        """What is added to addresses counted from the start of the file in memory."""
        data = self.executable.read_bytes()
        if int.from_bytes(data[16:18], "little") != _EXECUTABLE:
            return 0
        offset = int.from_bytes(data[32:40], "little")
        count, size = (int.from_bytes(data[at : at + 2], "little") for at in (56, 54))
        starts = [data[offset + n * size : offset + (n + 1) * size] for n in range(count)]
        loaded = [
            int.from_bytes(header[16:24], "little")
            for header in starts
            if header[:4] == b"\1\0\0\0"
        ]
        return min(loaded, default=0) & ~0xFFF


__all__ = ["OrderEvent", "ProgramOrder"]
