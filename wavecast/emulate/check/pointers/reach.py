"""Where accesses of global memory land: outside their tensors, or in memory nobody has written.

Ahead of every access an outlined function compares the lanes' addresses with the memory of the
arguments they come from (`bounds.py`). Memory that was allocated and never written has a pattern
(`CANARY`); loads and atomics compare each dword with its half of it. Dwords of half-precision
tensors are compared by halves, and narrower values by what has been marked (`written_bytes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from wavecast.emulate.bounds import ROW_WORDS, SOURCE, WRITTEN
from wavecast.emulate.check import log
from wavecast.emulate.check.log import KINDS, log_function
from wavecast.emulate.check.shadow import Findings
from wavecast.emulate.lower import runtime, state
from wavecast.emulate.lower.access import MemoryAccess, Outlined
from wavecast.emulate.lower.addresses import Resolved, is_known, resolve
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.sites import call_observing
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I1, I16, I32, I64, PTR, context_word, element, load, splat
from wavecast.emulate.written_bytes import DWORD
from wavecast.isa.instruction import Instruction

if TYPE_CHECKING:
    from wavecast.emulate.lower.access import AccessTarget

_MOVES = {"load", "store", "tolds"}
FOLLOWED = "f"
"""Detail of accesses that `ReachChecks` does not compare with bounds."""
_OUTSIDE_GLOBAL = {"local", "private"}
_ONES = (1 << 64) - 1
_UNLIMITED = 0x7FFF_0000
"""Records of a descriptor that has as many as signed offsets can reach, or a few less."""
_SIGNED = 1 << 31
"""Offsets from here on are negative ones, or mask a lane."""
_MASKED_OFFSETS = 1 << 16
"""Offsets from 2^31 on that lanes which are masked off have."""
_WIDENED = 16
"""Bytes of scalar loads whose last dword may be there only because four are loaded as one."""


class ReachChecks(Observer):
    """Emits the calls ahead of accesses. Where the pointers of those in `followed` lead is for
    `pointer_tags.py`."""

    def __init__(self, accesses: Container[int] = ()) -> None:
        self.followed = accesses

    def access(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
        rows: Any,
    ) -> None:
        if target.mode in _OUTSIDE_GLOBAL:
            return
        detail = access.action if access.action in _MOVES else "atomic"
        if instruction.index in self.followed:
            detail += FOLLOWED
        request = MemoryAccess("reach", target.mode, access.lanes, access.bytes, detail)
        name = f"check.reach.{request.mode}.{request.lanes}.{request.bytes}.{detail}"
        call_observing(emitter, name, request, _build, target, rows, (instruction.index, 0))

    def scalar_access(
        self, emitter: WaveEmitter, instruction: Instruction, address: Any, size: int
    ) -> None:
        kind = ir.FunctionType(ir.VoidType(), [PTR, I64, I64])
        size = read_bytes(size)
        is_tracked = instruction.index in self.followed
        name = f"check.reach.scalar.{size}{FOLLOWED if is_tracked else ''}"

        def recipe(module: ir.Module) -> None:
            _build_scalar(ir.Function(module, kind, runtime.OUTLINED + name), size, is_tracked)

        function = runtime.outline(emitter.module, name, kind, recipe)
        emitter.builder.call(function, [emitter.context, address, I64(instruction.index)])


class BoundsRow:
    """What an instruction may touch, as `AccessBounds` has it."""

    def __init__(self, builder: ir.IRBuilder, context: Any, instruction: Any) -> None:
        self.builder, self.context = builder, context
        rows = context_word(builder, context, log.BOUNDS, PTR)
        row = element(builder, rows, builder.mul(instruction, I64(ROW_WORDS)), I64)
        self.first, self.end, self.list, self.granule = (
            load(builder, element(builder, row, word, I64), I64, 8) for word in range(SOURCE)
        )
        self._row = row

    def contains(self, address: Any, size: Any) -> Any:
        """Whether `size` bytes from `address` on lie in the one interval (i1)."""
        return within(self.builder, address, size, self.first, self.end)

    def is_listed(self, address: Any, size: Any) -> Any:
        """Whether they lie in an interval of the list (i1)."""
        builder = self.builder
        function = _list_function(builder.module)
        return builder.call(function, [self.list, address, size])

    def written_offset(self) -> Any:
        """What leads from a byte to the one that says whether it has been written (i64), 0 where
        that is not followed."""
        return load(self.builder, element(self.builder, self._row, WRITTEN, I64), I64, 8)

    def overlaps_all(self, lowest: Any, highest: Any, size: Any) -> Any:
        """Whether `size` bytes from any address of a span on overlap the one interval (i1)."""
        builder = self.builder
        ends = builder.icmp_unsigned(">", builder.add(lowest, size), self.first)
        return builder.and_(ends, builder.icmp_unsigned("<", highest, self.end))

    def overlaps(self, address: Any, size: Any) -> Any:
        """Whether one of `size` bytes from `address` on lies in an interval (i1)."""
        builder = self.builder
        function = _overlap_function(builder.module)
        hit = _overlap(builder, address, size, self.first, self.end)
        with builder.goto_entry_block():
            flag = builder.alloca(I1)
        builder.store(hit, flag)
        with builder.if_then(builder.not_(hit), likely=False):
            builder.store(builder.call(function, [self.list, address, size]), flag)
        return builder.load(flag, typ=I1)


def source_access(builder: ir.IRBuilder, context: Any, instruction: Any) -> Any:
    """What the source calls an access: a `SourceAccess` (i64)."""
    rows = context_word(builder, context, log.BOUNDS, PTR)
    at = builder.add(builder.mul(instruction, I64(ROW_WORDS)), I64(SOURCE))
    return load(builder, element(builder, rows, at, I64), I64, 8)


def read_bytes(size: int) -> int:
    """The bytes of a scalar load that the source surely reads."""
    return size - 4 if size == _WIDENED else size


def within(builder: ir.IRBuilder, address: Any, size: Any, first: Any, end: Any) -> Any:
    """Whether `size` bytes from `address` on lie between two addresses (i1)."""
    offset, length = builder.sub(address, first), builder.sub(end, first)
    fits = builder.icmp_unsigned("<=", size, builder.sub(length, offset))
    starts = builder.icmp_unsigned("<=", offset, length)
    ordered = builder.icmp_unsigned("<=", first, end)
    return builder.and_(builder.and_(starts, fits), ordered)


def _overlap(builder: ir.IRBuilder, address: Any, size: Any, first: Any, end: Any) -> Any:
    """Whether one of `size` bytes from `address` on lies between two addresses (i1)."""
    starts = builder.icmp_unsigned("<", address, end)
    ends = builder.icmp_unsigned(">", builder.add(address, size), first)
    return builder.and_(starts, ends)


def _list_function(module: ir.Module) -> ir.Function:
    """`i1 in_list(i64 list, i64 address, i64 size)`: `within` one of its intervals; no list has
    none."""
    return _any_interval(module, "in_list", within)


def _overlap_function(module: ir.Module) -> ir.Function:
    """`i1 overlaps_list(i64 list, i64 address, i64 size)`."""
    return _any_interval(module, "overlaps_list", _overlap)


def _any_interval(module: ir.Module, name: str, compare: Callable[..., Any]) -> ir.Function:
    declaration = module.globals.get(name)
    if declaration is not None:
        return declaration
    function = ir.Function(module, ir.FunctionType(I1, [I64] * 3), name)
    function.linkage = "internal"
    table, address, size = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    with builder.if_then(builder.icmp_unsigned("==", table, I64(0))):
        builder.ret(I1(0))
    pointer = builder.inttoptr(table, PTR)
    count = load(builder, pointer, I64, 8)
    before = builder.block
    body, more, good, bad = (
        function.append_basic_block(name) for name in ("body", "more", "good", "bad")
    )
    builder.branch(body)
    builder.position_at_end(body)
    index = builder.phi(I64)
    index.add_incoming(I64(0), before)
    start = builder.add(builder.shl(index, I64(1)), I64(1))
    first = load(builder, element(builder, pointer, start, I64), I64, 8)
    end = load(builder, element(builder, pointer, builder.add(start, I64(1)), I64), I64, 8)
    builder.cbranch(compare(builder, address, size, first, end), good, more)
    builder.position_at_end(more)
    following = builder.add(index, I64(1))
    index.add_incoming(following, more)
    builder.cbranch(builder.icmp_unsigned("<", following, count), body, bad)
    builder.position_at_end(good)
    builder.ret(I1(1))
    builder.position_at_end(bad)
    builder.ret(I1(0))
    return function


def _build(out: Outlined) -> None:
    """Compare the addresses of one access."""
    builder = out.builder
    instruction = builder.ptrtoint(out.other, I64)
    row = BoundsRow(builder, out.context, instruction)
    canary = context_word(builder, out.context, log.CANARY)
    lanes = resolve(out)
    some = builder.icmp_unsigned("!=", lanes.live, out.mask(0))
    beyond = Findings(out, Kind.OUT_OF_BOUNDS)
    span = builder.add(builder.sub(lanes.highest, lanes.lowest), I64(out.access.bytes))
    good = builder.or_(row.contains(lanes.lowest, span), builder.not_(some))
    if not out.access.detail.endswith(FOLLOWED):
        with builder.if_then(builder.not_(good), likely=False):
            _each_outside(out, row, lanes, beyond)
    if out.access.mode == "buffer":
        _each_beyond_limit(out, lanes, beyond)
    beyond.log(instruction)
    asked_bytes = _follow_bytes(out, row, lanes)
    if not out.access.detail.startswith("store"):
        checks_canary = builder.icmp_unsigned("!=", canary, I64(0))
        checks_canary = builder.and_(checks_canary, builder.not_(asked_bytes))
        checks_canary = builder.and_(checks_canary, some)
        if out.access.bytes != 1:
            checks_canary = _unless_differs(out, row, lanes, canary, checks_canary)
        with builder.if_then(checks_canary, likely=False):
            fresh = Findings(out, Kind.UNINITIALISED_GLOBAL)
            _each_fresh(out, row, lanes, canary, fresh)
            fresh.log(instruction)
    builder.ret(I32(0))


def _follow_bytes(out: Outlined, row: BoundsRow, lanes: Resolved) -> Any:
    """Stores and atomics mark the bytes they write, loads look whether theirs are marked. Returns
    whether these were asked (i1)."""
    builder, count = out.builder, out.access.bytes
    kind = ir.IntType(8 * count)
    marks = kind(int("01" * count, 16))
    delta = row.written_offset()
    is_tracked = builder.icmp_unsigned("!=", delta, I64(0))
    loads = out.access.detail.removesuffix(FOLLOWED) in ("load", "tolds")
    fresh = Findings(out, Kind.UNINITIALISED_GLOBAL)
    with builder.if_then(is_tracked, likely=False), out.each_lane(lanes.live) as lane:
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
        pointer = builder.inttoptr(builder.add(address, delta), PTR)
        with builder.if_then(row.contains(address, I64(count))):
            if loads:
                missing = builder.xor(load(builder, pointer, kind, 1), marks)
                first = builder.lshr(_as_i64(builder, builder.cttz(missing, I1(0))), I64(3))
                some = builder.icmp_unsigned("!=", missing, kind(0))
                fresh.when(some, lane, builder.add(address, first))
            else:
                builder.store(marks, pointer, align=1)
    fresh.log(builder.ptrtoint(out.other, I64))
    return builder.and_(is_tracked, I1(loads))


def _as_i64(builder: ir.IRBuilder, value: Any) -> Any:
    width = value.type.width
    if width == 64:
        return value
    return builder.zext(value, I64) if width < 64 else builder.trunc(value, I64)


def _each_outside(out: Outlined, row: BoundsRow, lanes: Resolved, beyond: Findings) -> None:
    builder, size = out.builder, I64(out.access.bytes)
    with out.each_lane(lanes.live) as lane:
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
        beyond.when(builder.not_(is_in_bounds(out, row, address, size)), lane, address)


def is_in_bounds(out: Outlined, row: BoundsRow, address: Any, size: Any) -> Any:
    """Whether an access may touch `size` bytes from a lane's address on (i1)."""
    builder = out.builder
    good = builder.or_(row.contains(address, size), row.is_listed(address, size))
    return builder.or_(good, _own_memory(out, address)) if out.access.mode == "flat" else good


