"""Lanes that a program names and its waves of 32 do not have: code for waves of 64 lanes.

`__shfl` and its like take a lane, a distance or a width modulo the wave, or give a lane its own
value. The headers mark these numbers in checked code (`include/wavecast/checked.h`), because they
limit them before the instruction. ds_bpermute, ds_permute and v_readlane of programs are compared
themselves. Lanes that go around the end of the wave by the same distance mean that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.lanes.ballot_uses import BallotUses, LaneNumbers
from wavecast.emulate.check.updates.arrivals import comparison_of
from wavecast.emulate.lower.access_targets import instruction_offset
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I1, I32, I64, constant, splat
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import OpcodeFlag
from wavecast.isa.program import Program

MARKS: Final[Mapping[int, str]] = {
    0x5743_0200: "reads lane {}",
    0x5743_0201: "moves values by {} lanes",
    0x5743_0202: "exchanges values of lanes that differ by the bits of {}",
    0x5743_0203: "has a width of {}",
}
"""Literals of the instructions with which the headers mark a number, and what it is."""
_LANES = 32
_EXCHANGES = frozenset({"bpermute", "permute"})
_HEADERS = "/compile/include/"


class BeyondWaveChecks(Observer):
    """Compares the lanes that instructions name with those of the wave."""

    def __init__(self, program: Program) -> None:
        uses = BallotUses(program)
        self.tested, self.numbers = uses.constant_lanes(), uses.numbers_of_lanes()

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        decoded = instruction.decoded
        if emitter.layout.lanes != _LANES:
            return
        lane = self.tested.get(instruction.index)
        if lane is not None:
            numbers = constant(lane, 32, _LANES)
            self._report(emitter, instruction, emitter.exec_mask(), numbers)
        elif instruction.index in self.numbers:
            self._compare(emitter, instruction, self.numbers[instruction.index])
        elif is_mark(decoded):
            self._report(emitter, instruction, emitter.exec_mask(), _row(emitter, decoded, 2))
        elif _of_header(instruction):
            return
        elif decoded.memory is not None and decoded.opcode.memory_form.exchange in _EXCHANGES:
            self._exchange(emitter, instruction)
        elif OpcodeFlag.SWAPS_HALVES in decoded.opcode.flags:
            lower = constant(_LANES, 32, _LANES)
            self._report(emitter, instruction, emitter.exec_mask(), lower)
        elif decoded.opcode.flags & {OpcodeFlag.LANE_READ, OpcodeFlag.LANE_WRITE}:
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
        """A read or write of one lane by its number."""
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

    def _compare(
        self, emitter: WaveEmitter, instruction: Instruction, numbers: LaneNumbers
    ) -> None:
        """Numbers of lanes that a program uses with a ballot."""
        builder = emitter.builder
        decoded = instruction.decoded
        emitter.pending.settle()
        operand, role = decoded.operands[numbers.position], decoded.roles[numbers.position]
        if operand.kind in (OperandClass.VGPR, OperandClass.AGPR):
            emitter.pending.flush_before(decoded)
            row = _row(emitter, decoded, numbers.position % len(decoded.operands))
        else:
            row = splat(builder, scalar_operand(emitter, operand, role, 32), _LANES)
        row = builder.and_(row, constant(numbers.mask, 32, _LANES))
        beyond = builder.and_(
            builder.icmp_unsigned(">", row, constant(_LANES, 32, _LANES)),
            builder.icmp_unsigned("<", row, constant(2 * _LANES, 32, _LANES)),
        )
        active = emitter.exec_mask()
        lanes = builder.and_(builder.bitcast(beyond, active.type), active)
        self._report(emitter, instruction, lanes, row)

    def _report(
        self, emitter: WaveEmitter, instruction: Instruction, lanes: Any, numbers: Any
    ) -> None:
        builder = emitter.builder
        with builder.if_then(builder.icmp_unsigned("!=", lanes, lanes.type(0)), likely=False):
            value = builder.extract_element(numbers, _lowest(emitter, lanes))
            detail = builder.zext(value, I64)
            log.emit(emitter, Kind.BEYOND_WAVE, instruction.index, lanes=lanes, detail=detail)


def is_mark(decoded: Decoded) -> bool:
    """Whether an instruction is a mark."""
    return len(decoded.operands) == 3 and decoded.operands[1].value in MARKS


def message(instruction: Instruction, number: int) -> str:
    """What a report says of the number that was seen first."""
    if number >= 1 << 31:
        number -= 1 << 32
    flags = instruction.opcode.flags
    if is_mark(instruction.decoded):
        what = MARKS[instruction.decoded.operands[1].value or 0]
    elif OpcodeFlag.SWAPS_HALVES in flags:
        what = "exchanges lanes from {} on with those below"
    elif OpcodeFlag.LANE_WRITE in flags:
        what = "writes lane {}"
    elif OpcodeFlag.BIT_FIELD in flags:
        what = "tests lane {} of a ballot"
    elif comparison_of(instruction):
        what = "compares lane {} of a ballot"
    elif instruction.memory is None and OpcodeFlag.LANE_READ not in flags:
        what = "uses lane {} of a ballot"
    else:
        what = "reads lane {}"
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
