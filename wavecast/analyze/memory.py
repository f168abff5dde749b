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

_CACHED = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT})


class Access(Protocol):
    """What is known of the addresses one memory instruction touches (`wavecast.analyze.values`)."""

    @property
    def pattern(self) -> str: ...
    @property
    def stride(self) -> int | None: ...
    @property
    def argument(self) -> str: ...
    def lines(self, line_bytes: int) -> int | None: ...
    def ideal_lines(self, line_bytes: int) -> int | None: ...
    def conflict_ways(self, device: Device) -> float | None: ...


class Accesses(Protocol):
    """Instruction index -> its access, None for an instruction that touches no memory."""

    def memory(self, instruction: int) -> Access | None: ...


def memory_instructions(
    program: Program, charges: Charges, accesses: Accesses
) -> tuple[MemoryInstruction, ...]:
    """Every instruction of a program that moves data to or from memory, in order."""
    line = charges.device.get("l1v_line")
    line_bytes = int(line) if isinstance(line, (int, float)) else None
    found = []
    for block in program.blocks:
        loop = program.innermost_loop[block.index]
        for instruction in program.instructions[block.start : block.stop]:
            memory = instruction.decoded.memory
            if memory is not None and memory.kind is not MemoryKind.PERMUTE:
                access = accesses.memory(instruction.index)
                found.append(_describe(instruction, access, charges, line_bytes, loop))
    return tuple(found)


def _describe(
    instruction: Instruction,
    access: Access | None,
    charges: Charges,
    line_bytes: int | None,
    loop: int | None,
) -> MemoryInstruction:
    memory = instruction.decoded.memory
    assert memory is not None
    lines = ideal = ways = None
    if access is not None and memory.space in _CACHED and line_bytes is not None:
        lines = access.lines(line_bytes)
        ideal = access.ideal_lines(line_bytes)
    elif access is not None and memory.space is Space.LDS:
        ways = access.conflict_ways(charges.device)
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
        conflict_ways=ways,
        location=instruction.location,
        loop=loop,
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
