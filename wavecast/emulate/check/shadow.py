"""What the outlined functions of check mode share: fields of records, and findings by lanes.

They have the signature of outlined accesses (`lower/access.py`). `other` is the instruction's index
and, above 16 bits, its site: 1 + the first instruction of the same source location, as compilers
copy code. `result` is the numbers of the access in its streams (`counters.py`, `packed`). Both are
pointers. The detail of an access is its kind, a dot, and traits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from wavecast.emulate.check.counters import NUMBER_BITS, STREAM_BITS
from wavecast.emulate.check.log import KINDS, log_function
from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import Resolved
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I1, I32, I64, context_word, element, load

COMPARES = "c"
"""Trait of accesses of LDS in programs that compare and swap there."""
WITH_ATOMICS, DECIDES_TRAIT = "b", "n"
DWORD_BYTES = 4
"""Traits of accesses in programs with atomics, and of those that a jump depends on."""
COPIES, DEFERS = "g", "u"
"""Traits of accesses of LDS that are half of a copy between it and global memory, and of those in
programs where loads of what nothing has written are judged later (`lds/unwritten.py`)."""
_NUMBERS = (1 << NUMBER_BITS) - 1
_INSTRUCTIONS = (1 << 16) - 1
_ROUNDING = 1 << 12
"""Units in the last place."""
READ_AFTER_WRITE, WRITE_AFTER_WRITE, WRITE_AFTER_READ = range(3)
"""Order of a race's two sides: the low byte of a record's detail. The other side's wave + 1 or
workgroup + 1 (0: several) is above it."""


def pack_numbers(builder: ir.IRBuilder, stream: int, number: Any, memory_number: Any) -> Any:
    """The numbers of an access: of `stream`, in LDS, and in global memory (i64)."""
    number = builder.shl(builder.and_(number, I64(_NUMBERS)), I64(STREAM_BITS))
    high = builder.shl(memory_number, I64(STREAM_BITS + NUMBER_BITS))
    return builder.or_(builder.or_(number, I64(stream)), high)


@dataclass(frozen=True, slots=True)
class ShadowField:
    """Bits of a 64-bit record."""

    first: int
    bits: int

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1

    def of(self, builder: ir.IRBuilder, record: Any) -> Any:
        """The field of a record, i64."""
        bits = builder.lshr(record, I64(self.first)) if self.first else record
        return bits if self.first + self.bits == 64 else builder.and_(bits, I64(self.mask))

    def at(self, builder: ir.IRBuilder, value: Any) -> Any:
        """A value modulo the field's size, at its position."""
        field = builder.and_(value, I64(self.mask))
        return builder.shl(field, I64(self.first)) if self.first else field


def together(builder: ir.IRBuilder, *parts: Any) -> Any:
    """Fields at their positions as one record."""
    total = parts[0]
    for part in parts[1:]:
        total = builder.or_(total, part)
    return total


