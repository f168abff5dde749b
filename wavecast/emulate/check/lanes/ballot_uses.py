"""Uses of ballots and numbers of lanes that only waves of 64 lanes give a meaning.

The headers make the lanes of a ballot from 32 on of a marked instruction, and take the others from
the instruction after it (`include/wavecast/checked.h`). What is found here by definitions and uses:
bits and constants that only 64 lanes have (`constant_lanes`), and operands that number lanes and
are compared when the code runs (`numbers_of_lanes`). Other uses of the upper half are those of
programs that run on waves of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from wavecast.emulate.check.dataflow.scalar_steps import constant_written
from wavecast.emulate.check.updates.arrivals import compares_equal, comparison_of
from wavecast.isa import semantics
from wavecast.isa.defuse import ENTRY, DefUse
from wavecast.isa.instruction import Decoded, Instruction
from wavecast.isa.opcode import OpcodeFlag, OperandAccess
from wavecast.isa.program import Program
from wavecast.isa.semantics.integers import IntegerOps

_UPPER_LANES: Final = 0x5743_0204
"""The literal of the instruction that makes lanes from 32 on of a ballot: zeros."""
_LANES: Final = 32
_WIDE: Final = 64
_HALF: Final = (1 << 32) - 1
_SAMPLE: Final = 0x1234_5678
_STEPS: Final = 6
"""Instructions between what is made of a ballot and what is asked of it."""


@dataclass(frozen=True, slots=True)
class LaneNumbers:
    """The operand of an instruction that has numbers of lanes, and which bits of it count."""

    position: int
    mask: int


class BallotUses:
    """The uses in one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.marks = [
            instruction.index
            for instruction in program.instructions
            if any(operand.value == _UPPER_LANES for operand in instruction.decoded.operands)
        ]
        counts = any(OpcodeFlag.LANES_BELOW in i.opcode.flags for i in program.instructions)
        self._uses = DefUse(program) if self.marks or counts else None

    def constant_lanes(self) -> dict[int, int]:
        """Instructions that ask for a lane of 32 and more by a constant, and that lane."""
        uses, lanes = self._uses, dict[int, int]()
        if uses is None:
            return lanes
        for mark in self.marks:
            for user in uses.uses(mark):
                decoded = self.program.instructions[user].decoded
                which = decoded.operands[-1].value
                if OpcodeFlag.BIT_FIELD in decoded.opcode.flags and which is not None:
                    lanes[user] = _LANES + which % _LANES
            lanes |= dict.fromkeys(_ballot_comparisons(uses, mark), _WIDE - 1)
            if not uses.uses(mark + 1):  # the lanes below 32 are not used
                lanes = dict.fromkeys(uses.uses(mark), _LANES) | lanes
            lanes |= dict(_counts(uses, mark))
        return lanes | dict(_last_lanes(uses))

    def numbers_of_lanes(self) -> dict[int, LaneNumbers]:
        """Instructions that use numbers of lanes with a ballot."""
        uses, numbers = self._uses, dict[int, LaneNumbers]()
        if uses is None or not self.marks:
            return numbers
        halves = {half for mark in self.marks for half in _copies_of(uses, mark)}
        readers = {reader for half in halves for reader in uses.uses(half)}
        for reader in readers:
            amount = _shift_amount(self.program.instructions[reader].decoded, _right)
            if amount is not None:
                numbers[reader] = LaneNumbers(amount, _WIDE - 1)
            if _is(self.program.instructions[reader], _first_set):
                numbers |= dict(_comparisons_of(uses, reader))
        for instruction in self.program.instructions:
            amount = _shift_amount(instruction.decoded, _left)
            if amount is not None and _derived(uses, instruction.index) & readers:
                numbers[instruction.index] = LaneNumbers(amount, _WIDE - 1)
        return numbers


