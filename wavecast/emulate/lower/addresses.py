"""The first part of an outlined access: addresses of all lanes, and whether they are good.

Modes: `wide` is a 64-bit address per lane; `flat` the same, where LDS and scratch have their
apertures (`state.SHARED_APERTURE`, `state.PRIVATE_APERTURE`); `narrow` a 32-bit offset per lane
from `base`; `buffer` the same, out of bounds where offset + bytes exceeds `limit`, and where the
sum of register and instruction offset has 32 bits; `local` an
offset into LDS; `private` an offset into the lane's own block of scratch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from llvmlite import ir

from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.values import (
    I1,
    I8,
    I32,
    I64,
    PTR,
    constant,
    context_word,
    element,
    load,
    splat,
)

_STEP = 8
"""Lanes whose addresses are made at once."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """`addresses`: array of i64. `live`: lanes that access memory; `dead`: active lanes that are
    out of the bounds hardware checks itself. `trusted` (i1): the whole span of live addresses lies
    in one known range. `lowest` and `highest` (i64) are the first and last of them."""

    addresses: Any
    live: Any
    dead: Any
    trusted: Any
    lowest: Any
    highest: Any


def range_of(builder: ir.IRBuilder, context: Any, address: Any, size: Any) -> Any:
    """The number of the known range that holds `size` bytes from `address` on, i64; -1: none."""
    return builder.call(_range_function(builder.module), [context, address, size])


def is_known(builder: ir.IRBuilder, context: Any, address: Any, size: Any) -> Any:
    """Whether `size` bytes from `address` on lie in a known range (i1)."""
    return builder.icmp_signed(">=", range_of(builder, context, address, size), I64(0))


def _range_function(module: ir.Module) -> ir.Function:
    """`i64 range_of(ptr context, i64 address, i64 bytes)`."""
    declaration = module.globals.get("range_of")
    if declaration is not None:
        return declaration
    function = ir.Function(module, ir.FunctionType(I64, [PTR, I64, I64]), "range_of")
    function.linkage = "internal"
    context, address, size = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    ranges = context_word(builder, context, state.RANGES, PTR)
    count = context_word(builder, context, state.RANGE_COUNT)
    before = builder.block
    body, more, good, bad = (
        function.append_basic_block(name) for name in ("body", "more", "good", "bad")
    )
    builder.branch(body)
    builder.position_at_end(body)
    index = builder.phi(I64)
    index.add_incoming(I64(0), before)
    twice = builder.shl(index, I64(1))
    first = load(builder, element(builder, ranges, twice, I64), I64, 8)
    stop = load(builder, element(builder, ranges, builder.add(twice, I64(1)), I64), I64, 8)
    # written so that nothing wraps around for addresses near 2^64
    inset, length = builder.sub(address, first), builder.sub(stop, first)
    fits = builder.icmp_unsigned("<=", size, builder.sub(length, inset))
    in_bounds = builder.and_(builder.icmp_unsigned("<=", inset, length), fits)
    following = builder.add(index, I64(1))
    builder.cbranch(in_bounds, good, more)
    builder.position_at_end(more)
    index.add_incoming(following, more)
    builder.cbranch(builder.icmp_unsigned("<", following, count), body, bad)
    builder.position_at_end(good)
    builder.ret(index)
    builder.position_at_end(bad)
    builder.ret(I64(-1))
    return function


class _Maker:
    """Makes the addresses of `_STEP` lanes in the mode of the access."""

    def __init__(self, out: Outlined) -> None:
        self.out = out
        builder = out.builder
        self.mode = out.access.mode
        base, limit = out.base, out.limit
        if self.mode == "flat":
            self.apertures = [
                (
                    aperture,
                    *(context_word(builder, out.context, word) for word in words),
                )
                for aperture, words in (
                    (state.SHARED_APERTURE, (state.LDS_BASE, state.LDS_BYTES)),
                    (state.PRIVATE_APERTURE, (state.SCRATCH_BASE, state.SCRATCH_BYTES)),
                )
            ]
        if self.mode in ("local", "private"):
            words = (
                (state.LDS_BASE, state.LDS_BYTES)
                if self.mode == "local"
                else (state.SCRATCH_BASE, state.SCRATCH_BYTES)
            )
            base, limit = (context_word(builder, out.context, word) for word in words)
        elif self.mode == "narrow":
            base = builder.add(base, out.offset)
        self.base, self.limit = splat(builder, base, _STEP), splat(builder, limit, _STEP)
        whole = builder.lshr(out.offset, I64(32)) if self.mode == "buffer" else out.offset
        self.offset = splat(builder, whole, _STEP)
        self.short = splat(builder, builder.trunc(out.offset, I32), _STEP)

    def make(self, start: Any) -> tuple[Any, Any]:
        """`<8 x i64>` addresses and, where the hardware checks bounds, `<8 x i1>` in bounds."""
        out, builder = self.out, self.out.builder
        narrow, wide = ir.VectorType(I32, _STEP), ir.VectorType(I64, _STEP)
        low = builder.load(element(builder, out.address, start, I32), align=4, typ=narrow)
        if self.mode == "narrow":
            return builder.add(builder.zext(low, wide), self.base), None
        if self.mode in ("wide", "flat"):
            above = element(builder, out.address, builder.add(start, I64(out.lanes)), I32)
            high = builder.zext(builder.load(above, align=4, typ=narrow), wide)
            value = builder.or_(builder.zext(low, wide), builder.shl(high, constant(32, 64, _STEP)))
            value = builder.add(value, self.offset)
            return (self._to_host_address(value, start) if self.mode == "flat" else value), None
        inset = builder.zext(builder.add(low, self.short), wide)  # 32 bits, wraps around
        if self.mode == "buffer":
            inset = builder.add(inset, self.offset)
        end = builder.add(inset, constant(out.access.bytes, 64, _STEP))
        in_bounds = builder.icmp_unsigned("<=", end, self.limit)
        value = builder.add(inset, self.base)
        if self.mode == "private":
            numbers = ir.Constant(wide, list(range(_STEP)))
            lanes = builder.add(splat(builder, start, _STEP), numbers)
            value = builder.add(value, builder.mul(lanes, self.limit))
        return value, in_bounds

    def _to_host_address(self, value: Any, start: Any) -> Any:
        """Flat addresses as host addresses; beyond the end of an aperture's memory they stay."""
        builder, wide = self.out.builder, value.type
        low = builder.and_(value, constant(0xFFFFFFFF, 64, _STEP))
        high = builder.lshr(value, constant(32, 64, _STEP))
        end = builder.add(low, constant(self.out.access.bytes, 64, _STEP))
        numbers = ir.Constant(wide, list(range(_STEP)))
        lanes = builder.add(splat(builder, start, _STEP), numbers)
        for aperture, base, size in self.apertures:
            here = builder.icmp_unsigned("==", high, constant(aperture, 64, _STEP))
            limit = splat(builder, size, _STEP)
            fits = builder.icmp_unsigned("<=", end, limit)
            mapped = builder.add(low, splat(builder, base, _STEP))
            if aperture == state.PRIVATE_APERTURE:
                mapped = builder.add(mapped, builder.mul(lanes, limit))
            value = builder.select(builder.and_(here, fits), mapped, value)
        return value


