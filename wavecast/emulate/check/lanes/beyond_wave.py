"""Lanes that a program names and its waves of 32 do not have: code for waves of 64 lanes.

`__shfl` and its like take a lane, a distance or a width modulo the wave, or give a lane its own
value. The headers mark these numbers in checked code (`include/wavecast/checked.h`), because they
limit them before the instruction. ds_bpermute, ds_permute and v_readlane of programs are compared
themselves. Lanes that go around the end of the wave by the same distance mean that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.dataflow.scalar_steps import constant_written
from wavecast.emulate.check.updates.arrivals import compares_equal
from wavecast.emulate.lower.access_targets import instruction_offset
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I1, I32, I64, constant, splat
from wavecast.isa import semantics
from wavecast.isa.defuse import ENTRY, DefUse
from wavecast.isa.instruction import Decoded, Instruction, Operand
from wavecast.isa.opcode import OpcodeFlag
from wavecast.isa.program import Program
from wavecast.isa.semantics.integers import IntegerOps

MARKS: Final[Mapping[int, str]] = {
    0x5743_0200: "reads lane {}",
    0x5743_0201: "moves values by {} lanes",
    0x5743_0202: "exchanges values of lanes that differ by the bits of {}",
    0x5743_0203: "has a width of {}",
}
"""Literals of the instructions with which the headers mark a number, and what it is."""
_UPPER_LANES = 0x5743_0204
"""The literal of the instruction that makes lanes from 32 on of a ballot: zeros."""
_LANES = 32
_HALF = (1 << 32) - 1
_SAMPLE = 0x1234_5678
_EXCHANGES = frozenset({"bpermute", "permute"})
_HEADERS = "/compile/include/"


class BeyondWaveChecks(Observer):
    """Compares the lanes that instructions name with those of the wave."""

    def __init__(self, program: Program) -> None:
        self.tested = _tested_lanes(program)

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        decoded = instruction.decoded
        if emitter.layout.lanes != _LANES:
            return
        lane = self.tested.get(instruction.index)
        if lane is not None:
            numbers = constant(lane, 32, _LANES)
            self._report(emitter, instruction, emitter.exec_mask(), numbers)
        elif is_mark(decoded):
            self._report(emitter, instruction, emitter.exec_mask(), _row(emitter, decoded, 2))
        elif _of_header(instruction):
            return
        elif decoded.memory is not None and decoded.opcode.memory_form.exchange in _EXCHANGES:
            self._exchange(emitter, instruction)
        elif OpcodeFlag.LANE_READ in decoded.opcode.flags:
            self._read(emitter, instruction)

    def _exchange(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        builder, lanes = emitter.builder, emitter.layout.lanes
        decoded = instruction.decoded
        emitter.pending.settle()
        offset = constant(instruction_offset(decoded), 32, lanes)
        address = builder.add(_row(emitter, decoded, 1), offset)
        lane = builder.ashr(address, constant(2, 32, lanes))
        numbers = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
        distance = builder.sub(lane, numbers)
        active = emitter.exec_mask()
        kind = active.type
        beyond = builder.icmp_unsigned(">=", lane, constant(lanes, 32, lanes))
        beyond = builder.and_(builder.bitcast(beyond, kind), active)
        with builder.if_then(builder.icmp_unsigned("!=", beyond, kind(0)), likely=False):
            first = _first(emitter, distance)
            other = builder.icmp_unsigned("!=", distance, splat(builder, first, lanes))
            other = builder.and_(builder.bitcast(other, kind), active)
            whole = builder.and_(first, I32(lanes - 1))
            moves = builder.icmp_unsigned("!=", whole, I32(0))
            single = builder.icmp_unsigned("==", builder.ctpop(active), kind(1))
            around = builder.and_(builder.icmp_unsigned("==", other, kind(0)), moves)
            around = builder.and_(around, builder.not_(single))
            beyond = builder.select(around, kind(0), beyond)
            self._report(emitter, instruction, beyond, lane)

    def _read(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """A scalar read of one lane."""
        builder, lanes = emitter.builder, emitter.layout.lanes
        decoded = instruction.decoded
        if len(decoded.operands) < 3:  # the first active lane
            return
        operand, role = decoded.operands[-1], decoded.roles[-1]
        emitter.pending.settle()
        number = scalar_operand(emitter, operand, role, 32)
        active = emitter.exec_mask()
        beyond = builder.icmp_unsigned(">=", number, I32(lanes))
        read = builder.select(beyond, active, active.type(0))
        self._report(emitter, instruction, read, splat(builder, number, lanes))

    def _report(
        self, emitter: WaveEmitter, instruction: Instruction, lanes: Any, numbers: Any
    ) -> None:
        builder = emitter.builder
        with builder.if_then(builder.icmp_unsigned("!=", lanes, lanes.type(0)), likely=False):
            value = builder.extract_element(numbers, _lowest(emitter, lanes))
            detail = builder.zext(value, I64)
            log.emit(emitter, Kind.BEYOND_WAVE, instruction.index, lanes=lanes, detail=detail)


def _tested_lanes(program: Program) -> dict[int, int]:
    """Instructions that look at bits of a ballot's upper half, and a lane of these. Other uses
    of it are those of programs that run on waves of any size."""
    marks = [
        instruction
        for instruction in program.instructions
        if any(operand.value == _UPPER_LANES for operand in instruction.decoded.operands)
    ]
    lanes: dict[int, int] = {}
    if not marks:
        return lanes
    uses = DefUse(program)
    for mark in marks:
        for user in uses.uses(mark.index):
            decoded = program.instructions[user].decoded
            which = decoded.operands[-1].value
            if OpcodeFlag.BIT_FIELD in decoded.opcode.flags and which is not None:
                lanes[user] = _LANES + which % _LANES
        lanes |= dict.fromkeys(_ballot_comparisons(uses, mark.index), 2 * _LANES - 1)
    return lanes


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
    """Whether an instruction copies scalar registers."""
    meaning = semantics.of(decoded.opcode)
    operands = decoded.operands
    if meaning is None or decoded.opcode.implicit_reads or len(operands) != 2:
        return False
    same = operands[0].bits.bit_count() == operands[1].bits.bit_count()
    return same and meaning.evaluate(IntegerOps(), _SAMPLE)[0] == _SAMPLE


def is_mark(decoded: Decoded) -> bool:
    """Whether an instruction is a mark."""
    return len(decoded.operands) == 3 and decoded.operands[1].value in MARKS


def message(instruction: Instruction, number: int) -> str:
    """What a report says of the number that was seen first."""
    if number >= 1 << 31:
        number -= 1 << 32
    what = "reads lane {}"
    if compares_equal(instruction):
        what = "compares lane {} of a ballot"
    if OpcodeFlag.BIT_FIELD in instruction.opcode.flags:
        what = "tests lane {} of a ballot"
    if is_mark(instruction.decoded):
        what = MARKS[instruction.decoded.operands[1].value or 0]
    effect = "the number counts modulo the wave, or a lane gets its own value"
    if what.endswith("ballot"):
        effect = "a ballot has 0 there"
    return f"{what.format(number)}, and the waves here have {_LANES} lanes: {effect}; use warpSize"


def _of_header(instruction: Instruction) -> bool:
    """Whether the code is that of a header here, which limits its lanes."""
    location = instruction.location
    return location is not None and _HEADERS in location.file


def _row(emitter: WaveEmitter, decoded: Decoded, index: int) -> Any:
    emitter.pending.settle()
    operand: Operand = decoded.operands[index]
    row = emitter.row(emitter.layout.row(operand.bits.bit_length() - operand.count))
    return emitter.builder.load(row, align=4, typ=ir.VectorType(I32, emitter.layout.lanes))


def _lowest(emitter: WaveEmitter, lanes: Any) -> Any:
    builder = emitter.builder
    lane: Any = builder.cttz(lanes, I1(0))
    lane = builder.trunc(lane, I32) if lane.type != I32 else lane
    return builder.and_(lane, I32(emitter.layout.lanes - 1))


def _first(emitter: WaveEmitter, row: Any) -> Any:
    """What the first active lane has."""
    return emitter.builder.extract_element(row, _lowest(emitter, emitter.exec_mask()))


__all__ = ["MARKS", "BeyondWaveChecks", "is_mark", "message"]
