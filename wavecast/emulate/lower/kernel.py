"""A program as one native function: `i32 wave(ptr state, ptr context)`.

Scalar registers are local variables of the function, loaded from the wave's state on entry and
stored on exit, so LLVM keeps them in machine registers. Vector registers stay in memory. Straight
runs of lane-wise instructions become one loop over strips of lanes (`run.py`); instructions that
look at other lanes are lowered on the whole wave at once. A barrier ends the function with the
resume point.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import (
    barriers,
    jumps,
    memory,
    mode,
    relative,
    scalar,
    scalar_memory,
    state,
)
from wavecast.emulate.lower.access import AccessTarget, MemoryAccess
from wavecast.emulate.lower.emitter import KernelInput, WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.lower.outlining import Shapes
from wavecast.emulate.lower.pending import PendingInstructions
from wavecast.emulate.lower.whole import is_lane_wise, lower_whole
from wavecast.emulate.values import I1, I32, I64, element, load
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded, Instruction, OperandClass
from wavecast.isa.opcode import Control, OpcodeFlag, Role
from wavecast.isa.program import Block, Program
from wavecast.isa.registers import AGPRS, EXEC, SGPR_BASE, VGPRS
from wavecast.isa.semantics.machine import FloatMode

_DEBUG_TRAP = 3
_SKIPPED = frozenset({Role.WAIT, Role.HINT, Role.NOP, Role.MESSAGE, Role.CACHE, Role.PREFETCH})


class _ObserverListener:
    """Passes accesses on to an observer."""

    def __init__(self, observer: Observer, emitter: WaveEmitter) -> None:
        self._observer = observer
        self._emitter = emitter

    def access(
        self, instruction: Instruction, access: MemoryAccess, target: AccessTarget, rows: Any
    ) -> None:
        self._observer.access(self._emitter, instruction, access, target, rows)

    def scalar_address(self, instruction: Instruction, address: Any) -> None:
        self._observer.scalar_address(self._emitter, instruction, address)

    def scalar_access(self, instruction: Instruction, address: Any, size: int) -> None:
        self._observer.scalar_access(self._emitter, instruction, address, size)

    def leave(self, instruction: Instruction) -> None:
        self._observer.leave(self._emitter, instruction)


class KernelLowering:
    """Builds the wave function `name` of one program in `module`."""

    def __init__(
        self,
        kernel_input: KernelInput,
        machine: FloatMode,
        module: ir.Module,
        name: str,
        observer: Observer | None = None,
    ) -> None:
        self.input = kernel_input
        self.observer = observer or Observer()
        self.emitter = WaveEmitter(kernel_input, machine, module, name)
        self.emitter.listener = _ObserverListener(self.observer, self.emitter)
        self.pending = PendingInstructions(self.emitter)
        self.emitter.pending = self.pending
        self.shapes = Shapes()
        self._pauses = _pause_blocks(kernel_input.program)
        self._budget: Any = None
        self._entered: Any = None

    # the frame

    def build(self) -> ir.Function:
        """Lower every block. Raises Unsupported for the first instruction without a meaning."""
        emitter, program = self.emitter, self.input.program
        self._enter()
        machines = mode.entries(program, emitter.machine)
        for block in program.blocks:
            emitter.builder.position_at_end(emitter.blocks[block.index])
            emitter.machine = machines[block.index]
            self._spend(block)
            self.observer.block(emitter, block)
            for instruction in program.block_instructions(block.index):
                self._instruction(instruction)
                current = emitter.builder.block
                if current is not None and not current.is_terminated:
                    self.observer.after(emitter, instruction)
            if emitter.skip is not None:
                raise Unsupported(f"{program.name}: skipped vector instructions across blocks")
            if emitter.index_mode:
                raise Unsupported(f"{program.name}: index mode across blocks")
            self.pending.settle()
            current = emitter.builder.block
            if current is not None and not current.is_terminated:
                self._finish_block(block)
        self._dispatch()
        self._leave()
        return emitter.function

    def _enter(self) -> None:
        emitter, builder = self.emitter, self.emitter.builder
        registers = EXEC
        for instruction in self.input.program.instructions:
            registers |= instruction.decoded.reads | instruction.decoded.writes
        for position in bits_of(registers >> SGPR_BASE):
            position += SGPR_BASE
            word: Any = emitter.word(state.scalar_word(position))
            if not self.input.quick:
                slot = builder.alloca(I32, name=f"r{position}")
                builder.store(load(builder, word, I32), slot)
                word = slot
            emitter.scalars[position] = word
        emitter.allocate_status()
        self._budget = builder.alloca(I64, name="budget")
        words = element(builder, emitter.context, state.BUDGET, I64)
        builder.store(load(builder, words, I64, 8), self._budget)
        emitter.allocate_scratch()
        self.observer.enter(emitter)
        self._entered = builder.block

    def _dispatch(self) -> None:
        emitter, builder = self.emitter, ir.IRBuilder(self._entered)
        where = load(builder, element(builder, emitter.state, state.ENTRY, I32), I32)
        choice = builder.switch(where, emitter.blocks[self.input.first])
        for number, block in enumerate(emitter.resume_points, 1):
            choice.add_case(I32(number), block)

    def _leave(self) -> None:
        emitter = self.emitter
        builder = ir.IRBuilder(emitter.exit)
        for position, slot in () if self.input.quick else emitter.scalars.items():
            word = element(builder, emitter.state, state.scalar_word(position), I32)
            builder.store(load(builder, slot, I32), word)
        resumed_at = load(builder, emitter.resume_point, I32)
        builder.store(resumed_at, element(builder, emitter.state, state.ENTRY, I32))
        budget = load(builder, self._budget, I64, 8)
        builder.store(budget, element(builder, emitter.context, state.BUDGET, I64))
        builder.ret(load(builder, emitter.status, I32))

    def _spend(self, block: Block) -> None:
        """Count a block's instructions. A loop header is where the wave pauses when its slice is
        used up, and where it resumes."""
        emitter, builder = self.emitter, self.emitter.builder
        budget = self._budget.get_reference()
        credit = emitter.emit_value(I64, f"load i64, ptr {budget}, align 8")
        subtraction = f"sub i64 {credit.get_reference()}, {block.stop - block.start}"
        balance = emitter.emit_value(I64, subtraction)
        emitter.emit_text(f"store i64 {balance.get_reference()}, ptr {budget}, align 8")
        if block.index not in self._pauses:
            return
        with builder.if_then(builder.icmp_signed("<", balance, I64(0)), likely=False):
            builder.store(credit, self._budget)
            emitter.resume_at(emitter.blocks[block.index])
            emitter.stop(state.PAUSED, block.start)

    def _finish_block(self, block: Block) -> None:
        if not block.successors:
            self.emitter.stop(state.DONE)
        else:
            self.emitter.builder.branch(self.emitter.blocks[block.successors[0]])

    # instructions

    def _instruction(self, instruction: Instruction) -> None:
        decoded = instruction.decoded
        opcode = decoded.opcode
        self.observer.before(self.emitter, instruction)
        if opcode.matrix is None:
            self.pending.products.before(decoded)
        try:
            self._lower(instruction)
        except Unsupported as error:
            raise error.at(self.input.program, instruction) from None

    def _lower(self, instruction: Instruction) -> None:
        decoded = instruction.decoded
        opcode = decoded.opcode
        if opcode.control is not Control.NONE:
            self._control(instruction)
        elif relative.concerns(self.emitter, decoded):
            self.pending.settle()
            relative.lower(self.emitter, instruction, partial(self._settled, instruction))
        elif OpcodeFlag.VECTOR_SKIP in opcode.flags:
            self.pending.settle()
            self._skip_vectors(decoded)
        elif self.emitter.skip is not None and _may_be_skipped(decoded):
            self._unless_skipped(instruction)
        elif "mode" in opcode.implicit_writes:
            self.pending.settle()
            mode.write(self.emitter, decoded)
        elif opcode.role is Role.BARRIER:
            self.pending.settle()
            barriers.lower(self.emitter, instruction)
        elif opcode.role is Role.MESSAGE and decoded.writes:
            scalar_memory.message(self.emitter, decoded)
        elif OpcodeFlag.TRAP in opcode.flags:
            self._trap(instruction)
        elif opcode.role in _SKIPPED:
            return
        elif opcode.matrix is not None:
            self.pending.flush()
            self.pending.products.lower(decoded)
        elif decoded.memory is not None or opcode.form == "SMEM":
            self.pending.flush()
            memory.lower(self.emitter, instruction)
        elif opcode.is_vector:
            self._vector(instruction)
        elif self.input.quick and scalar.is_computation(decoded):
            self.shapes.call(self.emitter, instruction)
        else:
            scalar.lower(self.emitter, instruction)

    def _skip_vectors(self, decoded: Decoded) -> None:
        """`s_setvskip`: whether a bit is set, which the second operand numbers. Source: AMD CDNA3
        instruction set architecture guide, "S_SETVSKIP"."""
        emitter, builder = self.emitter, self.emitter.builder
        word, number = (
            scalar_operand(emitter, operand, role, 32)
            for operand, role in zip(decoded.operands, decoded.roles, strict=True)
        )
        bit = builder.lshr(word, builder.and_(number, I32(31)))
        never = decoded.operands[0].kind is OperandClass.CONSTANT and not decoded.operands[0].value
        emitter.skip = None if never else builder.trunc(bit, I1)

    def _unless_skipped(self, instruction: Instruction) -> None:
        """A vector instruction without lanes where it is skipped. Raises Unsupported for those that
        do more than lanes do."""
        emitter, skip = self.emitter, self.emitter.skip
        decoded = instruction.decoded
        if decoded.opcode.matrix is not None or decoded.writes & ~(VGPRS | AGPRS):
            raise Unsupported("this instruction where vector instructions are skipped")
        self.pending.settle()
        mask = emitter.exec_mask()
        emitter.skip = None
        with emitter.masked(emitter.builder.select(skip, mask.type(0), mask)):
            self._lower(instruction)
            self.pending.settle()
        emitter.skip = skip

    def _settled(self, instruction: Instruction) -> None:
        """A vector instruction, with its code emitted at once."""
        if instruction.memory is not None or instruction.opcode.matrix is not None:
            raise Unsupported("this instruction in index mode")
        self._vector(instruction)
        self.pending.settle()

    def _vector(self, instruction: Instruction) -> None:
        if self.input.quick:
            self.shapes.call(self.emitter, instruction)
        elif is_lane_wise(instruction.decoded):
            self.pending.add(instruction)
        else:
            self.pending.flush()
            lower_whole(self.emitter, instruction)

    # control

    def _control(self, instruction: Instruction) -> None:
        emitter = self.emitter
        self.pending.settle()
        block = next(b for b in self.input.program.blocks if b.start <= instruction.index < b.stop)
        control = instruction.opcode.control
        if control is Control.END:
            self.observer.leave(emitter, instruction)
            emitter.stop(state.DONE)
        elif control is not Control.INDIRECT and not block.successors:
            raise Unsupported("a jump out of the code")
        elif control is Control.BRANCH:
            emitter.builder.branch(emitter.blocks[block.successors[0]])
        elif control is Control.CONDITIONAL:
            self._conditional(instruction, block)
        else:
            jumps.lower(emitter, instruction, block)

    def _conditional(self, instruction: Instruction, block: Block) -> None:
        emitter = self.emitter
        if len(block.successors) == 1:
            self._finish_block(block)
            return
        condition = scalar.condition(emitter, instruction)
        self.observer.branch(emitter, instruction, condition)
        follows = block.index + 1
        jump = next(s for s in block.successors if s != follows)
        emitter.builder.cbranch(condition, emitter.blocks[jump], emitter.blocks[follows])

    def _trap(self, instruction: Instruction) -> None:
        """Ends the launch; trap 3 is for a debugger, and nothing without one.

        Source: LLVM "User Guide for AMDGPU Backend", section "Trap Handler ABI".
        """
        number = instruction.operands[0].value
        if number == _DEBUG_TRAP:
            return
        emitter = self.emitter
        self.pending.settle()
        emitter.stop(state.TRAP, instruction.index)
        emitter.builder.position_at_end(emitter.function.append_basic_block("after_trap"))


def _may_be_skipped(decoded: Decoded) -> bool:
    accesses = decoded.memory is not None and decoded.opcode.form != "SMEM"
    return decoded.opcode.is_vector or accesses


def _pause_blocks(program: Program) -> frozenset[int]:
    """Blocks that together lie on every cycle: targets of edges that go back in reverse postorder,
    which are the loop headers where all loops have one entry."""
    order = {block: number for number, block in enumerate(program.reverse_postorder)}
    return frozenset(
        successor
        for block in program.reverse_postorder
        for successor in program.blocks[block].successors
        if order[successor] <= order[block]
    )
