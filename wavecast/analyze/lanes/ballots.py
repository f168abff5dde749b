"""Ballots of which a half is lost, and shifts by the number of a lane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wavecast.analyze.lanes.assumption import Assumption, LaneAssumption
from wavecast.analyze.lanes.demand import LaneDemand
from wavecast.analyze.lanes.flow import LaneFlow
from wavecast.analyze.lanes.halves import (
    HALF,
    LOWER,
    UPPER,
    LaneGuards,
    is_pair,
    never_true,
    repeats,
)
from wavecast.analyze.lanes.per_lane import LANES, constant_word
from wavecast.analyze.lanes.votes import BALLOT, asks_whether, read_bits
from wavecast.compile.ir_blocks import IrInstruction
from wavecast.compile.llvm_ir import Position

_SHIFTS = frozenset({"shl", "lshr", "ashr"})
_OF_VOTES = frozenset({"trunc", "zext", "sext", "icmp", "add", "sub"})
_COUNTS: Final = frozenset({"llvm.ctpop.i64", "llvm.cttz.i64", "llvm.ctlz.i64"})


class BallotSites:
    """The ballots and shifts of a function."""

    def __init__(self, flow: LaneFlow, demand: LaneDemand, guards: LaneGuards) -> None:
        self.flow, self.demand, self.guards = flow, demand, guards

    def sites(self) -> Iterator[LaneAssumption]:
        """Those that take 32 lanes for granted."""
        for label, block in self.flow.blocks.items():
            for instruction in block.instructions:
                if instruction.detail == BALLOT:
                    yield from self._ballot(instruction)
                elif instruction.opcode in _SHIFTS and instruction.width == HALF:
                    yield from self._shift(instruction)
                elif instruction.opcode == "icmp":
                    yield from self._all_votes(instruction)
                elif instruction.opcode == "store":
                    yield from self._stored_votes(instruction, self.flow.executing[label])

    def _ballot(self, ballot: IrInstruction) -> Iterator[LaneAssumption]:
        flow = self.flow
        bits = read_bits(flow, ballot.result)
        upper = flow.executing_lanes(ballot) & UPPER
        may_vote = upper & ~never_true(flow, ballot.operands[0])
        if bits & UPPER or not bits >> HALF - 2 or not may_vote or self._other_half_read(ballot):
            return
        yield self._votes(Assumption.VOTES, ballot, certain=not self.guards.limit(ballot))

    def _votes(
        self, what: Assumption, ballot: IrInstruction, *, certain: bool = True
    ) -> LaneAssumption:
        predicate = self.flow.definitions.get(ballot.operands[0])
        of = predicate.position if predicate is not None else ()
        position = self._kept_at(ballot) if what is Assumption.VOTES else ballot.position
        return LaneAssumption(what, position, certain, of)

    def _kept_at(self, ballot: IrInstruction) -> Position:
        """Where the bits of a ballot are read: at its own position, unless the compiler has joined
        it with that of an `__any`."""
        users = [user for user, _ in self.flow.users.get(ballot.result, ())]
        readers = [u for u in users if not asks_whether(self.flow, u, ballot.result)]
        shared = len(readers) < len(users) and readers and readers[0].position
        return readers[0].position if shared else ballot.position

    def _other_half_read(self, ballot: IrInstruction) -> bool:
        """Whether another ballot of the same predicate gives the upper half."""
        return any(
            user.detail == BALLOT and read_bits(self.flow, user.result) & UPPER
            for user, _ in self.flow.users.get(ballot.operands[0], ())
        )

    def _all_votes(self, compare: IrInstruction) -> Iterator[LaneAssumption]:
        if compare.detail not in ("eq", "ne") or compare.width != LANES:
            return
        words = [constant_word(operand) for operand in compare.operands]
        if LOWER not in words:
            return
        name = compare.operands[words.index(LOWER) ^ 1]
        definition = self.flow.definitions.get(name)
        if definition is None or definition.detail != BALLOT:
            return
        if self.flow.executing_lanes(definition) & UPPER:
            yield self._votes(Assumption.ALL_VOTES, definition)

    def _shift(self, shift: IrInstruction) -> Iterator[LaneAssumption]:
        amounts = self.flow.values.of(shift.operands[1])
        numbers = None if amounts is None else amounts.complete()
        if numbers is None or len(set(numbers)) < HALF:
            return
        lane_mask = self.demand.used.get(shift.result, 0) & self.flow.executing_lanes(shift)
        if any(lane_mask >> lane & 1 and numbers[lane] >= HALF for lane in range(LANES)):
            yield LaneAssumption(Assumption.SHIFT, shift.position, not self.guards.limit(shift))

    def _stored_votes(self, store: IrInstruction, lanes: int) -> Iterator[LaneAssumption]:
        """Votes of all lanes that one lane of each group of 32 stores for its group."""
        value, address = store.operands[:2]
        if is_pair(lanes) and not repeats(self.flow, address):
            ballot = self._ballot_of(value)
            if ballot is not None:
                yield self._votes(Assumption.GROUP_VOTES, ballot)

    def _ballot_of(self, name: str) -> IrInstruction | None:
        """The ballot all of whose votes a value is made of, and nothing else."""
        definition = self.flow.definitions.get(name)
        while definition is not None and definition.detail != BALLOT:
            names = [o for o in definition.operands if o.startswith("%")]
            counts = definition.opcode in _OF_VOTES or definition.detail in _COUNTS
            if not counts or len(names) != 1:
                return None
            definition = self.flow.definitions.get(names[0])
        if definition is None:
            return None
        name = definition.result
        users = [user for user, _ in self.flow.users.get(name, ())]
        reads_all = read_bits(self.flow, name) & UPPER
        reads_all = reads_all or any(asks_whether(self.flow, user, name) for user in users)
        return definition if reads_all and self.flow.executing_lanes(definition) & UPPER else None


__all__ = ["BallotSites"]
