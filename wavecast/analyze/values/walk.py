"""Following one wave through a kernel's decisions, counting how often it executes each block.

Only the slice of instructions that decisions depend on runs; the slice of addresses runs as well
the first times a block is reached, when a walk is to see addresses. Loops whose state changes by
the same amount every iteration are skipped ahead: the walk jumps n iterations, executes one there,
and accepts the jump when that one took the same path and changed the state by the same amount; n
doubles while this holds and halves where it does not, so a loop of T iterations costs about
2 log2(T) of them. A condition that holds now and at the landing point is taken to hold in between,
which is true of comparisons with a counter.

Decisions on values that are not known: a branch on EXEC is taken as "some lane is active"; a loop
that ends on an unknown value has an unknown trip count; an early return is taken as not taken; of
any other branch one side is followed and the blocks of both are counted as unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from wavecast.analyze.values.domain import Scattered, Value, origin_of
from wavecast.analyze.values.execute import Registers, Step, special_position
from wavecast.analyze.values.slices import Slices
from wavecast.isa import semantics
from wavecast.isa.defuse import bits_of
from wavecast.isa.opcode import Control
from wavecast.isa.program import Loop, Program
from wavecast.isa.registers import AGPR_BASE, AGPR_COUNT, EXEC, VGPR_BASE
from wavecast.isa.semantics.integers import Unknown

FULL_VISITS = 2
"""How often a block runs the slice of addresses: once, and once more after the loop came round."""

_FIRST_JUMP = 8
_VECTOR_END = AGPR_BASE + AGPR_COUNT
_WORD = 1 << 32


class OverBudget(Exception):
    """The walk interpreted as many instructions as it may."""


@dataclass
class Outcome:
    """What one walk found. Counts are executions by this wave."""

    counts: list[float]
    entries: list[float]
    """Per loop, how often it was entered from outside."""
    unknown_blocks: dict[int, object] = field(default_factory=dict)
    unknown_loops: dict[int, object] = field(default_factory=dict)
    assumed: set[object] = field(default_factory=set)
    """Origins of EXEC masks taken to have some lane active, and of returns taken as not taken."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The state at a loop's header."""

    values: tuple[Value, ...]
    counts: tuple[float, ...]
    entries: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Change:
    """What one iteration did to the state; `steps` are added to the values."""

    steps: tuple[object, ...]
    counts: tuple[float, ...]
    entries: tuple[float, ...]


