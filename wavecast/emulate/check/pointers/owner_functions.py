"""Native code that finds the owner of a pointer in memory, and compares an access with its owner.

A tag is an owner's number (`owners.py`); that of an access comes from `pointer_tags.py`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.log import KINDS, log_function
from wavecast.emulate.check.pointers import owners
from wavecast.emulate.check.pointers.owners import SEVERAL
from wavecast.emulate.check.pointers.provenance import POINTER_BYTES
from wavecast.emulate.check.pointers.reach import BoundsRow, is_in_bounds, within
from wavecast.emulate.check.shadow import Findings
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import is_known, resolve
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I32, I64, PTR, constant, context_word, element, load

_UNKNOWN = constant(SEVERAL, 32)
_ONES = (1 << 64) - 1


def _within_owner(
    builder: ir.IRBuilder, context: Any, tag: Any, address: Any, size: Any, rounded: bool
) -> Any:
    """Whether an access lies in the memory of the one owner that its address has (i1)."""
    number = builder.zext(tag, I64)
    table = context_word(builder, context, log.OWNERS, PTR)
    bounds = load(builder, element(builder, table, owners.BOUNDS, I64), PTR, 8)
    twice = builder.shl(number, I64(1))
    first = load(builder, element(builder, bounds, twice, I64), I64, 8)
    end = load(builder, element(builder, bounds, builder.add(twice, I64(1)), I64), I64, 8)
    if rounded:
        first = builder.and_(first, I64(~3 & _ONES))
        end = builder.and_(builder.add(end, I64(3)), I64(~3 & _ONES))
    return within(builder, address, size, first, end)


def _known_owner(builder: ir.IRBuilder, tag: Any) -> tuple[Any, Any]:
    """Whether a tag names one owner (i1), and the tag or that of no owner."""
    nobody = builder.icmp_unsigned("==", tag, I32(0))
    several = builder.icmp_unsigned("==", tag, _UNKNOWN)
    has_owner = builder.not_(builder.or_(nobody, several))
    return has_owner, builder.select(has_owner, tag, I32(0))


def build_compare(out: Outlined) -> None:
    """Compare the addresses of one access with the owners in `rows`; those without one, with what
    the instruction may touch."""
    builder = out.builder
    lanes = resolve(out)
    instruction = builder.ptrtoint(out.other, I64)
    row = BoundsRow(builder, out.context, instruction)
    beyond = Findings(out, Kind.OUT_OF_BOUNDS)
    rounded, size = out.access.detail == "rounded", I64(out.access.bytes)
    with out.each_lane(lanes.live) as lane:
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
        tag = load(builder, element(builder, out.rows, lane, I32), I32)
        has_owner, owner = _known_owner(builder, tag)
        mine = _within_owner(builder, out.context, owner, address, size, rounded)
        good = builder.select(has_owner, mine, is_in_bounds(out, row, address, size))
        beyond.when(builder.not_(good), lane, address, None, builder.zext(owner, I64))
    beyond.log(instruction)
    builder.ret(I32(0))


def build_scalar(function: ir.Function, size: int) -> None:
    """`void compare(ptr context, i64 address, i64 instruction, i32 tag)` for `size` bytes."""
    context, address, instruction, tag = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    row, amount = BoundsRow(builder, context, instruction), I64(size)
    has_owner, owner = _known_owner(builder, tag)
    mine = _within_owner(builder, context, owner, address, amount, rounded=True)
    in_bounds = builder.or_(row.contains(address, amount), row.is_listed(address, amount))
    good = builder.select(has_owner, mine, in_bounds)
    with builder.if_then(builder.not_(good), likely=False):
        site = builder.add(builder.mul(instruction, I64(KINDS)), I64(int(Kind.OUT_OF_BOUNDS)))
        values = [context, site, I64(1), address, I64(0), builder.zext(owner, I64)]
        builder.call(log_function(builder.module), values)
    builder.ret_void()


def build_loaded(out: Outlined) -> None:
    """Store the owner of what each lane loads, from one dword of the access on, to `rows`."""
    builder, number = out.builder, int(out.access.detail)
    lanes = resolve(out)
    with out.each_lane(out.exec) as lane:
        builder.store(I32(0), element(builder, out.rows, lane, I32), align=4)
    if 4 * number + POINTER_BYTES <= out.access.bytes:
        owner = owner_function(out.module)
        with out.each_lane(lanes.live) as lane:
            address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
            at = builder.add(address, I64(4 * number))
            tag = builder.call(owner, [out.context, at])
            builder.store(tag, element(builder, out.rows, lane, I32), align=4)
    builder.ret(I32(0))


def owner_function(module: ir.Module) -> ir.Function:
    """`i32 owner_of(ptr context, i64 address)`: of the pointer at an address. An argument's is that
    of its tensor, whatever it points to."""
    declaration = module.globals.get("owner_of")
    if declaration is not None:
        return declaration
    function = ir.Function(module, ir.FunctionType(I32, [PTR, I64]), "owner_of")
    function.linkage = "internal"
    context, address = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    table = context_word(builder, context, log.OWNERS, PTR)

    def word(index: int, kind: ir.Type = I64) -> Any:
        return load(builder, element(builder, table, index, I64), kind, 8)

    first, end = word(owners.SEGMENT_FIRST), word(owners.SEGMENT_END)
    with builder.if_then(within(builder, address, I64(POINTER_BYTES), first, end)):
        dword = builder.lshr(builder.sub(address, first), I64(2))
        slot = element(builder, word(owners.SEGMENT_OWNERS, PTR), dword, I32)
        builder.ret(load(builder, slot, I32))
    in_range = is_known(builder, context, address, I64(POINTER_BYTES))
    with builder.if_then(builder.not_(in_range)):
        builder.ret(I32(0))
    value = load(builder, builder.inttoptr(address, PTR), I64, 1)
    starts, numbers = word(owners.STARTS, PTR), word(owners.NUMBERS, PTR)
    count, before = word(owners.COUNT), builder.block
    body, exit_block = (function.append_basic_block(name) for name in ("body", "done"))
    builder.branch(body)
    # the last start that is not beyond the value: the first one is 0
    builder.position_at_end(body)
    low, high = builder.phi(I64), builder.phi(I64)
    middle = builder.lshr(builder.add(low, high), I64(1))
    start = load(builder, element(builder, starts, middle, I64), I64, 8)
    is_below = builder.icmp_unsigned("<=", start, value)
    lower, upper = builder.select(is_below, middle, low), builder.select(is_below, high, middle)
    for phi, initial, following in ((low, I64(0), lower), (high, count, upper)):
        phi.add_incoming(initial, before)
        phi.add_incoming(following, body)
    continues = builder.icmp_unsigned(">", builder.sub(upper, lower), I64(1))
    builder.cbranch(continues, body, exit_block)
    builder.position_at_end(exit_block)
    builder.ret(load(builder, element(builder, numbers, lower, I32), I32))
    return function


__all__ = ["build_compare", "build_loaded", "build_scalar", "owner_function"]
