"""Memory instructions: how wide each is and, where addresses are known, what its lanes touch."""

from __future__ import annotations

from bisect import bisect_right
from typing import Protocol

from wavecast.analyze.charges import Charge, Charges
from wavecast.analyze.pipes import Tally
from wavecast.analyze.result import MemoryInstruction
from wavecast.arch import Device
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.program import Program

# bound once: looking an enum member up costs ten times what comparing it does
_PERMUTE = MemoryKind.PERMUTE

_PERIOD = 1024
_CACHED = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT})


class TracedAccess(Protocol):
    """What is known of the addresses one memory instruction touches (`wavecast.analyze.values`)."""

    @property
    def pattern(self) -> str: ...
    @property
    def stride(self) -> int | None: ...
    @property
    def argument(self) -> str: ...
    @property
    def offsets(self) -> tuple[int | None, ...] | None: ...
    @property
    def width(self) -> int: ...
    @property
    def lanes(self) -> int | None: ...
    @property
    def row_bytes(self) -> int | None: ...
    def lines(self, line_bytes: int) -> int | None: ...
    def ideal_lines(self, line_bytes: int) -> int | None: ...
    def conflict_ways(self, device: Device) -> float | None: ...


class TracedAccesses(Protocol):
    """Instruction index -> its access, None for an instruction that touches no memory."""

    def memory(self, instruction: int) -> TracedAccess | None: ...


def memory_instructions(
    program: Program, charges: Charges, accesses: TracedAccesses
) -> tuple[MemoryInstruction, ...]:
    """Every instruction of a program that moves data to or from memory, in order."""
    measured = _Measured(charges.device)
    instructions = []
    for block in program.blocks:
        loop = program.innermost_loop[block.index]
        for instruction in program.instructions[block.start : block.stop]:
            memory = instruction.decoded.memory
            if memory is not None and memory.kind is not _PERMUTE:
                access = accesses.memory(instruction.index)
                instructions.append(_describe(instruction, access, measured, loop))
    return tuple(instructions)


class _Measured:
    """Cache lines and bank conflicts, worked out once per shape of access.

    Accesses whose lanes differ by the same multiple of `_PERIOD` bytes, a multiple of every cache
    line and of every row of banks, touch equally many lines and conflict equally.
    """

    def __init__(self, device: Device) -> None:
        line = device.get("l1v_line")
        self._line_bytes = int(line) if isinstance(line, (int, float)) else None
        self._device = device
        self._lines: dict[object, tuple[int | None, int | None]] = {}
        self._conflicts: dict[object, float | None] = {}

    def lines(self, access: TracedAccess) -> tuple[int | None, int | None]:
        """Lines touched and lines needed; None where addresses or the line are not known."""
        if self._line_bytes is None or access.offsets is None:
            return None, None
        key = _shape(access)
        if key not in self._lines:
            self._lines[key] = (
                access.lines(self._line_bytes),
                access.ideal_lines(self._line_bytes),
            )
        return self._lines[key]

    def conflict_ways(self, access: TracedAccess, kind: MemoryKind) -> float | None:
        """Passes through the banks over passes without conflicts."""
        if access.offsets is None:
            return None
        key = (kind, _shape(access))
        if key not in self._conflicts:
            self._conflicts[key] = access.conflict_ways(self._device)
        return self._conflicts[key]


def _shape(access: TracedAccess) -> tuple[int, tuple[int | None, ...]]:
    """Width and lane offsets, moved down by a multiple of `_PERIOD`."""
    offsets = access.offsets or ()
    lowest = min([offset for offset in offsets if offset is not None], default=0)
    base = lowest // _PERIOD * _PERIOD
    if not base:
        return access.width, offsets
    return access.width, tuple([None if o is None else o - base for o in offsets])


def _describe(
    instruction: Instruction,
    access: TracedAccess | None,
    measured: _Measured,
    loop: int | None,
) -> MemoryInstruction:
    memory = instruction.decoded.memory
    assert memory is not None
    lines = ideal = conflicts = None
    if access is not None and memory.space in _CACHED:
        lines, ideal = measured.lines(access)
    elif access is not None and memory.space is Space.LDS:
        conflicts = measured.conflict_ways(access, memory.kind)
    return MemoryInstruction(
        index=instruction.index,
        mnemonic=instruction.mnemonic,
        space=memory.space.value,
        kind=memory.kind.value,
        bytes_per_lane=memory.bytes,
        argument=access.argument if access is not None else "",
        pattern=access.pattern if access is not None else "unknown",
        stride=access.stride if access is not None else None,
        lines=lines,
        transactions_ideal=ideal,
        conflict_ways=conflicts,
        location=instruction.location,
        loop=loop,
        lanes=access.lanes if access is not None else None,
        row_bytes=access.row_bytes if access is not None else None,
    )


def charge_patterns(
    program: Program,
    memory: tuple[MemoryInstruction, ...],
    charges: list[Charge],
    rates: Charges,
    blocks: list[Tally],
) -> None:
    """Add to each block what its known access patterns take beyond contiguous, conflict-free ones.

    One cache line passes the vector cache per clock at its full rate; an LDS access takes its
    conflict-free time once per way of its worst bank conflict.
    """
    line = rates.device.get("l1v_line")
    starts = [block.start for block in program.blocks]
    for access in memory:
        charge = charges[access.index]
        if not charge.shared_cycles:
            continue
        extra = 0.0
        if access.conflict_ways is not None:
            extra = charge.shared_cycles * (access.conflict_ways - 1)
        elif access.lines is not None and rates.cache_rate and isinstance(line, (int, float)):
            extra = access.lines * line / rates.cache_rate - charge.shared_cycles
        if extra > 0:
            blocks[bisect_right(starts, access.index) - 1].take(charge.pipe, extra)
