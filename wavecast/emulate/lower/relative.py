"""Registers whose number is computed: moves relative to M0, and gfx9's index mode.

Source: AMD instruction set architecture guides, "V_MOVRELS_B32" and its family (RDNA3),
"S_MOVRELS_B32", "VGPR indexing" (CDNA3). A number beyond the registers the program names breaks the
launch off; what hardware does then depends on what it allocated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import state
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.lower.values import I1, I32, I64, element, splat
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import Opcode, OpcodeFlag
from wavecast.isa.registers import SGPR_BASE, TTMP_BASE

if TYPE_CHECKING:
    from wavecast.emulate.lower.kernel import KernelLowering

_MOVES: Final = frozenset({OpcodeFlag.M0_SOURCE, OpcodeFlag.M0_DEST, OpcodeFlag.M0_DEST_HIGH})
_INDEX: Final = frozenset({OpcodeFlag.INDEX_ON, OpcodeFlag.INDEX_OFF, OpcodeFlag.INDEX_MODE})
_FIELDS = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}
FLAGS: Final = _MOVES | _INDEX | {OpcodeFlag.INDEX_VALUE}
"""Flags of the rows lowered here."""


def concerns(lowering: KernelLowering, decoded: Decoded) -> bool:
    """Whether an instruction names registers relatively, or does so where it stands."""
    opcode = decoded.opcode
    return bool(opcode.flags & FLAGS or (lowering.index_mode and opcode.is_vector))


def lower(lowering: KernelLowering, instruction: Instruction) -> None:
    """Lower one. Raises Unsupported for instructions other than moves in index mode."""
    decoded, opcode = instruction.decoded, instruction.opcode
    if opcode.flags & _MOVES:
        move = _move if opcode.is_vector else _scalar_move
        move(lowering, instruction, *_shifts(opcode))
    elif opcode.flags & _INDEX:
        _set_mode(lowering, decoded)
    elif OpcodeFlag.INDEX_VALUE in opcode.flags:
        _set_index(lowering, decoded)
    elif _is_plain_move(decoded) and not lowering.index_mode & ~9:
        target = 0 if lowering.index_mode & 8 else None
        source = 0 if lowering.index_mode & 1 else None
        _move(lowering, instruction, target, source)
    else:
        raise Unsupported("this instruction in index mode")


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
    lowering: KernelLowering, instruction: Instruction, target: int | None, source: int | None
) -> None:
    decoded, builder, lanes = instruction.decoded, lowering.builder, lowering.layout.lanes
    if decoded.modifiers or decoded.encoding in ("dpp", "sdwa"):
        raise Unsupported("a relative move with modifiers")
    to, origin = decoded.operands
    kind = ir.VectorType(I32, lanes)
    if origin.kind is OperandClass.VGPR:
        value: Any = builder.load(_row(lowering, instruction, origin, source), align=4, typ=kind)
    elif source is None:
        value = splat(builder, scalar_operand(lowering, origin, decoded.roles[1], 32), lanes)
    else:
        raise Unsupported("a relative move from no vector register")
    place = _row(lowering, instruction, to, target)
    active = builder.bitcast(lowering.exec_mask(), ir.VectorType(I1, lanes))
    old = builder.load(place, align=4, typ=kind)
    builder.store(builder.select(active, value, old), place, align=4)


def _row(
    lowering: KernelLowering, instruction: Instruction, operand: Operand, shift: int | None
) -> Any:
    """A pointer to the row of an operand, moved by the offset in M0."""
    builder, layout = lowering.builder, lowering.layout
    number = layout.row(operand.bits.bit_length() - operand.count)
    if shift is None:
        return lowering.row(number)
    index = builder.add(_offset(lowering, shift), I32(number))
    _require(lowering, instruction, builder.icmp_unsigned("<", index, I32(layout.vgpr_rows)))
    words = lowering.builder.mul(lowering.builder.zext(index, I64), I64(layout.lanes))
    return element(lowering.builder, lowering.row(0), words, I32)


def _offset(lowering: KernelLowering, shift: int) -> Any:
    """Ten bits of M0 where there are two offsets, the eight of index mode, else all of it."""
    value = lowering.builder.lshr(lowering.special("m0", 32), I32(shift))
    bits = 0xFF if lowering.index_mode else 0x3FF
    return lowering.builder.and_(value, I32(bits))


def _require(lowering: KernelLowering, instruction: Instruction, good: Any) -> None:
    builder = lowering.builder
    with builder.if_then(builder.not_(good), likely=False):
        lowering.stop(state.BAD_REGISTER, instruction.index)


# scalar registers


def _scalar_move(
    lowering: KernelLowering, instruction: Instruction, target: int | None, source: int | None
) -> None:
    decoded, builder = instruction.decoded, lowering.builder
    to, origin = decoded.operands
    bits = 32 * to.count
    if source is None:
        value = scalar_operand(lowering, origin, decoded.roles[1], bits)
    else:
        value = _selected(lowering, instruction, origin, _offset(lowering, source))
    if target is None:
        lowering.set_scalar_bits(_first(to), value)
        return
    offset = _offset(lowering, target)
    places = _reachable(lowering, _first(to), to.count)
    found: Any = I1(0)
    for distance, place in places:
        here = builder.icmp_unsigned("==", offset, I32(distance))
        found = builder.or_(found, here)
        old = lowering.scalar_bits(place, to.count)
        lowering.set_scalar_bits(place, builder.select(here, value, old))
    _require(lowering, instruction, found)


def _selected(
    lowering: KernelLowering, instruction: Instruction, origin: Operand, offset: Any
) -> Any:
    builder = lowering.builder
    value: Any = ir.Constant(ir.IntType(32 * origin.count), 0)
    found: Any = I1(0)
    for distance, place in _reachable(lowering, _first(origin), origin.count):
        here = builder.icmp_unsigned("==", offset, I32(distance))
        found = builder.or_(found, here)
        value = builder.select(here, lowering.scalar_bits(place, origin.count), value)
    _require(lowering, instruction, found)
    return value


def _reachable(lowering: KernelLowering, first: int, count: int) -> list[tuple[int, int]]:
    """Distances, and scalar registers the program names at them, from a register on."""
    assert SGPR_BASE <= first < TTMP_BASE
    return [
        (place - first, place)
        for place in range(first, TTMP_BASE, count)
        if all(place + part in lowering.scalars for part in range(count))
    ]


def _first(operand: Operand) -> int:
    return operand.bits.bit_length() - operand.count


# index mode


def _set_mode(lowering: KernelLowering, decoded: Decoded) -> None:
    """Which operands are relative until the mode ends: M0[15:12]."""
    flags = decoded.opcode.flags
    if OpcodeFlag.INDEX_OFF in flags:
        lowering.index_mode = 0
        return
    operands = _indexed_operands(decoded.operands[-1])
    starts = OpcodeFlag.INDEX_ON in flags
    if starts:
        _set_index(lowering, decoded)
    kept = lowering.builder.and_(lowering.special("m0", 32), I32(0xFFFF0FFF))
    lowering.set_special("m0", lowering.builder.or_(kept, I32(operands << 12)))
    if starts or lowering.index_mode:
        lowering.index_mode = operands


def _set_index(lowering: KernelLowering, decoded: Decoded) -> None:
    """M0[7:0]."""
    builder = lowering.builder
    source = scalar_operand(lowering, decoded.operands[0], decoded.roles[0], 32)
    kept = builder.and_(lowering.special("m0", 32), I32(0xFFFFFF00))
    lowering.set_special("m0", builder.or_(kept, builder.and_(source, I32(0xFF))))


def _indexed_operands(operand: Operand) -> int:
    """The operands an immediate selects: a bit for each of src0, src1, src2 and dst."""
    match = re.fullmatch(r"gpr_idx\(([\w,\s]*)\)", operand.text)
    if match is None:
        if operand.value is None:
            raise Unsupported(f"the operand {operand.text!r}")
        return operand.value & 15
    return sum(_FIELDS[name.strip()] for name in match[1].split(",") if name.strip())


__all__ = ["FLAGS", "concerns", "lower"]
