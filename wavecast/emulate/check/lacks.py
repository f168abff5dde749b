"""What is missing between two accesses of different workgroups, as a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from wavecast.arch import capabilities
from wavecast.emulate.check.atomicity import Atomicity, ProgramAtomicity
from wavecast.isa.counters import counter_set
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import Program
from wavecast.isa.targets import isa_target

_WAITS: Final = {
    "combined": "s_waitcnt vmcnt(0)",
    "stores_apart": "s_waitcnt_vscnt null, 0x0",
    "separate": "s_wait_storecnt 0x0",
}
_RELEASE: Final = (
    "release at agent scope (__threadfence() before it, __ATOMIC_RELEASE with "
    "__HIP_MEMORY_SCOPE_AGENT, or sem='release', scope='gpu')"
)
_ACQUIRE: Final = (
    "acquire at agent scope (__threadfence() after it, __ATOMIC_ACQUIRE with "
    "__HIP_MEMORY_SCOPE_AGENT, or sem='acquire', scope='gpu')"
)


class Lack(IntEnum):
    """What is missing, the nearest to a correct hand-over last."""

    NOTHING_SHARED = 0
    """This workgroup has observed no release of the other one."""
    LATER = 1
    """The wave that released made the access after its release."""
    BARRIER = 2
    """Another wave than that of the access released, without a barrier in between."""
    WAIT = 3
    WRITE_BACK = 4
    ACQUIRE = 5


@dataclass(frozen=True, slots=True)
class Unordered:
    """A lack, and the instructions that released and that observed the release (none: -1)."""

    lack: Lack
    release: int = -1
    observer: int = -1


MIXED: Final = (
    "one access is atomic and the other is volatile, which orders nothing for other workgroups; "
    "make both atomic"
)


def explanation(program: Program, accesses: ProgramAtomicity, found: Unordered, other: int) -> str:
    """What is missing, and what to do. `other` is the earlier access (an instruction index)."""
    target = program.target
    if found.lack is Lack.NOTHING_SHARED:
        return _unrelated(program, accesses)
    able = capabilities(isa_target(target))
    release = _named(program.instructions[found.release])
    earlier = _named(program.instructions[other])
    if found.lack is Lack.LATER:
        return f"{earlier} follows the {release}, which does not release it: release after it"
    if found.lack is Lack.BARRIER:
        return (
            f"another wave executes the {release}, without a barrier after {earlier}: "
            "put __syncthreads() between them"
        )
    wait = _WAITS[counter_set(target)]
    if found.lack in (Lack.WAIT, Lack.WRITE_BACK):
        needed = wait if found.lack is Lack.WAIT else able.agent_write_back
        if found.lack is Lack.WAIT and able.agent_write_back:
            needed = f"{able.agent_write_back}, {wait}"
        return (
            f"{earlier} is not released before the {release}: no {needed} between them; "
            f"use {_RELEASE}"
        )
    observer = _named(program.instructions[found.observer])
    return f"nothing is acquired after the {observer}: no {able.agent_acquire}; use {_ACQUIRE}"


def _unrelated(program: Program, accesses: ProgramAtomicity) -> str:
    if any(atomicity is Atomicity.WORKGROUP for atomicity in accesses.atomicity.values()):
        return "the scope of the kernel's atomic accesses is the workgroup; use that of the agent"
    if accesses.observing and not accesses.ordered:
        first = _named(program.instructions[min(accesses.observing)])
        return f"nothing is acquired after the {first}; use {_ACQUIRE}"
    return "no release and acquire orders the two workgroups"


def _named(instruction: Instruction) -> str:
    """An instruction by its source line."""
    memory = instruction.memory
    what = memory.kind.value if memory is not None else "instruction"
    if instruction.location is None:
        return f"{what} {instruction.decoded.text!r}"
    return f"{what} at line {instruction.location.outermost.line}"


__all__ = ["MIXED", "Lack", "Unordered", "explanation"]
