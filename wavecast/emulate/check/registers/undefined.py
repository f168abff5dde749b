"""Reads of registers nothing has written: masks of undefined lanes, where they can matter.

What `definedness.py` cannot prove is followed as the kernel runs. Every half of a vector register
has a mask of the lanes that are undefined, every scalar register one of its undefined bits. They
change with each instruction by scalar code ahead of it and are looked at where an undefined value
does harm (`uses.py`). What has been reported counts as written, so that one mistake is one report.

Memory of a host thread: per wave one 64-bit word per cell (`flows.py`).
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any, Final

import numpy as np
from llvmlite import ir

from wavecast.emulate import hostmemory
from wavecast.emulate.check import log, scratch_shadow
from wavecast.emulate.check.dataflow.flows import (
    INACTIVE_CELL,
    SCRATCH_CELL,
    Flow,
    FlowForm,
    halves,
    scalars,
)
from wavecast.emulate.check.dataflow.influence import Reach, UndefinedSource
from wavecast.emulate.check.dataflow.register_facts import initially_defined
from wavecast.emulate.check.lds import unwritten
from wavecast.emulate.check.lds.unwritten import loads_lds, masks_copies
from wavecast.emulate.check.registers.definedness import analyse
from wavecast.emulate.check.registers.exchange import moved_bits, permuted_bits, written_lanes
from wavecast.emulate.check.registers.relevance import Definedness, DefinednessStep
from wavecast.emulate.check.registers.scalar_shadow import Pair, ShadowOps
from wavecast.emulate.check.registers.uses import Purpose, Use
from wavecast.emulate.lower import buffers, jumps, state
from wavecast.emulate.lower.access_targets import operand_of_kind
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.lower.ops import LlvmOps
from wavecast.emulate.reports import Kind
from wavecast.emulate.scratch_accesses import may_load_scratch
from wavecast.emulate.values import I1, I32, I64, PTR, constant, context_word, element, load
from wavecast.isa import semantics
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded, Instruction, OperandClass
from wavecast.isa.opcode import OperandAccess, OperandKind
from wavecast.isa.program import Kernel
from wavecast.isa.registers import AGPRS, EXEC, SPECIAL_REGISTERS, VGPRS

WORDS_PER_WAVE: Final = INACTIVE_CELL + 2
_VECTOR_CELLS = 2 * (VGPRS | AGPRS).bit_length()


class Undefined:
    """The masks of one host thread's waves."""

    def __init__(self, waves: int) -> None:
        self.words = [hostmemory.zeros(waves * WORDS_PER_WAVE, np.uint64) for _ in range(2)]

    def attach(self, context: np.ndarray) -> None:
        context[log.REGISTERS], context[log.INACTIVE] = (array.ctypes.data for array in self.words)


