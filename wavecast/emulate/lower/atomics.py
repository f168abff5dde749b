"""Outlined atomic operations, lanes in order.

Memory is shared by host threads, so operations on it are LLVM's `atomicrmw`, or a loop around
`cmpxchg` where that has none. LDS belongs to one host thread: plain loads and stores do.
Denormals are kept. Source of the operations: AMD instruction set architecture guides (CDNA3, RDNA3,
RDNA4), "Memory instructions" and "LDS instructions".
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import Resolved, lane_address, resolve
from wavecast.emulate.values import I32, I64, PTR, load

_WHOLE = {
    "add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "swap": "xchg",
}  # fmt: skip
_EXTREME = {("max", "i"): "max", ("max", "u"): "umax", ("min", "i"): "min", ("min", "u"): "umin"}
OPERATIONS = frozenset(
    [
        "add",
        "sub",
        "rsub",
        "and",
        "or",
        "xor",
        "inc",
        "dec",
        "max",
        "min",
        "max_num",
        "min_num",
        "swap",
        "cmpswap",
        "mskor",
        "sub_clamp",
        "cond_sub",
        "pk_add",
        "arrive",
    ]
)


def build_atomic(out: Outlined) -> None:
    """The body of an atomic operation."""
    builder, lanes = out.builder, resolve(out)
    returns, element = out.access.detail[0] == "r", out.access.detail[1:]
    kind = I32 if out.access.bytes == 4 else I64
    if returns:
        with out.each_lane(lanes.dead) as lane:
            _write(out, out.result, lane, kind(0))
    with out.each_lane(lanes.live) as lane:
        pointer = _pointer(out, lanes, lane)
        data = _read(out, out.rows, lane, kind)
        other = _read(out, out.other, lane, kind) if _uses_other(out) else None
        old = _apply(out, element, pointer, data, other)
        if returns:
            _write(out, out.result, lane, old)
    builder.ret(I32(0))


def _uses_other(out: Outlined) -> bool:
    return out.access.action in ("cmpswap", "mskor")


def _pointer(out: Outlined, lanes: Resolved, lane: Any) -> Any:
    """The address of a lane; atomics that are not aligned fail."""
    builder = out.builder
    address = lane_address(out, lanes, lane)
    low = builder.and_(address, I64(out.access.bytes - 1))
    with builder.if_then(builder.icmp_unsigned("!=", low, I64(0)), likely=False):
        out.fault(lane, address)
    return builder.inttoptr(address, PTR)


def _read(out: Outlined, rows: Any, lane: Any, kind: ir.IntType) -> Any:
    builder = out.builder
    low = load(builder, out.slot(rows, 0, lane), I32)
    if kind is I32:
        return low
    high = builder.zext(load(builder, out.slot(rows, 1, lane), I32), I64)
    return builder.or_(builder.zext(low, I64), builder.shl(high, I64(32)))


def _write(out: Outlined, rows: Any, lane: Any, value: Any) -> None:
    builder = out.builder
    if value.type is I64:
        high = builder.trunc(builder.lshr(value, I64(32)), I32)
        builder.store(high, out.slot(rows, 1, lane))
        value = builder.trunc(value, I32)
    builder.store(value, out.slot(rows, 0, lane))


def _apply(out: Outlined, element: str, pointer: Any, data: Any, other: Any) -> Any:
    """Change memory; the value it had before."""
    builder, action, size = out.builder, out.access.action, out.access.bytes
    if out.access.mode == "local":
        old = load(builder, pointer, data.type, size)
        builder.store(_new_value(out, element, old, data, other), pointer, align=size)
        return old
    floating = element.startswith(("f", "bf"))
    native = _WHOLE.get(action) if action == "swap" or not floating else None
    native = native or (None if floating else _EXTREME.get((action, element[0])))
    if native is not None:
        return builder.atomic_rmw(native, pointer, data, "seq_cst")
    before = builder.block
    again, exit_block = (out.function.append_basic_block(name) for name in ("again", "done"))
    initial = load(builder, pointer, data.type, size)
    builder.branch(again)
    builder.position_at_end(again)
    old = builder.phi(data.type)
    old.add_incoming(initial, before)
    new = _new_value(out, element, old, data, other)
    pair = builder.cmpxchg(pointer, old, new, "seq_cst", "seq_cst")
    old.add_incoming(builder.extract_value(pair, 0), builder.block)
    builder.cbranch(builder.extract_value(pair, 1), exit_block, again)
    builder.position_at_end(exit_block)
    return old


def _new_value(out: Outlined, element: str, old: Any, data: Any, other: Any) -> Any:
    """The new value of memory."""
    builder, action = out.builder, out.access.action
    if action == "swap":
        return data
    if action == "pk_add":
        return _packed_add(out, element, old, data)
    if action == "cmpswap":
        if element.startswith("f"):
            same = builder.fcmp_ordered("==", _float(out, old), _float(out, other))
        else:
            same = builder.icmp_unsigned("==", old, other)
        return builder.select(same, data, old)
    if action == "arrive":
        return _arrive(builder, old, data)
    if action == "mskor":
        return builder.or_(builder.and_(old, builder.not_(data)), other)
    if element.startswith("f"):
        return _floating(out, action, old, data)
    return integer_result(builder, action, element, old, data)


def _arrive(builder: ir.IRBuilder, old: Any, data: Any) -> Any:
    """A barrier in LDS after `data` arrivals: bits 15:0 count those still missing, one less, 31:16
    the phase, downwards, and 47:32 are what a phase starts with.

    Source: CDNA5 instruction set architecture guide, as rocjitsu has it (ROCm/rocm-systems, 2026,
    lds_barrier_cell.h).
    """
    half = I64(0xFFFF)
    missing = builder.and_(old, half)
    phase = builder.and_(builder.lshr(old, I64(16)), half)
    first = builder.and_(builder.lshr(old, I64(32)), half)
    beyond = builder.sub(builder.sub(data, missing), I64(1))
    period = builder.add(first, I64(1))
    ends = builder.icmp_unsigned(">", data, missing)
    phases = builder.add(builder.udiv(beyond, period), I64(1))
    phase = builder.select(ends, builder.and_(builder.sub(phase, phases), half), phase)
    rest = builder.sub(first, builder.urem(beyond, period))
    missing = builder.select(ends, rest, builder.sub(missing, data))
    reserved = builder.and_(old, I64(0xFFFF << 48))
    upper = builder.or_(reserved, builder.shl(first, I64(32)))
    return builder.or_(upper, builder.or_(builder.shl(phase, I64(16)), missing))


def integer_result(builder: ir.IRBuilder, action: str, element: str, old: Any, data: Any) -> Any:
    """The new value of memory after an integer operation of `element`, from old value and data."""
    one, zero = old.type(1), old.type(0)
    compare = builder.icmp_signed if element.startswith("i") else builder.icmp_unsigned
    if action == "inc":
        return builder.select(compare(">=", old, data), zero, builder.add(old, one))
    if action == "dec":
        wraps = builder.or_(builder.icmp_unsigned("==", old, zero), compare(">", old, data))
        return builder.select(wraps, data, builder.sub(old, one))
    if action == "sub_clamp":
        return builder.select(compare("<", old, data), zero, builder.sub(old, data))
    if action == "cond_sub":
        return builder.select(compare("<", old, data), old, builder.sub(old, data))
    if action in ("max", "min"):
        return builder.select(compare(">" if action == "max" else "<", data, old), data, old)
    plain = {
        "add": builder.add, "sub": builder.sub, "and": builder.and_, "or": builder.or_,
        "xor": builder.xor,
    }  # fmt: skip
    return builder.sub(data, old) if action == "rsub" else plain[action](old, data)


def _float(out: Outlined, value: Any) -> Any:
    kind = ir.FloatType() if value.type is I32 else ir.DoubleType()
    return out.builder.bitcast(value, kind)


def _floating(out: Outlined, action: str, old: Any, data: Any) -> Any:
    builder = out.builder
    a, b = _float(out, old), _float(out, data)
    if action == "add":
        return builder.bitcast(builder.fadd(a, b), old.type)
    better = builder.fcmp_ordered(">" if action.startswith("max") else "<", b, a)
    better = builder.or_(better, _signed_zero(out, action, old, data))
    if action.endswith("_num"):  # the number wins over NaN
        better = builder.or_(better, builder.fcmp_unordered("uno", a, a))
    return builder.select(better, data, old)


def _signed_zero(out: Outlined, action: str, old: Any, data: Any) -> Any:
    """True where both are zero and the data's sign makes it the smaller (larger) one."""
    builder = out.builder
    top = old.type(1 << (old.type.width - 1))
    zero = old.type(0)
    magnitude = builder.and_(builder.or_(old, data), builder.not_(top))
    sign = zero if action.startswith("max") else top
    return builder.and_(
        builder.icmp_unsigned("==", magnitude, zero), builder.icmp_unsigned("==", data, sign)
    )


