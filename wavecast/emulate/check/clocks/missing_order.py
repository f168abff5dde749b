"""What is missing between two accesses of different workgroups, as a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from wavecast.arch import capabilities
from wavecast.emulate.check.clocks.atomicity import ATOMIC, Atomicity, ProgramAtomicity
from wavecast.isa.counters import counter_set
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import Program
from wavecast.isa.targets import isa_target
from wavecast.launch.script_lines import is_own

_WAITS: Final = {
    "combined": "s_waitcnt vmcnt(0)",
    "stores_apart": "s_waitcnt_vscnt null, 0x0",
    "separate": "s_wait_storecnt 0x0",
}
_SCOPES: Final = {"agent": ("AGENT", "gpu", ""), "system": ("SYSTEM", "sys", "_system")}


def _release(scope: str) -> str:
    hip, triton, fence = _SCOPES[scope]
    return (
        f"release at {scope} scope (__threadfence{fence}() before it, __ATOMIC_RELEASE with "
        f"__HIP_MEMORY_SCOPE_{hip}, or sem='release', scope='{triton}')"
    )


def _acquire(scope: str) -> str:
    hip, triton, fence = _SCOPES[scope]
    return (
        f"acquire at {scope} scope (__threadfence{fence}() after it, __ATOMIC_ACQUIRE with "
        f"__HIP_MEMORY_SCOPE_{hip}, or sem='acquire', scope='{triton}')"
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
    OTHER_WAVE = 5
    """Another wave released to another GPU, behind a barrier that does not wait for stores."""
    RELEASE_SCOPE = 6
    OBSERVER_SCOPE = 7
    ACQUIRE = 8
    ACQUIRE_SCOPE = 9
    ATOMIC_SCOPE = 10
    """Both are atomic, and one of them not for other GPUs: the `release` that an `Unordered` names
    is the earlier access if it is that one."""


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

VOLATILE: Final = (
    "both accesses are volatile, which makes neither of them atomic; use atomic operations, or "
    "order them by a release and an acquire"
)


@dataclass(frozen=True, slots=True)
class RaceSide:
    """The program of one access of a race, how atomic its accesses are, and its GPU."""

    program: Program
    accesses: ProgramAtomicity
    gpu: int = 0


def explanation(
    mine: RaceSide, theirs: RaceSide, reason: Unordered, access: int, other: int
) -> str:
    """What is missing between an `access` and an earlier one, the `other` (instruction indices),
    and what to do."""
    program = theirs.program
    target, scope = program.target, "agent" if mine.gpu == theirs.gpu else "system"
    if reason.lack is Lack.NOTHING_SHARED:
        return _missing_order(mine, theirs, access, other, scope)
    if reason.lack is Lack.ATOMIC_SCOPE:
        side, index = (mine, access) if reason.release < 0 else (theirs, other)
        narrow_access = _instruction_text(side.program.instructions[index])
        return (
            f"the {narrow_access} is of agent scope, which is atomic on its GPU alone; use system "
            "scope (scope='sys', __HIP_MEMORY_SCOPE_SYSTEM, or atomicAdd_system and its like)"
        )
    able = capabilities(isa_target(target))
    release = _instruction_text(program.instructions[reason.release])
    earlier = _instruction_text(program.instructions[other])
    observer = _instruction_text(mine.program.instructions[reason.observer])
    if reason.lack is Lack.LATER:
        return f"{earlier} follows the {release}, which does not release it: release after it"
    if reason.lack is Lack.BARRIER:
        return (
            f"another wave executes the {release}, without a barrier after {earlier}: "
            "put __syncthreads() between them"
        )
    if reason.lack is Lack.OTHER_WAVE:
        return (
            f"another wave executes the {release}, and the barrier before it does not wait for "
            f"{earlier}: let every wave release its own stores"
        )
    if reason.lack is Lack.RELEASE_SCOPE:
        return f"the {release} is of agent scope, which ends at its GPU; use {_release(scope)}"
    if reason.lack is Lack.OBSERVER_SCOPE:
        return f"the {observer} is of agent scope, which ends at its GPU; use {_acquire(scope)}"
    if reason.lack in (Lack.WAIT, Lack.WRITE_BACK):
        wait = _WAITS[counter_set(target)]
        written = able.agent_write_back if scope == "agent" else able.system_write_back
        instructions = wait if reason.lack is Lack.WAIT else written
        if reason.lack is Lack.WAIT and written:
            instructions = f"{written}, {wait}"
        return (
            f"{earlier} is not released before the {release}: no {instructions} between them; "
            f"use {_release(scope)}"
        )
    instructions = able.agent_acquire if scope == "agent" else able.system_acquire
    if reason.lack is Lack.ACQUIRE_SCOPE:
        return (
            f"what follows the {observer} acquires at agent scope, which ends at its GPU: no "
            f"{instructions}; use {_acquire(scope)}"
        )
    return f"nothing is acquired after the {observer}: no {instructions}; use {_acquire(scope)}"


def _missing_order(mine: RaceSide, theirs: RaceSide, access: int, other: int, scope: str) -> str:
    accesses = mine.accesses
    sides = ((mine, access), (theirs, other))
    plain = [(side, index) for side, index in sides if not _atomic(side, index)]
    if len(plain) == 1 and mine is not theirs:
        ((side, index),) = plain
        text = _instruction_text(side.program.instructions[index])
        return f"the {text} is not atomic, the other access is"
    if any(atomicity is Atomicity.WORKGROUP for atomicity in accesses.atomicity.values()):
        return (
            f"the scope of the kernel's atomic accesses is the workgroup; use that of the {scope}"
        )
    if accesses.observing and not accesses.ordered:
        first = _instruction_text(mine.program.instructions[min(accesses.observing)])
        return f"nothing is acquired after the {first}; use {_acquire(scope)}"
    if scope == "system":
        return (
            "no release and acquire of system scope orders the two GPUs, nor does a stream, an "
            "event or the host"
        )
    if mine is not theirs:
        return "no stream, event or host thread orders the two launches, nor does an acquire"
    return "no release and acquire orders the two workgroups"


def _atomic(side: RaceSide, index: int) -> bool:
    return side.accesses.atomicity.get(index) in ATOMIC


def _instruction_text(instruction: Instruction) -> str:
    """An instruction by its source line."""
    memory = instruction.memory
    what = memory.kind.value if memory is not None else "instruction"
    if instruction.location is None or is_own(instruction.location.outermost.file):
        return f"{what} {instruction.decoded.text!r}"
    return f"{what} at line {instruction.location.outermost.line}"


__all__ = ["MIXED", "VOLATILE", "Lack", "RaceSide", "Unordered", "explanation"]