def _flat_function(out: Outlined) -> ir.Function:
    """`i1 is_known_flat(ptr context, i64 address, i64 bytes)`: `is_known`, also for the workgroup's
    LDS and the wave's scratch."""
    module, name = out.module, "is_known_flat"
    declaration = module.globals.get(name)
    if declaration is not None:
        return declaration
    function = ir.Function(module, ir.FunctionType(I1, [PTR, I64, I64]), name)
    function.linkage = "internal"
    context, address, size = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))

    word = partial(context_word, builder, context)
    good = is_known(builder, context, address, size)
    scratch = builder.mul(word(state.SCRATCH_BYTES), I64(out.lanes))
    for base, length in (
        (word(state.LDS_BASE), word(state.LDS_BYTES)),
        (word(state.SCRATCH_BASE), scratch),
    ):
        inset = builder.sub(address, base)
        in_bounds = builder.icmp_unsigned("<=", inset, length)
        fits = builder.icmp_unsigned("<=", size, builder.sub(length, inset))
        good = builder.or_(good, builder.and_(in_bounds, fits))
    builder.ret(good)
    return function


def _is_good(out: Outlined, address: Any, size: Any) -> Any:
    """`is_known` for the access's mode."""
    if out.access.mode == "flat":
        return out.builder.call(_flat_function(out), [out.context, address, size])
    return is_known(out.builder, out.context, address, size)


