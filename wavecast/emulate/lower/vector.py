"""Vector instructions on some lanes: operands in, semantics, results out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower.emitter import Emitter
from wavecast.emulate.lower.frame import StripFrame, strip_mask
from wavecast.emulate.lower.operands import constant_bits, scalar_operand
from wavecast.emulate.lower.ops import LlvmOps
from wavecast.emulate.lower.packed import (
    clamps_itself,
    evaluate,
    modifier_value,
    own_inputs,
    plain,
    writes_high_half,
)
from wavecast.emulate.values import I32, constant, splat
from wavecast.isa import semantics
from wavecast.isa.instruction import Decoded, Operand, OperandClass
from wavecast.isa.opcode import OpcodeFlag, OperandAccess, OperandKind, OperandRole
from wavecast.isa.registers import special
from wavecast.isa.semantics.machine import FloatMode
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.small_formats import SCALE_SELECTIONS

_UPPER_CONSTANTS = frozenset({"bf16", "bf16x2", "b32"})
_HANDLED = frozenset(
    {"row_mask", "bank_mask", "bound_ctrl", "fi", "quad_perm", "row_shl", "row_shr", "row_ror"}
    | {"wave_shl", "wave_rol", "wave_shr", "wave_ror", "row_mirror", "row_half_mirror"}
    | {"row_bcast", "row_newbcast", "row_share", "row_xmask", "dpp8", "dst_sel", "dst_unused"}
    | {"src0_sel", "src1_sel", "clamp", "mul", "div", "op_sel", "op_sel_hi", "neg_lo", "neg_hi"}
)
_SIGN = {"f16": 15, "bf16": 15, "f32": 31, "f64": 63, "xf32": 31, "b16": 15, "b32": 31, "b64": 63}


@dataclass(frozen=True, slots=True)
class RowInput:
    """A vector register operand: its rows, and the half of a 16-bit one."""

    rows: tuple[int, ...]
    operand: Operand
    role: OperandRole
    select: str = ""


@dataclass(frozen=True, slots=True)
class ScalarInput:
    """A scalar or constant, taken when the instruction was reached."""

    value: Any
    operand: Operand
    role: OperandRole


@dataclass(frozen=True, slots=True)
class MaskInput:
    """A lane mask: a number taken before, or (value None) one this run writes."""

    value: Any
    key: int


@dataclass(frozen=True, slots=True)
class PlainInput:
    """An implicit scalar or a modifier, the same in every lane."""

    value: Any


class InstructionInputs:
    """The inputs of one instruction, in the order its semantics take them."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def prepare(
        self, builder: ir.IRBuilder, lanes: int, splats: dict[int, tuple[Any, Any]]
    ) -> list[Any]:
        """Scalars as vectors, outside the loop over strips. `splats` are those made before, by the
        identity of their scalar, which is kept."""
        prepared = []
        for item in self.items:
            if isinstance(item, ScalarInput):
                value = apply_modifiers(
                    LlvmOps(builder, 0, FloatMode()), item.value, item.operand, item.role, 0
                )
                if id(value) not in splats:
                    splats[id(value)] = (value, splat(builder, value, lanes))
                prepared.append(PlainInput(splats[id(value)][1]))
            elif isinstance(item, PlainInput):
                prepared.append(PlainInput(splat(builder, item.value, lanes)))
            else:
                prepared.append(item)
        return prepared


