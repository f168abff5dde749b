"""Registers whose number is computed: moves relative to M0, and gfx9's index mode.

Source: AMD instruction set architecture guides, "V_MOVRELS_B32" and its family (RDNA3),
"S_MOVRELS_B32", "VGPR indexing" (CDNA3). A number beyond the registers the program names breaks the
launch off; what hardware does then depends on what it allocated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.values import I1, I32, I64, element, splat
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import Opcode, OpcodeFlag, OperandAccess
from wavecast.isa.registers import SGPR_BASE, TTMP_BASE

_MOVES: Final = frozenset({OpcodeFlag.M0_SOURCE, OpcodeFlag.M0_DEST, OpcodeFlag.M0_DEST_HIGH})
_INDEX: Final = frozenset({OpcodeFlag.INDEX_ON, OpcodeFlag.INDEX_OFF, OpcodeFlag.INDEX_MODE})
_WRITES: Final = (OperandAccess.WRITE, OperandAccess.READ_WRITE)
_FIELDS = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}
FLAGS: Final = _MOVES | _INDEX | {OpcodeFlag.INDEX_VALUE}
"""Flags of the rows lowered here."""


def concerns(emitter: WaveEmitter, decoded: Decoded) -> bool:
    """Whether an instruction names registers relatively, or does so by index mode."""
    opcode = decoded.opcode
    return bool(opcode.flags & FLAGS or (emitter.index_mode and opcode.is_vector))


def lower(emitter: WaveEmitter, instruction: Instruction, plainly: Callable[[], None]) -> None:
    """Lower one; `plainly` lowers it with the registers it names. Raises Unsupported."""
    decoded, opcode = instruction.decoded, instruction.opcode
    if opcode.flags & _MOVES:
        move = _move if opcode.is_vector else _scalar_move
        move(emitter, instruction, *_shifts(opcode))
    elif opcode.flags & _INDEX:
        _set_mode(emitter, decoded)
    elif OpcodeFlag.INDEX_VALUE in opcode.flags:
        _set_index(emitter, decoded)
    elif _is_plain_move(decoded) and not emitter.index_mode & ~9:
        target = 0 if emitter.index_mode & 8 else None
        source = 0 if emitter.index_mode & 1 else None
        _move(emitter, instruction, target, source)
    else:
        _with_copies(emitter, instruction, plainly)


def _shifts(opcode: Opcode) -> tuple[int | None, int | None]:
    """The bit of M0 at which the offset of the destination and of the source start, None for a
    register that is not relative."""
    source = 0 if OpcodeFlag.M0_SOURCE in opcode.flags else None
    if OpcodeFlag.M0_DEST_HIGH in opcode.flags:
        return 16, source
    return (0 if OpcodeFlag.M0_DEST in opcode.flags else None), source


def _is_plain_move(decoded: Decoded) -> bool:
    """Whether an instruction copies one dword to a vector register."""
    return OpcodeFlag.MOVE in decoded.opcode.flags and decoded.roles[0].type == "b32"


# vector registers


def _move(
    emitter: WaveEmitter, instruction: Instruction, target: int | None, source: int | None
) -> None:
    decoded, builder, lanes = instruction.decoded, emitter.builder, emitter.layout.lanes
    if decoded.modifiers or decoded.encoding in ("dpp", "sdwa"):
        raise Unsupported("a relative move with modifiers")
    to, origin = decoded.operands
    kind = ir.VectorType(I32, lanes)
    if origin.kind is OperandClass.VGPR:
        value: Any = builder.load(_row(emitter, instruction, origin, source), align=4, typ=kind)
    elif source is None:
        value = splat(builder, scalar_operand(emitter, origin, decoded.roles[1], 32), lanes)
    else:
        raise Unsupported("a relative move from no vector register")
    register = _row(emitter, instruction, to, target)
    active = builder.bitcast(emitter.exec_mask(), ir.VectorType(I1, lanes))
    old = builder.load(register, align=4, typ=kind)
    builder.store(builder.select(active, value, old), register, align=4)


def _row(
    emitter: WaveEmitter, instruction: Instruction, operand: Operand, shift: int | None
) -> Any:
    """A pointer to the row of an operand, moved by the offset in M0."""
    builder, layout = emitter.builder, emitter.layout
    number = layout.row(operand.bits.bit_length() - operand.count)
    if shift is None:
        return emitter.row(number)
    index = builder.add(_offset(emitter, shift), I32(number))
    _require(emitter, instruction, builder.icmp_unsigned("<", index, I32(layout.vgpr_rows)))
    words = emitter.builder.mul(emitter.builder.zext(index, I64), I64(layout.lanes))
    return element(emitter.builder, emitter.row(0), words, I32)


def _offset(emitter: WaveEmitter, shift: int) -> Any:
    """Ten bits of M0 where there are two offsets, the eight of index mode, else all of it."""
    value = emitter.builder.lshr(emitter.special("m0", 32), I32(shift))
    bits = 0xFF if emitter.index_mode else 0x3FF
    return emitter.builder.and_(value, I32(bits))


def _require(emitter: WaveEmitter, instruction: Instruction, good: Any) -> None:
    builder = emitter.builder
    with builder.if_then(builder.not_(good), likely=False):
        emitter.stop(state.BAD_REGISTER, instruction.index)


def _with_copies(
    emitter: WaveEmitter, instruction: Instruction, plainly: Callable[[], None]
) -> None:
    """Another instruction in index mode: with the relative registers copied to those it names, and
    the result to its relative register; what the named ones had returns to them."""
    named = [
        (operand, role.access in _WRITES)
        for operand, role in zip(instruction.operands, instruction.decoded.roles, strict=True)
    ]
    relative, targets, others = [], [], []
    source = 0
    for operand, written in named:
        moves = emitter.index_mode & (8 if written else 1 << source if source < 3 else 0)
        source += not written
        if moves and operand.kind is OperandClass.VGPR:
            (targets if written else relative).append(operand)
        else:
            others.append(operand)
    bits = [operand.bits for operand in (*relative, *targets, *others)]
    overlaps = sum(each.bit_count() for each in bits) != reduce(or_, bits, 0).bit_count()
    if overlaps or any(operand.count != 1 for operand in (*relative, *targets)):
        raise Unsupported("this instruction in index mode")
    builder, kind = emitter.builder, ir.VectorType(I32, emitter.layout.lanes)
    rows = [
        (_row(emitter, instruction, operand, None), _row(emitter, instruction, operand, 0))
        for operand in (*relative, *targets)
    ]
    before = [builder.load(row, align=4, typ=kind) for row, _ in rows]
    moved = [builder.load(row, align=4, typ=kind) for _, row in rows]
    for (row, _), value in zip(rows, moved, strict=True):
        builder.store(value, row, align=4)
    plainly()
    results = [builder.load(row, align=4, typ=kind) for row, _ in rows[len(relative) :]]
    for (row, _), value in zip(rows, before, strict=True):
        builder.store(value, row, align=4)
    for (_, row), value in zip(rows[len(relative) :], results, strict=True):
        builder.store(value, row, align=4)


# scalar registers


def _scalar_move(
    emitter: WaveEmitter, instruction: Instruction, target: int | None, source: int | None
) -> None:
    decoded, builder = instruction.decoded, emitter.builder
    to, origin = decoded.operands
    bits = 32 * to.count
    if source is None:
        value = scalar_operand(emitter, origin, decoded.roles[1], bits)
    else:
        value = _select_register(emitter, instruction, origin, _offset(emitter, source))
    if target is None:
        emitter.set_scalar_bits(_first(to), value)
        return
    offset = _offset(emitter, target)
    reachable = _reachable(emitter, _first(to), to.count)
    hit: Any = I1(0)
    for distance, register in reachable:
        here = builder.icmp_unsigned("==", offset, I32(distance))
        hit = builder.or_(hit, here)
        old = emitter.scalar_bits(register, to.count)
        emitter.set_scalar_bits(register, builder.select(here, value, old))
    _require(emitter, instruction, hit)


def _select_register(
    emitter: WaveEmitter, instruction: Instruction, origin: Operand, offset: Any
) -> Any:
    builder = emitter.builder
    value: Any = ir.Constant(ir.IntType(32 * origin.count), 0)
    hit: Any = I1(0)
    for distance, register in _reachable(emitter, _first(origin), origin.count):
        here = builder.icmp_unsigned("==", offset, I32(distance))
        hit = builder.or_(hit, here)
        value = builder.select(here, emitter.scalar_bits(register, origin.count), value)
    _require(emitter, instruction, hit)
    return value


def _reachable(emitter: WaveEmitter, first: int, count: int) -> list[tuple[int, int]]:
    """Distances, and scalar registers the program names at them, from a register on."""
    assert SGPR_BASE <= first < TTMP_BASE
    return [
        (register - first, register)
        for register in range(first, TTMP_BASE, count)
        if all(register + part in emitter.scalars for part in range(count))
    ]


def _first(operand: Operand) -> int:
    return operand.bits.bit_length() - operand.count


# index mode


def _set_mode(emitter: WaveEmitter, decoded: Decoded) -> None:
    """Which operands are relative until the mode ends: M0[15:12]."""
    flags = decoded.opcode.flags
    if OpcodeFlag.INDEX_OFF in flags:
        emitter.index_mode = 0
        return
    operands = _indexed_operands(decoded.operands[-1])
    starts = OpcodeFlag.INDEX_ON in flags
    if starts:
        _set_index(emitter, decoded)
    other_bits = emitter.builder.and_(emitter.special("m0", 32), I32(0xFFFF0FFF))
    emitter.set_special("m0", emitter.builder.or_(other_bits, I32(operands << 12)))
    if starts or emitter.index_mode:
        emitter.index_mode = operands


def _set_index(emitter: WaveEmitter, decoded: Decoded) -> None:
    """M0[7:0]."""
    builder = emitter.builder
    source = scalar_operand(emitter, decoded.operands[0], decoded.roles[0], 32)
    other_bits = builder.and_(emitter.special("m0", 32), I32(0xFFFFFF00))
    emitter.set_special("m0", builder.or_(other_bits, builder.and_(source, I32(0xFF))))


def _indexed_operands(operand: Operand) -> int:
    """The operands an immediate selects: a bit for each of src0, src1, src2 and dst."""
    match = re.fullmatch(r"gpr_idx\(([\w,\s]*)\)", operand.text)
    if match is None:
        if operand.value is None:
            raise Unsupported(f"the operand {operand.text!r}")
        return operand.value & 15
    return sum(_FIELDS[name.strip()] for name in match[1].split(",") if name.strip())


__all__ = ["FLAGS", "concerns", "lower"]