class Walk:
    """One wave. `step_of(index)` gives the effect of an instruction of a slice."""

    def __init__(
        self,
        program: Program,
        slices: Slices,
        state: Registers,
        step_of: Callable[[int], Step],
        budget: int,
        see_addresses: bool,
    ) -> None:
        self.program = program
        self.state = state
        self.budget = budget
        self.see_addresses = see_addresses
        self.outcome = Outcome([0.0] * len(program.blocks), [0.0] * len(program.loops))
        self._slices = slices
        self._step_of = step_of
        self._decisions: dict[int, list[tuple[Step, int]]] = {}
        self._everything: dict[int, list[tuple[Step, int]]] = {}
        self._loop_at = {loop.header: loop for loop in program.loops}
        self._order = {block: n for n, block in enumerate(program.reverse_postorder)}
        self._forget: dict[int, tuple[frozenset[int], object]] = {}

    def run(self, start: int = 0) -> Outcome:
        """Walk from a block to the end of the program, or until the budget is spent."""
        try:
            self._region(start, None)
        except OverBudget:
            reason = "the walk of this kernel was cut short: too many instructions to interpret"
            for loop in self.program.loops:
                self.outcome.unknown_loops.setdefault(loop.index, reason)
            for block in self.program.blocks:
                self.outcome.unknown_blocks.setdefault(block.index, reason)
        return self.outcome

    # blocks

    def _region(self, block: int | None, loop: Loop | None) -> int | None:
        """Run until the path ends, leaves `loop`, or comes back to its header."""
        while block is not None:
            inner = self._loop_at.get(block)
            block = self._loop(inner) if inner is not None else self._block(block)
            if loop is not None and (block == loop.header or block not in loop.blocks):
                return block
        return None

    def _block(self, index: int) -> int | None:
        counts = self.outcome.counts
        counts[index] += 1
        if index in self._forget:
            self._forget_writes(*self._forget.pop(index))
        state = self.state
        full = self.see_addresses and counts[index] <= FULL_VISITS
        steps = self._steps(index, full)
        self.budget -= len(steps) + 1
        if self.budget < 0:
            raise OverBudget
        for step, position in steps:
            step(state, position)
        return self._successor(index)

    def _steps(self, index: int, full: bool) -> list[tuple[Step, int]]:
        cache = self._everything if full else self._decisions
        found = cache.get(index)
        if found is None:
            block = self.program.blocks[index]
            decisions = self._slices.decisions.member
            addresses = self._slices.addresses.member
            instructions = self.program.instructions
            found = [
                (self._step_of(position), position)
                for position in range(block.start, block.stop)
                if decisions[position]
                or (full and (addresses[position] or instructions[position].decoded.memory))
            ]
            cache[index] = found
        return found

    def _successor(self, index: int) -> int | None:
        block = self.program.blocks[index]
        last = self.program.instructions[block.stop - 1]
        if last.opcode.control is not Control.CONDITIONAL or len(block.successors) < 2:
            return block.successors[0] if block.successors else None
        follows, jump = index + 1, next(s for s in block.successors if s != index + 1)
        value = self._condition(last.index)
        taken = self._taken(last.index, value)
        if isinstance(taken, int):
            return jump if taken else follows
        return self._unknown_branch(index, follows, jump, last.index, value)

    def _condition(self, index: int) -> Value:
        """The value a conditional branch looks at."""
        opcode = self.program.instructions[index].opcode
        position = special_position(opcode.implicit_reads[0])
        value = self.state.values[position]
        if opcode.implicit_reads[0] != "scc" and self.state.ops.lanes == 64:
            high = self.state.values[position + 1]
            if not isinstance(value, int) or not isinstance(high, int):
                decided = any(isinstance(half, int) and half for half in (value, high))
                return 1 if decided else Unknown(0, origin_of(value) or origin_of(high))
            value |= high << 32
        return value

    def _taken(self, index: int, value: Value) -> Value:
        meaning = semantics.of(self.program.instructions[index].opcode)
        return meaning.evaluate(self.state.ops, value)[0] if meaning is not None else value

    # decisions on unknown values

    def _unknown_branch(
        self, index: int, follows: int, jump: int, branch: int, value: Value
    ) -> int:
        reason = origin_of(value)
        loop = self._innermost(index)
        if loop is not None:
            leaving = [b for b in (follows, jump) if b not in loop.blocks]
            if leaving:
                self._mark_loop(loop, reason)
                return leaving[0]
        if self.program.instructions[branch].reads & EXEC:
            self.outcome.assumed.add(reason)
            return jump if self._taken(branch, self.state.ops.full_mask) else follows
        for early, other in ((jump, follows), (follows, jump)):
            if self._ends(early):
                self.outcome.assumed.add(reason)
                return other
        header = loop.header if loop is not None else None
        merge, between = self._between(follows, jump, header)
        for block in between:
            self.outcome.unknown_blocks.setdefault(block, reason)
        if merge is not None:
            self._forget[merge] = frozenset(between), reason
        return jump if follows == header else follows

    def _ends(self, block: int) -> bool:
        """The wave ends here, having done nothing else: an early return."""
        place = self.program.blocks[block]
        instructions = self.program.instructions[place.start : place.stop]
        return not place.successors and not any(
            i.decoded.memory is not None or i.opcode.matrix is not None for i in instructions
        )

    def _innermost(self, block: int) -> Loop | None:
        index = self.program.innermost_loop[block]
        return None if index is None else self.program.loops[index]

    def _mark_loop(self, loop: Loop, reason: object) -> None:
        self.outcome.unknown_loops.setdefault(loop.index, reason)
        for block in loop.blocks:
            self.outcome.unknown_blocks.setdefault(block, reason)
        for inner in self.program.loops:
            if inner.header in loop.blocks and inner.index != loop.index:
                inner_reason = self.outcome.unknown_loops.get(inner.index)
                if inner_reason is None and not self.outcome.entries[inner.index]:
                    self.outcome.unknown_loops[inner.index] = reason

    def _between(self, a: int, b: int, header: int | None) -> tuple[int | None, set[int]]:
        """Where two paths meet again going forward, and the blocks that only one side reaches.

        Paths within a loop meet at its header at the latest.
        """
        if header in (a, b):
            return header, self._forward(b if a == header else a)
        from_a, from_b = self._forward(a), self._forward(b)
        common = from_a & from_b
        merge = min(common, key=self._order.__getitem__) if common else header
        return merge, (from_a | from_b) - common

    def _forward(self, start: int) -> set[int]:
        seen = {start}
        stack = [start]
        while stack:
            block = stack.pop()
            for successor in self.program.blocks[block].successors:
                if successor not in seen and self._order[successor] > self._order[block]:
                    seen.add(successor)
                    stack.append(successor)
        return seen

    def _forget_writes(self, blocks: frozenset[int], reason: object) -> None:
        """Make unknown what blocks that may or may not have run write."""
        written = 0
        for index in blocks:
            block = self.program.blocks[index]
            for position in range(block.start, block.stop):
                if self._slices.decisions.member[position]:
                    written |= self.program.instructions[position].decoded.writes
        for position in bits_of(written & ~EXEC):
            vector = VGPR_BASE <= position < _VECTOR_END
            self.state.values[position] = Scattered(reason) if vector else Unknown(0, reason)

    # loops

    def _loop(self, loop: Loop) -> int | None:
        """Run a loop from its header until it is left; returns the block after it."""
        self.outcome.entries[loop.index] += 1
        live = bits_of(self._slices.decisions.needed[loop.header])
        previous = self._snapshot(live)
        change: _Change | None = None
        while True:
            block = self._iteration(loop)
            if block != loop.header:
                break
            current = self._snapshot(live)
            latest = _difference(previous, current)
            if latest is not None and change is not None and _equal(latest, change):
                current = self._skip_ahead(loop, live, current, latest)
                latest = None
            previous, change = current, latest
        if loop.index in self.outcome.unknown_loops:
            self._forget_writes(loop.blocks, self.outcome.unknown_loops[loop.index])
        return block

    def _iteration(self, loop: Loop) -> int | None:
        block = self._block(loop.header)
        if block is None or block == loop.header or block not in loop.blocks:
            return block
        return self._region(block, loop)

    def _snapshot(self, live: list[int]) -> _Snapshot:
        values = self.state.values
        outcome = self.outcome
        return _Snapshot(
            tuple([values[position] for position in live]),
            tuple(outcome.counts),
            tuple(outcome.entries),
        )

    def _skip_ahead(
        self, loop: Loop, live: list[int], now: _Snapshot, change: _Change
    ) -> _Snapshot:
        """Jump over iterations that repeat `change`; returns the state at the header afterwards."""
        jump, growing = _FIRST_JUMP, True
        while jump:
            jump = min(jump, _room(now.values, change.steps))
            if not jump:
                break
            saved = list(self.state.values), dict(self._forget), dict(self.state.masked)
            marks = dict(self.outcome.unknown_blocks), dict(self.outcome.unknown_loops)
            self._advance(live, now, change, jump)
            before = self._snapshot(live)
            block = self._iteration(loop)
            after = self._snapshot(live) if block == loop.header else None
            made = _difference(before, after) if after is not None else None
            if after is not None and made is not None and _equal(made, change):
                now = after
                jump = jump * 2 if growing else jump
                continue
            self.state.values, self._forget, self.state.masked = saved
            self.state.exec_changed()
            self.outcome.unknown_blocks, self.outcome.unknown_loops = marks
            self.outcome.counts[:] = now.counts
            self.outcome.entries[:] = now.entries
            growing = False
            jump //= 2
        return now

    def _advance(self, live: list[int], now: _Snapshot, change: _Change, times: int) -> None:
        for position, value, step in zip(live, now.values, change.steps, strict=True):
            if isinstance(step, int):
                if step:
                    self.state.values[position] = (value + times * step) % _WORD
            elif isinstance(step, np.ndarray):
                self.state.values[position] = value + step * np.uint32(times % _WORD)
        counts, entries = self.outcome.counts, self.outcome.entries
        counts[:] = [a + times * b for a, b in zip(now.counts, change.counts, strict=True)]
        entries[:] = [a + times * b for a, b in zip(now.entries, change.entries, strict=True)]