def _derived(uses: DefUse, start: int) -> set[int]:
    """The instructions that a value reaches within a few steps, up to comparisons of it."""
    reached, last = {start}, {start}
    for _ in range(_STEPS):
        last = {
            user
            for index in last
            for user in uses.uses(index)
            if uses.program.instructions[user].memory is None
        } - reached
        reached |= last
        last = {i for i in last if not comparison_of(uses.program.instructions[i])}
    return reached


def _copies_of(uses: DefUse, mark: int) -> set[int]:
    """A mark and the instructions that copy it."""
    halves, work = {mark}, [mark]
    while work:
        for user in uses.uses(work.pop()):
            decoded = uses.program.instructions[user].decoded
            if user not in halves and _copies(decoded):
                halves.add(user)
                work.append(user)
    return halves


def _comparisons_of(uses: DefUse, first: int) -> Iterator[tuple[int, LaneNumbers]]:
    """Where the first lane of a ballot is compared with the number of one."""
    derived = _derived(uses, first)
    for index in derived:
        instruction = uses.program.instructions[index]
        if not compares_equal(instruction):
            continue
        others = [
            position
            for position in (-1, -2)
            if not _is_of(uses, index, position, derived)
            and instruction.decoded.operands[position].value is None
        ]
        if len(others) == 1:
            yield index, LaneNumbers(others[0], _HALF)


def _is_of(uses: DefUse, index: int, position: int, writers: set[int]) -> bool:
    """Whether an operand comes from one of `writers`."""
    bits = uses.program.instructions[index].decoded.operands[position].bits
    return any(found & writers for found in uses.sources(index, bits).values())


def _counts(uses: DefUse, mark: int) -> Iterator[tuple[int, int]]:
    """Where the number of votes is compared with one that only 64 lanes reach, or taken from 64."""
    for counter in uses.uses(mark):
        if not _is(uses.program.instructions[counter], _population):
            continue
        for index in _derived(uses, counter) - {counter}:
            instruction = uses.program.instructions[index]
            numbers = [operand.value for operand in instruction.decoded.operands]
            if comparison_of(instruction):
                yield from ((index, n - 1) for n in numbers if n and _LANES < n <= _WIDE)
            elif _WIDE in numbers and _is(instruction, _difference):
                yield index, _WIDE - 1


def _last_lanes(uses: DefUse) -> Iterator[tuple[int, int]]:
    """Where the number of a lane in its wave is compared with one that only 64 lanes have."""
    for instruction in uses.program.instructions:
        if OpcodeFlag.LANES_BELOW not in instruction.opcode.flags:
            continue
        for user in uses.uses(instruction.index):
            numbers = [o.value for o in uses.program.instructions[user].decoded.operands]
            if compares_equal(uses.program.instructions[user]):
                yield from ((user, n) for n in numbers if n and _LANES <= n < _WIDE)


def _ballot_comparisons(uses: DefUse, mark: int) -> Iterator[int]:
    """Comparisons of a ballot with lanes that a wave of 32 does not have: of its halves, where one
    is combined with the other and all bits must be set, or of both with a constant."""
    instructions = uses.program.instructions
    for user in uses.uses(mark):
        if compares_equal(instructions[user]):
            if any(_upper(uses, user, n) for n in range(2)):
                yield user
        elif instructions[user].opcode.form == "SOP2":
            for comparison in uses.uses(user):
                operands = instructions[comparison].decoded.operands
                every = any(
                    operand.value is not None and not ~operand.value & _HALF for operand in operands
                )
                if compares_equal(instructions[comparison]) and every:
                    yield comparison


def _upper(uses: DefUse, comparison: int, position: int) -> int:
    """The upper half of an operand of 64 bits that is a constant; 0 for others."""
    decoded = uses.program.instructions[comparison].decoded
    operand = decoded.operands[position]
    if decoded.roles[position].dwords != 2:
        return 0
    if operand.value is not None:
        return operand.value >> 32 & _HALF
    if operand.bits.bit_count() != 2:
        return 0
    return _constant(uses, comparison, operand.bits.bit_length() - 1, frozenset())