def gather_inputs(emitter: Emitter, decoded: Decoded, pending: int) -> InstructionInputs:
    """Take the scalar inputs of an instruction now. `pending` are masks its run writes. Raises
    Unsupported."""
    meaning = semantics.of(decoded.opcode)
    modifiers = meaning.modifiers if meaning is not None else ()
    unknown = set(decoded.modifiers) - _HANDLED - set(modifiers)
    if unknown:
        raise Unsupported(f"the modifier {sorted(unknown)[0]}")
    selection = decoded.modifiers.get("scale_sel")
    if selection is not None and int(selection, 0) not in SCALE_SELECTIONS:
        raise Unsupported(f"scale_sel:{selection}, whose meaning is not published")
    items: list[Any] = []
    source = -own_inputs(decoded)
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access is OperandAccess.WRITE:
            continue
        if "neg_lo" in modifiers:
            operand = plain(operand)
        items.append(_input(emitter, decoded, operand, role, pending, source))
        source += 1
    for name in decoded.opcode.implicit_reads:
        if name == "exec":
            continue
        bits = special(name)
        if name == "vcc":
            key = (bits & -bits).bit_length() - 1
            value = None if bits & pending else emitter.special("vcc", emitter.layout.lanes)
            items.append(MaskInput(value, key))
        else:
            items.append(PlainInput(emitter.special(name, 32)))
    for name in modifiers:
        items.append(PlainInput(I32(modifier_value(decoded, name))))
    return InstructionInputs(items)


def _input(
    emitter: Emitter,
    decoded: Decoded,
    operand: Operand,
    role: OperandRole,
    pending: int,
    source: int,
) -> Any:
    if operand.kind in (OperandClass.VGPR, OperandClass.AGPR):
        first = operand.bits.bit_length() - operand.count
        rows = tuple(emitter.layout.row(first + index) for index in range(operand.count))
        select = decoded.modifiers.get(f"src{source}_sel", "")
        return RowInput(rows, operand, role, select)
    if role.kind is OperandKind.LANE_MASK:
        key = operand.bits.bit_length() - operand.bits.bit_count()
        if operand.bits & pending:
            return MaskInput(None, key)
        return MaskInput(scalar_operand(emitter, operand, role, emitter.layout.lanes), key)
    bits = 32 * role.dwords if role.dwords else 32
    if role.kind is OperandKind.IMMEDIATE and decoded.roles[0].type == "f64":
        role, bits = replace(role, type="f64"), 64
    if operand.kind is OperandClass.CONSTANT:
        format_role = constant_role(decoded, role, source)
        value: Any = ir.Constant(ir.IntType(bits), constant_bits(operand, format_role, bits))
    else:
        value = scalar_operand(emitter, operand, role, bits)
    return ScalarInput(value, operand, role)


def mixed_role(decoded: Decoded, role: OperandRole, source: int) -> OperandRole:
    """The role of a source of a mixed-precision row: 16 bits where op_sel_hi says so, else f32."""
    meaning = semantics.of(decoded.opcode)
    if meaning is None or "op_sel_hi" not in meaning.modifiers or role.type != "b32":
        return role
    picks = decoded.modifiers.get("op_sel_hi", "").strip("[]").split(",")
    halves = source < len(picks) and picks[source] == "1"
    small = "bf16" if decoded.opcode.name.endswith("bf16") else "f16"
    return replace(role, type=small if halves else "f32")


def constant_role(decoded: Decoded, role: OperandRole, source: int) -> OperandRole:
    """The role that a constant source takes its bits from.

    Compilers rely on it: `v_fma_mix_f32 v0, -v1, 1.0, v2 op_sel_hi:[0,1,1]` multiplies by one, and
    so does `v_fma_mix_f32_bf16 v0, v1, 1.0, v2 op_sel:[0,1,0] op_sel_hi:[1,1,0]`.
    """
    if OpcodeFlag.UPPER_CONSTANT in decoded.opcode.flags and role.type in _UPPER_CONSTANTS:
        return replace(role, type="f32")
    return mixed_role(decoded, role, source)


def apply_modifiers(
    ops: LlvmOps, value: Any, operand: Operand, role: OperandRole, lanes: int
) -> Any:
    """Source modifiers of a floating-point operand: absolute value, then negation. Raises
    Unsupported."""
    if not (operand.negate or operand.absolute):
        return value
    sign = _SIGN.get(role.type.partition("x")[0])
    if sign is None:
        raise Unsupported(f"a source modifier on {role.type or 'an untyped operand'}")
    width = value.type.element.width if lanes else value.type.width
    if operand.absolute:
        value = ops.and_(value, constant(~(1 << sign), width, lanes), width)
    if operand.negate:
        value = ops.xor(value, constant(1 << sign, width, lanes), width)
    return value


