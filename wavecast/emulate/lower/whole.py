"""Vector instructions on the whole wave at once: those that look at other lanes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower.dpp import permute
from wavecast.emulate.lower.emitter import Emitter
from wavecast.emulate.lower.frame import StripFrame
from wavecast.emulate.lower.mode import overflow
from wavecast.emulate.lower.ops import LlvmOps, WaveWide
from wavecast.emulate.lower.packed import evaluate, own_inputs
from wavecast.emulate.lower.vector import gather_inputs, lanes_of, write_outputs
from wavecast.emulate.values import I1, I32, I64, PTR, constant, element, load, splat
from wavecast.isa import semantics
from wavecast.isa.instruction import Decoded, Instruction, OperandClass
from wavecast.isa.opcode import Opcode, OperandAccess, OperandKind
from wavecast.isa.semantics.machine import FloatMode

_AROUND: dict[str, bool] = {}
"""Row name -> whether it reads other lanes, where that was asked."""


class WholeOps(LlvmOps):
    """`LlvmOps` on all lanes of the wave, where other lanes can be looked at."""

    def __init__(self, emitter: Emitter) -> None:
        lanes = emitter.layout.lanes
        numbers = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
        super().__init__(emitter.builder, lanes, emitter.machine, lanes, numbers)
        self.emitter = emitter
        self.overflow = overflow(emitter)

    def first_active_lane(self, a: Any) -> Any:
        mask = self.emitter.exec_mask()
        count = self._call("llvm.cttz", mask.type, mask, I1(0))
        empty = self.builder.icmp_unsigned("==", mask, mask.type(0))
        lane = self.builder.select(empty, mask.type(0), count)
        return splat(self.builder, self._pick(a, lane), self.lanes)

    def read_lane(self, a: Any, lane: Any) -> Any:
        return splat(self.builder, self._pick(a, self._number(lane)), self.lanes)

    def _pick(self, a: Any, lane: Any) -> Any:
        """One lane through memory: a dynamic index of so wide a vector is costly otherwise."""
        room = self._room(a)
        wide = lane if lane.type.width == 64 else self.builder.zext(lane, I64)
        return load(self.builder, element(self.builder, room, wide, I32), I32)

    def _room(self, a: Any) -> Any:
        self.builder.store(a, self.emitter.temporary, align=8)
        return self.emitter.temporary

    def write_lane(self, old: Any, value: Any, lane: Any) -> Any:
        scalar = self.builder.extract_element(value, I32(0))
        room = self._room(old)
        wide = self.builder.zext(self._number(lane), I64)
        self.builder.store(scalar, element(self.builder, room, wide, I32))
        return self.builder.load(room, align=8, typ=old.type)

    def gather(self, a: Any, lane: Any) -> Any:
        active = self.builder.bitcast(self.emitter.exec_mask(), ir.VectorType(I1, self.lanes))
        return self.shuffle(self.builder.select(active, a, self.zero(32)), lane)

    def shuffle(self, a: Any, lane: Any) -> Any:
        """Through memory, in a separate function: one load per lane."""
        builder, lanes = self.builder, self.lanes
        function = _shuffle_function(self.emitter.module, lanes)
        data, where = self._room(a), self.emitter.indices
        builder.store(lane, where, align=8)
        builder.call(function, [data, where])
        return builder.load(where, align=8, typ=a.type)

    def lane_active(self, lane: Any) -> Any:
        mask = splat(self.builder, self.emitter.exec_mask(), self.lanes)
        wide = self.zero_extend(lane, 32, mask.type.element.width)
        return self.truncate(self.builder.lshr(mask, wide), mask.type.element.width, 1)

    def _number(self, lane: Any) -> Any:
        number = self.builder.extract_element(lane, I32(0))
        return self.builder.and_(number, number.type(self.lanes - 1))


def _shuffle_function(module: ir.Module, lanes: int) -> ir.Function:
    """`void shuffle(ptr data, ptr lanes)`: replace every lane number by that lane's dword."""
    name = f"shuffle{lanes}"
    declaration = module.globals.get(name)
    if declaration is not None:
        return declaration
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR, PTR]), name)
    data, where = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    entry = builder.block
    body, exit_block = function.append_basic_block("body"), function.append_basic_block("done")
    builder.branch(body)
    builder.position_at_end(body)
    index = builder.phi(I64)
    index.add_incoming(I64(0), entry)
    slot = element(builder, where, index, I32)
    number = builder.and_(load(builder, slot, I32), I32(lanes - 1))
    value = load(builder, element(builder, data, builder.zext(number, I64), I32), I32)
    builder.store(value, slot)
    following = builder.add(index, I64(1))
    index.add_incoming(following, body)
    builder.cbranch(builder.icmp_unsigned("==", following, I64(lanes)), exit_block, body)
    builder.position_at_end(exit_block)
    builder.ret_void()
    return function


