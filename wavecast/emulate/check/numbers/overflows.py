"""Numbers that are too large for the 8-bit float they are converted to (`narrowing.py`).

What the conversion gives is the largest number of the format, or NaN: either is another number. A
kernel that limits its numbers first converts none of these.

Memory of a launch: per instruction how many there were, and the largest one as f32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.log import CheckRecord
from wavecast.emulate.check.numbers.decisions import DecisionCode, count_values
from wavecast.emulate.check.numbers.narrowing import Narrowing
from wavecast.emulate.check.numbers.operands import NumberElement
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I32, I64, PTR, constant, context_word, element
from wavecast.isa.instruction import Instruction, Operand
from wavecast.isa.semantics.formats import BF16, F32
from wavecast.wording import count

WORDS: Final = 2
"""64-bit words per instruction: how many values, and the largest."""


class OverflowChecks(Observer):
    """Emits the comparisons. `code` decides which lanes count."""

    def __init__(self, narrowings: Mapping[int, Narrowing], code: DecisionCode) -> None:
        self.narrowings, self.code = narrowings, code

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        narrowing = self.narrowings.get(instruction.index)
        if narrowing is None:
            return
        emitter.pending.settle()
        builder, lanes = emitter.builder, emitter.layout.lanes
        total: Any = ir.IntType(lanes)(0)
        largest: Any = constant(0, 32, lanes)
        slots, follows_bytes = self.code.decisions.slots, False
        for position, (operand, number) in enumerate(narrowing.operands):
            size = _magnitude(emitter, operand, number)
            large = builder.icmp_unsigned(">", size, constant(narrowing.first_beyond, 32, lanes))
            finite = builder.icmp_unsigned("<", size, constant(F32.exponent_mask, 32, lanes))
            beyond = builder.and_(large, finite)
            size = builder.select(beyond, size, constant(0, 32, lanes))
            greater = builder.icmp_unsigned(">", size, largest)
            largest = builder.select(greater, size, largest)
            lanes_beyond = builder.and_(builder.bitcast(beyond, total.type), emitter.exec_mask())
            if (instruction.index, position) in slots:
                self.code.note(
                    emitter, (instruction.index, position), Kind.FP8_OVERFLOW, lanes_beyond
                )
                follows_bytes = True
            total = builder.or_(total, lanes_beyond)
        if instruction.index in slots and not follows_bytes:
            self.code.note(emitter, instruction.index, Kind.FP8_OVERFLOW, total)
        some = builder.icmp_unsigned("!=", total, total.type(0))
        with builder.if_then(some, likely=False):
            self._keep_largest(emitter, instruction.index, largest)
            if instruction.index not in slots:
                log.emit(emitter, Kind.FP8_OVERFLOW, instruction.index, lanes=total)
                count_values(builder, emitter.context, I64(instruction.index), total)

    def _keep_largest(self, emitter: WaveEmitter, instruction: int, largest: Any) -> None:
        builder, lanes = emitter.builder, emitter.layout.lanes
        name = f"llvm.vector.reduce.umax.v{lanes}i32"
        function = emitter.module.globals.get(name)
        if function is None:
            kind = ir.FunctionType(I32, [ir.VectorType(I32, lanes)])
            function = ir.Function(emitter.module, kind, name)
        active = builder.bitcast(emitter.exec_mask(), ir.VectorType(ir.IntType(1), lanes))
        active_sizes = builder.select(active, largest, constant(0, 32, lanes))
        value = builder.zext(builder.call(function, [active_sizes]), I64)
        values = context_word(builder, emitter.context, log.NUMBER_VALUES, PTR)
        slot = element(builder, values, WORDS * instruction + 1, I64)
        builder.atomic_rmw("umax", slot, value, "monotonic")


def _magnitude(emitter: WaveEmitter, operand: Operand, number: NumberElement) -> Any:
    """The absolute value of a number in the lanes of a register, as the bits of f32."""
    builder, lanes = emitter.builder, emitter.layout.lanes
    first = operand.bits.bit_length() - operand.count + number.register
    row = emitter.row(emitter.layout.row(first))
    value: Any = builder.load(row, align=4, typ=ir.VectorType(I32, lanes))
    if number.fmt.bits == 16:
        value = builder.lshr(value, constant(16, 32, lanes)) if number.upper else value
        half = builder.trunc(value, ir.VectorType(ir.IntType(16), lanes))
        if number.fmt is BF16:
            value = builder.shl(builder.zext(half, value.type), constant(16, 32, lanes))
        else:
            floats = builder.bitcast(half, ir.VectorType(ir.HalfType(), lanes))
            wide = builder.fpext(floats, ir.VectorType(ir.FloatType(), lanes))
            value = builder.bitcast(wide, value.type)
    return builder.and_(value, constant(0x7FFF_FFFF, 32, lanes))


def message(narrowing: Narrowing, record: CheckRecord, values: np.ndarray) -> str:
    """What a report says of the numbers that `values` has."""
    largest = values[WORDS * record.instruction + 1].astype(np.uint32).view(np.float32)
    total = count(int(values[WORDS * record.instruction]), "value")
    return (
        f"converts {total} beyond ±{narrowing.limit:g}, the largest of {narrowing.dtype}: up to "
        f"±{largest:g}; scale the values, or limit them before the conversion"
    )


__all__ = ["WORDS", "OverflowChecks", "message"]