def lane_outputs(frame: StripFrame, decoded: Decoded, inputs: list[Any]) -> tuple[Any, ...]:
    """What one instruction computes on the lanes of a frame. Raises Unsupported."""
    meaning = semantics.of(decoded.opcode)
    if meaning is None:
        raise Unsupported(f"no semantics for {decoded.mnemonic}")
    values = [lanes_of(frame, item) for item in inputs]
    return evaluate(frame.ops, meaning, decoded, values)


def lanes_of(frame: StripFrame, item: Any) -> Any:
    if isinstance(item, PlainInput):
        return item.value
    if isinstance(item, MaskInput):
        if item.value is None:
            return frame.masks[item.key]
        lanes = frame.emitter.layout.lanes
        return strip_mask(frame.builder, item.value, frame.start, lanes, frame.lanes)
    value = _row_value(frame, item)
    return apply_modifiers(frame.ops, value, item.operand, item.role, frame.lanes)


def _row_value(frame: StripFrame, item: RowInput) -> Any:
    ops = frame.ops
    if len(item.rows) == 1:
        value = frame.read(item.rows[0])
        if item.operand.half == "h":
            value = ops.lshr(value, ops.const(16, 32), 32)
        return select_sdwa(ops, value, item.select, item.operand.sign_extend)
    if len(item.rows) > 2:
        return tuple(frame.read(row) for row in item.rows)
    low, high = (frame.read(row) for row in item.rows)
    return ops.join(low, high)


def select_sdwa(ops: Ops[Any], value: Any, select: str, signed: bool) -> Any:
    """The byte or word an SDWA operand selects."""
    if not select or select == "DWORD":
        return value
    width = 8 if select.startswith("BYTE") else 16
    position = int(select[-1]) * width
    if not signed:
        bits = ops.lshr(value, ops.const(position, 32), 32)
        return ops.and_(bits, ops.const((1 << width) - 1, 32), 32)
    bits = ops.shl(value, ops.const(32 - width - position, 32), 32)
    return ops.ashr(bits, ops.const(32 - width, 32), 32)


def write_outputs(frame: StripFrame, decoded: Decoded, outputs: tuple[Any, ...]) -> None:
    """Put results into rows and masks of the frame. Raises Unsupported."""
    results = iter(outputs)
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access not in (OperandAccess.WRITE, OperandAccess.READ_WRITE):
            continue
        value = next(results)
        if role.kind is OperandKind.LANE_MASK:
            if operand.bits:
                key = operand.bits.bit_length() - operand.bits.bit_count()
                frame.masks[key] = frame.builder.and_(value, frame.active)
            continue
        if operand.kind not in (OperandClass.VGPR, OperandClass.AGPR):
            raise Unsupported(f"a result in {operand.text}")
        _write_rows(frame, decoded, operand, role, value)
    for name in decoded.opcode.implicit_writes:
        bits = special(name)
        key = (bits & -bits).bit_length() - 1
        frame.masks[key] = frame.builder.and_(next(results), frame.active)


def _write_rows(
    frame: StripFrame, decoded: Decoded, operand: Operand, role: OperandRole, value: Any
) -> None:
    ops = frame.ops
    first = operand.bits.bit_length() - operand.count
    if isinstance(value, tuple):
        for index, part in enumerate(value):
            frame.write(frame.emitter.layout.row(first + index), part)
        return
    value = _apply_output_modifiers(frame, decoded, role, value)
    width = value.type.element.width
    for index in range(operand.count):
        row = frame.emitter.layout.row(first + index)
        part = value
        if width > 32:
            if index:
                part = ops.lshr(value, ops.const(32 * index, width), width)
            part = ops.truncate(part, width, 32)
        elif width < 32:
            part = ops.zero_extend(value, width, 32)
        part = insert_result(ops, decoded, operand, part, lambda row=row: frame.read(row))
        frame.write(row, part)


