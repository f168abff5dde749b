"""Addresses of the threads of many workgroups, followed all at once.

A walk whose values have an element per thread instead of per lane: a scalar register holds the
value of each thread's wave. That takes as long as following one wave. Masks are not followed, loads
are unknown, a value taken from another lane counts as the lane's own, and at a branch all threads
follow the majority.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.analyze.values.access import Sighting
from wavecast.analyze.values.domain import WaveOps, join
from wavecast.analyze.values.execute import Step
from wavecast.analyze.values.inputs import Inputs
from wavecast.analyze.values.kinds import LaneScalars, Scattered, Value, is_known, origin_of
from wavecast.analyze.values.paths import Branch, Paths
from wavecast.analyze.values.plans import Plans
from wavecast.analyze.values.scratch import SLOT_BASE
from wavecast.analyze.values.slices import Slices, slices
from wavecast.analyze.values.state import RegisterState
from wavecast.analyze.values.steady import Change, Snapshot, Trend
from wavecast.analyze.values.steps import Steps
from wavecast.analyze.values.walk import Walk
from wavecast.compile.codeobject import Launch
from wavecast.isa.defuse import bits_of
from wavecast.isa.opcode import OpcodeFlag
from wavecast.isa.program import Kernel, Loop, Program, first_block
from wavecast.isa.semantics.integers import Integer, Unknown
from wavecast.isa.semantics.machine import FloatMode
from wavecast.isa.targets import isa_target

BUDGET: Final = 12_000
"""Instructions interpreted before the walk gives up; what it has seen by then counts."""
EVERY_BUDGET: Final = 40_000
"""The same of a walk that sees every iteration."""
_WRAPS: Final = frozenset({OpcodeFlag.CHOICE, OpcodeFlag.HIGH_PRODUCT})
"""Flags of instructions that wrap addresses in a loop: back to the start of a row."""


@dataclass(frozen=True, slots=True, eq=False)
class ThreadAddresses:
    """Addresses of an instruction (i64[threads]) at its first execution and, where it ran twice, at
    its second; `in_bounds` (bool[threads]) says which do not lie beyond the end of a buffer."""

    first: np.ndarray
    in_bounds: np.ndarray
    second: np.ndarray | None


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """Addresses of the instructions of a launch, by index, where they are known for every thread.

    `first` has the threads of the first workgroup and then the first thread of each workgroup.
    `iterations` has the addresses (i64[threads in bounds]) of every execution by one workgroup,
    for instructions of loops in which addresses do more than advance by a step: {} without such
    loops, None where following every iteration takes too long.
    """

    first: Mapping[int, ThreadAddresses]
    iterations: Mapping[int, list[np.ndarray]] | None


def follow(kernel: Kernel, launch: Launch, workgroups: np.ndarray, threads: int) -> Followed:
    """Follow the addresses of a launch. `workgroups` (integers[n, 3]) are x, y and z of n of them,
    `threads` is the number of threads of each. Every iteration is that of the middle one."""
    program = kernel.program
    parts = slices(program, kernel.descriptor, follow_exec=False)
    walks = _Walks(kernel, launch, parts)
    where = np.concatenate([np.repeat(workgroups[:1], threads, axis=0), workgroups])
    numbers = np.concatenate([np.arange(threads), np.zeros(len(workgroups), np.int64)])
    first = _first_executions(walks, where, numbers)
    bent = _bent_loops(program, parts)
    if not bent:
        return Followed(first, {})
    middle = np.repeat(workgroups[len(workgroups) // 2, None], threads, axis=0)
    return Followed(first, _iterations(walks, middle, np.arange(threads), bent))


@dataclass(frozen=True, slots=True, eq=False)
class _Walks:
    """Walks of one launch, all over the same slices."""

    kernel: Kernel
    launch: Launch
    parts: Slices

    def run(
        self, workgroups: np.ndarray, threads: np.ndarray, recorder: _Seen, *, every: bool = False
    ) -> bool:
        """Follow threads (integers[n]) of workgroups (integers[n, 3]) and record what memory
        instructions see; whether to the end."""
        program, descriptor, parts = self.kernel.program, self.kernel.descriptor, self.parts
        inputs = Inputs(self.launch.code, descriptor, self.launch)
        steps = Steps(program, parts, inputs, recorder)
        plans = Plans(program, parts, lambda index: _doubting(program, index, steps(index)))
        size = max((s.first + s.count for s in parts.spills.values()), default=SLOT_BASE)
        machine = FloatMode(target=isa_target(self.launch.code.target))
        lanes = (threads % inputs.lanes).astype(np.uint32)
        state = RegisterState(_PointOps(inputs.lanes, lanes, machine), size)
        for position, value in inputs.registers_at(workgroups, threads).items():
            state.values[position] = value
        budget = EVERY_BUDGET if every else BUDGET
        walk = _PointWalk(program, plans, Paths(program), state, budget, True, follow_exec=False)
        if every:
            walk.see_all()
        return not walk.run(first_block(program, descriptor)).cut_short


def _first_executions(
    walks: _Walks, workgroups: np.ndarray, threads: np.ndarray
) -> dict[int, ThreadAddresses]:
    recorder = _Seen(2)
    walks.run(workgroups, threads, recorder)
    addresses = {}
    for index, sightings in recorder.sightings.items():
        first = _addresses(sightings[0], len(threads))
        if first is not None:
            again = _addresses(sightings[1], len(threads)) if len(sightings) > 1 else None
            addresses[index] = ThreadAddresses(*first, again[0] if again else None)
    return addresses


def _iterations(
    walks: _Walks, workgroups: np.ndarray, threads: np.ndarray, loops: list[Loop]
) -> dict[int, list[np.ndarray]] | None:
    recorder = _Seen(EVERY_BUDGET)
    if not walks.run(workgroups, threads, recorder, every=True):
        return None
    blocks = walks.kernel.program.blocks
    looped = {
        index
        for loop in loops
        for block in loop.blocks
        for index in range(blocks[block].start, blocks[block].stop)
    }
    addresses: dict[int, list[np.ndarray]] = {}
    for index, sightings in recorder.sightings.items():
        each = [_addresses(sighting, len(threads)) for sighting in sightings]
        if index in looped and all(execution is not None for execution in each):
            addresses[index] = [
                execution[0][execution[1]] for execution in each if execution is not None
            ]
    return addresses


def _bent_loops(program: Program, parts: Slices) -> list[Loop]:
    """Innermost loops in which what addresses depend on does more than move on by a step."""
    loops = []
    for loop in program.loops:
        if loop.children:
            continue
        traced = (
            program.instructions[index].opcode.flags
            for block in loop.blocks
            for index in range(program.blocks[block].start, program.blocks[block].stop)
            if parts.addresses.member[index]
        )
        if any(flags & _WRAPS for flags in traced):
            loops.append(loop)
    return loops


class _Seen:
    """Keeps the first sightings of every instruction, so many at most."""

    def __init__(self, most: int) -> None:
        self.sightings: dict[int, list[Sighting]] = {}
        self._most = most

    def __contains__(self, index: object, /) -> bool:
        return isinstance(index, int) and len(self.sightings.get(index, ())) == self._most

    def __setitem__(self, index: int, sighting: Sighting, /) -> None:
        self.sightings.setdefault(index, []).append(sighting)


def _addresses(sighting: Sighting, threads: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Addresses and which of them are in bounds; None where they are not known."""
    if not is_known(sighting.address) or not is_known(sighting.base):
        return None
    offset, base = (
        np.broadcast_to(np.asarray(value, np.uint64).astype(np.int64), (threads,))
        for value in (sighting.address, sighting.base)
    )
    reach = np.iinfo(np.int64).max if sighting.reach is None else sighting.reach
    return offset + base, offset < reach


