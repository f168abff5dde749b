"""Outlined functions that move data between vector registers and memory, one lane after another.

`i32 f(ptr context, ptr rows, ptr addresses, iL exec)`: `rows` is the first data row, `addresses` an
array of 64-bit host addresses. An address of all ones is out of the bounds hardware checks itself
(buffer descriptors, LDS): loads give 0 and stores are dropped. Anything else must lie in a known
range, or the function returns 1 with lane and address in the context.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from wavecast.emulate.lower import state
from wavecast.emulate.lower.values import I1, I8, I16, I32, I64, PTR, element, load

OUT_OF_BOUNDS = (1 << 64) - 1
FAULT_LANE = 8
FAULT_ADDRESS = 9
"""Context words an access that fails leaves its lane and address in."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Bytes per lane, and how sub-dword data lies in its register."""

    bytes: int
    signed: bool = False
    high: bool = False
    keep: bool = False
    """Only 16 bits of the register are written (d16 loads)."""


def check_function(module: ir.Module) -> ir.Function:
    """`i1 check(ptr context, i64 address, i64 bytes)`: does it lie in a known range."""
    found = module.globals.get("check")
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(I1, [PTR, I64, I64]), "check")
    context, address, size = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    ranges = load(builder, element(builder, context, state.RANGES, I64), PTR, 8)
    count = load(builder, element(builder, context, state.RANGE_COUNT, I64), I64, 8)
    end = builder.add(address, size)
    before = builder.block
    body = builder.append_basic_block("body")
    builder.branch(body)
    builder.position_at_end(body)
    index = builder.phi(I64)
    index.add_incoming(I64(0), before)
    twice = builder.shl(index, I64(1))
    first = load(builder, element(builder, ranges, twice, I64), I64, 8)
    stop = load(builder, element(builder, ranges, builder.add(twice, I64(1)), I64), I64, 8)
    inside = builder.and_(
        builder.icmp_unsigned(">=", address, first), builder.icmp_unsigned("<=", end, stop)
    )
    following = builder.add(index, I64(1))
    good, more, bad = (function.append_basic_block(name) for name in ("good", "more", "bad"))
    builder.cbranch(inside, good, more)
    builder.position_at_end(more)
    index.add_incoming(following, more)
    builder.cbranch(builder.icmp_unsigned("<", following, count), body, bad)
    builder.position_at_end(good)
    builder.ret(I1(1))
    builder.position_at_end(bad)
    builder.ret(I1(0))
    return function


def access_function(
    module: ir.Module, lanes: int, shape: Shape, store: bool, checked: bool
) -> ir.Function:
    """The load or store of one shape; made once per module."""
    name = f"{'store' if store else 'load'}{shape.bytes}"
    name += "s" * shape.signed + "h" * shape.high + "k" * shape.keep + "c" * checked
    found = module.globals.get(name)
    if found is not None:
        return found
    move = _store_lane if store else _load_lane

    def each(builder: ir.IRBuilder, rows: Any, lane: Any, address: Any, live: bool) -> None:
        move(builder, rows, lane, address, lanes, shape, live)

    return per_lane(module, name, lanes, shape.bytes, each, checked)


def per_lane(
    module: ir.Module,
    name: str,
    lanes: int,
    size: int,
    each: Callable[[ir.IRBuilder, Any, Any, Any, bool], None],
    checked: bool,
) -> ir.Function:
    """A function that does `each` for every active lane whose address is good."""
    mask = ir.IntType(lanes)
    function = ir.Function(module, ir.FunctionType(I32, [PTR, PTR, PTR, mask]), name)
    context, rows, addresses, active = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    head = function.append_basic_block("head")
    body = function.append_basic_block("body")
    done = function.append_basic_block("done")
    entry = builder.block
    builder.branch(head)
    builder.position_at_end(head)
    left = builder.phi(mask)
    left.add_incoming(active, entry)
    builder.cbranch(builder.icmp_unsigned("!=", left, mask(0)), body, done)
    builder.position_at_end(body)
    count = module.globals.get(f"llvm.cttz.i{lanes}") or ir.Function(
        module, ir.FunctionType(mask, [mask, I1]), f"llvm.cttz.i{lanes}"
    )
    number = builder.call(count, [left, I1(1)])
    lane = number if lanes == 64 else builder.zext(number, I64)
    rest = builder.and_(left, builder.sub(left, mask(1)))
    address = load(builder, element(builder, addresses, lane, I64), I64, 8)
    outside = builder.icmp_unsigned("==", address, I64(OUT_OF_BOUNDS))
    skip, real, following = (
        function.append_basic_block(label) for label in ("skip", "real", "next")
    )
    builder.cbranch(outside, skip, real)
    builder.position_at_end(skip)
    each(builder, rows, lane, address, False)
    builder.branch(following)
    builder.position_at_end(real)
    if checked:
        good = builder.call(check_function(module), [context, address, I64(size)])
        move, fault = function.append_basic_block("move"), function.append_basic_block("fault")
        builder.cbranch(good, move, fault)
        builder.position_at_end(fault)
        builder.store(lane, element(builder, context, FAULT_LANE, I64))
        builder.store(address, element(builder, context, FAULT_ADDRESS, I64))
        builder.ret(I32(1))
        builder.position_at_end(move)
    each(builder, rows, lane, address, True)
    builder.branch(following)
    builder.position_at_end(following)
    left.add_incoming(rest, following)
    builder.branch(head)
    builder.position_at_end(done)
    builder.ret(I32(0))
    return function


def _load_lane(
    builder: ir.IRBuilder, rows: Any, lane: Any, address: Any, lanes: int, shape: Shape, live: bool
) -> None:
    for index in range(max(1, shape.bytes // 4)):
        slot = element(builder, rows, builder.add(lane, I64(index * lanes)), I32)
        value: Any = I32(0)
        if live:
            where = builder.inttoptr(builder.add(address, I64(4 * index)), PTR)
            if shape.bytes >= 4:
                value = load(builder, where, I32, 1)
            else:
                small = load(builder, where, I8 if shape.bytes == 1 else I16, 1)
                value = builder.sext(small, I32) if shape.signed else builder.zext(small, I32)
        if shape.keep:
            value = _kept(builder, value, load(builder, slot, I32), shape)
        builder.store(value, slot)


def _kept(builder: ir.IRBuilder, value: Any, old: Any, shape: Shape) -> Any:
    value = builder.and_(value, I32(0xFFFF))
    if shape.high:
        return builder.or_(builder.shl(value, I32(16)), builder.and_(old, I32(0xFFFF)))
    return builder.or_(value, builder.and_(old, I32(0xFFFF0000)))


def _store_lane(
    builder: ir.IRBuilder, rows: Any, lane: Any, address: Any, lanes: int, shape: Shape, live: bool
) -> None:
    if not live:
        return
    for index in range(max(1, shape.bytes // 4)):
        slot = element(builder, rows, builder.add(lane, I64(index * lanes)), I32)
        value = load(builder, slot, I32)
        where = builder.inttoptr(builder.add(address, I64(4 * index)), PTR)
        if shape.high:
            value = builder.lshr(value, I32(16))
        if shape.bytes < 4:
            value = builder.trunc(value, I8 if shape.bytes == 1 else I16)
        builder.store(value, where, align=1)
