"""Shuffles that combine 32 lanes of a wave of 64, or move values between groups of 32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wavecast.analyze.lanes.assumption import Assumption, LaneAssumption
from wavecast.analyze.lanes.demand import LaneDemand
from wavecast.analyze.lanes.flow import ALL, LaneFlow
from wavecast.analyze.lanes.halves import (
    COPIES,
    HALF,
    HALVES,
    ITEMS,
    LOWER,
    UPPER,
    LaneGuards,
    constant_lanes,
    is_pair,
    repeats,
)
from wavecast.analyze.lanes.per_lane import LANES, constant_word
from wavecast.analyze.lanes.unrolling import EXCHANGE
from wavecast.compile.ir_blocks import IrInstruction

_PACKS: Final = frozenset({"insertelement", "shufflevector", "shl", "or", "mul"})
"""What packs values of one lane; a product with 65537 has a 16-bit number twice."""


class ShuffleSites:
    """The shuffles of a function whose source lanes are known."""

    def __init__(self, flow: LaneFlow, demand: LaneDemand, guards: LaneGuards) -> None:
        self.flow, self.demand, self.guards = flow, demand, guards
        self._chosen_by: dict[str, list[str]] = {}
        """By condition the phis whose value it chooses."""
        for name, definition in flow.definitions.items():
            if definition.opcode == "phi":
                for condition in flow.choosing(flow.block_of[name]):
                    self._chosen_by.setdefault(condition, []).append(name)

    def sites(self) -> Iterator[LaneAssumption]:
        """Those that take 32 lanes for granted, and stores of what they make."""
        for exchange in self.flow.exchanges():
            if exchange.result in self.flow.sources and self._is_whole(exchange):
                yield from self._exchange(exchange)
        for label, block in self.flow.blocks.items():
            lanes = self.flow.executing[label]
            for store in block.instructions if is_pair(lanes) else ():
                value, *address = store.operands or ("",)
                if (
                    store.opcode == "store"
                    and self._is_complete(value)
                    and repeats(self.flow, address[0])
                ):
                    yield LaneAssumption(Assumption.SAME_ADDRESS, store.position)

    def _is_whole(self, exchange: IrInstruction) -> bool:
        """Whether lanes of both halves execute a shuffle."""
        running = self.flow.executing_lanes(exchange)
        return bool(running & UPPER) and bool(running & LOWER)

    def _exchange(self, exchange: IrInstruction) -> Iterator[LaneAssumption]:
        value = self._value(exchange)
        certain = not self.guards.limit(exchange)
        if self._loses_half(value):
            kind = Assumption.REDUCTION
            if self._is_periodic(exchange):
                kind = Assumption.OTHER_HALF
            certain_here = certain and not self._may_be_constant(value)
            mistake = self._joined_with(exchange)
            yield LaneAssumption(kind, exchange.position, certain_here, mistake=mistake)
        certain = certain and not self.guards.choose_unknown_lanes
        if self._mixes_groups(exchange):
            yield LaneAssumption(Assumption.OTHER_HALF, exchange.position, certain)
        for user, _ in self.flow.users.get(exchange.result, ()):
            combined = self._combined(user, exchange)
            if combined is None:
                continue
            read_lanes = self.demand.exchanged.get(combined, 0)
            # A later shuffle that only broadcasts one lane does not widen the window.
            if read_lanes.bit_count() <= 1 and self._is_window(combined):
                yield LaneAssumption(Assumption.WINDOW, exchange.position, certain)
            elif not read_lanes and self._is_row(combined):
                yield LaneAssumption(Assumption.ROW, exchange.position, certain)

    def _joined_with(self, exchange: IrInstruction) -> str:
        """The first shuffle from the same lanes whose value decides the same results, as those of
        a maximum and of its index do."""
        following = self._following(exchange)
        return next(
            other.result
            for other in self.flow.exchanges()
            if other is exchange
            or (other.operands[0] == exchange.operands[0] and self._following(other) & following)
        )

    def _following(self, exchange: IrInstruction) -> set[str]:
        """The shuffles whose value depends on that of another through no third."""
        flow, work, names = self.flow, [exchange.result], set[str]()
        following = set[str]()
        while work:
            name = work.pop()
            if name in names:
                continue
            names.add(name)
            for user, _ in flow.users.get(name, ()):
                if user.detail == EXCHANGE:
                    following.add(user.result)
                elif user.result:
                    work.append(user.result)
            work += self._chosen_by.get(name, ())
        return following

    def _value(self, exchange: IrInstruction) -> str:
        """What a shuffle moves, before it is cast to words."""
        name = exchange.operands[1]
        definition = self.flow.definitions.get(name)
        while definition is not None and definition.opcode in COPIES:
            name = definition.operands[0]
            definition = self.flow.definitions.get(name)
        return name

    def _loses_half(self, value: str) -> bool:
        """Whether shuffles take one half of a value that no shuffle has made, and nothing of the
        other, though lanes there have other values."""
        flow = self.flow
        if value in flow.made_of or not value.startswith("%") or repeats(flow, value):
            return False
        exchange_lanes = self.demand.exchanged.get(value, 0)
        own_lanes = self._lanes_of_parts(value)
        return any(
            not (exchange_lanes | own_lanes) & ~half
            and (exchange_lanes & half).bit_count() >= HALF - 1
            for half in HALVES
        ) and not self._known_constant(value)

    def _lanes_of_parts(self, value: str) -> int:
        """The lanes that use what a value is packed of (two 16-bit numbers in a word)."""
        flow, work, lanes = self.flow, [value], 0
        while work:
            definition = flow.definitions.get(work.pop())
            if definition is None or definition.opcode not in _PACKS | COPIES:
                continue
            parts = [operand for operand in definition.operands if operand.startswith("%")]
            for part in parts:
                lanes |= self.demand.used.get(part, 0)
            work += parts
        return lanes

    def _is_periodic(self, exchange: IrInstruction) -> bool:
        """Whether the upper lanes read the lanes that the lower ones read."""
        sources = self.flow.sources[exchange.result]
        return sources[:HALF] == sources[HALF:]

    def _known_constant(self, value: str) -> bool:
        """Whether a value is the same constant in the lanes of the upper half."""
        return constant_lanes(self.flow, value, UPPER) == UPPER

    def _may_be_constant(self, value: str) -> bool:
        """Whether a value is one that LDS had for the lanes which a comparison of their numbers
        with something unknown chooses, and a constant in others."""
        definition = self.flow.definitions.get(value)
        if definition is None or definition.opcode not in ("select", "phi"):
            return False
        arms = definition.operands[definition.opcode == "select" :]
        constant = any(not operand.startswith("%") for operand in arms)
        if not constant or not any(self._is_from_lds(operand) for operand in arms):
            return False
        if definition.opcode == "select":
            return self.guards.is_limit(definition.operands[0])
        conditions = [self.flow.blocks[source].condition for source in definition.sources]
        return any(condition and self.guards.is_limit(condition) for condition in conditions)

    def _is_from_lds(self, name: str) -> bool:
        definition = self.flow.definitions.get(name)
        while definition is not None and definition.opcode in COPIES:
            definition = self.flow.definitions.get(definition.operands[0])
        return (
            definition is not None
            and definition.opcode == "load"
            and "addrspace(3)" in definition.detail
        )

    def _mixes_groups(self, exchange: IrInstruction) -> bool:
        """Whether lanes of a group of 32 have its values and some have those of the other."""
        flow, value = self.flow, self._value(exchange)
        sources = flow.sources[exchange.result]
        if not self._is_complete(value):
            return False
        lane_mask = self.demand.used.get(exchange.result, 0) & flow.executing_lanes(exchange)
        lanes = [n for n in range(LANES) if lane_mask >> n & 1 and sources[n] != n]
        crossing = [n for n in lanes if (sources[n] < HALF) != (n < HALF)]
        if not crossing or len(crossing) == len(lanes):
            return False
        return not any(
            other.result != exchange.result
            and all((flow.sources[other.result][n] < HALF) != (sources[n] < HALF) for n in lanes)
            for other in flow.exchanges()
            if other.result in flow.sources and self._value(other) == value
        )

    def _is_complete(self, value: str) -> bool:
        """Whether shuffles have made a value within groups of 32, of all lanes of each in one."""
        made_of = self.flow.made_of.get(value)
        lane_mask = self.demand.used.get(value, 0)
        if made_of is None or not lane_mask:
            return False
        for half in HALVES:
            lanes = [n for n in range(LANES) if half >> n & 1]
            if any(made_of[n] & ~half for n in lanes if lane_mask >> n & 1):
                return False
        return any(made_of[n] in HALVES for n in range(LANES) if lane_mask >> n & 1)

    def _combined(self, user: IrInstruction, exchange: IrInstruction) -> str | None:
        """The value in which a shuffled value meets the one it was shuffled from."""
        flow, value = self.flow, self._value(exchange)
        while user.opcode == "select" or user.opcode in COPIES:
            following = [u for u, _ in flow.users.get(user.result, ())]
            if len(following) != 1:
                return None
            user = following[0]
        if value not in user.operands and user.opcode != "phi":
            return None
        return user.result

    def _is_window(self, value: str) -> bool:
        """Whether a value is made of 32 consecutive lanes that lie in both halves."""
        made_of = self.flow.made_of.get(value)
        lane_mask = self.demand.used.get(value, 0)
        if made_of is None:
            return False
        for lane in range(LANES):
            lanes = made_of[lane] if lane_mask >> lane & 1 else 0
            run = lanes >> (lanes & -lanes).bit_length() - 1 if lanes else 0
            if run == LOWER and lanes not in HALVES:
                return True
        return False

    def _is_row(self, value: str) -> bool:
        made_of, lane_mask = self.flow.made_of.get(value), self.demand.used.get(value, 0)
        if made_of is None or lane_mask != ALL or not self._is_complete(value):
            return False
        whole = all(made_of[n] == HALVES[n >= HALF] for n in range(LANES))
        return whole and self._divides_by(LANES) and not self._divides_by(HALF)

    def _divides_by(self, lanes: int) -> bool:
        """Whether the kernel divides the numbers of its work-items by a number of lanes."""
        operations = {
            "and": (lanes - 1, -lanes & (1 << 32) - 1, -lanes & (1 << 64) - 1),
            "lshr": (lanes.bit_length() - 1,),
            "urem": (lanes,),
            "udiv": (lanes,),
        }
        return any(
            constant_word(i.operands[1]) in operations.get(i.opcode, ())
            and self.flow.definitions.get(i.operands[0], i).detail.startswith(ITEMS)
            for i in self.flow.definitions.values()
            if len(i.operands) == 2
        )


__all__ = ["ShuffleSites"]
