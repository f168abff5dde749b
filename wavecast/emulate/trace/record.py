"""Outlined record of one access: which lanes, and the address of each, in the host thread's log.

Addresses are host addresses for global memory, offsets in LDS, offsets in the lane's own scratch;
`scalar` accesses have one, at `base`, as lane 0.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import resolve
from wavecast.emulate.trace import layout
from wavecast.emulate.values import I32, I64, PTR, context_word, element, load, splat

_FLUSH = ir.FunctionType(ir.VoidType(), [I64, I64])


def build(out: Outlined) -> None:
    """Append a record to the log; `rows` is the number of the instruction."""
    builder, lanes = out.builder, out.lanes
    record = _room(out)
    stream = _word(out, layout.STREAM)
    number = builder.or_(builder.ptrtoint(out.rows, I64), builder.shl(stream, I64(32)))
    builder.store(number, element(builder, record, 0, I64), align=8)
    addresses = element(builder, record, 2, I64)
    if out.access.mode == "scalar":
        builder.store(I64(1), element(builder, record, 1, I64), align=8)
        builder.store(out.base, addresses, align=8)
    else:
        accesses = resolve(out, checked=False)
        live = accesses.live if lanes == 64 else builder.zext(accesses.live, I64)
        builder.store(live, element(builder, record, 1, I64), align=8)
        value = load(builder, accesses.addresses, ir.VectorType(I64, lanes), 8)
        builder.store(_relative(out, value), addresses, align=8)
    fill = builder.add(_word(out, layout.ACCESS_FILL), I64(1))
    builder.store(fill, element(builder, out.context, layout.ACCESS_FILL, I64), align=8)
    builder.ret(I32(0))


def _word(out: Outlined, number: int) -> Any:
    return context_word(out.builder, out.context, number)


def _room(out: Outlined) -> Any:
    """A pointer to the next record; the log is handed over first when it is full."""
    builder = out.builder
    full = builder.icmp_unsigned(">=", _word(out, layout.ACCESS_FILL), I64(layout.ACCESS_ROOM))
    with builder.if_then(full, likely=False):
        flush(builder, out.context, layout.ACCESS_LOG)
    offset = builder.mul(_word(out, layout.ACCESS_FILL), I64(layout.record_words(out.lanes)))
    log = context_word(builder, out.context, layout.ACCESS_LOG, PTR)
    return element(builder, log, offset, I64)


def flush(builder: ir.IRBuilder, context: Any, log: int) -> None:
    """Hand a full log, named by its context word, to the launch's watch, which empties it."""
    slot = element(builder, context, layout.FLUSH, I64)
    function = load(builder, slot, ir.PointerType(_FLUSH), 8)
    thread = context_word(builder, context, layout.THREAD)
    builder.call(function, [thread, I64(log)])


def _relative(out: Outlined, value: Any) -> Any:
    """Addresses of LDS and scratch as offsets."""
    builder, lanes = out.builder, out.lanes
    if out.access.mode == "local":
        return builder.sub(value, splat(builder, _word(out, state.LDS_BASE), lanes))
    if out.access.mode == "private":
        size = splat(builder, _word(out, state.SCRATCH_BYTES), lanes)
        numbers = ir.Constant(ir.VectorType(I64, lanes), list(range(lanes)))
        base = builder.add(
            splat(builder, _word(out, state.SCRATCH_BASE), lanes), builder.mul(size, numbers)
        )
        return builder.sub(value, base)
    return value


__all__ = ["build", "flush"]
