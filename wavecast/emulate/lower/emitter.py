"""What the steps of a translation read, and what they may change.

`KernelInput` is what a kernel is translated from; no step changes it. An `Emitter` has what
instructions on registers need: the point code is emitted at, and the registers. A `WaveEmitter` is
that of a wave function, whose instructions also touch memory and end the wave.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from llvmlite import ir

from wavecast.arch import capabilities
from wavecast.arch.capability import Capabilities
from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import AccessTarget, MemoryAccess
from wavecast.emulate.lower.registers import ScalarRegisters
from wavecast.emulate.lower.state import WaveLayout
from wavecast.emulate.values import I32, I64, PTR, VOID, TextValue
from wavecast.isa.instruction import Decoded, Instruction
from wavecast.isa.program import Program
from wavecast.isa.registers import SPECIAL_REGISTERS
from wavecast.isa.semantics.machine import FloatMode
from wavecast.isa.targets import isa_target


@dataclass(frozen=True, slots=True, eq=False)
class KernelInput:
    """What a kernel is translated from.

    `strip` is how many lanes the host's vector instructions process at once. `first` is the block
    waves start at. With `quick`, vector instructions are calls and scalar registers stay in memory.
    `apertures`: the program makes flat addresses of LDS or scratch.
    """

    program: Program
    layout: WaveLayout
    strip: int
    first: int = 0
    quick: bool = False
    apertures: bool = False

    @property
    def capabilities(self) -> Capabilities:
        """What the program's target can do."""
        return capabilities(isa_target(self.program.target))


class Emitter(ScalarRegisters, ABC):
    """The function that is being built, for instructions on registers.

    `builder` is where code is emitted. `machine` is the MODE register as known here, which only
    `mode.write` changes. `indices` and `spare` are memory for an i32 of every lane, `temporary` for
    an i64: a step may use them until the next one.
    """

    def __init__(
        self, kernel_input: KernelInput, machine: FloatMode, function: ir.Function, entry: str
    ) -> None:
        super().__init__(kernel_input.layout)
        self.input = kernel_input
        self.machine = machine
        self.module: ir.Module = function.module
        self.function = function
        self.state: Any = function.args[0]
        """Pointer to the wave's state (`state.py`)."""
        self.builder = ir.IRBuilder(function.append_basic_block(entry))
        self.indices: Any = None
        self.spare: Any = None
        self.temporary: Any = None

    @abstractmethod
    def row(self, number: int) -> Any:
        """A pointer to a row of vector registers."""

    def allocate_scratch(self) -> None:
        """Allocate `indices`, `spare` and `temporary` here."""
        self.indices = self._per_lane(I32)
        self.spare = self._per_lane(I32)
        self.temporary = self._per_lane(I64)

    def _per_lane(self, kind: ir.Type) -> Any:
        """Memory for one value of every lane, as an untyped pointer."""
        space = self.builder.alloca(ir.VectorType(kind, self.layout.lanes))
        return self.builder.inttoptr(self.builder.ptrtoint(space, I64), PTR)


class AccessListener(Protocol):
    """What is told of an access before its code is emitted."""

    def access(
        self, instruction: Instruction, access: MemoryAccess, target: AccessTarget, rows: Any
    ) -> None: ...

    def scalar_address(self, instruction: Instruction, address: Any) -> None: ...

    def scalar_access(self, instruction: Instruction, address: Any, size: int) -> None: ...

    def leave(self, instruction: Instruction) -> None: ...


class PendingCode(Protocol):
    """Instructions that are lowered and whose code is not emitted yet."""

    def flush(self) -> None:
        """Emit the pending run of lane-wise instructions."""
        ...

    def settle(self) -> None:
        """Emit everything: the run, and matrix instructions."""
        ...

    def flush_masks(self, registers: int) -> None:
        """Emit the run if it writes a lane mask to one of the scalar registers (a bit each)."""
        ...

    def flush_before(self, decoded: Decoded) -> None:
        """Emit the run if a scalar instruction must wait for it."""
        ...

    def flush_rows(self, decoded: Decoded) -> None:
        """Emit what writes the vector registers an instruction reads."""
        ...