class RegisterChecks(Observer):
    """Emits the masks of one kernel and the looks at them. The context word `masks` has where they
    are."""

    masks = log.REGISTERS

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.found: Definedness = self.analyse()
        vectors, others = initially_defined(kernel.descriptor, kernel.program.target)
        self._masks_copies = masks_copies(kernel.program)
        self._defined = {*halves(vectors), *scalars(others)}

    def analyse(self) -> Definedness:
        """What is followed."""
        return analyse(self.kernel)

    def is_undefined(self, cell: int) -> bool:
        """Whether a cell holds nothing when a wave starts."""
        return cell not in self._defined

    # the frame

    def enter(self, emitter: WaveEmitter) -> None:
        if not self.found.entry:
            return
        builder = emitter.builder

        word = partial(context_word, builder, emitter.context)
        wave = builder.mul(word(state.WAVE, I64), I64(WORDS_PER_WAVE))
        self.base = element(builder, word(self.masks, PTR), wave, I64)
        entry = load(builder, element(builder, emitter.state, state.ENTRY, I32), I32)
        with builder.if_then(builder.icmp_unsigned("==", entry, I32(0))):
            for cell in bits_of(self.found.entry):
                undefined = -1 if self.is_undefined(cell) else 0
                builder.store(I64(undefined), self._slot(emitter, cell), align=8)

    def _slot(self, emitter: WaveEmitter, cell: int) -> Any:
        return element(emitter.builder, self.base, cell, I64)

    def _kind(self, emitter: WaveEmitter, cell: int) -> ir.IntType:
        lanes = cell < _VECTOR_CELLS or cell >= SCRATCH_CELL
        return ir.IntType(emitter.layout.lanes) if lanes else I32

    def _get(self, emitter: WaveEmitter, cell: int) -> Any:
        kind = self._kind(emitter, cell)
        return load(emitter.builder, self._slot(emitter, cell), kind, 8)

    def _set(self, emitter: WaveEmitter, cell: int, value: Any) -> None:
        emitter.builder.store(value, self._slot(emitter, cell), align=8)

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        step = self.found.steps[instruction.index]
        for use in step.uses:
            self._use(emitter, instruction, use)
        live = self.found.after[instruction.index]
        read = any(live >> flow.target & 1 for flow in step.flows)
        if read:
            self.read(emitter, instruction)
        changes = self._flow_changes(emitter, instruction, step, live)
        if step.scalars and (step.to_exec or live & step.written):
            changes += self._scalar_changes(emitter, instruction, step)
        changes += self._definitions(emitter, step, live)
        for cell, value in changes:
            self._set(emitter, cell, value)

    def read(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """Ahead of an instruction whose results matter: fill the cells of other memory."""
        if may_load_scratch(self.kernel, instruction.decoded):
            scratch_shadow.read(emitter, instruction, self._slot(emitter, SCRATCH_CELL))
        elif self._masks_copies and loads_lds(instruction.decoded):
            unwritten.read(emitter, instruction, self._slot(emitter, SCRATCH_CELL))

    def _definitions(
        self, emitter: WaveEmitter, step: DefinednessStep, live: int
    ) -> list[tuple[int, Any]]:
        """Results that are known to be written."""
        definitions = []
        for cell in bits_of(step.defined & live):
            if step.whole >> cell & 1:
                definitions.append((cell, self._kind(emitter, cell)(0)))
            else:
                others = emitter.builder.not_(emitter.exec_mask())
                old = self._get(emitter, cell)
                definitions.append((cell, emitter.builder.and_(old, others)))
        return definitions

    # lanes

    def _flow_changes(
        self, emitter: WaveEmitter, instruction: Instruction, step: DefinednessStep, live: int
    ) -> list[tuple[int, Any]]:
        """New masks of what vector, memory and matrix instructions write."""
        changes = []
        for flow in step.flows:
            if flow.form is FlowForm.MASK:
                changes += self._mask_change(emitter, instruction, flow, live)
            elif live >> flow.target & 1:
                changes.append((flow.target, self._lane_change(emitter, instruction, flow)))
        return changes

    def _lane_change(self, emitter: WaveEmitter, instruction: Instruction, flow: Flow) -> Any:
        builder = emitter.builder
        value = self._flow(emitter, instruction, flow)
        if flow.form is FlowForm.WHOLE:
            return value
        if flow.form is FlowForm.SCALAR:
            some = builder.icmp_unsigned("!=", value, value.type(0))
            return builder.sext(some, I32)
        old = self._get(emitter, flow.target)
        if flow.form is FlowForm.ONE_LANE:
            lane = self._chosen_lane(emitter, instruction.decoded)
            changed = builder.shl(value.type(1), lane)
        else:
            part = flow.form is FlowForm.PART
            decoded = instruction.decoded
            changed = written_lanes(emitter, decoded) if part else emitter.exec_mask()
        return builder.or_(builder.and_(value, changed), builder.and_(old, builder.not_(changed)))

    def _mask_change(
        self, emitter: WaveEmitter, instruction: Instruction, flow: Flow, live: int
    ) -> list[tuple[int, Any]]:
        """A lane mask: a bit of a lane in EXEC, or a defined 0."""
        lanes = emitter.layout.lanes
        cells = [flow.target + 2 * index for index in range(lanes // 32)]
        to_exec = EXEC >> (flow.target >> 1) & 1
        if not to_exec and not any(live >> cell & 1 for cell in cells):
            return []
        builder = emitter.builder
        value = builder.and_(self._flow(emitter, instruction, flow), emitter.exec_mask())
        if to_exec:
            self._report(emitter, instruction, value, flow.sources)
            return []
        return list(zip(cells, self._split(emitter, value), strict=True))

    def _split(self, emitter: WaveEmitter, value: Any) -> list[Any]:
        """An integer as 32-bit parts, lowest first."""
        builder = emitter.builder
        count = value.type.width // 32
        if count == 1:
            return [value]
        return [
            builder.trunc(builder.lshr(value, value.type(32 * index)), I32)
            for index in range(count)
        ]

    def _flow(self, emitter: WaveEmitter, instruction: Instruction, flow: Flow) -> Any:
        """The undefined lanes of a result."""
        value = self._all_sources(emitter, instruction, flow.sources)
        if flow.choice is None:
            return value
        builder, lanes = emitter.builder, emitter.layout.lanes
        other = self._all_sources(emitter, instruction, flow.otherwise)
        first = flow.choice >> 1
        emitter.pending.flush_masks(((1 << lanes // 32) - 1) << first)
        mask = emitter.scalar_bits(first, lanes // 32)
        blend = builder.or_(builder.and_(mask, value), builder.and_(builder.not_(mask), other))
        return builder.or_(
            blend, self._source(emitter, instruction, UndefinedSource(flow.choice, Reach.MASK))
        )

    def _all_sources(
        self, emitter: WaveEmitter, instruction: Instruction, sources: tuple[UndefinedSource, ...]
    ) -> Any:
        builder = emitter.builder
        nothing = ir.IntType(emitter.layout.lanes)(0)
        parts = [self._source(emitter, instruction, source) for source in sources]
        return reduce(builder.or_, parts, nothing)

    def _source(
        self, emitter: WaveEmitter, instruction: Instruction, source: UndefinedSource
    ) -> Any:
        """The lanes of a result that a source makes undefined."""
        builder, lanes = emitter.builder, emitter.layout.lanes
        kind = ir.IntType(lanes)
        if source.reach is Reach.MASK:
            parts = [self._get(emitter, source.cell + 2 * i) for i in range(lanes // 32)]
            if len(parts) == 1:
                return parts[0]
            upper: Any = builder.shl(builder.zext(parts[1], kind), kind(32))
            return builder.or_(builder.zext(parts[0], kind), upper)
        value = self._get(emitter, source.cell)
        if source.reach is Reach.OWN:
            return value
        if source.reach is Reach.PERMUTED:
            return permuted_bits(emitter, instruction.decoded, value)
        if source.reach is Reach.ACTIVE:
            return moved_bits(emitter, instruction.decoded, value)
        if source.reach in (Reach.FIRST, Reach.CHOSEN):
            if source.reach is Reach.FIRST:
                lane = builder.cttz(emitter.exec_mask(), I1(0))
                lane = builder.and_(lane, kind(lanes - 1))
            else:
                lane = self._chosen_lane(emitter, instruction.decoded)
            value: Any = builder.and_(builder.lshr(value, lane), kind(1))
        some: Any = builder.icmp_unsigned("!=", value, value.type(0))
        return builder.sext(some, kind)

    def _chosen_lane(self, emitter: WaveEmitter, decoded: Decoded) -> Any:
        """The lane number that the last operand gives."""
        builder, lanes = emitter.builder, emitter.layout.lanes
        number: Any = scalar_operand(emitter, decoded.operands[-1], decoded.roles[-1], 32)
        if lanes == 64:
            number = builder.zext(number, I64)
        kind: Any = number.type
        return builder.and_(number, kind(lanes - 1))

    # scalar registers

    def _scalar_changes(
        self, emitter: WaveEmitter, instruction: Instruction, step: DefinednessStep
    ) -> list[tuple[int, Any]]:
        decoded = instruction.decoded
        emitter.pending.flush_before(decoded)
        names = [*decoded.opcode.implicit_writes]
        shadows = iter(self._shadows(emitter, instruction, step.scalars))
        changes: list[tuple[int, Any]] = []
        for operand, role in zip(decoded.operands, decoded.roles, strict=True):
            if role.access not in (OperandAccess.WRITE, OperandAccess.READ_WRITE):
                continue
            shadow = next(shadows)
            if operand.bits:
                first = operand.bits.bit_length() - operand.bits.bit_count()
                changes += self._scalar_result(emitter, instruction, first, shadow, step)
        for name in names:
            first, _ = SPECIAL_REGISTERS[name]
            shadow = next(shadows)
            if shadow.type.width < 32:
                shadow = emitter.builder.zext(shadow, I32)
            changes += self._scalar_result(emitter, instruction, first, shadow, step)
        return changes

    def _scalar_result(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        first: int,
        shadow: Any,
        step: DefinednessStep,
    ) -> list[tuple[int, Any]]:
        if EXEC >> first & 1:
            sources = tuple(UndefinedSource(cell, Reach.UNIFORM) for cell in bits_of(step.scalars))
            self._report(emitter, instruction, shadow, sources)
            return []
        parts = self._split(emitter, shadow)
        return [(2 * (first + index), part) for index, part in enumerate(parts)]

    def _shadows(self, emitter: WaveEmitter, instruction: Instruction, unwritten: int) -> list[Any]:
        """The undefined bits of a scalar instruction's results."""
        values = LlvmOps(emitter.builder, 0, emitter.machine, emitter.layout.lanes)
        ops = ShadowOps(values)
        decoded = instruction.decoded
        meaning = semantics.of(decoded.opcode)
        inputs = self._scalar_inputs(emitter, instruction, unwritten)
        if meaning is None:
            count = len(decoded.operands) + len(decoded.opcode.implicit_writes)
            return [constant(0, 32)] * count
        return [shadow for _, shadow in meaning.evaluate(ops, *inputs)]

    def _scalar_inputs(
        self, emitter: WaveEmitter, instruction: Instruction, unwritten: int
    ) -> list[Pair]:
        inputs: list[Pair] = []
        decoded = instruction.decoded
        width = 32
        for operand, role in zip(decoded.operands, decoded.roles, strict=True):
            bits = 32 * role.dwords if role.dwords else 32
            if role.kind is OperandKind.LANE_MASK:
                bits = emitter.layout.lanes
            if role.kind is not OperandKind.IMMEDIATE:
                width = max(width, bits)
            if role.access is OperandAccess.WRITE or role.kind is OperandKind.LABEL:
                continue
            shadow: Any = ir.IntType(bits)(0)
            if operand.kind is OperandClass.EXPRESSION:
                value = jumps.symbol_value(emitter, instruction.index, operand.text, bits)
                inputs.append((value, shadow))
                continue
            value = scalar_operand(emitter, operand, role, bits)
            if operand.kind is not OperandClass.CONSTANT and operand.bits:
                shadow = self._scalar_shadow(emitter, operand.bits, unwritten, bits)
            inputs.append((value, shadow))
        for name in decoded.opcode.implicit_reads:
            first, _ = SPECIAL_REGISTERS[name]
            value = emitter.special(name, width)
            bits = value.type.width
            registers = ((1 << max(1, bits // 32)) - 1) << first
            shadow = self._scalar_shadow(emitter, registers, unwritten, max(bits, 32))
            if bits == 1:
                shadow = emitter.builder.trunc(shadow, I1)
            inputs.append((value, shadow))
        return inputs

    def _scalar_shadow(
        self, emitter: WaveEmitter, registers: int, unwritten: int, bits: int
    ) -> Any:
        builder, kind = emitter.builder, ir.IntType(bits)
        total: Any = kind(0)
        for index, position in enumerate(bits_of(registers)):
            if not unwritten >> 2 * position & 1 or 32 * index >= bits:
                continue
            part = self._get(emitter, 2 * position)
            if bits > 32:
                part = builder.shl(builder.zext(part, kind), kind(32 * index))
            total = builder.or_(total, part)
        return total

    # reports

    def _use(self, emitter: WaveEmitter, instruction: Instruction, use: Use) -> None:
        if use.purpose is Purpose.CONDITION:
            self._condition(emitter, instruction, use)
            return
        builder = emitter.builder
        value = self._all_sources(emitter, instruction, use.sources)
        value = builder.and_(value, emitter.exec_mask())
        if instruction.opcode.form == "SMEM":
            value = self._all_sources(emitter, instruction, use.sources)
        resource = operand_of_kind(instruction.decoded, OperandKind.RESOURCE)
        if use.unless_scratch and resource is not None and buffers.may_be_scratch(emitter):
            descriptor = buffers.descriptor(emitter, resource[0])
            scratch = descriptor.adds_lane
            value = builder.select(scratch, ir.IntType(emitter.layout.lanes)(0), value)
        self._report(emitter, instruction, value, use.sources)

    def _condition(self, emitter: WaveEmitter, instruction: Instruction, use: Use) -> None:
        """A branch whose condition depends on undefined bits."""
        decoded, builder = instruction.decoded, emitter.builder
        emitter.pending.flush_before(decoded)
        meaning = semantics.of(decoded.opcode)
        if meaning is None:
            return
        unwritten = sum(1 << source.cell for source in use.sources)
        inputs: list[Pair] = []
        for name in decoded.opcode.implicit_reads:
            first, _ = SPECIAL_REGISTERS[name]
            lanes = 1 if name == "scc" else emitter.layout.lanes
            registers = ((1 << max(1, lanes // 32)) - 1) << first
            value = emitter.special(name, lanes)
            shadow = self._scalar_shadow(emitter, registers, unwritten, max(32, lanes))
            if lanes == 1:
                shadow = builder.trunc(shadow, I1)
            elif lanes == 32:
                value, shadow = builder.zext(value, I64), builder.zext(shadow, I64)
            inputs.append((value, shadow))
        ops = ShadowOps(LlvmOps(builder, 0, emitter.machine, emitter.layout.lanes))
        ((_, shadow),) = meaning.evaluate(ops, *inputs)
        value = builder.select(shadow, emitter.exec_mask(), emitter.exec_mask().type(0))
        self._report(emitter, instruction, value, use.sources)

    def _report(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        lanes: Any,
        sources: tuple[UndefinedSource, ...],
    ) -> None:
        """Report lanes unless there are none; the registers count as written from here on."""
        builder = emitter.builder
        some: Any = builder.icmp_unsigned("!=", lanes, lanes.type(0))
        with builder.if_then(some, likely=False):
            position: Any = I64(0)
            for source in reversed(sources):
                mask: Any = self._source(emitter, instruction, source)
                if source.reach is Reach.OWN:
                    mask = builder.and_(mask, lanes)
                some = builder.icmp_unsigned("!=", mask, ir.IntType(mask.type.width)(0))
                position = builder.select(some, I64(source.cell >> 1), position)
            self.log(emitter, instruction, lanes, position)
            for source in sources:
                self._set(emitter, source.cell, self._kind(emitter, source.cell)(0))
                if source.reach is Reach.MASK and emitter.layout.lanes == 64:
                    self._set(emitter, source.cell + 2, I32(0))

    def log(
        self, emitter: WaveEmitter, instruction: Instruction, lanes: Any, position: Any
    ) -> None:
        """Report lanes, and the register at a bit position."""
        kind = Kind.UNINITIALISED_REGISTER
        log.emit(emitter, kind, instruction.index, lanes=lanes, detail=position)


__all__ = ["WORDS_PER_WAVE", "RegisterChecks", "Undefined"]
