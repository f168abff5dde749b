"""Vector instructions as outlined functions, shared by every kernel that has one of the shape.

    void f(ptr exec, …)

The shape of an instruction is its row, encoding and modifiers, and the kinds of its operands, not
which registers they are. Arguments are, in order: a pointer per special register it touches, then
per operand a pointer to its first row or to its first scalar register, or the value of a constant.
A kernel made of calls is translated in a fraction of the time, and runs slower: values go through
memory from instruction to instruction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from wavecast.compile import digest
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import runtime
from wavecast.emulate.lower.operands import constant_bits
from wavecast.emulate.lower.packed import plain
from wavecast.emulate.lower.registers import Registers
from wavecast.emulate.lower.run import Run
from wavecast.emulate.lower.state import WaveLayout
from wavecast.emulate.lower.values import I32, I64, PTR, element
from wavecast.emulate.lower.vector import VectorLowering, mixed_role
from wavecast.isa import semantics
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import Access, OperandKind, OperandRole
from wavecast.isa.program import Program
from wavecast.isa.registers import (
    SGPR_BASE,
    SPECIAL_REGISTERS,
    VGPR_BASE,
    VGPR_COUNT,
    span,
    special,
)
from wavecast.isa.semantics.machine import Machine

if TYPE_CHECKING:
    from wavecast.emulate.lower.kernel import KernelLowering

_FOLDED = frozenset({OperandKind.IMMEDIATE, OperandKind.LANE_MASK})
"""Kinds of operands whose constants are part of the shape."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """An argument: the first row of a vector operand; `own` is its row in the function."""

    position: int
    own: int
    count: int


@dataclass(frozen=True, slots=True)
class _Scalars:
    """An argument: scalar registers from bit position `position` on, `own` in the function."""

    position: int
    own: int
    count: int


@dataclass(frozen=True, slots=True)
class _Constant:
    """An argument: a number of `count` dwords, scalar registers from `own` on in the function."""

    value: int
    own: int
    count: int


@dataclass(frozen=True, slots=True)
class Shape:
    """An instruction over registers of its own, and what its operands are at the call."""

    decoded: Decoded
    specials: tuple[str, ...]
    arguments: tuple[_Rows | _Scalars | _Constant, ...]
    text: str
    """Equal texts, equal functions."""


class _Renaming:
    """Gives every operand registers of its own."""

    def __init__(self) -> None:
        self.rows = 0
        self.scalars = 0
        self.arguments: list[_Rows | _Scalars | _Constant] = []
        self.text: list[str] = []

    def renamed(self, decoded: Decoded) -> Decoded:
        meaning = semantics.of(decoded.opcode)
        if meaning is None:
            raise Unsupported(f"no semantics for {decoded.mnemonic}")
        signs_own = "neg_lo" in meaning.modifiers
        operands, source = [], 0
        for operand, role in zip(decoded.operands, decoded.roles, strict=True):
            constant = operand.kind is OperandClass.CONSTANT and role.kind not in _FOLDED
            if constant:
                wanted = mixed_role(decoded, role, source)
                new = self._constant(plain(operand) if signs_own else operand, wanted)
            else:
                new = self._register(operand)
            operands.append(new)
            self.text.append(
                f"{constant} {role.kind.value} {role.access.value} {role.type} {role.dwords}"
            )
            self.text.append(
                f"{new.kind.value} {new.count} {new.half} {new.negate} {new.absolute} "
                f"{new.sign_extend} {'' if new.bits and new is not operand else new.text}"
            )
            source += role.access is not Access.WRITE
        self.text += [decoded.mnemonic, decoded.opcode.name, decoded.encoding]
        self.text += [f"{name}:{value}" for name, value in sorted(decoded.modifiers.items())]
        second = None if decoded.second is None else self.renamed(decoded.second)
        return replace(decoded, operands=tuple(operands), second=second)

    def _register(self, operand: Operand) -> Operand:
        if operand.kind in (OperandClass.VGPR, OperandClass.AGPR):
            own, self.rows = self.rows, self.rows + operand.count
            position = operand.bits.bit_length() - operand.count
            self.arguments.append(_Rows(position, own, operand.count))
            bits = span(VGPR_BASE, own, operand.count)
            return replace(operand, kind=OperandClass.VGPR, first=own, bits=bits)
        bits = operand.bits
        if not bits or operand.kind not in (OperandClass.SGPR, OperandClass.SPECIAL):
            return operand
        first = (bits & -bits).bit_length() - 1
        if operand.text in ("scc", "src_scc"):
            return operand
        return self._scalar(operand, first, bits.bit_count())

    def _scalar(self, operand: Operand, position: int, count: int) -> Operand:
        own, self.scalars = self.scalars, self.scalars + count
        self.arguments.append(_Scalars(position, own, count))
        return _own_scalar(operand, own, count)

    def _constant(self, operand: Operand, role: OperandRole) -> Operand:
        count = max(role.dwords, 1)
        own, self.scalars = self.scalars, self.scalars + count
        value = constant_bits(operand, role, 32 * count)
        self.arguments.append(_Constant(value, own, count))
        return replace(_own_scalar(operand, own, count), value=None)


def _own_scalar(operand: Operand, own: int, count: int) -> Operand:
    return replace(
        operand,
        kind=OperandClass.SGPR,
        text=f"s{own}",
        first=own,
        count=count,
        bits=span(SGPR_BASE, own, count),
    )


def shape_of(decoded: Decoded, overflow: bool) -> Shape:
    """The shape of a vector instruction. `overflow`: the program changes MODE.FP16_OVFL."""
    renaming = _Renaming()
    renamed = renaming.renamed(decoded)
    specials = {"exec": None}
    parts = [renamed] if renamed.second is None else [renamed, renamed.second]
    for part in parts:
        specials |= dict.fromkeys((*part.opcode.implicit_reads, *part.opcode.implicit_writes))
        for operand in part.operands:
            if operand.text in ("scc", "src_scc"):
                specials["scc"] = None
    if overflow:
        specials["mode"] = None
    text = "\n".join([*renaming.text, *specials])
    return Shape(renamed, tuple(specials), tuple(renaming.arguments), text)


def call(lowering: KernelLowering, instruction: Instruction) -> None:
    """Execute a vector instruction through the function of its shape."""
    overflow = SPECIAL_REGISTERS["mode"][0] in lowering.scalars
    shape = shape_of(instruction.decoded, overflow)
    lanes, machine = lowering.layout.lanes, lowering.machine
    name = digest.digest(shape.text, lanes, lowering.strip, repr(machine))[:24]
    lane_wise = lowering.vector.lane_wise(instruction.decoded)
    kinds = [PTR] * len(shape.specials)
    kinds += [
        ir.IntType(32 * a.count) if isinstance(a, _Constant) else PTR for a in shape.arguments
    ]
    kind = ir.FunctionType(ir.VoidType(), kinds)
    label = f"vector.{instruction.mnemonic}.{name}"
    program, strip = lowering.program, lowering.strip

    def recipe(module: ir.Module) -> None:
        function = ir.Function(module, kind, runtime.OUTLINED + label)
        site = _Site(function, shape, WaveLayout(lanes, VGPR_COUNT, 0), machine, strip, program)
        site.build(
            Instruction(shape.decoded, instruction.index, 0, instruction.location), lane_wise
        )

    function = runtime.outline(lowering.module, label, kind, recipe)
    lowering.builder.call(function, [*_pointers(lowering, shape), *_values(lowering, shape)])
    lowering.forget(instruction.decoded.writes)


def _pointers(lowering: KernelLowering, shape: Shape) -> list[Any]:
    return [lowering.scalar_slot(SPECIAL_REGISTERS[name][0]) for name in shape.specials]


def _values(lowering: KernelLowering, shape: Shape) -> list[Any]:
    found = []
    for argument in shape.arguments:
        if isinstance(argument, _Rows):
            found.append(lowering.row(lowering.layout.row(argument.position)))
        elif isinstance(argument, _Scalars):
            found.append(lowering.scalar_slot(argument.position))
        else:
            found.append(ir.Constant(ir.IntType(32 * argument.count), argument.value))
    return found


class _Site(Registers):
    """The inside of an outlined function, as the lowering of instructions sees a kernel."""

    def __init__(
        self,
        function: ir.Function,
        shape: Shape,
        layout: WaveLayout,
        machine: Machine,
        strip: int,
        program: Program,
    ) -> None:
        super().__init__(layout)
        self.module, self.function = function.module, function
        self.machine, self.strip, self.program = machine, strip, program
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.indices, self.spare = self._room(I32), self._room(I32)
        self.temporary = self._room(I64)
        self._rows: dict[int, Any] = {}
        values = iter(function.args)
        for name in shape.specials:
            first, _ = SPECIAL_REGISTERS[name]
            pointer = next(values)
            for index in range(special(name).bit_count()):
                self.scalars[first + index] = element(self.builder, pointer, index, I32)
        for argument in shape.arguments:
            self._bind(argument, next(values))

    def _bind(self, argument: _Rows | _Scalars | _Constant, value: Any) -> None:
        builder = self.builder
        if isinstance(argument, _Constant):
            slot = builder.alloca(value.type)
            builder.store(value, slot)
            value = builder.inttoptr(builder.ptrtoint(slot, I64), PTR)
        for index in range(argument.count):
            if isinstance(argument, _Rows):
                place = element(builder, value, index * self.layout.lanes, I32)
                self._rows[argument.own + index] = place
            else:
                position = SGPR_BASE + argument.own + index
                self.scalars[position] = element(builder, value, index, I32)

    def row(self, number: int) -> Any:
        return self._rows[number]

    def _room(self, kind: ir.Type) -> Any:
        space = self.builder.alloca(ir.VectorType(kind, self.layout.lanes))
        return self.builder.inttoptr(self.builder.ptrtoint(space, I64), PTR)

    def build(self, instruction: Instruction, lane_wise: bool) -> None:
        """The body. Raises Unsupported naming the instruction."""
        lowering: Any = self
        try:
            if lane_wise:
                run = Run(lowering)
                run.add(instruction)
                run.emit()
            else:
                VectorLowering(lowering).whole(instruction)
        except Unsupported as error:
            raise error.at(self.program, instruction) from None
        self.builder.ret_void()
        for function in self.module.functions:
            if function is not self.function and not function.is_declaration:
                function.linkage = "internal"


__all__ = ["Shape", "call", "shape_of"]