def _each_beyond_limit(out: Outlined, lanes: Resolved, beyond: Findings) -> None:
    """Lanes that hardware masks because their offset exceeds the descriptor's records.

    Triton gives descriptors as many records as there can be and lanes that are masked off an offset
    of 2^31: other offsets that large are negative ones. Descriptors with fewer records mask lanes
    on purpose, those with more have all offsets but the very last, which FlyDSL masks lanes with.
    Sources: Triton, `BufferEmitter::createResourceDescriptor` and `calcOffset`; FlyDSL,
    `buffer_ops.create_buffer_resource` and the `c_oob_idx` of its kernels.
    """
    builder = out.builder
    unlimited = builder.icmp_unsigned(">=", out.limit, I64(_UNLIMITED))
    signed = builder.icmp_unsigned("<=", out.limit, I64(_SIGNED))
    unlimited = builder.and_(unlimited, signed)
    some = builder.icmp_unsigned("!=", lanes.dead, out.mask(0))
    with builder.if_then(builder.and_(unlimited, some)), out.each_lane(lanes.dead) as lane:
        offset = load(builder, element(builder, out.address, lane, I32), I32)
        distance = builder.sub(offset, I32(_SIGNED))
        is_masked = builder.icmp_unsigned(">=", distance, I32(_MASKED_OFFSETS))
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
        address = builder.sub(address, I64(1 << 32))
        beyond.when(is_masked, lane, address)


