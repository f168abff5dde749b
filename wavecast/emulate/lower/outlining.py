"""Instructions on registers as outlined functions, shared by every kernel that has one of the
shape.

    void f(ptr state, …)

The shape of an instruction is its row, encoding and modifiers, and the kinds of its operands, not
which registers they are. There is one further argument per operand that the shape does not
fix: the word of the wave's state its first register lies at (i32), or the value of a constant.
A kernel made of calls is translated in a fraction of the time, and runs slower: values go through
memory from instruction to instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from llvmlite import ir

from wavecast.compile import digest
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import runtime, scalar, state
from wavecast.emulate.lower.emitter import Emitter, KernelInput, WaveEmitter
from wavecast.emulate.lower.operands import constant_bits
from wavecast.emulate.lower.packed import plain
from wavecast.emulate.lower.run import LaneRun
from wavecast.emulate.lower.state import WaveLayout
from wavecast.emulate.lower.vector import constant_role
from wavecast.emulate.lower.whole import is_lane_wise, lower_whole
from wavecast.emulate.values import I32, I64, PTR, element
from wavecast.isa import semantics
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import OperandAccess, OperandKind, OperandRole
from wavecast.isa.registers import (
    SGPR_BASE,
    SPECIAL_REGISTERS,
    VGPR_BASE,
    VGPR_COUNT,
    span,
    special,
)
from wavecast.isa.semantics.machine import FloatMode

_FOLDED = frozenset({OperandKind.IMMEDIATE, OperandKind.LANE_MASK})
"""Kinds of operands whose constants are part of the shape of a vector instruction."""


class _Kind(StrEnum):
    """What an operand is to a shape."""

    ROWS = "rows"
    SCALARS = "scalars"
    CONSTANT = "constant"
    FIXED = "fixed"


def _kind_of(operand: Operand, role: OperandRole, *, vector: bool) -> _Kind:
    if operand.kind in (OperandClass.VGPR, OperandClass.AGPR):
        return _Kind.ROWS
    if operand.kind is OperandClass.CONSTANT:
        folded = role.kind in _FOLDED if vector else role.kind is OperandKind.LANE_MASK
        return _Kind.FIXED if folded else _Kind.CONSTANT
    scalar = operand.kind in (OperandClass.SGPR, OperandClass.SPECIAL) and operand.bits
    return _Kind.SCALARS if scalar and "scc" not in operand.text else _Kind.FIXED


def _parts(decoded: Decoded) -> tuple[Decoded, ...]:
    return (decoded,) if decoded.second is None else (decoded, decoded.second)


def shape_of(decoded: Decoded) -> str:
    """Equal texts, equal functions, but for what the kernel fixes (lanes, MODE)."""
    text = []
    for part in _parts(decoded):
        text += [part.mnemonic, part.opcode.name, part.encoding]
        text += [f"{name}:{value}" for name, value in sorted(part.modifiers.items())]
        for operand, role in zip(part.operands, part.roles, strict=True):
            kind = _kind_of(operand, role, vector=part.opcode.is_vector)
            text.append(_operand_signature(operand, role, kind))
    return "\n".join(text)


def _operand_signature(operand: Operand, role: OperandRole, kind: _Kind) -> str:
    """What a shape says of an operand."""
    fixed = operand.text if kind is _Kind.FIXED else ""
    return (
        f"{kind} {operand.count} {operand.bits.bit_count()} {operand.half} "
        f"{operand.negate:d}{operand.absolute:d}{operand.sign_extend:d} {fixed} "
        f"{role.access.name} {role.kind.name} {role.type} {role.dwords}"
    )


@dataclass(frozen=True, slots=True)
class _Use:
    """An operand in a role: what the shape says of it, and its argument as LLVM writes it (empty
    where it has none, None for constants, which depend on the instruction)."""

    description: str
    argument: str | None


class Shapes:
    """The functions one kernel calls, by shape and MODE."""

    def __init__(self) -> None:
        self._names: dict[tuple[Any, ...], str] = {}
        """By everything the shape says. Opcodes are named by their identity, operands by what the
        shape says of them."""
        self._uses: dict[tuple[int, int], _Use] = {}
        """By the identities of operand and role: the program keeps them, and equal texts share
        them."""

    def call(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """Execute an instruction on registers through the function of its shape. Raises
        Unsupported."""
        decoded = instruction.decoded
        key: list[Any] = [emitter.machine]
        arguments = [f"ptr {emitter.state.get_reference()}"]
        for part in _parts(decoded):
            key += [part.mnemonic, id(part.opcode), *part.modifiers.items()]
            source = 0
            for operand, role in zip(part.operands, part.roles, strict=True):
                use = self._uses.get((id(operand), id(role)))
                if use is None:
                    use = self._use(emitter.layout, operand, role, part.opcode.is_vector)
                key.append(use.description)
                if use.argument is None:
                    bits = 32 * max(role.dwords, 1)
                    arguments.append(f"i{bits} {_value(part, operand, role, source, bits)}")
                elif use.argument:
                    arguments.append(use.argument)
                source += role.access is not OperandAccess.WRITE
        shape_key = tuple(key)
        name = self._names.get(shape_key)
        if name is None:
            name = self._names[shape_key] = _declare(emitter, instruction, shape_key)
        emitter.call_text(name, arguments)
        emitter.forget(decoded.writes)

    def _use(self, layout: WaveLayout, operand: Operand, role: OperandRole, vector: bool) -> _Use:
        kind = _kind_of(operand, role, vector=vector)
        argument: str | None = ""
        if kind is _Kind.ROWS:
            row = layout.row(operand.bits.bit_length() - operand.count)
            argument = f"i32 {state.VECTORS + row * layout.lanes}"
        elif kind is _Kind.SCALARS:
            first = (operand.bits & -operand.bits).bit_length() - 1
            argument = f"i32 {state.scalar_word(first)}"
        elif kind is _Kind.CONSTANT:
            argument = None
        use = _Use(_operand_signature(operand, role, kind), argument)
        self._uses[id(operand), id(role)] = use
        return use


_labels: dict[tuple[Any, ...], tuple[str, ir.FunctionType, Decoded]] = {}
"""Names and types of functions by their shapes and what kernels fix, for all kernels of a process.
The instruction keeps the opcodes whose identities are in the key."""


def _declare(emitter: WaveEmitter, instruction: Instruction, shape_key: tuple[Any, ...]) -> str:
    """Declare the function of a shape; its name."""
    decoded, lanes, machine = instruction.decoded, emitter.layout.lanes, emitter.machine
    overflow = SPECIAL_REGISTERS["mode"][0] in emitter.scalars
    strip = emitter.input.strip
    label_key = (lanes, strip, overflow, *shape_key)
    entry = _labels.get(label_key)
    if entry is None:
        name = digest.digest(shape_of(decoded), lanes, strip, overflow, repr(machine))[:24]
        kinds = [PTR, *(ir.IntType(bits) for bits in _widths(decoded))]
        family = "vector" if decoded.opcode.is_vector else "scalar"
        label = f"{family}.{instruction.mnemonic}.{name}"
        entry = label, ir.FunctionType(ir.VoidType(), kinds), decoded
        _labels[label_key] = entry
    label, kind, _ = entry
    kernel_input = KernelInput(emitter.input.program, WaveLayout(lanes, VGPR_COUNT, 0), strip)

    def recipe(module: ir.Module) -> None:
        function = ir.Function(module, kind, runtime.OUTLINED + label)
        ShapeEmitter(kernel_input, machine, function, decoded).build(instruction, overflow)

    return runtime.outline(emitter.module, label, kind, recipe).name


def _widths(decoded: Decoded) -> Iterator[int]:
    """Bits of the arguments after the first."""
    for part in _parts(decoded):
        for operand, role in zip(part.operands, part.roles, strict=True):
            kind = _kind_of(operand, role, vector=part.opcode.is_vector)
            if kind is not _Kind.FIXED:
                yield 32 * max(role.dwords, 1) if kind is _Kind.CONSTANT else 32


def _value(decoded: Decoded, operand: Operand, role: OperandRole, source: int, bits: int) -> int:
    """The bit pattern of a constant operand; its signs are applied by the function."""
    meaning = semantics.of(decoded.opcode)
    if meaning is not None and "neg_lo" in meaning.modifiers:
        operand = plain(operand)
    return constant_bits(operand, constant_role(decoded, role, source), bits)


class ShapeEmitter(Emitter):
    """The function of a shape: every operand has its own registers."""

    def __init__(
        self, kernel_input: KernelInput, machine: FloatMode, function: ir.Function, decoded: Decoded
    ) -> None:
        super().__init__(kernel_input, machine, function, "entry")
        self.allocate_scratch()
        self._values = iter(function.args[1:])
        self._rows: list[Any] = []
        self._next_scalar = 0
        self._special("exec")
        for part in _parts(decoded):
            for name in (*part.opcode.implicit_reads, *part.opcode.implicit_writes):
                self._special(name)
            if any("scc" in operand.text for operand in part.operands):
                self._special("scc")
        self.decoded = self._remap_registers(decoded)

    def _special(self, name: str) -> None:
        first, _ = SPECIAL_REGISTERS[name]
        for position in range(first, first + special(name).bit_count()):
            word = state.scalar_word(position)
            self.scalars[position] = element(self.builder, self.state, word, I32)

    def _remap_registers(self, decoded: Decoded) -> Decoded:
        """The instruction over registers of the function's own."""
        operands = tuple(
            self._operand(operand, role, _kind_of(operand, role, vector=decoded.opcode.is_vector))
            for operand, role in zip(decoded.operands, decoded.roles, strict=True)
        )
        second = None if decoded.second is None else self._remap_registers(decoded.second)
        return replace(decoded, operands=operands, second=second)

    def _operand(self, operand: Operand, role: OperandRole, kind: _Kind) -> Operand:
        builder = self.builder
        if kind is _Kind.FIXED:
            return operand
        value: Any = next(self._values)
        if kind is _Kind.CONSTANT:
            slot = builder.alloca(value.type)
            builder.store(value, slot)
            start = builder.inttoptr(builder.ptrtoint(slot, I64), PTR)
            return self._scalar(operand, start, max(role.dwords, 1))
        start = element(builder, self.state, builder.zext(value, I64), I32)
        if kind is _Kind.SCALARS:
            return self._scalar(operand, start, operand.bits.bit_count())
        first, count = len(self._rows), operand.count
        for index in range(count):
            self._rows.append(element(builder, start, index * self.layout.lanes, I32))
        bits = span(VGPR_BASE, first, count)
        return replace(operand, kind=OperandClass.VGPR, first=first, bits=bits)

    def _scalar(self, operand: Operand, start: Any, count: int) -> Operand:
        first, self._next_scalar = self._next_scalar, self._next_scalar + count
        for index in range(count):
            pointer = element(self.builder, start, index, I32)
            self.scalars[SGPR_BASE + first + index] = pointer
        return replace(
            operand, kind=OperandClass.SGPR, text=f"s{first}", first=first, count=count,
            bits=span(SGPR_BASE, first, count), value=None,
        )  # fmt: skip

    def row(self, number: int) -> Any:
        return self._rows[number]

    def build(self, instruction: Instruction, overflow: bool) -> None:
        """Build the body; `overflow`: MODE.FP16_OVFL is a value. Raises Unsupported naming the
        instruction."""
        shape_instruction = Instruction(
            self.decoded, instruction.index, instruction.line, instruction.location
        )
        if overflow:
            self._special("mode")
        try:
            if not instruction.opcode.is_vector:
                scalar.compute(self, shape_instruction.decoded)
            elif is_lane_wise(instruction.decoded):
                run = LaneRun(self)
                run.add(shape_instruction)
                run.emit()
            else:
                lower_whole(self, shape_instruction)
        except Unsupported as error:
            raise error.at(self.input.program, instruction) from None
        self.builder.ret_void()
        for function in self.module.functions:
            if function is not self.function and not function.is_declaration:
                function.linkage = "internal"


__all__ = ["Shapes", "shape_of"]
