"""What check mode found: one report per kind and instruction."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from wavecast.isa.instruction import SourceLocation


class Kind(IntEnum):
    """What can be wrong. The value is what native code writes to the log."""

    LDS_RACE = 1
    GLOBAL_RACE = 2
    WORKGROUP_RACE = 3
    UNINITIALISED_LDS = 4
    UNINITIALISED_GLOBAL = 5
    UNINITIALISED_REGISTER = 6
    DIVERGENT_BARRIER = 7
    PARTIAL_BARRIER = 8
    MISSING_WAIT = 9
    HAZARD = 10
    OUT_OF_BOUNDS = 11
    BEYOND_WAVE = 12
    NOT_A_NUMBER = 13
    INFINITY = 14
    OUT_OF_LDS = 15
    REPLICATED_READ = 16
    EXITED_WAVE = 17
    MISSING_END = 18
    UNALLOCATED_REGISTER = 19
    INTEGER_DIVISION_BY_ZERO = 20
    INACTIVE_LANE = 21
    FP8_FORMAT = 22
    ORDER_DEPENDENT = 23
    LANE_RACE = 24
    SAME_VALUE = 25
    MASKED_ELEMENT = 26
    MISALIGNED = 27
    UNINITIALISED_PRIVATE = 28
    GPU_RACE = 29
    LAUNCH_RACE = 30
    ASSUMES_32_LANES = 31
    FP8_OVERFLOW = 32
    LOST_UPDATE = 33
    HOST_RACE = 34
    NOT_RESIDENT = 35
    COUNTER_NOT_RESET = 36

    @property
    def rule(self) -> str:
        """The name reports carry: `lds-race`."""
        return self.name.lower().replace("_", "-")


KINDS = 64
"""Kinds the log tells apart."""

Severity = Literal["error", "warning", "note"]

WARNINGS = frozenset({Kind.NOT_A_NUMBER, Kind.INFINITY, Kind.FP8_OVERFLOW})
NOTES = frozenset({Kind.REPLICATED_READ, Kind.SAME_VALUE})
"""Kinds that may be meant: they are reported and do not fail a run."""

EXPLANATIONS: dict[Kind, str] = {
    Kind.LDS_RACE: "two waves touch the same LDS bytes and nothing orders them: a barrier, or a "
    "wait before the barrier, is missing",
    Kind.GLOBAL_RACE: "two waves of a workgroup touch the same memory and no barrier orders them",
    Kind.WORKGROUP_RACE: "two workgroups touch the same memory, one of them writes, and no release "
    "and acquire of agent scope orders them",
    Kind.GPU_RACE: "two GPUs touch the same memory, one of them writes, and nothing orders them: "
    "no release and acquire of system scope, no stream, event or host thread",
    Kind.LAUNCH_RACE: "two launches or copies in different streams touch the same memory, one of "
    "them writes, and no stream, event or host thread orders them",
    Kind.HOST_RACE: "the host touches memory that a launch or a copy accesses, and has not waited "
    "for it",
    Kind.NOT_RESIDENT: "workgroups wait for others that cannot start before they end, because the "
    "GPU does not hold all at once",
    Kind.COUNTER_NOT_RESET: "a counter tells a workgroup that it arrives last, and nobody resets "
    "it before the next launch, in which no workgroup is the last one",
    Kind.LANE_RACE: "lanes of one instruction store different values to the same address",
    Kind.LOST_UPDATE: "lanes of a wave load the same element, change the value and store it back: "
    "of their updates one stays",
    Kind.SAME_VALUE: "two workgroups store the same value to the same address and nothing orders "
    "them: harmless while the values are the same",
    Kind.UNINITIALISED_LDS: "LDS is read that no wave of the workgroup has written",
    Kind.UNINITIALISED_GLOBAL: "memory is read that was allocated and never written",
    Kind.UNINITIALISED_REGISTER: "a register is used that nothing has written in these lanes",
    Kind.UNINITIALISED_PRIVATE: "a value is used that was loaded from private memory which nothing "
    "has written in these lanes",
    Kind.DIVERGENT_BARRIER: "waves of a workgroup wait at different barriers",
    Kind.PARTIAL_BARRIER: "a barrier is reached while some lanes of the wave are masked off",
    Kind.MISSING_WAIT: "a register is used while a memory operation on it may be outstanding",
    Kind.HAZARD: "the hardware needs more wait states between two instructions",
    Kind.OUT_OF_BOUNDS: "an access through a pointer lands outside the tensor that was passed",
    Kind.EXITED_WAVE: "a wave has ended and others of its workgroup wait at a barrier: the "
    "hardware lets them pass, the programming models leave it undefined",
    Kind.MISSING_END: "the code continues after its last instruction: s_endpgm is missing",
    Kind.UNALLOCATED_REGISTER: "a register is used that the kernel descriptor does not allocate",
    Kind.INTEGER_DIVISION_BY_ZERO: "an integer is divided by zero: the result is undefined",
    Kind.INACTIVE_LANE: "a lane reads a register of a lane that is not active: the hardware gives "
    "0, the programming models leave it undefined",
    Kind.BEYOND_WAVE: "a lane, a distance or a width that the program states is beyond the wave",
    Kind.FP8_FORMAT: "an instruction takes the bytes of a tensor for another 8-bit float format",
    Kind.MASKED_ELEMENT: "elements that a load masks off are used, and the load has no other for "
    "them: Triton leaves them undefined",
    Kind.ORDER_DEPENDENT: "the result depends on the order in which workgroups or waves run",
    Kind.NOT_A_NUMBER: "the first NaN that was computed from numbers",
    Kind.INFINITY: "the first infinity that was computed from finite numbers",
    Kind.FP8_OVERFLOW: "numbers are converted to an 8-bit float that has no number so large",
    Kind.REPLICATED_READ: "a wave loads what another wave, which loaded the same by the same "
    "instruction, has since overwritten: harmless where the second copy is not used (Triton "
    "replicates loads over waves when a tile is smaller than the workgroup)",
    Kind.MISALIGNED: "the hardware ignores low bits of the address and accesses other bytes",
    Kind.ASSUMES_32_LANES: "code for waves of 32 lanes runs on a wave of 64: values or votes of "
    "the other half are lost or mixed",
    Kind.OUT_OF_LDS: "LDS is touched beyond what the workgroup has: loads give 0, stores are lost",
}


@dataclass(frozen=True, slots=True)
class Report:
    """One thing check mode found, by its first occurrence.

    `workgroup` (x, y, z), `wave` and `lanes` say who; None where the finding holds for every wave
    that gets there. `addresses` are those of the first lane: host addresses in global memory, byte
    offsets in LDS. `other` is the second instruction of a race, the load or matrix instruction
    that is outstanding, or where a value came from. `count` is how often it happened. With several
    GPUs `gpu` is that of the launch, and `other_kernel`, `other_gpu` and `other_workgroup` say who
    executed the second instruction if another launch did.
    """

    kind: Kind
    kernel: str
    target: str
    message: str
    instruction: int
    text: str
    location: SourceLocation | None = None
    workgroup: tuple[int, int, int] | None = None
    wave: int | None = None
    lanes: tuple[int, ...] = ()
    addresses: tuple[int, ...] = ()
    other: int | None = None
    other_text: str = ""
    other_location: SourceLocation | None = None
    count: int = 1
    gpu: int | None = None
    other_kernel: str = ""
    other_gpu: int | None = None
    other_workgroup: tuple[int, int, int] | None = None

    @property
    def severity(self) -> Severity:
        if self.kind in NOTES:
            return "note"
        return "warning" if self.kind in WARNINGS else "error"

    @property
    def explanation(self) -> str:
        """What this kind of report means, in one line."""
        return EXPLANATIONS[self.kind]


__all__ = ["EXPLANATIONS", "KINDS", "Kind", "Report", "Severity"]
