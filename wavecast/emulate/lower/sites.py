"""Where a memory instruction calls an outlined access: its data registers, and the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import runtime, state
from wavecast.emulate.lower.access import AccessTarget, MemoryAccess, Outlined, function_type
from wavecast.emulate.lower.atomics import OPERATIONS
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.values import I32, I64, PTR
from wavecast.isa.instruction import Decoded, Instruction, Operand
from wavecast.isa.opcode import MemoryKind, OperandKind, OperandRole
from wavecast.isa.opcode import OperandAccess as Use


def data_operands(decoded: Decoded) -> list[tuple[Operand, OperandRole]]:
    """The data operands: what is loaded, stored, changed or returned."""
    return [
        (operand, role)
        for operand, role in zip(decoded.operands, decoded.roles, strict=True)
        if role.kind is OperandKind.VECTOR
    ]


def first_row(emitter: WaveEmitter, operand: Operand) -> int:
    """The row of an operand's first register."""
    return emitter.layout.row((operand.bits & -operand.bits).bit_length() - 1)


def data_rows(emitter: WaveEmitter, operand: Operand, skip: int = 0) -> Any:
    """A pointer to an operand's rows, from register `skip` of it on."""
    return emitter.row(first_row(emitter, operand) + skip)


def atomic_operation(emitter: WaveEmitter, decoded: Decoded) -> str:
    """What an atomic does. Raises Unsupported for one without a meaning here.

    Floating-point extremes of IEEE 754-2008 keep a NaN that is in memory; in those of 2019 a number
    wins.
    """
    operation = decoded.opcode.memory_form.operation
    if operation not in OPERATIONS:
        raise Unsupported("this atomic operation")
    number_wins = emitter.input.capabilities.ieee754_2019_extremes
    return operation if number_wins else operation.removesuffix("_num")


def shape_letters(decoded: Decoded) -> str:
    """How sub-dword data lies in its register: the `detail` of a load or store."""
    operand, role = data_operands(decoded)[0]
    memory = decoded.memory
    assert memory is not None
    if memory.bytes >= 4:
        return "n"
    load = memory.kind is MemoryKind.LOAD
    letters = "s" if load and role.type.startswith("i") else ""
    if decoded.opcode.memory_form.high or operand.half == "h":
        letters += "h"
    if load and (role.access is Use.READ_WRITE or operand.half):
        letters += "k"
    return letters or "n"


def call(
    emitter: WaveEmitter,
    instruction: Instruction,
    access: MemoryAccess,
    target: AccessTarget,
    *,
    rows: Any,
    other: Any = None,
    result: Any = None,
) -> None:
    """Call an outlined access and leave the wave when it fails."""
    emitter.listener.access(instruction, access, target, rows)
    builder = emitter.builder
    function = runtime.declare(emitter.module, access)
    failed = emitter.call(
        function,
        [
            emitter.context, rows, rows if other is None else other,
            rows if result is None else result, target.address, target.base, target.limit,
            target.offset, emitter.exec_mask(),
        ],
    )  # fmt: skip
    if access.mode == "local" and access.action in ("load", "store"):
        return
    with builder.if_then(builder.icmp_unsigned("!=", failed, I32(0)), likely=False):
        emitter.stop(state.BAD_ADDRESS, instruction.index)


def call_observing(
    emitter: WaveEmitter,
    name: str,
    access: MemoryAccess,
    build: Callable[[Outlined], None],
    target: AccessTarget,
    rows: Any,
    numbers: tuple[Any, Any] = (0, 0),
    mask: Any = None,
) -> None:
    """Call the outlined function `name`, which `build` makes and which looks at an access, for the
    active lanes or those of `mask`. Two numbers (i64) are in the place of its other rows."""

    def recipe(alone: ir.Module) -> None:
        build(Outlined(alone, access, runtime.OUTLINED + name))

    builder = emitter.builder
    function = runtime.outline(emitter.module, name, function_type(access.lanes), recipe)
    values = (I64(number) if isinstance(number, int) else number for number in numbers)
    builder.call(
        function,
        [
            emitter.context, rows, *(builder.inttoptr(value, PTR) for value in values),
            target.address, target.base, target.limit, target.offset,
            emitter.exec_mask() if mask is None else mask,
        ],
    )  # fmt: skip


def copied_rows(emitter: WaveEmitter, rows: Any, count: int) -> Any:
    """A copy of rows in local memory, for accesses that overwrite their own operands."""
    builder = emitter.builder
    kind = ir.VectorType(I32, count * emitter.layout.lanes)
    room = local_rows(emitter, count)
    builder.store(builder.load(rows, align=4, typ=kind), room, align=4)
    return room


def local_rows(emitter: WaveEmitter, count: int) -> Any:
    """Local memory for rows, allotted once in the function's entry."""
    with emitter.builder.goto_entry_block():
        room: Any = emitter.builder.alloca(ir.ArrayType(I32, count * emitter.layout.lanes))
        room.align = 64
        return emitter.builder.inttoptr(emitter.builder.ptrtoint(room, I64), PTR)


__all__ = [
    "atomic_operation",
    "call",
    "call_observing",
    "copied_rows",
    "data_operands",
    "data_rows",
    "first_row",
    "local_rows",
    "shape_letters",
]
