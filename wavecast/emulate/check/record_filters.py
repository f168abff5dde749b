"""Records that are not reported: what the compiler made, and what follows from another record."""

from __future__ import annotations

from collections.abc import Sequence

from wavecast.compile.codeobject import CodeObject
from wavecast.emulate.bounds import AccessBounds
from wavecast.emulate.check.log import CheckRecord
from wavecast.emulate.reports import Kind
from wavecast.isa.opcode import Space
from wavecast.isa.program import KernelDescriptor, Program

_OF_MEMORY = frozenset(
    {
        *(Kind.GLOBAL_RACE, Kind.WORKGROUP_RACE, Kind.REPLICATED_READ, Kind.SAME_VALUE),
        Kind.UNINITIALISED_GLOBAL,
    }
)


def is_of_compiler(record: CheckRecord, program: Program, code: CodeObject) -> bool:
    """Whether Triton's compiler has made what a record tells of. A program has no statement
    that reads another lane: the compiler writes exchanges, and reads the zeros of lanes that
    are not active. Control flow without a source line may depend on registers that are
    undefined in lanes which a loop around an atomic operation leaves waiting."""
    if code.origin != "triton":
        return False
    if record.kind is Kind.LOST_UPDATE:  # shared memory is the compiler's
        memory = program.instructions[record.instruction].memory
        return memory is not None and memory.space is Space.LDS
    if record.kind is Kind.UNINITIALISED_REGISTER:
        return program.instructions[record.instruction].location is None
    return record.kind in (Kind.INACTIVE_LANE, Kind.BEYOND_WAVE)


def is_by_hand(record: CheckRecord, descriptor: KernelDescriptor, code: CodeObject) -> bool:
    """Whether a kernel written in assembly means what a record tells of: its waves have different
    programs, and the barrier of the hardware counts them wherever they wait."""
    by_hand = code.origin in ("elf", "assembly") and not descriptor.language
    return by_hand and record.kind is Kind.DIVERGENT_BARRIER


def without_consequences(
    entries: Sequence[CheckRecord], bounds: AccessBounds, launch: int | None
) -> list[CheckRecord]:
    """Records without those that follow from an access out of bounds: a race there, or memory
    that nobody has written. `launch` is the number of this launch among those of several GPUs."""
    beyond = {entry.instruction for entry in entries if entry.kind is Kind.OUT_OF_BOUNDS}

    def follows(entry: CheckRecord) -> bool:
        same_launch = launch is None or entry.launch == launch
        indices = (entry.instruction, *((entry.other - 1,) if same_launch else ()))
        return entry.kind in _OF_MEMORY and any(
            index in beyond and not bounds.allows(index, entry.address) for index in indices
        )

    return [entry for entry in entries if not follows(entry)]


__all__ = ["is_by_hand", "is_of_compiler", "without_consequences"]