def _looks_around(opcode: Opcode) -> bool:
    """Whether a row reads other lanes."""
    if opcode.name not in _AROUND:
        _AROUND[opcode.name] = _probe(opcode)
    return _AROUND[opcode.name]


def _probe(opcode: Opcode) -> bool:
    """Lower a row once, into code that is thrown away, to see whether it reads other lanes."""
    meaning = semantics.of(opcode)
    if meaning is None:
        return False
    module = ir.Module(context=ir.Context())
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), []), "probe")
    builder = ir.IRBuilder(function.append_basic_block())
    ops = LlvmOps(builder, 2, FloatMode(), 64, constant(0, 32, 2))
    values: list[Any] = []
    for role in opcode.operands:
        if role.access is OperandAccess.WRITE:
            continue
        if role.kind is OperandKind.LANE_MASK:
            values.append(ops.const(0, 1))
        elif role.dwords > 2:
            values.append((ops.const(0, 32),) * role.dwords)
        else:
            values.append(ops.const(0, max(32 * role.dwords, 32)))
    for name in opcode.implicit_reads:
        if name != "exec":
            values.append(ops.const(0, 1 if name == "vcc" else 32))
    values += [ops.const(0, 32)] * len(meaning.modifiers)
    try:
        meaning.evaluate(ops, *values)
    except WaveWide:
        return True
    return False


def is_lane_wise(decoded: Decoded) -> bool:
    """True when every lane's result depends on that lane alone."""
    if "dpp" in decoded.encoding or any(name.startswith("dpp8") for name in decoded.modifiers):
        return False
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        written = role.access in (OperandAccess.WRITE, OperandAccess.READ_WRITE)
        scalar = operand.kind in (OperandClass.SGPR, OperandClass.SPECIAL)
        if written and scalar and role.kind is not OperandKind.LANE_MASK:
            return False
    return not _looks_around(decoded.opcode)


def lower_whole(emitter: Emitter, instruction: Instruction) -> None:
    """Lower an instruction on all lanes at once. Raises Unsupported."""
    decoded = instruction.decoded
    builder, lanes = emitter.builder, emitter.layout.lanes
    inputs = gather_inputs(emitter, decoded, 0).prepare(builder, lanes, {})
    active = builder.bitcast(emitter.exec_mask(), ir.VectorType(I1, lanes))
    frame = StripFrame(emitter, builder, ir.Constant(I64, 0), lanes, active)
    frame.ops = WholeOps(emitter)
    meaning = semantics.of(decoded.opcode)
    if meaning is None:
        raise Unsupported(f"no semantics for {decoded.mnemonic}")
    values = [lanes_of(frame, item) for item in inputs]
    if "dpp" in decoded.encoding:
        source = own_inputs(decoded)
        values[source], frame.active = permute(frame, decoded, values[source], active)
    outputs = evaluate(frame.ops, meaning, decoded, values)
    _write_whole(frame, decoded, outputs)
    frame.store_rows()
    for key, value in frame.masks.items():
        emitter.set_scalar_bits(key, builder.bitcast(value, ir.IntType(lanes)))


def _write_whole(frame: StripFrame, decoded: Decoded, outputs: tuple[Any, ...]) -> None:
    """Put results into rows and masks of the frame; a scalar register gets the first lane's."""
    first = decoded.operands[0] if decoded.operands else None
    if first is None or first.kind not in (OperandClass.SGPR, OperandClass.SPECIAL):
        if "exec" not in decoded.opcode.implicit_reads:
            frame.active = constant(1, 1, frame.lanes)
        write_outputs(frame, decoded, outputs)
        return
    if decoded.roles[0].kind is OperandKind.LANE_MASK:
        write_outputs(frame, decoded, outputs)
        return
    value = frame.emitter.builder.extract_element(outputs[0], I32(0))
    if first.bits:
        start = first.bits.bit_length() - first.bits.bit_count()
        frame.emitter.set_scalar_bits(start, value)


__all__ = ["WholeOps", "is_lane_wise", "lower_whole"]
