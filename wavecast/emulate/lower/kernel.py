"""A program as one native function: `i32 wave(ptr state, ptr context)`.

Scalar registers are local variables of the function, loaded from the wave's state on entry and
stored on exit, so LLVM keeps them in machine registers. Vector registers stay in memory. Straight
runs of lane-wise instructions become one loop over strips of lanes (`run.py`); instructions that
look at other lanes are lowered on the whole wave at once. A barrier ends the function with the
place to resume at.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import (
    barriers,
    hardware,
    jumps,
    memory,
    mode,
    outlining,
    relative,
    scalar_memory,
    state,
)
from wavecast.emulate.lower.matrix import MatrixGroup
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.operands import scalar_operand, uses_apertures
from wavecast.emulate.lower.ops import LlvmOps
from wavecast.emulate.lower.registers import Registers
from wavecast.emulate.lower.run import Run
from wavecast.emulate.lower.state import WaveLayout
from wavecast.emulate.lower.values import I32, I64, PTR, element, load
from wavecast.emulate.lower.whole import WaveLowering
from wavecast.isa import semantics
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded, Instruction, OperandClass
from wavecast.isa.opcode import Access, Control, OpcodeFlag, OperandKind, Role
from wavecast.isa.program import Block, Program
from wavecast.isa.registers import EXEC, SGPR_BASE
from wavecast.isa.semantics.machine import Machine

_DEBUG_TRAP = 3
_SKIPPED = frozenset({Role.WAIT, Role.HINT, Role.NOP, Role.MESSAGE, Role.CACHE, Role.PREFETCH})


class KernelLowering(Registers):
    """Builds the wave function of one program in `module`."""

    def __init__(
        self,
        program: Program,
        layout: WaveLayout,
        machine: Machine,
        module: ir.Module,
        strip: int,
        name: str,
        observer: Observer | None = None,
        first: int = 0,
        quick: bool = False,
    ) -> None:
        super().__init__(layout)
        self.quick = quick
        """Whether vector instructions are calls and scalar registers stay in memory."""
        self.shapes: dict[tuple[str, Machine], str] = {}
        """Names of the functions of shapes and MODEs."""
        self.program = program
        self.first = first
        """The block waves start at."""
        self.observer = observer or Observer()
        self.machine = machine
        self.module = module
        self.strip = min(strip, layout.lanes)
        kind = ir.FunctionType(I32, [PTR, PTR])
        self.function = ir.Function(module, kind, name)
        self.function.args[0].add_attribute("noalias")
        self.state, self.context = self.function.args
        self.entry = self.function.append_basic_block("entry")
        self.exit = self.function.append_basic_block("exit")
        self.blocks = [self.function.append_basic_block(f"b{b.index}") for b in program.blocks]
        self.builder = ir.IRBuilder(self.entry)
        self.resume: list[Any] = []
        self.headers = _pause_blocks(program)
        self.apertures = uses_apertures(program)
        self.vector = WaveLowering(self)
        self.pending: Run | None = None
        self.index_mode = 0
        """Operands that are relative to M0 now (gfx9): bits for src0, src1, src2 and dst."""
        self.products = MatrixGroup(self)

    # the frame

    def build(self) -> ir.Function:
        """Lower every block. Raises Unsupported for the first instruction without a meaning."""
        self._enter()
        machines = mode.entries(self.program, self.machine)
        for block in self.program.blocks:
            self.builder.position_at_end(self.blocks[block.index])
            self.machine = machines[block.index]
            self._spend(block)
            self.observer.block(self, block)
            for instruction in self.program.block_instructions(block.index):
                self._instruction(instruction)
                current = self.builder.block
                if current is not None and not current.is_terminated:
                    self.observer.after(self, instruction)
            if self.index_mode:
                raise Unsupported(f"{self.program.name}: index mode across blocks")
            self.settle()
            current = self.builder.block
            if current is not None and not current.is_terminated:
                self._finish_block(block)
        self._dispatch()
        self._leave()
        return self.function

    def _enter(self) -> None:
        used = 0
        for instruction in self.program.instructions:
            used |= instruction.decoded.reads | instruction.decoded.writes
        used |= EXEC
        for position in bits_of(used >> SGPR_BASE):
            position += SGPR_BASE
            word = element(self.builder, self.state, state.scalar_word(position), I32)
            if not self.quick:
                slot = self.builder.alloca(I32, name=f"r{position}")
                self.builder.store(load(self.builder, word, I32), slot)
                word = slot
            self.scalars[position] = word
        self.status = self.builder.alloca(I32, name="status")
        self.builder.store(I32(state.DONE), self.status)
        self.place = self.builder.alloca(I32, name="place")
        self.builder.store(I32(0), self.place)
        self.budget = self.builder.alloca(I64, name="budget")
        words = element(self.builder, self.context, state.BUDGET, I64)
        self.builder.store(load(self.builder, words, I64, 8), self.budget)
        self.indices = self._room(I32)
        self.spare = self._room(I32)
        self.temporary = self._room(I64)
        self.observer.enter(self)
        self.entered = self.builder.block

    def _room(self, kind: ir.Type) -> Any:
        """Memory for one value of every lane, as an untyped pointer."""
        space = self.builder.alloca(ir.VectorType(kind, self.layout.lanes))
        return self.builder.inttoptr(self.builder.ptrtoint(space, I64), PTR)

    def _dispatch(self) -> None:
        builder = ir.IRBuilder(self.entered)
        where = load(builder, element(builder, self.state, state.ENTRY, I32), I32)
        choice = builder.switch(where, self.blocks[self.first])
        for number, block in enumerate(self.resume, 1):
            choice.add_case(I32(number), block)

    def _leave(self) -> None:
        builder = ir.IRBuilder(self.exit)
        for position, slot in () if self.quick else self.scalars.items():
            word = element(builder, self.state, state.scalar_word(position), I32)
            builder.store(load(builder, slot, I32), word)
        place = load(builder, self.place, I32)
        builder.store(place, element(builder, self.state, state.ENTRY, I32))
        budget = load(builder, self.budget, I64, 8)
        builder.store(budget, element(builder, self.context, state.BUDGET, I64))
        builder.ret(load(builder, self.status, I32))

    def stop(self, status: int, instruction: int = 0) -> None:
        """Leave the function with a status; the instruction is named for errors."""
        builder = self.builder
        builder.store(I32(status), self.status)
        if status > state.BARRIER:
            word = element(builder, self.state, state.ERROR_INSTRUCTION, I32)
            builder.store(I32(instruction), word)
        builder.branch(self.exit)

    def _spend(self, block: Block) -> None:
        """Count a block's instructions. A loop header is where the wave pauses when its slice is
        used up, and where it resumes."""
        builder = self.builder
        allowed = load(builder, self.budget, I64, 8)
        left = builder.sub(allowed, I64(block.stop - block.start))
        builder.store(left, self.budget)
        if block.index not in self.headers:
            return
        self.resume.append(self.blocks[block.index])
        with builder.if_then(builder.icmp_signed("<", left, I64(0)), likely=False):
            builder.store(allowed, self.budget)
            builder.store(I32(len(self.resume)), self.place)
            self.stop(state.PAUSED, block.start)

    def _finish_block(self, block: Any) -> None:
        if not block.successors:
            self.stop(state.DONE)
        else:
            self.builder.branch(self.blocks[block.successors[0]])

    # registers

    def emit_text(self, text: str) -> None:
        """Add an instruction without a result, as LLVM writes it: objects are slow to make."""
        block: Any = self.builder.block
        block.instructions.append(text)
        self.builder.position_at_end(block)

    def row(self, number: int) -> Any:
        """A pointer to a row of vector registers."""
        word = state.VECTORS + number * self.layout.lanes
        return element(self.builder, self.state, word, I32)

    # instructions

    def flush(self) -> None:
        """Emit the pending run of lane-wise instructions."""
        if self.pending is not None:
            run, self.pending = self.pending, None
            run.emit()

    def settle(self) -> None:
        """Emit all that waits: the run, and matrix instructions."""
        self.flush()
        self.products.close()

    def _instruction(self, instruction: Instruction) -> None:
        decoded = instruction.decoded
        opcode = decoded.opcode
        self.observer.before(self, instruction)
        if opcode.matrix is None:
            self.products.before(decoded)
        try:
            if opcode.control is not Control.NONE:
                self._control(instruction)
            elif relative.concerns(self, decoded):
                self.settle()
                relative.lower(self, instruction)
            elif "mode" in opcode.implicit_writes:
                self.settle()
                mode.write(self, decoded)
            elif opcode.role is Role.BARRIER:
                self.settle()
                barriers.lower(self, instruction)
            elif opcode.role is Role.MESSAGE and decoded.writes:
                scalar_memory.message(self, decoded)
            elif OpcodeFlag.TRAP in opcode.flags:
                self._trap(instruction)
            elif opcode.role in _SKIPPED:
                return
            elif opcode.matrix is not None:
                self.flush()
                self.products.lower(decoded)
            elif decoded.memory is not None or opcode.form == "SMEM":
                self.flush()
                memory.lower(self, instruction)
            elif opcode.is_vector:
                self._vector(instruction)
            else:
                self._scalar(instruction)
        except Unsupported as error:
            raise error.at(self.program, instruction) from None

    def _vector(self, instruction: Instruction) -> None:
        if self.quick:
            outlining.call(self, instruction)
            return
        if not self.vector.lane_wise(instruction.decoded):
            self.flush()
            self.vector.whole(instruction)
            return
        if self.pending is not None and not self.pending.accepts(instruction.decoded):
            self.flush()
        if self.pending is None:
            self.pending = Run(self)
        self.pending.add(instruction)
        if instruction.decoded.writes & EXEC:
            self.flush()

    def _scalar(self, instruction: Instruction) -> None:
        decoded = instruction.decoded
        if self.pending is not None and self.pending.blocks(decoded):
            self.flush()
        meaning = semantics.of(decoded.opcode)
        if OpcodeFlag.GETPC in decoded.opcode.flags:
            jumps.read_counter(self, instruction)
            return
        if decoded.opcode.flags & hardware.FLAGS:
            hardware.lower(self, decoded)
            return
        if meaning is None:
            raise Unsupported(f"no semantics for {decoded.mnemonic}")
        outputs = meaning.evaluate(self._scalar_ops(), *self._scalar_inputs(instruction))
        self._scalar_outputs(decoded, outputs)

    def _scalar_ops(self) -> LlvmOps:
        ops = LlvmOps(self.builder, 0, self.machine, self.layout.lanes)
        ops.overflow = mode.overflow(self)
        return ops

    def _scalar_inputs(self, instruction: Instruction) -> list[Any]:
        inputs, decoded = [], instruction.decoded
        width = 32
        for operand, role in zip(decoded.operands, decoded.roles, strict=True):
            bits = self._width(role)
            if role.kind is not OperandKind.IMMEDIATE:
                width = max(width, bits)
            if role.access is Access.WRITE or role.kind is OperandKind.LABEL:
                continue
            if operand.kind is OperandClass.EXPRESSION:
                inputs.append(jumps.symbol_value(self, instruction.index, operand.text, bits))
            else:
                inputs.append(scalar_operand(self, operand, role, bits))
        for name in decoded.opcode.implicit_reads:
            inputs.append(self.special(name, width))
        return inputs

    def _width(self, role: Any) -> int:
        if role.kind is OperandKind.LANE_MASK:
            return self.layout.lanes
        return 32 * role.dwords if role.dwords else 32

    def _scalar_outputs(self, decoded: Decoded, outputs: tuple[Any, ...]) -> None:
        values = iter(outputs)
        for operand, role in zip(decoded.operands, decoded.roles, strict=True):
            if role.access in (Access.WRITE, Access.READ_WRITE):
                value = next(values)
                if operand.bits:
                    self.set_scalar_bits(operand.bits.bit_length() - operand.count, value)
        for name in decoded.opcode.implicit_writes:
            self.set_special(name, next(values))

    # control

    def _control(self, instruction: Instruction) -> None:
        self.settle()
        block = next(b for b in self.program.blocks if b.start <= instruction.index < b.stop)
        control = instruction.opcode.control
        if control is Control.END:
            self.observer.leave(self, instruction)
            self.stop(state.DONE)
        elif control is not Control.INDIRECT and not block.successors:
            raise Unsupported("a jump out of the code")
        elif control is Control.BRANCH:
            self.builder.branch(self.blocks[block.successors[0]])
        elif control is Control.CONDITIONAL:
            self._conditional(instruction, block)
        else:
            jumps.lower(self, instruction, block)

    def _conditional(self, instruction: Instruction, block: Any) -> None:
        if len(block.successors) < 2:
            self.builder.branch(self.blocks[block.successors[0]])
            return
        meaning = semantics.of(instruction.opcode)
        if meaning is None:
            raise Unsupported(f"no semantics for {instruction.mnemonic}")
        inputs = []
        for name in instruction.opcode.implicit_reads:
            value = self.special(name, self.layout.lanes)
            if name != "scc" and self.layout.lanes == 32:
                value = self.builder.zext(value, I64)
            inputs.append(value)
        (taken,) = meaning.evaluate(self._scalar_ops(), *inputs)
        self.observer.branch(self, instruction, taken)
        follows = block.index + 1
        jump = next(s for s in block.successors if s != follows)
        self.builder.cbranch(taken, self.blocks[jump], self.blocks[follows])

    def _trap(self, instruction: Instruction) -> None:
        """Ends the launch; trap 3 is for a debugger, and nothing without one.

        Source: LLVM "User Guide for AMDGPU Backend", section "Trap Handler ABI".
        """
        number = instruction.operands[0].value
        if number == _DEBUG_TRAP:
            return
        self.settle()
        self.stop(state.TRAP, instruction.index)
        self.builder.position_at_end(self.function.append_basic_block("after_trap"))


def _pause_blocks(program: Program) -> frozenset[int]:
    """Blocks that together lie on every cycle: targets of edges that go back in reverse postorder,
    which are the loop headers where all loops have one entry."""
    place = {block: number for number, block in enumerate(program.reverse_postorder)}
    return frozenset(
        successor
        for block in program.reverse_postorder
        for successor in program.blocks[block].successors
        if place[successor] <= place[block]
    )
