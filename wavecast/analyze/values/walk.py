"""Following one wave through a kernel's decisions, counting how often it executes each block.

Only the slice of instructions that decisions depend on runs; the slice of addresses runs as well
the first times a block is reached, when a walk is to see addresses. Loops whose state changes by
the same amount every iteration are skipped ahead (`steady`): the walk jumps n iterations, executes
one there, and accepts the jump when that one took the same path with the same changes; n doubles
while this holds and halves where it does not, so a loop of T iterations costs about 2 log2(T).

Decisions on values that are not known: a branch on EXEC is taken as "some lane is active"; a loop
that ends on an unknown value has an unknown trip count, unless it retries a compare-and-swap, which
is taken to succeed at the first attempt; an early return is taken as not taken; of
any other branch one side is followed and the blocks of both are counted as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from wavecast.analyze.values.domain import Comparison
from wavecast.analyze.values.kinds import Scattered, Value, origin_of
from wavecast.analyze.values.paths import Branch, Paths
from wavecast.analyze.values.plans import Plans
from wavecast.analyze.values.state import RegisterState
from wavecast.analyze.values.steady import (
    Change,
    Snapshot,
    Trend,
    agree,
    change,
    differences,
    trend,
)
from wavecast.isa.program import Loop, Program
from wavecast.isa.registers import AGPR_BASE, AGPR_COUNT, VGPR_BASE
from wavecast.isa.semantics.integers import Unknown

FULL_VISITS = 2
"""How often a block runs the slice of addresses: once, and once more after the loop came round."""

NOT_FOLLOWED = "following every lane mask would take too long"
"""Origin of the EXEC of a walk that does not follow it."""

CUT_SHORT = (
    "the walk of this kernel was cut short: its waves execute too many instructions to follow"
)
"""Why counts are unknown when the budget ran out; an executed sample has them."""

_FIRST_JUMP = 8
_VECTOR_END = AGPR_BASE + AGPR_COUNT


class OverBudget(Exception):
    """The walk interpreted as many instructions as it may."""


@dataclass
class WalkResult:
    """What one walk found. Counts are executions by this wave."""

    counts: list[float]
    entries: list[float]
    """Per loop, how often it was entered from outside."""
    cut_short: bool = False
    interpreted: int = 0
    """Instructions this walk executed."""
    unknown_blocks: dict[int, object] = field(default_factory=dict)
    unknown_loops: dict[int, object] = field(default_factory=dict)
    retries: set[int] = field(default_factory=set)
    """Loops that retry a compare-and-swap, counted as if the first attempt succeeded."""
    assumed: set[object] = field(default_factory=set)
    """Origins of EXEC masks taken to have some lane active, and of returns taken as not taken."""


class Walk:
    """One wave."""

    def __init__(
        self,
        program: Program,
        plans: Plans,
        paths: Paths,
        state: RegisterState,
        budget: int,
        see_addresses: bool,
        follow_exec: bool = True,
    ) -> None:
        self.program = program
        self.state = state
        self.budget = budget
        self.see_addresses = see_addresses
        self.follow_exec = follow_exec
        self.outcome = WalkResult([0.0] * len(program.blocks), [0.0] * len(program.loops))
        self.full_visits = FULL_VISITS
        self._plans = plans
        self._paths = paths
        self._loop_at = {loop.header: loop for loop in program.loops}
        self._bodies: dict[int, tuple[list[int], list[int]]] = {}
        self._forget: dict[int, tuple[frozenset[int], object]] = {}

    def run(self, start: int = 0) -> WalkResult:
        """Walk from a block to the end of the program, or until the budget is spent."""
        budget = self.budget
        try:
            self._region(start, None)
        except (OverBudget, RecursionError):
            # compilers do not write loops nested hundreds deep
            self.outcome.cut_short = True
            for loop in self.program.loops:
                self.outcome.unknown_loops.setdefault(loop.index, CUT_SHORT)
            for block in self.program.blocks:
                self.outcome.unknown_blocks.setdefault(block.index, CUT_SHORT)
        self.outcome.interpreted = budget - self.budget
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
        full = self.see_addresses and counts[index] <= self.full_visits
        steps = self._plans.of(index, full)
        self.budget -= len(steps) + 1
        if self.budget < 0:
            raise OverBudget
        ops = state.ops
        for step, position, ops.noting in steps:
            step(state, position)
        ops.noting = False
        return self._successor(index)

    def _successor(self, index: int) -> int | None:
        branch = self._paths.branch(index)
        if branch is None:
            successors = self.program.blocks[index].successors
            return successors[0] if successors else None
        value = self._condition(branch)
        direction = self._branch_lanes(branch, value)
        if isinstance(direction, int):
            return branch.jump if direction else branch.follows
        return self._unknown_branch(index, branch, value)

    def _condition(self, branch: Branch) -> Value:
        """The value a conditional branch looks at."""
        if branch.on_exec and not self.follow_exec:
            return Unknown(0, NOT_FOLLOWED)
        value = self.state.values[branch.position]
        if not branch.flag and self.state.ops.lanes == 64:
            high = self.state.values[branch.position + 1]
            if not isinstance(value, int) or not isinstance(high, int):
                decided = any(isinstance(half, int) and half for half in (value, high))
                return 1 if decided else Unknown(0, origin_of(value) or origin_of(high))
            value |= high << 32
        return value

    def _branch_lanes(self, branch: Branch, value: Value) -> Value:
        return value if branch.condition is None else branch.condition(self.state.ops, value)[0]

    # decisions on unknown values

    def _unknown_branch(self, index: int, branch: Branch, value: Value) -> int:
        follows, jump = branch.follows, branch.jump
        reason = origin_of(value)
        loop = self._innermost(index)
        if loop is not None:
            leaving = [b for b in (follows, jump) if b not in loop.blocks]
            if leaving:
                if self._paths.retries(loop):
                    self.outcome.retries.add(loop.index)
                else:
                    self._mark_loop(loop, reason)
                return leaving[0]
        if branch.looks_at_exec:
            self.outcome.assumed.add(reason)
            return jump if self._branch_lanes(branch, self.state.ops.full_mask) else follows
        for early, other in ((jump, follows), (follows, jump)):
            if self._paths.ends(early):
                self.outcome.assumed.add(reason)
                return other
        header = loop.header if loop is not None else None
        merge, between = self._paths.between(follows, jump, loop)
        for block in between:
            self.outcome.unknown_blocks.setdefault(block, reason)
        if merge is not None:
            self._forget[merge] = between, reason
        return jump if follows == header else follows

    def _innermost(self, block: int) -> Loop | None:
        index = self.program.innermost_loop[block]
        return None if index is None else self.program.loops[index]

    def _mark_loop(self, loop: Loop, reason: object) -> None:
        self.outcome.unknown_loops.setdefault(loop.index, reason)
        for block in loop.blocks:
            self.outcome.unknown_blocks.setdefault(block, reason)
        for inner in self._body(loop)[1]:
            if self.outcome.unknown_loops.get(inner) is None and not self.outcome.entries[inner]:
                self.outcome.unknown_loops[inner] = reason

    def _forget_writes(self, blocks: frozenset[int], reason: object) -> None:
        """Make unknown what blocks that may or may not have run write."""
        for position in self._plans.written_registers(blocks):
            vector = VGPR_BASE <= position < _VECTOR_END
            self.state.values[position] = Scattered(reason) if vector else Unknown(0, reason)

    # loops

    def _loop(self, loop: Loop) -> int | None:
        """Run a loop from its header until it is left; returns the block after it."""
        self.outcome.entries[loop.index] += 1
        now = self._snapshot(loop)
        changes: list[Change | None] = [None]
        history: list[list[Comparison]] = []
        while True:
            block, comparisons = self._iteration(loop)
            if block != loop.header:
                break
            before, now = now, self._snapshot(loop)
            changes = [changes[-1], change(before, now)]
            history = [*history[-2:], comparisons]
            first, second = changes
            if (
                len(history) == 3
                and first is not None
                and second is not None
                and first.same(second)
            ):
                heading = trend(*history)
                if heading is not None:
                    now = self._skip_ahead(loop, now, second, heading)
                    changes, history = [None], []
        if loop.index in self.outcome.unknown_loops:
            self._forget_writes(loop.blocks, self.outcome.unknown_loops[loop.index])
        return block

    def _iteration(self, loop: Loop) -> tuple[int | None, list[Comparison]]:
        """One iteration from the header: the block reached, and the comparisons it made."""
        ops = self.state.ops
        outer, ops.comparisons = ops.comparisons, []
        block = self._block(loop.header)
        if block is not None and block != loop.header and block in loop.blocks:
            block = self._region(block, loop)
        comparisons, ops.comparisons = ops.comparisons, outer
        outer.extend(comparisons)
        return block, comparisons

    def _body(self, loop: Loop) -> tuple[list[int], list[int]]:
        """The blocks that an iteration of a loop may execute, and the loops it may enter."""
        body = self._bodies.get(loop.index)
        if body is None:
            blocks = sorted(loop.blocks)
            headers = (self._loop_at.get(block) for block in blocks)
            inner = [other.index for other in headers if other is not None and other is not loop]
            body = self._bodies[loop.index] = blocks, inner
        return body

    def _snapshot(self, loop: Loop) -> Snapshot:
        values, outcome = self.state.values, self.outcome
        blocks, inner = self._body(loop)
        return Snapshot(
            tuple([values[position] for position in self._plans.live(loop.header)]),
            tuple([outcome.counts[block] for block in blocks]),
            tuple([outcome.entries[index] for index in inner]),
        )

    def _set_counts(self, loop: Loop, counts: Iterable[float], entries: Iterable[float]) -> None:
        """Set the counts that `_snapshot` reads."""
        blocks, inner = self._body(loop)
        for block, count in zip(blocks, counts, strict=True):
            self.outcome.counts[block] = count
        for index, count in zip(inner, entries, strict=True):
            self.outcome.entries[index] = count

    def _skip_ahead(self, loop: Loop, now: Snapshot, steady: Change, heading: Trend) -> Snapshot:
        """Jump over iterations that repeat `steady`; returns the state at the header afterwards."""
        jump, growing = _FIRST_JUMP, True
        while True:
            # the iteration executed after the jump must come before any operands meet
            jump = min(jump, steady.room(now.values) - 1, heading.meets() - 2)
            if jump < 1:
                return now
            saved = self._save()
            self._advance(loop, now, steady, jump)
            before = self._snapshot(loop)
            block, comparisons = self._iteration(loop)
            after = self._snapshot(loop) if block == loop.header else None
            step_change = change(before, after) if after is not None else None
            prediction = heading.after(jump + 1)
            if (
                after is not None
                and step_change is not None
                and step_change.same(steady)
                and agree(differences(comparisons), prediction)
            ):
                now, heading = after, Trend(prediction, heading.steps)
                jump = jump * 2 if growing else jump
                continue
            self._restore(loop, saved, now)
            growing = False
            jump //= 2

    def _save(self) -> tuple[list[Value], dict, dict, dict, dict, set]:
        outcome, state = self.outcome, self.state
        return (
            list(state.values),
            dict(state.partial),
            dict(self._forget),
            dict(outcome.unknown_blocks),
            dict(outcome.unknown_loops),
            set(outcome.assumed),
        )

    def _restore(
        self, loop: Loop, saved: tuple[list[Value], dict, dict, dict, dict, set], now: Snapshot
    ) -> None:
        outcome, state = self.outcome, self.state
        state.values, state.partial, self._forget = saved[:3]
        outcome.unknown_blocks, outcome.unknown_loops, outcome.assumed = saved[3:]
        self._set_counts(loop, now.counts, now.entries)
        state.exec_changed()

    def _advance(self, loop: Loop, now: Snapshot, steady: Change, times: int) -> None:
        live = self._plans.live(loop.header)
        for position, value, step in zip(live, now.values, steady.steps, strict=True):
            self.state.values[position] = steady.apply(value, step, times)
        self._set_counts(
            loop,
            [a + times * b for a, b in zip(now.counts, steady.counts, strict=True)],
            [a + times * b for a, b in zip(now.entries, steady.entries, strict=True)],
        )
