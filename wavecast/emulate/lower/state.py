"""How a wave and a launch lie in memory: what native code and the scheduler agree on.

A wave is one array of 32-bit words: a header, the scalar registers, then vector registers as
`[row][lane]`. VGPR r is row r; AGPR a is row `vgpr_rows + a`. A launch context is an array of
64-bit words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wavecast.isa.registers import AGPR_BASE, AGPR_COUNT, SGPR_BASE, VGPR_BASE, VGPR_COUNT

# header words
ENTRY: Final = 0  # where the wave resumes: 0 at the start, then the number of a barrier
ERROR_INSTRUCTION: Final = 1
SIGNALLED_OWN: Final = 2  # 1 between this wave's signal at a split barrier and its wait
CLUSTER_PASSED: Final = 3  # barriers of the cluster that this wave has passed
JOINED: Final = 4  # the named barrier that this wave has joined, 0 for none
NAMED_PASSED: Final = 5  # how often that had opened when this wave joined or passed it
JOINED_AT: Final = 8  # how often that had opened when this wave joined it
FIRST_EXEC: Final = 6  # EXEC the wave started with, low and high half (check mode)
SCALARS: Final = 16
VECTORS: Final = 256
"""First word of the vector registers; a multiple of 64 bytes."""

# what the wave function returns
DONE: Final = 0
BARRIER: Final = 1
BAD_ADDRESS: Final = 2
ENDLESS: Final = 3
TRAP: Final = 4
BAD_DESCRIPTOR: Final = 5
BAD_JUMP: Final = 7
BAD_REGISTER: Final = 8
BAD_BARRIER: Final = 9
BAD_TENSOR: Final = 10
BAD_NAMED_BARRIER: Final = 11
PAUSED: Final = 6  # at a loop header: the slice is used up

SHARED_APERTURE: Final = 0x0100_0000
PRIVATE_APERTURE: Final = 0x0200_0000
"""High halves of the flat addresses of LDS and scratch: no host address has them."""

# context words
LDS_BASE: Final = 0
LDS_BYTES: Final = 1
RANGES: Final = 2  # pointer to (first, end) pairs of 64-bit words
RANGE_COUNT: Final = 3
SCRATCH_BASE: Final = 4
SCRATCH_BYTES: Final = 5
BUDGET: Final = 6  # instructions left of the slice of the wave that runs
DATA_BASE: Final = 7  # where the data of the code object lies
FAULT_LANE: Final = 8  # lane and address of an access that failed
FAULT_ADDRESS: Final = 9
WORKGROUP: Final = 10  # number of the workgroup that runs, x fastest
WAVE: Final = 11  # number of the wave within it
PHASE: Final = 12  # barrier phase: barriers the workgroup has passed
SIGNALLED: Final = 13  # workgroup + 1 and PHASE of the last signal with a result
CLUSTER: Final = 14  # pointer to the barrier of the cluster (`clusters.WORDS`), 0 without one
CLUSTER_SIZE: Final = 15  # workgroups of a cluster
MODE: Final = 16  # first word that belongs to the mode of execution: checks, or another
TRACE: Final = 48  # first word that belongs to a trace, which may run with checks
NAMED_OWNER: Final = 64  # workgroup + 1 whose named barriers the words after this one are
NAMED: Final = 65  # a word of no barrier, then the named barriers
NAMED_BARRIERS: Final = 16
CONTEXT_WORDS: Final = NAMED + NAMED_BARRIERS + 1


@dataclass(frozen=True, slots=True)
class WaveLayout:
    """Sizes of one kernel's wave: lanes and rows of vector registers."""

    lanes: int
    vgpr_rows: int
    agpr_rows: int

    @property
    def words(self) -> int:
        """32-bit words of one wave."""
        return VECTORS + (self.vgpr_rows + self.agpr_rows) * self.lanes

    def row(self, position: int) -> int:
        """The row of a vector register, by its bit position. Raises ValueError."""
        if VGPR_BASE <= position < VGPR_BASE + VGPR_COUNT:
            return position - VGPR_BASE
        if AGPR_BASE <= position < AGPR_BASE + AGPR_COUNT:
            return self.vgpr_rows + position - AGPR_BASE
        raise ValueError(f"register bit {position} is not a vector register")


def scalar_word(position: int) -> int:
    """The word of a scalar or special register, by its bit position."""
    return SCALARS + position - SGPR_BASE