def _constant(uses: DefUse, reader: int, register: int, readers: frozenset[int]) -> int:
    """The constant that a scalar register has where an instruction reads it, also through copies;
    0 for others. `readers` are the copies on the way."""
    values = set()
    for definition in uses.definitions(reader, register):
        if definition == ENTRY or definition in readers:
            return 0
        writer = uses.program.instructions[definition].decoded
        part = register - (writer.writes.bit_length() - writer.writes.bit_count())
        value = constant_written(writer)
        if value is not None:
            values.add(value >> 32 * part & _HALF)
        elif _copies(writer):
            source = writer.operands[1].bits
            first = source.bit_length() - source.bit_count()
            values.add(_constant(uses, definition, first + part, readers | {definition}))
    return values.pop() if len(values) == 1 else 0


def _copies(decoded: Decoded) -> bool:
    """Whether an instruction copies registers."""
    meaning = semantics.of(decoded.opcode)
    operands = decoded.operands
    if meaning is None or decoded.opcode.implicit_reads or len(operands) != 2:
        return False
    if [role.access for role in decoded.roles] != [OperandAccess.WRITE, OperandAccess.READ]:
        return False
    same = operands[0].bits.bit_count() == operands[1].bits.bit_count()
    return same and meaning.evaluate(IntegerOps(), _SAMPLE)[0] == _SAMPLE


# What instructions compute, by what they give for samples: `_sources` operands in order.


def _shift_amount(decoded: Decoded, matches: Callable[[Decoded, bool], bool]) -> int | None:
    """The position of the amount of a shift of 64 bits, unless it is constant."""
    sources = [n for n, role in enumerate(decoded.roles) if role.access is OperandAccess.READ]
    if len(sources) != 2 or decoded.memory is not None or semantics.of(decoded.opcode) is None:
        return None
    widths = [decoded.roles[n].dwords for n in sources]
    if sorted(widths) != [1, 2] or not matches(decoded, widths[0] == 1):
        return None
    position = sources[widths.index(1)]
    return position if decoded.operands[position].value is None else None


def _right(decoded: Decoded, amount_first: bool) -> bool:
    return _shifts(decoded, amount_first, lambda value, amount: value >> amount)


def _left(decoded: Decoded, amount_first: bool) -> bool:
    return _shifts(decoded, amount_first, lambda value, amount: value << amount)


def _shifts(decoded: Decoded, amount_first: bool, shift: Callable[[int, int], int]) -> bool:
    meaning = semantics.of(decoded.opcode)
    assert meaning is not None
    value = _SAMPLE << 16
    return not meaning.modifiers and all(
        meaning.evaluate(IntegerOps(), *((n, value) if amount_first else (value, n)))[0]
        == shift(value, n)
        for n in (3, 7)
    )


def _is(instruction: Instruction, matches: Callable[[Callable[..., object], int], bool]) -> bool:
    """Whether an instruction computes what `matches` looks for."""
    decoded = instruction.decoded
    meaning = semantics.of(decoded.opcode)
    if meaning is None or decoded.memory is not None or decoded.opcode.implicit_reads:
        return False
    reads = [role for role in decoded.roles if role.access is OperandAccess.READ]
    if meaning.modifiers or decoded.second is not None or len(reads) != len(decoded.roles) - 1:
        return False
    return matches(lambda *values: meaning.evaluate(IntegerOps(), *values)[0], len(reads))


def _first_set(compute: Callable[..., object], sources: int) -> bool:
    return sources == 1 and all(compute(1 << n | 1 << 20) == min(n, 20) for n in (3, 17, 25))


def _population(compute: Callable[..., object], sources: int) -> bool:
    """The number of bits, also with another number added to it."""
    if sources == 1:
        return compute(_SAMPLE) == _SAMPLE.bit_count()
    return sources == 2 and compute(_SAMPLE, 5) == _SAMPLE.bit_count() + 5


def _difference(compute: Callable[..., object], sources: int) -> bool:
    return sources == 2 and {compute(9, 4), compute(4, 9)} == {5, -5 & _HALF}


__all__ = ["BallotUses", "LaneNumbers"]