def _own_memory(out: Outlined, address: Any) -> Any:
    """Whether a flat address lies in LDS or in scratch (i1)."""
    builder = out.builder
    scratch = context_word(builder, out.context, state.SCRATCH_BYTES)
    hit: Any = I1(0)
    for base, length in (
        (state.LDS_BASE, context_word(builder, out.context, state.LDS_BYTES)),
        (state.SCRATCH_BASE, builder.mul(scratch, I64(out.lanes))),
    ):
        offset = builder.sub(address, context_word(builder, out.context, base))
        hit = builder.or_(hit, builder.icmp_unsigned("<", offset, length))
    return hit


def _each_fresh(
    out: Outlined, row: BoundsRow, lanes: Resolved, canary: Any, fresh: Findings
) -> None:
    """Compare the dwords of every lane with the pattern. Memory of no range is left to the access
    itself, which faults."""
    builder, in_range = out.builder, out.room(I1)
    with out.each_lane(lanes.live) as lane:
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
        builder.store(lanes.trusted, in_range)
        with builder.if_then(builder.not_(lanes.trusted), likely=False):
            size = I64(out.access.bytes)
            builder.store(is_known(builder, out.context, address, size), in_range)
        with builder.if_then(out.get(in_range, I1), likely=True):
            for number in range(out.access.dwords):
                at = builder.add(address, I64(4 * number))
                condition, where = _is_fresh(builder, at, canary, row.granule, out.access.bytes)
                fresh.when(condition, lane, where)