def internal_function(
    module: ir.Module, name: str, kind: ir.FunctionType
) -> tuple[ir.Function, bool]:
    """A function of this module, and whether it has no body yet."""
    declaration = module.globals.get(name)
    if declaration is not None:
        return declaration, False
    function = ir.Function(module, kind, name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function, True


class Findings:
    """Lanes with a finding of one kind, logged at once after the loop over lanes."""

    def __init__(self, out: Outlined, kind: Kind) -> None:
        self.out, self.kind = out, kind
        self.lanes = out.room(I64, I64(0))
        self.address = out.room(I64, I64(0))
        self.partner = out.room(I64, I64(0))
        self.detail = out.room(I64, I64(0))

    def when(
        self, condition: Any, lane: Any, address: Any, other: Any = None, detail: Any = None
    ) -> None:
        """Note a lane where `condition` holds; the first one's address and partner are kept."""
        builder = self.out.builder
        with builder.if_then(condition, likely=False):
            before = self.out.get(self.lanes, I64)
            bit = builder.shl(I64(1), lane)
            builder.store(builder.or_(before, bit), self.lanes)
            with builder.if_then(builder.icmp_unsigned("==", before, I64(0))):
                builder.store(address, self.address)
                builder.store(I64(0) if other is None else other, self.partner)
                builder.store(I64(0) if detail is None else detail, self.detail)

    def log(self, instruction: Any) -> None:
        """Write to the log if there is anything; `instruction` is an index (i64)."""
        builder = self.out.builder
        lanes = self.out.get(self.lanes, I64)
        with builder.if_then(builder.icmp_unsigned("!=", lanes, I64(0)), likely=False):
            scaled = builder.mul(instruction, I64(KINDS))
            site = builder.add(scaled, I64(int(self.kind)))
            values = [self.out.get(slot, I64) for slot in (self.address, self.partner, self.detail)]
            builder.call(log_function(self.out.module), [self.out.context, site, lanes, *values])


class Watched:
    """A shadow function being built: the access, and who does it."""

    def __init__(self, out: Outlined) -> None:
        self.out = out
        builder = out.builder
        self.instruction = builder.and_(builder.ptrtoint(out.other, I64), I64(_INSTRUCTIONS))
        self.site = builder.lshr(builder.ptrtoint(out.other, I64), I64(16))
        numbers = builder.ptrtoint(out.result, I64)
        self.stream = builder.and_(numbers, I64((1 << STREAM_BITS) - 1))
        self.number = builder.and_(builder.lshr(numbers, I64(STREAM_BITS)), I64(_NUMBERS))
        self.memory_number = builder.lshr(numbers, I64(STREAM_BITS + NUMBER_BITS))
        self.wave, self.phase = self.word(state.WAVE), self.word(state.PHASE)
        self.workgroup = self.word(state.WORKGROUP)
        self.lane_bytes = out.access.bytes
        self.kind, _, self.traits = out.access.detail.partition(".")
        self.loads = self.kind in ("load", "tolds")
        self.atomic = self.kind == "atomic"
        self.compares = COMPARES in self.traits
        """Whether this may be part of a loop around compare-and-swap, which starts with a plain
        load: such loads and atomics do not conflict."""
        self.plain_store = self.kind in ("store", "storeh")
        self.stores = self.plain_store or self.atomic

    def word(self, index: int, kind: Any = I64) -> Any:
        builder = self.out.builder
        return context_word(builder, self.out.context, index, kind)

    def bytes_of(self, address: Any) -> Any:
        """The bytes of its dword an access touches, four bits (i64)."""
        if self.lane_bytes >= 4:
            return I64(0xF)
        builder = self.out.builder
        inset = builder.and_(address, I64(3))
        return builder.and_(builder.shl(I64((1 << self.lane_bytes) - 1), inset), I64(0xF))

    def bytes_from(self, address: Any) -> Any:
        """The bytes an access touches, one bit each, from the first of the dword that it begins in
        (i64): it need not be aligned."""
        builder = self.out.builder
        inset = builder.and_(address, I64(3))
        return builder.shl(I64((1 << self.lane_bytes) - 1), inset)

    def changes(self, lane: Any, index: int, pointer: Any) -> Any:
        """Whether dword `index` of a store changes what lies at `pointer` (i1). Two waves that
        store the same value do not race: compilers let replicas of a value be stored twice."""
        builder = self.out.builder
        if not self.plain_store:
            return I1(1)
        value = self.stored_dword(lane, index)
        return builder.icmp_unsigned("!=", load(builder, pointer, value.type, 1), value)

    def stored_dword(self, lane: Any, index: int) -> Any:
        """Dword `index` of what a lane stores: 8, 16 or 32 bits."""
        out, builder = self.out, self.out.builder
        value = load(builder, out.slot(out.rows, index, lane), I32)
        if self.kind == "storeh":
            value = builder.lshr(value, I32(16))
        width = 8 * min(self.lane_bytes, 4)
        return value if width == 32 else builder.trunc(value, ir.IntType(width))

    def all_of(self, *conditions: Any) -> Any:
        total: Any = I1(1)
        for condition in conditions:
            total = self.out.builder.and_(total, condition)
        return total


def hidden_bytes(builder: ir.IRBuilder, last: Any, field: ShadowField, bytes_: Any) -> Any:
    """Those of some bytes of a dword that its last store has not stored (i64), by its record, which
    has its bytes in a `field`; none without a record."""
    others = builder.and_(bytes_, builder.not_(field.of(builder, last)))
    return builder.select(builder.icmp_unsigned("!=", last, I64(0)), others, I64(0))


def unlike(builder: ir.IRBuilder, first: Any, other: Any) -> Any:
    """Whether two values are different (i1): not those that differ as normal floats of 32 bits by
    rounding alone. Compilers store a sum from every lane that has it, and lanes add in different
    orders."""
    differ = builder.icmp_unsigned("!=", first, other)
    if first.type.width != 32:
        return differ
    near = builder.icmp_unsigned(
        "<=", builder.add(builder.sub(first, other), I32(_ROUNDING)), I32(2 * _ROUNDING)
    )
    exponents = [builder.and_(value, I32(0x7F800000)) for value in (first, other)]
    normal = [builder.icmp_unsigned("!=", exponent, I32(0)) for exponent in exponents]
    rounding = builder.and_(near, builder.and_(normal[0], normal[1]))
    return builder.and_(differ, builder.not_(rounding))


def lane_conflict(
    shadow: Watched, lanes: Resolved, again: Any, lane: Any, index: int, address: Any
) -> tuple[Any, Any]:
    """Whether (i1), where `again`, an earlier lane of this store has another value for the same
    address, and which lane (i64). `index` is the dword of the access at `address`."""
    out, builder = shadow.out, shadow.out.builder
    with builder.goto_entry_block():
        differs, partner = builder.alloca(I1), builder.alloca(I64)
    builder.store(I1(0), differs)
    builder.store(I64(0), partner)
    with builder.if_then(again, likely=False):
        number = lane if out.lanes == 64 else builder.trunc(lane, out.mask)
        lower = builder.sub(builder.shl(out.mask(1), number), out.mask(1))
        value = shadow.stored_dword(lane, index)
        first = builder.sub(address, I64(4 * index))
        with out.each_lane(builder.and_(lanes.live, lower)) as other:
            theirs = load(builder, element(builder, lanes.addresses, other, I64), I64, 8)
            differ = unlike(builder, shadow.stored_dword(other, index), value)
            same = builder.icmp_unsigned("==", theirs, first)
            with builder.if_then(builder.and_(same, differ), likely=False):
                builder.store(I1(1), differs)
                builder.store(other, partner)
    return out.get(differs, I1), out.get(partner, I64)


__all__ = [
    "COMPARES",
    "DECIDES_TRAIT",
    "DWORD_BYTES",
    "READ_AFTER_WRITE",
    "WITH_ATOMICS",
    "WRITE_AFTER_READ",
    "WRITE_AFTER_WRITE",
    "Findings",
    "ShadowField",
    "Watched",
    "hidden_bytes",
    "internal_function",
    "lane_conflict",
    "pack_numbers",
    "together",
    "unlike",
]
