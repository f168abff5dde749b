"""Counters of a traced launch: what native code and Python agree on.

Every context (a host thread's, or a resident workgroup's) has one array of 64-bit words for the
workgroups that are counted, and one for the others. In it, in order: executions per block; how
often the branch at a block's end was taken; `REGION_WORDS` per region; `MEMORY_WORDS` per memory
instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.emulate import hostmemory
from wavecast.emulate.lower import state
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import Program
from wavecast.isa.registers import EXEC

# context words
COUNTERS: Final = state.TRACE  # pointer to the counters of workgroups that are counted
DISCARDED: Final = state.TRACE + 1  # pointer to those of the others
COUNTED: Final = state.TRACE + 2  # pointer to the sorted numbers of workgroups that are counted
COUNTED_LENGTH: Final = state.TRACE + 3  # 0: all are
SAMPLED: Final = state.TRACE + 4  # the same for workgroups whose waves are recorded
SAMPLED_LENGTH: Final = state.TRACE + 5
WAVES: Final = state.TRACE + 6  # waves of a workgroup
STREAM: Final = state.TRACE + 7  # number of the wave that is being recorded
BLOCK_LOG: Final = state.TRACE + 8  # pointer to 32-bit entries, then how many there are
BLOCK_FILL: Final = state.TRACE + 9
ACCESS_LOG: Final = state.TRACE + 10  # pointer to records of `record_words` words, then how many
ACCESS_FILL: Final = state.TRACE + 11
FLUSH: Final = state.TRACE + 12  # void (i64 thread, i64 log): a log is full
THREAD: Final = state.TRACE + 13
ROOM: Final = state.TRACE + 14  # pointer to how many more entries each wave may add to a log (i64)
FLOW: Final = state.TRACE + 15  # pointer to what follows values in memory (`memory_flow`)
assert FLOW < state.NAMED_OWNER

BLOCK_ROOM: Final = 1 << 16
"""Entries of a block log."""
ACCESS_ROOM: Final = 1 << 10
"""Records of an access log."""
STREAM_BIT: Final = 1 << 31
"""Entries of the block log with this bit name the stream that what follows belongs to."""

# words of a region
PARTIAL: Final = 0  # executions with some lanes off
EMPTY: Final = 1  # executions with all lanes off
INACTIVE: Final = 2  # lanes that were off, summed over executions
REGION_WORDS: Final = 4

# words of a memory instruction; sums over its requests
REQUESTS: Final = 0  # accesses by a wave with some lane active
LANES: Final = 1
BLOCKS_32: Final = 2  # aligned 32, 64 and 128 byte blocks touched
BLOCKS_64: Final = 3
BLOCKS_128: Final = 4
CONTIGUOUS: Final = 5  # requests whose active lanes follow one another
BROADCAST: Final = 6  # requests of several lanes with one address
COLLISIONS: Final = 7  # lanes of atomics whose address an earlier lane has
PASSES: Final = 8  # passes the LDS banks need
GROUPS: Final = 9  # passes without conflicts
CONFLICTED: Final = 10  # requests with a conflict
WORST: Final = 11  # most passes of one group (a maximum)
LEAST_STRIDE: Final = 12  # signed; bytes from one active lane to the next
MOST_STRIDE: Final = 13
MEMORY_WORDS: Final = 16

SIZES: Final = (32, 64, 128)
"""Bytes of the blocks counted by BLOCKS_32 and following."""
NO_STRIDE: Final = (1 << 63) - 1
"""LEAST_STRIDE before there was any; MOST_STRIDE starts at its complement."""


@dataclass(frozen=True, slots=True)
class TraceRegion:
    """Instructions `[start, stop)` of a block that all run under one value of EXEC."""

    block: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class TracePlan:
    """Which word of the counters belongs to what, for one program."""

    blocks: int
    regions: tuple[TraceRegion, ...]
    memory: tuple[int, ...]
    """Indices of memory instructions."""
    region_of: np.ndarray
    """Per instruction the number of its region, -1 where it does not run once per active lane."""

    @classmethod
    def of(cls, program: Program) -> TracePlan:
        """The plan of a program; it depends on nothing else."""
        regions = [r for block in range(len(program.blocks)) for r in _regions(program, block)]
        memory = tuple(i.index for i in program.instructions if i.memory is not None)
        region_of = np.full(len(program.instructions), -1)
        for number, region in enumerate(regions):
            for index in range(region.start, region.stop):
                if per_lane(program.instructions[index]):
                    region_of[index] = number
        return cls(len(program.blocks), tuple(regions), memory, region_of)

    @property
    def words(self) -> int:
        return self.memory_word(len(self.memory))

    def taken_word(self, block: int) -> int:
        return self.blocks + block

    def region_word(self, number: int) -> int:
        return 2 * self.blocks + REGION_WORDS * number

    def memory_word(self, number: int) -> int:
        return self.region_word(len(self.regions)) + MEMORY_WORDS * number

    def counters(self) -> np.ndarray:
        """Counters that have counted nothing."""
        counters = hostmemory.zeros(self.words, np.uint64)
        table = counters[self.memory_word(0) :].reshape(-1, MEMORY_WORDS).view(np.int64)
        table[:, LEAST_STRIDE], table[:, MOST_STRIDE] = NO_STRIDE, ~NO_STRIDE
        return counters


def record_words(lanes: int) -> int:
    """64-bit words of an access record: instruction and stream, lanes, one address per lane."""
    return 2 + lanes


def per_lane(instruction: Instruction) -> bool:
    """Whether it runs once per active lane; matrix instructions ignore EXEC."""
    return instruction.opcode.is_vector and instruction.opcode.matrix is None


def _regions(program: Program, block: int) -> list[TraceRegion]:
    """The regions of a block that hold an instruction which runs once per active lane."""
    regions, start = [], None
    for instruction in program.block_instructions(block):
        if start is None and per_lane(instruction):
            start = instruction.index
        if instruction.decoded.writes & EXEC and start is not None:
            regions.append(TraceRegion(block, start, instruction.index + 1))
            start = None
    if start is not None:
        regions.append(TraceRegion(block, start, program.blocks[block].stop))
    return regions


__all__ = [
    "ACCESS_ROOM",
    "BLOCK_ROOM",
    "MEMORY_WORDS",
    "NO_STRIDE",
    "REGION_WORDS",
    "ROOM",
    "SIZES",
    "STREAM_BIT",
    "TracePlan",
    "TraceRegion",
    "per_lane",
    "record_words",
]