class WaveEmitter(Emitter):
    """The wave function of a kernel: `i32 wave(ptr state, ptr context)`.

    `index_mode` has the operands that are relative to M0 here (gfx9): a bit for each of src0, src1,
    src2 and dst; only `relative.lower` changes it. `skip` is whether vector instructions are
    skipped here (i1), None where none is. `blocks` are the LLVM blocks of the program's.
    """

    listener: AccessListener
    pending: PendingCode

    def __init__(
        self, kernel_input: KernelInput, machine: FloatMode, module: ir.Module, name: str
    ) -> None:
        function = ir.Function(module, ir.FunctionType(I32, [PTR, PTR]), name)
        function.args[0].add_attribute("noalias")
        super().__init__(kernel_input, machine, function, "entry")
        self.context: Any = function.args[1]
        """Pointer to the launch's context (`state.py`)."""
        self.exit = function.append_basic_block("exit")
        self.blocks = tuple(
            function.append_basic_block(f"b{block.index}") for block in kernel_input.program.blocks
        )
        self.index_mode = 0
        self.skip: Any = None
        self.resume_points: list[Any] = []
        """Blocks where waves that stopped continue; number n is the n-th, from 1."""
        self.status: Any = None
        self.resume_point: Any = None
        self._addresses: dict[str, str] = {}
        """Local variables of quick code with the addresses of outlined functions, by name."""
        self._texts = 0
        """Results of instructions added as text, so far."""

    def row(self, number: int) -> Any:
        return self.word(state.VECTORS + number * self.layout.lanes)

    def word(self, number: int) -> Any:
        """A pointer to a word of the wave's state."""
        text = f"getelementptr i32, ptr {self.state.get_reference()}, i64 {number}"
        return self.emit_value(PTR, text)

    def exec_mask(self) -> Any:
        """EXEC as an integer of one bit per lane. In quick code its halves are words of the wave's
        state, one after the other."""
        if not self.input.quick or self.layout.lanes == 32:
            return super().exec_mask()
        slot = self.scalars[SPECIAL_REGISTERS["exec"][0]].get_reference()
        return self.emit_value(I64, f"load i64, ptr {slot}, align 4")

    @contextmanager
    def masked(self, mask: Any) -> Iterator[None]:
        """EXEC is `mask` (an integer of one bit per lane) for what is emitted meanwhile."""
        saved = self.exec_mask()
        self.set_special("exec", mask)
        yield
        self.set_special("exec", saved)

    def allocate_status(self) -> None:
        """Allocate what the function returns and where the wave resumes."""
        self.status = self.builder.alloca(I32, name="status")
        self.builder.store(I32(state.DONE), self.status)
        self.resume_point = self.builder.alloca(I32, name="resume")
        self.builder.store(I32(0), self.resume_point)

    def stop(self, status: int, instruction: int = 0) -> None:
        """Leave the function with a status; the instruction is named for errors."""
        self.emit_text(f"store i32 {status}, ptr {self.status.get_reference()}")
        if status >= state.BARRIER:
            word = self.word(state.ERROR_INSTRUCTION).get_reference()
            self.emit_text(f"store i32 {instruction}, ptr {word}")
        self.builder.branch(self.exit)

    def resume_at(self, block: Any) -> None:
        """Make a wave that stops here continue at an LLVM block."""
        self.resume_points.append(block)
        self.builder.store(I32(len(self.resume_points)), self.resume_point)

    def emit_text(self, text: str) -> None:
        """Add an instruction without a result, as LLVM writes it: objects are slow to make."""
        block: Any = self.builder.block
        block.instructions.append(text)
        self.builder.position_at_end(block)

    def _begin_with(self, *texts: str) -> None:
        """Add instructions at the start of the function."""
        entry: Any = self.function.entry_basic_block
        entry.instructions[:0] = texts
        if self.builder.block is entry:
            self.builder.position_at_end(entry)

    def emit_value(self, kind: ir.Type, text: str) -> TextValue:
        """Add an instruction with a result of `kind`, as LLVM writes it."""
        self._texts += 1
        reference = f'%"t.{self._texts}"'
        self.emit_text(f"{reference} = {text}")
        return TextValue(kind, reference)

    def call(self, function: ir.Function, arguments: Sequence[Any]) -> Any:
        """Call an outlined function; its result, None if it has none."""
        if not self.input.quick:
            return self.builder.call(function, arguments)
        texts = [f"{argument.type} {argument.get_reference()}" for argument in arguments]
        return self.call_text(function.name, texts, function.function_type.return_type)

    def call_text(self, name: str, arguments: Sequence[str], result: ir.Type = VOID) -> Any:
        """Call an outlined function of the module from quick code, with arguments as LLVM writes
        them.

        The function's address comes from a local variable: LLVM's fast instruction selection
        refuses calls of symbols at any distance, and is two to three times as fast as the other.
        """
        slot = self._addresses.get(name)
        if slot is None:
            slot = self._addresses[name] = f'%"call.{len(self._addresses)}"'
            self._begin_with(f"{slot} = alloca ptr", f'store ptr @"{name}", ptr {slot}')
        address = self.emit_value(PTR, f"load ptr, ptr {slot}").get_reference()
        text = f"call {result} {address}({', '.join(arguments)})"
        if result != VOID:
            return self.emit_value(result, text)
        self.emit_text(text)
        return None


__all__ = ["AccessListener", "Emitter", "KernelInput", "PendingCode", "WaveEmitter"]