def _packed_add(out: Outlined, element: str, old: Any, data: Any) -> Any:
    """Two halves added on their own, rounded to nearest even."""
    builder = out.builder
    if element.startswith("f16"):
        halves = ir.VectorType(ir.HalfType(), 2)
        total = builder.fadd(builder.bitcast(old, halves), builder.bitcast(data, halves))
        return builder.bitcast(total, I32)
    low = _brain(builder, builder.shl(old, I32(16)), builder.shl(data, I32(16)))
    top = I32(0xFFFF0000)
    high = _brain(builder, builder.and_(old, top), builder.and_(data, top))
    return builder.or_(low, builder.shl(high, I32(16)))


def _brain(builder: ir.IRBuilder, a: Any, b: Any) -> Any:
    """The sum of two bf16 numbers given as f32 patterns, as 16 bits of an i32."""
    single = ir.FloatType()
    total = builder.fadd(builder.bitcast(a, single), builder.bitcast(b, single))
    bits = builder.bitcast(total, I32)
    odd = builder.and_(builder.lshr(bits, I32(16)), I32(1))
    rounded = builder.lshr(builder.add(bits, builder.add(odd, I32(0x7FFF))), I32(16))
    quiet = builder.or_(builder.lshr(bits, I32(16)), I32(0x40))
    number = builder.fcmp_ordered("ord", total, total)
    return builder.select(number, rounded, quiet)


__all__ = ["OPERATIONS", "build_atomic"]
