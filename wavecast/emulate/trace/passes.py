"""Outlined counts of one LDS access: the passes its banks need.

`analyze.values.banks` defines passes, and the groups of lanes and banks they serve.
Groups whose lanes are all active and ask for different banks are recognised together; others are
counted bank by bank.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from llvmlite import ir

from wavecast.arch.lds import Phases
from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import resolve
from wavecast.emulate.trace import layout
from wavecast.emulate.trace.lines import bump, extreme, lanes_in
from wavecast.emulate.values import (
    I1,
    I32,
    I64,
    PTR,
    constant,
    context_word,
    element,
    load,
    splat,
)

_MOST: Final = 32
"""Lanes of the largest group: no bank is asked for more dwords by one."""


def build(out: Outlined, phases: Phases) -> None:
    """Add to the counters at `rows` what the access, served in `phases`, asks of the banks."""
    builder = out.builder
    lanes = resolve(out, checked=False)
    some = builder.icmp_unsigned("!=", lanes.live, out.mask(0))
    with builder.if_then(some, likely=True):
        _Banks(out, phases, lanes.addresses, lanes.live).count()
    builder.ret(I32(0))


class _Banks:
    """The count of one access: `offsets` into LDS of all lanes, as one vector and in memory."""

    def __init__(self, out: Outlined, phases: Phases, addresses: Any, live: Any) -> None:
        self.out = out
        self.live = live
        self.phases = phases
        builder, lanes = out.builder, out.lanes
        base = context_word(builder, out.context, state.LDS_BASE)
        wide = load(builder, addresses, ir.VectorType(I64, lanes), 8)
        self.kind = ir.VectorType(I32, lanes)
        inset = builder.sub(wide, splat(builder, base, lanes))
        self.offsets = builder.trunc(inset, self.kind)
        self.room = out.array(I32)
        builder.store(self.offsets, self.room, align=4)
        self.slow = _busiest(out, self.phases.banks)
        self.passes, self.groups, self.worst = (out.room(I64, I64(0)) for _ in range(3))

    def count(self) -> None:
        out, builder = self.out, self.out.builder
        whole = builder.icmp_unsigned("==", self.live, out.mask(-1))
        ready = builder.and_(whole, self._is_aligned())
        with builder.if_else(ready, likely=True) as (fast, apart):
            with fast:
                self._together()
            with apart:
                for group in self.phases.groups:
                    self._count_group(group)
        passes, groups, worst = (
            out.get(slot, I64) for slot in (self.passes, self.groups, self.worst)
        )
        bump(out, layout.REQUESTS, I64(1))
        bump(out, layout.LANES, lanes_in(out, self.live))
        bump(out, layout.PASSES, passes)
        bump(out, layout.GROUPS, groups)
        conflict = builder.icmp_unsigned(">", passes, groups)
        bump(out, layout.CONFLICTED, builder.zext(conflict, I64))
        extreme(out, layout.WORST, "umax", worst)

    def _is_aligned(self) -> Any:
        """No access crosses a dword it could have kept within (i1)."""
        out, builder = self.out, self.out.builder
        low = constant(min(out.access.bytes, 4) - 1, 32, out.lanes)
        crossing = builder.and_(self.offsets, low)
        name = f"llvm.vector.reduce.or.v{out.lanes}i32"
        return builder.icmp_unsigned("==", out.intrinsic(name, I32, crossing), I32(0))

    def _together(self) -> None:
        """All lanes are active: groups are tested at once."""
        out, builder = self.out, self.out.builder
        banks = self.phases.banks
        bits = banks  # one bit per bank
        number = builder.lshr(self.offsets, constant(2, 32, out.lanes))
        bank = builder.and_(number, constant(banks - 1, 32, out.lanes))
        if bits == 64:
            bank = builder.zext(bank, ir.VectorType(I64, out.lanes))
        for group in self.phases.groups:
            count = len(group)
            kind = ir.VectorType(ir.IntType(bits), count)
            order = ir.Constant(ir.VectorType(I32, count), list(group))
            group_banks = builder.shuffle_vector(bank, bank, order)
            demand = constant((1 << out.access.dwords) - 1, bits, count)
            demand = out.intrinsic(f"llvm.fshl.v{count}i{bits}", kind, demand, demand, group_banks)
            small = ir.IntType(bits)
            union = out.intrinsic(f"llvm.vector.reduce.or.v{count}i{bits}", small, demand)
            bank_count = out.intrinsic(f"llvm.ctpop.i{bits}", small, union)
            different = builder.icmp_unsigned("==", bank_count, small(count * out.access.dwords))
            with builder.if_else(different, likely=True) as (single, more):
                with single:
                    self._add(I64(1))
                with more:
                    self._count_group(group)

    def _count_group(self, group: tuple[int, ...]) -> None:
        """Count one group bank by bank."""
        out, builder = self.out, self.out.builder
        name = f"lanes.{group[0]}"
        table: Any = out.module.globals.get(name)
        kind = ir.ArrayType(I32, len(group))
        if table is None:
            table = ir.GlobalVariable(out.module, kind, name)
            table.initializer = ir.Constant(kind, list(group))
            table.global_constant = True
            table.linkage = "internal"
        lanes = builder.gep(table, [I64(0)], source_etype=I32)
        mask = self.live if out.lanes == 64 else builder.zext(self.live, I64)
        self._add(builder.call(self.slow, [self.room, lanes, I64(len(group)), mask]))

    def _add(self, passes: Any) -> None:
        """Take a group's passes into account; one without active lanes needs none."""
        out, builder = self.out, self.out.builder
        served = builder.zext(builder.icmp_unsigned("!=", passes, I64(0)), I64)
        for slot, amount in ((self.passes, passes), (self.groups, served)):
            builder.store(builder.add(out.get(slot, I64), amount), slot)
        most = out.intrinsic("llvm.umax.i64", I64, out.get(self.worst, I64), passes)
        builder.store(most, self.worst)