def _unless_differs(out: Outlined, row: BoundsRow, lanes: Resolved, canary: Any, asked: Any) -> Any:
    """`asked` (i1), unless no half of what the lanes access is the pattern's, found lane by lane
    but without branches."""
    builder, size = out.builder, out.access.bytes
    halves = max(1, size // 2)
    kind, bits = ir.VectorType(I16, halves), ir.IntType(halves)
    answer, alike, low_bits = out.room(I1, asked), out.room(bits, bits(0)), out.room(I64, I64(0))
    upper = builder.or_(builder.lshr(canary, I64(32)), builder.shl(canary, I64(32)))
    first_bytes = [builder.bitcast(value, ir.VectorType(I16, 4)) for value in (canary, upper)]
    cyclic = ir.Constant(ir.VectorType(I32, halves), [n % 4 for n in range(halves)])
    patterns = [builder.shuffle_vector(value, value, cyclic) for value in first_bytes]
    with builder.if_then(builder.and_(asked, lanes.trusted), likely=True):
        with out.each_lane(lanes.live) as lane:
            address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
            value = builder.load(builder.inttoptr(address, PTR), align=1, typ=kind)
            if size == 2:
                inset = builder.shl(builder.and_(address, I64(6)), I64(3))
                pattern = builder.trunc(builder.lshr(canary, inset), I16)
                pattern = splat(builder, pattern, 1)
            else:
                second = builder.icmp_unsigned("!=", builder.and_(address, I64(4)), I64(0))
                pattern = builder.select(second, patterns[1], patterns[0])
            same = builder.bitcast(builder.icmp_unsigned("==", value, pattern), bits)
            builder.store(builder.or_(out.get(alike, bits), same), alike)
            builder.store(builder.or_(out.get(low_bits, I64), address), low_bits)
        same = out.get(alike, bits)
        hit = builder.icmp_unsigned("!=", same, bits(0))
        if size >= 4:  # only whole dwords count, unless the tensor's elements are halves
            pairs = builder.and_(same, builder.lshr(same, bits(1)))
            pairs = builder.and_(pairs, bits(0x5555 & (1 << halves) - 1))
            whole = builder.icmp_unsigned("!=", pairs, bits(0))
            has_halves = builder.icmp_unsigned("==", row.granule, I64(2))
            hit = builder.select(has_halves, hit, whole)
        odd = builder.and_(out.get(low_bits, I64), I64(min(size, 4) - 1))
        builder.store(builder.or_(hit, builder.icmp_unsigned("!=", odd, I64(0))), answer)
    return builder.and_(asked, out.get(answer, I1))


def _is_fresh(
    builder: ir.IRBuilder, address: Any, canary: Any, granule: Any, size: int
) -> tuple[Any, Any]:
    """Whether the dword at an address is that of memory never written (i1); with a `granule` of 2
    bytes, a half of it that an access of `size` bytes covers. And the address of what is."""
    aligned = builder.and_(address, I64(~3 & _ONES))
    upper = builder.icmp_unsigned("!=", builder.and_(address, I64(4)), I64(0))
    pattern = builder.select(upper, builder.lshr(canary, I64(32)), canary)
    value = load(builder, builder.inttoptr(aligned, PTR), I32, 4)
    differs = builder.xor(value, builder.trunc(pattern, I32))
    whole = builder.icmp_unsigned("==", differs, I32(0))
    low = builder.icmp_unsigned("==", builder.and_(differs, I32(0xFFFF)), I32(0))
    high = builder.icmp_unsigned("==", builder.lshr(differs, I32(16)), I32(0))
    if size < 4:
        second = builder.icmp_unsigned("!=", builder.and_(address, I64(2)), I64(0))
        part = builder.select(second, high, low)
    else:
        part = builder.or_(low, high)
    halves = builder.icmp_unsigned("==", granule, I64(2))
    second = builder.and_(builder.and_(halves, high), builder.not_(low))
    where = builder.select(second, builder.or_(address, I64(2)), address)
    return builder.or_(whole, builder.and_(halves, part)), where


def _is_unmarked(builder: ir.IRBuilder, row: BoundsRow, address: Any) -> Any:
    """Whether no byte of the dword at an address has been written (i1), where bytes are followed.
    A scalar load of some of them loads all."""
    delta = row.written_offset()
    with builder.goto_entry_block():
        flag = builder.alloca(I1)
    builder.store(I1(0), flag)
    aligned = builder.and_(address, I64(-DWORD & _ONES))
    is_tracked = builder.icmp_unsigned("!=", delta, I64(0))
    with builder.if_then(builder.and_(is_tracked, row.contains(aligned, I64(DWORD))), likely=False):
        marks = load(builder, builder.inttoptr(builder.add(aligned, delta), PTR), I32, 4)
        builder.store(builder.icmp_unsigned("==", marks, I32(0)), flag)
    return builder.load(flag, typ=I1)


def _build_scalar(function: ir.Function, size: int, is_tracked: bool) -> None:
    """`void reach(ptr context, i64 address, i64 instruction)` for `size` bytes."""
    context, address, instruction = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    row = BoundsRow(builder, context, instruction)
    amount = I64(size)
    if not is_tracked:
        good = builder.or_(row.contains(address, amount), row.is_listed(address, amount))
        _log_when(builder, context, builder.not_(good), Kind.OUT_OF_BOUNDS, instruction, address)
    canary = context_word(builder, context, log.CANARY)
    has_canary = builder.icmp_unsigned("!=", canary, I64(0))
    with builder.if_then(builder.and_(has_canary, is_known(builder, context, address, amount))):
        for start in range(0, max(size, 4), 4):
            at = builder.add(address, I64(start))
            condition, at = _is_fresh(builder, at, canary, row.granule, size)
            condition = builder.or_(condition, _is_unmarked(builder, row, at))
            _log_when(builder, context, condition, Kind.UNINITIALISED_GLOBAL, instruction, at)
    builder.ret_void()


def _log_when(
    builder: ir.IRBuilder, context: Any, condition: Any, kind: Kind, instruction: Any, address: Any
) -> None:
    with builder.if_then(condition, likely=False):
        site = builder.add(builder.mul(instruction, I64(KINDS)), I64(int(kind)))
        values = [context, site, I64(1), address, I64(0), I64(0)]
        builder.call(log_function(builder.module), values)


__all__ = ["BoundsRow", "ReachChecks", "is_in_bounds", "source_access", "within"]