class _PointOps(WaveOps):
    """Values per thread, scalar registers too. Of a mask only the thread's own bit counts: a mask
    is all ones or zero for every thread, and EXEC is full."""

    def __init__(self, lanes: int, lane_ids: np.ndarray, machine: FloatMode) -> None:
        super().__init__(lanes, machine)
        self._own = lane_ids

    def set_exec(self, mask: Integer) -> None:
        del mask

    def lane(self) -> Value:
        return self._own

    def in_scalar(self, value: Value) -> Value:
        return value

    def first_active_lane(self, a: Value) -> Value:
        return a

    def read_lane(self, a: Value, lane: Value) -> Value:
        if isinstance(a, (int, LaneScalars)):
            return super().read_lane(a, lane)
        return Scattered(origin_of(a))

    def gather(self, a: Value, lane: Value) -> Value:
        # what reaches addresses this way is permuted within a wave (Triton's loads into LDS), which
        # reaches the same places
        del lane
        return a

    def lane_active(self, lane: Value) -> Value:
        del lane
        return 1

    def lanes_of_mask(self, mask: Value) -> Value:
        if isinstance(mask, int):
            return mask & 1
        if isinstance(mask, np.ndarray):
            return (mask & mask.dtype.type(1)).astype(np.bool_)
        return Scattered(origin_of(mask))

    def mask_of_lanes(self, condition: Value) -> Value:
        if isinstance(condition, int):
            return self.full_mask if condition else 0
        if isinstance(condition, np.ndarray):
            kind = np.uint64 if self.lanes == 64 else np.uint32
            return np.where(condition, kind(self.full_mask), kind(0))
        return Scattered(origin_of(condition))


class _PointWalk(Walk):
    """Goes the way of most threads."""

    _leaps = True

    def see_all(self) -> None:
        """Follow every iteration of every loop."""
        self.full_visits = EVERY_BUDGET
        self._leaps = False

    def _skip_ahead(self, loop: Loop, now: Snapshot, steady: Change, heading: Trend) -> Snapshot:
        return super()._skip_ahead(loop, now, steady, heading) if self._leaps else now

    def _condition(self, branch: Branch) -> Value:
        if branch.on_exec:
            return super()._condition(branch)
        value = self.state.values[branch.position]
        if not branch.flag and self.state.ops.lanes == 64:
            value = join(value, self.state.values[branch.position + 1])
        if isinstance(value, np.ndarray):
            values, counts = np.unique(value, return_counts=True)
            return int(values[counts.argmax()])
        return value if isinstance(value, int) else Unknown(0, origin_of(value))


def _doubting(program: Program, index: int, step: Step) -> Step:
    """What an instruction leaves unknown may differ from thread to thread."""
    written = bits_of(program.instructions[index].decoded.writes)

    def step_and_scatter(state: RegisterState, index: int) -> None:
        step(state, index)
        values = state.values
        for position in written:
            if isinstance(values[position], Unknown):
                values[position] = Scattered(index)

    return step_and_scatter


__all__ = ["Followed", "ThreadAddresses", "follow"]