def resolve(out: Outlined, *, checked: bool = True) -> Resolved:
    """Emit the addresses of all lanes and, if `checked`, the check of their span, and the fault of
    lanes outside their scratch."""
    builder, size = out.builder, out.access.bytes
    wide = ir.VectorType(I64, _STEP)
    addresses = out.array(I64)
    ones, zeros = constant(-1, 64, _STEP), constant(0, 64, _STEP)
    low, high = out.room(wide, ones), out.room(wide, zeros)
    live = out.room(out.mask, out.mask(0))
    maker = _Maker(out)
    with out.counted_loop(out.lanes // _STEP) as chunk:
        start = builder.mul(chunk, I64(_STEP))
        value, in_bounds = maker.make(start)
        builder.store(value, element(builder, addresses, start, I64), align=8)
        amount = start if out.lanes == 64 else builder.trunc(start, out.mask)
        bits = builder.trunc(builder.lshr(out.exec, amount), I8)
        active = builder.bitcast(bits, ir.VectorType(I1, _STEP))
        if in_bounds is not None:
            active = builder.and_(active, in_bounds)
        lane_bits = builder.zext(builder.bitcast(active, I8), out.mask)
        builder.store(builder.or_(out.get(live, out.mask), builder.shl(lane_bits, amount)), live)
        for slot, rest, name in ((low, ones, "umin"), (high, zeros, "umax")):
            selection = builder.select(active, value, rest)
            merged = out.intrinsic(f"llvm.{name}.v8i64", wide, out.get(slot, wide), selection)
            builder.store(merged, slot)
    lowest = out.intrinsic("llvm.vector.reduce.umin.v8i64", I64, out.get(low, wide))
    highest = out.intrinsic("llvm.vector.reduce.umax.v8i64", I64, out.get(high, wide))
    mask = out.get(live, out.mask)
    dead = builder.and_(out.exec, builder.not_(mask))
    if checked and out.access.mode == "private":
        with builder.if_then(builder.icmp_unsigned("!=", dead, out.mask(0)), likely=False):
            lane = out.lowest(dead)
            out.fault(lane, load(builder, element(builder, addresses, lane, I64), I64, 8))
    trusted: Any = I1(1)
    if checked and out.access.mode not in ("local", "private"):
        span = builder.add(builder.sub(highest, lowest), I64(size))
        in_bounds = _is_good(out, lowest, span)
        trusted = builder.and_(in_bounds, builder.icmp_unsigned(">=", highest, lowest))
    return Resolved(addresses, mask, dead, trusted, lowest, highest)


def lane_address(out: Outlined, lanes: Resolved, lane: Any, *, checked: bool = True) -> Any:
    """The address of one live lane, checked on its own where the span was not good."""
    builder = out.builder
    address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
    if checked and out.access.mode not in ("local", "private"):
        with builder.if_then(builder.not_(lanes.trusted), likely=False):
            good = _is_good(out, address, I64(out.access.bytes))
            with builder.if_then(builder.not_(good), likely=False):
                out.fault(lane, address)
    return address


__all__ = ["Resolved", "is_known", "lane_address", "range_of", "resolve"]