def _difference(before: _Snapshot, after: _Snapshot) -> _Change | None:
    """What changed from one header to the next; None when some value did not change evenly."""
    steps: list[object] = []
    for a, b in zip(before.values, after.values, strict=True):
        if a is b or (type(a) is int and a == b):
            steps.append(0)
        elif type(a) is int and type(b) is int:
            steps.append((b - a) % _WORD)
        elif type(a) is np.ndarray and type(b) is np.ndarray:
            steps.append(b - a)
        elif isinstance(a, (Unknown, Scattered)) and type(a) is type(b):
            steps.append(0)
        else:
            return None
    return _Change(
        tuple(steps),
        tuple([b - a for a, b in zip(before.counts, after.counts, strict=True)]),
        tuple([b - a for a, b in zip(before.entries, after.entries, strict=True)]),
    )


def _equal(a: _Change, b: _Change) -> bool:
    if a.counts != b.counts or a.entries != b.entries:
        return False
    for x, y in zip(a.steps, b.steps, strict=True):
        if type(x) is int and type(y) is int:
            if x != y:
                return False
        elif not np.array_equal(np.asarray(x), np.asarray(y)):
            return False
    return True


def _room(values: tuple[Value, ...], steps: tuple[object, ...]) -> int:
    """How many iterations no counter wraps around for, the one executed afterwards included."""
    room = 1 << 40
    for value, step in zip(values, steps, strict=True):
        if not isinstance(step, int) or not step:
            continue
        signed = step - _WORD if step >= _WORD // 2 else step
        left = (_WORD - 1 - value) // signed if signed > 0 else value // -signed
        room = min(room, left)
    return max(0, room - 1)
