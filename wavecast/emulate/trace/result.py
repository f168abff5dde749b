"""What a traced launch did: counts, memory transactions, and the paths of sampled waves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wavecast.emulate.trace.value_flow import AccessDword
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import Space
from wavecast.isa.program import Kernel, Program


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """One memory instruction over all waves counted.

    A request is one access by a wave with some lane active; instructions that go to two locations
    (`ds_read2`) make two. `lanes` and the following are sums over requests. `blocks_32`,
    `blocks_64` and `blocks_128` count the different aligned blocks of so many bytes that the lanes
    of one request touch; out-of-bounds lanes of buffers and LDS touch nothing. `contiguous` counts
    requests whose active lanes follow one another in memory, `broadcast` those of several lanes
    with one address. `collisions` are lanes of global atomics whose address an earlier lane of the
    request has. `least_stride` and `most_stride` are bytes from one active lane to the next; None
    where no request had two. For scratch, addresses are those of the lane-interleaved layout.

    For LDS: `passes` are the passes its banks need and `groups` those they would need without
    conflicts (`analyze.values.banks`), `conflicted` the requests that need more, `worst` the most
    passes of one group.
    """

    index: int
    space: Space
    kind: str
    width: int
    """Bytes per lane of one request; of the whole access for scalar memory."""
    executions: int
    requests: int
    lanes: int
    blocks_32: int = 0
    blocks_64: int = 0
    blocks_128: int = 0
    contiguous: int = 0
    broadcast: int = 0
    collisions: int = 0
    passes: int = 0
    groups: int = 0
    conflicted: int = 0
    worst: int = 0
    least_stride: int | None = None
    most_stride: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes asked for by active lanes."""
        return self.lanes * self.width

    @property
    def conflict_ways(self) -> float | None:
        """LDS passes over passes without conflicts; 1 means none. None without LDS requests."""
        return self.passes / self.groups if self.groups else None

    def plus(self, other: MemoryCounts) -> MemoryCounts:
        """The counts of both, of the same instruction."""
        summed = {name: getattr(self, name) + getattr(other, name) for name in _SUMMED}
        least, most = (
            tuple(value for value in pair if value is not None)
            for pair in (
                (self.least_stride, other.least_stride),
                (self.most_stride, other.most_stride),
            )
        )
        return replace(
            self,
            worst=max(self.worst, other.worst),
            least_stride=min(least, default=None),
            most_stride=max(most, default=None),
            **summed,
        )

    def blocks(self, size: int) -> int:
        """Blocks of 32, 64 or 128 bytes."""
        return {32: self.blocks_32, 64: self.blocks_64, 128: self.blocks_128}[size]


_SUMMED = (
    "executions", "requests", "lanes", "blocks_32", "blocks_64", "blocks_128", "contiguous",
    "broadcast", "collisions", "passes", "groups", "conflicted",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stream:
    """One recorded wave.

    `blocks` (u32[n]) is the sequence of basic blocks it executed. Its vector and scalar memory
    accesses follow in order: `instructions` (u32[m]), the lanes that touch memory `masks` (u64[m])
    and their `addresses` (u64[m, lanes]; entries of other lanes mean nothing): host addresses for
    global memory and scalar memory (in lane 0), offsets for LDS and for scratch. `complete` is
    False when a limit cut the recording or the launch broke off: what is there is the beginning.
    """

    workgroup: tuple[int, int, int]
    wave: int
    blocks: np.ndarray
    instructions: np.ndarray
    masks: np.ndarray
    addresses: np.ndarray
    complete: bool


@dataclass(frozen=True, slots=True)
class Trace:
    """A launch as trace mode saw it, or several of the same code and size (`launches`) together.

    Arrays count over all waves of the `workgroups` workgroups that were counted: `block_counts`
    and `taken` (u64[blocks]) are executions per basic block and how often the conditional branch at
    its end was taken; `active_lanes`, `partial` and `empty` (u64[instructions]) are, for
    instructions that run once per active lane, the lanes summed over executions and the executions
    with some and with all lanes off (0 for other instructions). `memory` is by instruction index,
    {} where only counts were asked for. `ranges` are the host addresses [first, end) the launch
    could touch, the argument segment and the code's own data first. `reduced` is what `TraceMode`
    was asked to make of the accesses of streams. `links` are dwords of stores and of the loads that
    have brought them, of values that are followed. `complete` is False when the launch broke off.
    Of several launches, `streams` and `ranges` are those of the first.
    """

    kernel: Kernel
    digest: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lanes: int
    workgroups: int
    waves: int
    block_counts: np.ndarray
    taken: np.ndarray
    active_lanes: np.ndarray
    partial: np.ndarray
    empty: np.ndarray
    memory: dict[int, MemoryCounts]
    streams: tuple[Stream, ...]
    ranges: tuple[tuple[int, int], ...]
    reduced: tuple[Any, ...] = ()
    complete: bool = True
    launches: int = 1
    links: frozenset[tuple[AccessDword, AccessDword]] = frozenset()

    def same_launch(self, other: Trace) -> bool:
        """Whether both are launches of the same code with the same grid and workgroups."""
        return (self.digest, self.grid, self.block) == (other.digest, other.grid, other.block)

    def plus(self, other: Trace) -> Trace:
        """The counts of both launches, which are of the same code and size."""
        assert self.same_launch(other)
        return replace(
            self,
            workgroups=self.workgroups + other.workgroups,
            waves=self.waves + other.waves,
            block_counts=self.block_counts + other.block_counts,
            taken=self.taken + other.taken,
            active_lanes=self.active_lanes + other.active_lanes,
            partial=self.partial + other.partial,
            empty=self.empty + other.empty,
            memory={n: counts.plus(other.memory[n]) for n, counts in self.memory.items()},
            complete=self.complete and other.complete,
            launches=self.launches + other.launches,
            links=self.links | other.links,
        )

    @property
    def program(self) -> Program:
        return self.kernel.program

    @property
    def target(self) -> str:
        return self.program.target

    @property
    def instruction_counts(self) -> np.ndarray:
        """Executions by waves per instruction, u64[instructions]."""
        lengths = [block.stop - block.start for block in self.program.blocks]
        return np.repeat(self.block_counts, lengths)

    @property
    def instructions(self) -> int:
        """Wave-instructions executed."""
        return int(self.instruction_counts.sum())

    def executions(self, instruction: Instruction | int) -> int:
        """How often waves executed an instruction."""
        index = instruction if isinstance(instruction, int) else instruction.index
        return int(self.instruction_counts[index])

    def class_counts(self) -> dict[str, int]:
        """Wave-instructions by cost class, the most frequent first."""
        by_class: dict[str, int] = {}
        counts = self.instruction_counts.tolist()
        for instruction, count in zip(self.program.instructions, counts, strict=True):
            if count:
                name = instruction.opcode.cost_class
                by_class[name] = by_class.get(name, 0) + count
        return dict(sorted(by_class.items(), key=lambda item: -item[1]))

    def __repr__(self) -> str:
        return (
            f"<Trace of {self.program.name} for {self.target}: {self.workgroups} workgroups, "
            f"{self.waves} waves, {self.instructions} instructions>"
        )


__all__ = ["MemoryCounts", "Stream", "Trace"]
