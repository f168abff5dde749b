"""Masks of lanes moved as instructions move the lanes themselves."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.lower import dpp, swizzle
from wavecast.emulate.lower.access_targets import instruction_offset
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.sites import data_rows
from wavecast.emulate.values import I1, I32, I64, PTR, element, load
from wavecast.isa.instruction import Decoded


def _sources(emitter: WaveEmitter, decoded: Decoded) -> list[int]:
    """For every lane the lane a fixed permutation reads, dpp.INVALID for none."""
    lanes = emitter.layout.lanes
    if decoded.memory is not None:
        return swizzle.source_lanes(decoded.modifiers.get("offset") or "0", lanes)
    return dpp.source_lanes(decoded.modifiers, lanes)


def _constant(emitter: WaveEmitter, bits: list[bool]) -> Any:
    value = sum(1 << lane for lane, bit in enumerate(bits) if bit)
    return ir.IntType(emitter.layout.lanes)(value)


def _shuffle(emitter: WaveEmitter, value: Any, sources: list[int]) -> Any:
    builder, lanes = emitter.builder, emitter.layout.lanes
    kind = ir.VectorType(I1, lanes)
    order = ir.Constant(ir.VectorType(I32, lanes), [max(lane, 0) for lane in sources])
    row = builder.bitcast(value, kind)
    shuffle = builder.shuffle_vector(row, ir.Constant(kind, ir.Undefined), order)
    return builder.bitcast(shuffle, value.type)


def permuted_bits(emitter: WaveEmitter, decoded: Decoded, value: Any) -> Any:
    """The bits as a fixed permutation moves them; 0 from lanes that do not exist or are not
    active: these give a zero, or the lane is not written."""
    if "fi" not in decoded.modifiers:
        value = emitter.builder.and_(value, emitter.exec_mask())
    return _permuted(emitter, decoded, value)


def _permuted(emitter: WaveEmitter, decoded: Decoded, value: Any) -> Any:
    builder = emitter.builder
    sources = _sources(emitter, decoded)
    bits = _shuffle(emitter, value, sources)
    exists = _constant(emitter, [lane != dpp.INVALID for lane in sources])
    return builder.and_(bits, exists)


def written_lanes(emitter: WaveEmitter, decoded: Decoded) -> Any:
    """The lanes a permutation writes (`lower.dpp.permute`)."""
    builder = emitter.builder
    active = emitter.exec_mask()
    if decoded.memory is not None:
        return active
    sources = _sources(emitter, decoded)
    rows = int(decoded.modifiers.get("row_mask", "0xf"), 0)
    banks = int(decoded.modifiers.get("bank_mask", "0xf"), 0)
    lanes = range(emitter.layout.lanes)
    enabled = [bool(rows >> (n >> 4 & 3) & banks >> (n >> 2 & 3) & 1) for n in lanes]
    written = builder.and_(active, _constant(emitter, enabled))
    if "bound_ctrl" in decoded.modifiers:
        return written
    exists = _constant(emitter, [lane != dpp.INVALID for lane in sources])
    written = builder.and_(written, exists)
    if "fi" in decoded.modifiers:
        return written
    return builder.and_(written, _shuffle(emitter, active, sources))


def moved_bits(emitter: WaveEmitter, decoded: Decoded, value: Any) -> Any:
    """The bits of active lanes as ds_bpermute fetches them; for other exchanges among active lanes
    every lane takes part in every other."""
    builder = emitter.builder
    value = builder.and_(value, emitter.exec_mask())
    fetches = decoded.memory is not None
    if not fetches or decoded.opcode.memory_form.exchange != "bpermute":
        some = builder.icmp_unsigned("!=", value, value.type(0))
        return builder.sext(some, value.type)
    return fetched_bits(emitter, decoded, value)


def fetched_bits(emitter: WaveEmitter, decoded: Decoded, value: Any) -> Any:
    """For every lane the bit of the lane that ds_bpermute or ds_swizzle reads."""
    if decoded.opcode.memory_form.exchange == "swizzle":
        return _permuted(emitter, decoded, value)
    builder = emitter.builder
    last = min(emitter.layout.lanes, emitter.input.capabilities.lane_exchange_span) - 1
    function = _fetch_function(emitter.module, emitter.layout.lanes, last)
    emitter.pending.flush_rows(decoded)
    address = data_rows(emitter, decoded.operands[1])
    return builder.call(function, [address, value, I32(instruction_offset(decoded))])


def _fetch_function(module: ir.Module, lanes: int, last: int) -> ir.Function:
    """`iL fetch(ptr addresses, iL bits, i32 offset)`: each lane's bit of the lane it names, lane
    numbers times four as in `lower.exchange`."""
    name = f"fetch_bits.{lanes}.{last}"
    declaration = module.globals.get(name)
    if declaration is not None:
        return declaration
    kind = ir.IntType(lanes)
    function = ir.Function(module, ir.FunctionType(kind, [PTR, kind, I32]), name)
    function.linkage = "internal"
    address, bits, offset = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    entry = builder.block
    body, exit_block = function.append_basic_block("body"), function.append_basic_block("done")
    nothing = builder.icmp_unsigned("==", bits, kind(0))
    builder.cbranch(nothing, exit_block, body)
    builder.position_at_end(body)
    lane, total = builder.phi(I64), builder.phi(kind)
    lane.add_incoming(I64(0), entry)
    total.add_incoming(kind(0), entry)
    source = load(builder, element(builder, address, lane, I32), I32)
    number = builder.lshr(builder.add(source, offset), I32(2))
    base = builder.and_(builder.trunc(lane, I32), I32(~last & 0xFFFFFFFF))
    number = builder.or_(base, builder.and_(number, I32(last)))

    def wide(value: Any) -> Any:
        if value.type == kind:
            return value
        return builder.zext(value, kind) if value.type.width < lanes else builder.trunc(value, kind)

    bit = builder.and_(builder.lshr(bits, wide(number)), kind(1))
    merged = builder.or_(total, builder.shl(bit, wide(lane)))
    following = builder.add(lane, I64(1))
    lane.add_incoming(following, body)
    total.add_incoming(merged, body)
    last_lane = builder.icmp_unsigned("==", following, I64(lanes))
    builder.cbranch(last_lane, exit_block, body)
    builder.position_at_end(exit_block)
    result = builder.phi(kind)
    result.add_incoming(kind(0), entry)
    result.add_incoming(merged, body)
    builder.ret(result)
    return function


__all__ = ["fetched_bits", "moved_bits", "permuted_bits", "written_lanes"]
