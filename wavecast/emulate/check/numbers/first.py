"""The first NaN and the first infinity: results that are one though no operand was.

Every instruction with floating-point results is looked at, operands before it and results after.
Moves, selections and loads compute nothing; conversions from formats of eight bits and fewer are
not followed, because their NaN is theirs to give. Expansions of a division pass through NaNs and
infinities on purpose: only their last step counts, and its divisor and dividend are its operands.
Results that are stored or selected only in some lanes count in those (`number_decisions.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.numbers.decisions import DecisionCode
from wavecast.emulate.check.numbers.operands import (
    FORMATS,
    NumberElement,
    elements_of,
    first_source,
)
from wavecast.emulate.check.numbers.uses import FATE_NONE, parts
from wavecast.emulate.check.registers.exchange import permuted_bits
from wavecast.emulate.lower.access import MemoryAccess
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.operands import constant_bits, scalar_operand
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I32, constant
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import Control, OpcodeFlag, OperandAccess, OperandRole

if TYPE_CHECKING:
    from wavecast.emulate.lower.access import AccessTarget

_SMALL = ("fp8", "bf8", "fp6", "bf6", "fp4")
_VECTORS = (OperandClass.VGPR, OperandClass.AGPR)


@dataclass(frozen=True, slots=True)
class _Found:
    """Lanes with a NaN, and with an infinity."""

    nan: Any
    infinite: Any


class NumberChecks(Observer):
    """Emits the looks at operands and results."""

    def __init__(self, code: DecisionCode) -> None:
        self.code, self.decisions = code, code.decisions
        self._before: tuple[_Found, Any] | None = None

    def enter(self, emitter: WaveEmitter) -> None:
        self.code.enter(emitter)

    def access(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
        rows: Any,
    ) -> None:
        del rows
        self.code.store(emitter, instruction, access, target)

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        self._before = None
        self.code.select(emitter, instruction)
        if not self._looked_at(instruction):
            return
        emitter.pending.settle()
        specials = [
            self._operand(emitter, decoded, index, written=False)
            for decoded in parts(instruction)
            for index, role in enumerate(decoded.roles)
            if role.access is not OperandAccess.WRITE and not _is_division_quotient(decoded, index)
        ]
        mask = emitter.exec_mask()
        self._before = _either(emitter, specials), mask

    def after(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        if self._before is None:
            return
        operands, active = self._before
        self._before = None
        emitter.pending.settle()
        builder = emitter.builder
        for decoded in parts(instruction):
            results = _either(
                emitter,
                [
                    self._operand(emitter, decoded, index, written=True)
                    for index, role in enumerate(decoded.roles)
                    if role.access in (OperandAccess.WRITE, OperandAccess.READ_WRITE)
                ],
            )
            if decoded.opcode.matrix is not None:
                active = active.type(-1)
            finite = builder.not_(builder.or_(operands.nan, operands.infinite))
            for kind, lanes in (
                (Kind.NOT_A_NUMBER, builder.and_(results.nan, builder.not_(operands.nan))),
                (Kind.INFINITY, builder.and_(results.infinite, finite)),
            ):
                lanes: Any = builder.and_(lanes, active)
                fate = self.decisions.fates.get(instruction.index)
                if kind is Kind.INFINITY and fate is not None and not fate.infinite:
                    continue
                if instruction.index in self.decisions.slots:
                    self.code.note(emitter, instruction.index, kind, lanes)
                    continue
                some = builder.icmp_unsigned("!=", lanes, lanes.type(0))
                with builder.if_then(some, likely=False):
                    log.emit(emitter, kind, instruction.index, lanes=lanes)

    def _looked_at(self, instruction: Instruction) -> bool:
        fate = self.decisions.fates.get(instruction.index)
        return fate != FATE_NONE and computes(instruction.decoded)

    def _operand(
        self, emitter: WaveEmitter, decoded: Decoded, index: int, *, written: bool
    ) -> _Found:
        """The special numbers of one operand."""
        operand, role = decoded.operands[index], decoded.roles[index]
        specials = []
        for element in elements_of(decoded, index, written=written):
            if operand.kind in _VECTORS:
                specials.append(_lanes(emitter, operand, element))
            else:
                specials.append(_uniform(emitter, operand, role, element))
        result = _either(emitter, specials)
        if written:
            return result
        if decoded.opcode.matrix is not None and index in (1, 2):
            return _everywhere(emitter, result)
        if "dpp" in decoded.encoding and index == first_source(decoded):
            return _Found(
                permuted_bits(emitter, decoded, result.nan),
                permuted_bits(emitter, decoded, result.infinite),
            )
        return result


def _is_division_quotient(decoded: Decoded, index: int) -> bool:
    """Whether an operand is the quotient that the last step of a division replaces where divisor
    or dividend are special."""
    return OpcodeFlag.DIVISION_END in decoded.opcode.flags and index == first_source(decoded)


def computes(decoded: Decoded) -> bool:
    """Whether an instruction has a floating-point result of 16 bits or more, made from operands
    whose special numbers are known."""
    opcode = decoded.opcode
    if OpcodeFlag.DIVISION in opcode.flags:
        return False
    if decoded.memory is not None or opcode.control is not Control.NONE:
        return decoded.second is not None
    types = [(role.access, role.type.partition("x")[0]) for role in decoded.roles]
    sources = [name for access, name in types if access is not OperandAccess.WRITE]
    results = [name for access, name in types if access is not OperandAccess.READ]
    matrix = opcode.matrix
    if matrix is not None and not {matrix.a_type, matrix.b_type} <= FORMATS.keys():
        return False
    if any(name in _SMALL for name in sources):
        return False
    return any(name in FORMATS for name in results) or (
        decoded.second is not None and computes(decoded.second)
    )


def _lanes(emitter: WaveEmitter, operand: Operand, element: NumberElement) -> _Found:
    """The special numbers in the lanes of a vector register."""
    builder, lanes = emitter.builder, emitter.layout.lanes
    kind = ir.VectorType(I32, lanes)
    first = operand.bits.bit_length() - operand.count + element.register

    def row(position: int) -> Any:
        pointer = emitter.row(emitter.layout.row(position))
        return builder.load(pointer, align=4, typ=kind)

    low = row(first)
    high = row(first + 1) if element.fmt.bits == 64 else None
    return _compare_with_infinity(emitter, low, high, element, lanes)


def _uniform(
    emitter: WaveEmitter, operand: Operand, role: OperandRole, element: NumberElement
) -> _Found:
    """The special number in a scalar register or a constant, for every lane or none."""
    builder = emitter.builder
    nothing = ir.IntType(emitter.layout.lanes)(0)
    bits = 32 * role.dwords if role.dwords else 32
    if operand.kind is OperandClass.CONSTANT:
        value: Any = ir.IntType(bits)(constant_bits(operand, role, bits))
    elif operand.bits:
        value = scalar_operand(emitter, operand, role, bits)
    else:
        return _Found(nothing, nothing)
    if bits > 32:
        shifted = builder.lshr(value, value.type(32 * element.register))
        low = builder.trunc(shifted, I32)
        high = builder.trunc(builder.lshr(value, value.type(32)), I32)
    else:
        low, high = value, None
    special = _compare_with_infinity(
        emitter, low, high if element.fmt.bits == 64 else None, element, 0
    )
    return _Found(
        builder.sext(special.nan, nothing.type), builder.sext(special.infinite, nothing.type)
    )


def _compare_with_infinity(
    emitter: WaveEmitter, low: Any, high: Any, element: NumberElement, lanes: int
) -> _Found:
    """Patterns beyond that of infinity, and equal to it, without their signs."""
    builder, fmt = emitter.builder, element.fmt

    def number(value: int) -> Any:
        return constant(value, 32, lanes)

    word = low if high is None else high
    if fmt.bits == 16 and element.upper:
        word = builder.lshr(word, number(16))
    infinity = fmt.exponent_mask >> 32 if fmt.bits == 64 else fmt.exponent_mask
    magnitude = builder.and_(word, number(0x7FFF if fmt.bits == 16 else 0x7FFFFFFF))
    beyond = builder.icmp_unsigned(">", magnitude, number(infinity))
    equal = builder.icmp_unsigned("==", magnitude, number(infinity))
    if high is not None:
        rest = builder.icmp_unsigned("!=", low, number(0))
        beyond = builder.or_(beyond, builder.and_(equal, rest))
        equal = builder.and_(equal, builder.not_(rest))
    if lanes:
        kind = ir.IntType(lanes)
        return _Found(builder.bitcast(beyond, kind), builder.bitcast(equal, kind))
    return _Found(beyond, equal)


def _either(emitter: WaveEmitter, specials: Iterable[_Found]) -> _Found:
    builder = emitter.builder
    nothing: Any = ir.IntType(emitter.layout.lanes)(0)
    each = list(specials)
    return _Found(
        reduce(builder.or_, [f.nan for f in each], nothing),
        reduce(builder.or_, [f.infinite for f in each], nothing),
    )


def _everywhere(emitter: WaveEmitter, special: _Found) -> _Found:
    """What one lane holds, for every lane of a matrix instruction."""
    builder = emitter.builder

    def broadcast(lanes: Any) -> Any:
        return builder.sext(builder.icmp_unsigned("!=", lanes, lanes.type(0)), lanes.type)

    return _Found(broadcast(special.nan), broadcast(special.infinite))


__all__ = ["NumberChecks", "computes"]