def _busiest(out: Outlined, banks: int) -> ir.Function:
    """`i64 busiest(ptr offsets, ptr lanes, i64 count, i64 live)`: passes of one group.

    A bank needs one pass per different dword asked of it; for atomics, which each bank does one at
    a time, one per lane.
    """
    kind = ir.FunctionType(I64, [PTR, PTR, I64, I64])
    function = ir.Function(out.module, kind, "busiest")
    function.linkage = "internal"
    offsets, lanes, count, live = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    room, bank_words = ir.ArrayType(I32, banks * _MOST), ir.ArrayType(I32, banks)
    slots = builder.alloca(room), builder.alloca(bank_words)
    builder.store(ir.Constant(bank_words, None), slots[1])
    queues, filled = (builder.inttoptr(builder.ptrtoint(slot, I64), PTR) for slot in slots)
    most = builder.alloca(I64)
    builder.store(I64(0), most)
    with _loop(builder, I64(0), count) as index:
        lane = load(builder, element(builder, lanes, index, I32), I32)
        bit = builder.lshr(live, builder.zext(lane, I64))
        with builder.if_then(builder.trunc(bit, I1)):
            offset = load(builder, element(builder, offsets, builder.zext(lane, I64), I32), I32)
            offset = builder.zext(offset, I64)
            first = builder.lshr(offset, I64(2))
            last = builder.lshr(builder.add(offset, I64(out.access.bytes - 1)), I64(2))
            with _loop(builder, first, builder.add(last, I64(1))) as dword:
                bank = builder.and_(dword, I64(banks - 1))
                slot = element(builder, filled, bank, I32)
                queue = element(builder, queues, builder.mul(bank, I64(_MOST)), I32)
                _ask(builder, out, slot, queue, builder.trunc(dword, I32), most)
    builder.ret(load(builder, most, I64, 8))
    return function


def _ask(
    builder: ir.IRBuilder, out: Outlined, slot: Any, queue: Any, dword: Any, most: Any
) -> None:
    """Queue a dword at a bank unless it is there already."""
    waiting = load(builder, slot, I32)
    length = builder.zext(waiting, I64)
    new: Any = I1(1)
    if out.access.detail != "atomic":
        with builder.goto_entry_block():
            flag = builder.alloca(I1)
        builder.store(I1(0), flag)
        with _loop(builder, I64(0), length) as index:
            same = builder.icmp_unsigned(
                "==", load(builder, element(builder, queue, index, I32), I32), dword
            )
            builder.store(builder.or_(load(builder, flag, I1, 1), same), flag)
        new = builder.not_(load(builder, flag, I1, 1))
    with builder.if_then(new):
        builder.store(dword, element(builder, queue, length, I32))
        longer = builder.add(length, I64(1))
        builder.store(builder.trunc(longer, I32), slot)
        best = load(builder, most, I64, 8)
        more = builder.icmp_unsigned(">", longer, best)
        builder.store(builder.select(more, longer, best), most)


@contextmanager
def _loop(builder: ir.IRBuilder, first: Any, end: Any) -> Iterator[Any]:
    """A loop over first … end - 1, possibly none."""
    before = builder.block
    head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(I64)
    index.add_incoming(first, before)
    builder.cbranch(builder.icmp_unsigned("<", index, end), body, after)
    builder.position_at_end(body)
    yield index
    index.add_incoming(builder.add(index, I64(1)), builder.block)
    builder.branch(head)
    builder.position_at_end(after)


__all__ = ["build"]