def insert_result(
    ops: Ops[Any], decoded: Decoded, operand: Operand, value: Any, old: Callable[[], Any]
) -> Any:
    """The result where it belongs within the register: a half, or what SDWA selects. `old` gives
    the register's value before."""
    select, unused = decoded.modifiers.get("dst_sel", ""), decoded.modifiers.get("dst_unused", "")
    meaning = semantics.of(decoded.opcode)
    if meaning is not None and "op_sel" in decoded.modifiers and writes_high_half(meaning, decoded):
        width, position, unused = 16, 16, "UNUSED_PRESERVE"
    elif operand.half:
        width, position, unused = 16, 16 if operand.half == "h" else 0, "UNUSED_PRESERVE"
    elif not select or select == "DWORD":
        return value
    else:
        width = 8 if select.startswith("BYTE") else 16
        position = int(select[-1]) * width
    field = ((1 << width) - 1) << position
    bits = ops.shl(value, ops.const(position, 32), 32)
    if unused == "UNUSED_SEXT":
        top = ops.shl(value, ops.const(32 - width, 32), 32)
        return ops.shl(ops.ashr(top, ops.const(32 - width, 32), 32), ops.const(position, 32), 32)
    result = ops.and_(bits, ops.const(field, 32), 32)
    if unused == "UNUSED_PRESERVE":
        result = ops.or_(result, ops.and_(old(), ops.const(~field, 32), 32), 32)
    return result


def _apply_output_modifiers(
    frame: StripFrame, decoded: Decoded, role: OperandRole, value: Any
) -> Any:
    """Output modifiers of a floating-point result: multiplied, then limited to 0..1."""
    scaled = {"mul", "div"} & set(decoded.modifiers)
    if "clamp" not in decoded.modifiers and not scaled:
        return value
    meaning = semantics.of(decoded.opcode)
    if not scaled and meaning is not None and clamps_itself(meaning):
        return value
    name, _, count = role.type.partition("x")
    kind = {"f16": ir.HalfType(), "f32": ir.FloatType(), "f64": ir.DoubleType()}.get(name)
    if kind is None:
        raise Unsupported(f"an output modifier on {role.type}")
    builder, lanes = frame.builder, frame.lanes
    whole = value.type
    if name == "f16" and not count:
        value = frame.ops.truncate(value, 32, 16)
    vector = ir.VectorType(kind, lanes * int(count or 1))
    numbers = builder.bitcast(value, vector)
    limited = builder.bitcast(
        _scale_and_clamp(builder, frame.ops.machine, decoded, numbers), value.type
    )
    return limited if value.type == whole else frame.ops.zero_extend(limited, 16, 32)


def _scale_and_clamp(
    builder: ir.IRBuilder, machine: FloatMode, decoded: Decoded, result: Any
) -> Any:
    def number(amount: float) -> Any:
        return ir.Constant(result.type, [amount] * result.type.count)

    if "mul" in decoded.modifiers:
        result = builder.fmul(result, number(float(decoded.modifiers["mul"])))
    if "div" in decoded.modifiers:
        result = builder.fmul(result, number(1.0 / float(decoded.modifiers["div"])))
    if "clamp" in decoded.modifiers:
        # NaN becomes zero, without DX10_CLAMP it stays
        above_zero = builder.fcmp_ordered if machine.dx10_clamp else builder.fcmp_unordered
        positive = above_zero(">", result, number(0.0))
        result = builder.select(positive, result, number(0.0))
        above = builder.fcmp_ordered(">", result, number(1.0))
        result = builder.select(above, number(1.0), result)
    return result
