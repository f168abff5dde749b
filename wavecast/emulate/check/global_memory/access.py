"""An access of global memory in a shadow function: its range, its atomicity, its record.

Reads the table of ranges and what the wave has issued and done. Stores no records, emits no
findings and calls no clocks: `global_quick.py`, `global_races.py` and `global_releases.py` do.

Traits of an access: its atomicity (a digit); `clocks.ORDERS`; `v` where it counts as a store in its
stream; `r` releases; `w` observes; `z` updates nothing with a zero; `b` in programs with atomic
accesses; `n` where the program branches on what it returns; `clocks.ACROSS`.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

from wavecast.compile.source_accesses import SourceAccess
from wavecast.emulate.check import log
from wavecast.emulate.check.clocks import clocks
from wavecast.emulate.check.clocks.atomicity import Atomicity
from wavecast.emulate.check.clocks.records import (
    ASIDE,
    ATOMICITY,
    BYTES,
    DECIDES,
    INSTRUCTION,
    LOADER,
    NUMBER,
    RELEASES,
    STREAM,
    SYSTEM,
    TABLE_WORDS,
    VOLATILE,
    WAVE,
    WRITES,
)
from wavecast.emulate.check.counters import DONE, ISSUED, LOAD, STORE, STREAMS
from wavecast.emulate.check.pointers.reach import source_access
from wavecast.emulate.check.shadow import DECIDES_TRAIT, Watched, together
from wavecast.emulate.lower import state
from wavecast.emulate.lower.addresses import Resolved, range_of
from wavecast.emulate.values import I32, I64, PTR, element, load

SCALAR = "scalar"
"""Mode of scalar loads. Compilers widen them, so what else they read is not compared with anything
but records."""
COUNTED_AS_STORE, RELEASES_TRAIT, OBSERVES, ZERO = "v", "r", "w", "z"
SYSTEM_TRAIT, PARTS_TRAIT = "y", "m"


class GlobalAccess:
    """One access: who does it, and the arrays of records of its first lane's range."""

    def __init__(self, shadow: Watched, lanes: Resolved) -> None:
        self.watched, self.out, self.lanes = shadow, shadow.out, lanes
        out, builder = self.out, self.out.builder
        self.across = clocks.ACROSS in shadow.traits
        self.peers = _peers(shadow.traits)
        self.me = builder.add(shadow.workgroup, I64(1))
        if self.across:
            self.me = builder.add(self.me, shadow.word(log.FIRST_GROUP))
        self.wave = builder.add(shadow.wave, I64(1))
        self.shadows = shadow.word(log.SHADOWS, PTR)
        self.ranges = shadow.word(state.RANGES, PTR)
        self.start, self.stop = out.room(I64, I64(0)), out.room(I64, I64(0))
        self.arrays = [out.room(I64, I64(0)) for _ in range(ASIDE + 1)]
        self._settle()
        self._called = source_access(builder, out.context, shadow.instruction)
        self.atomicity = self._atomicity()
        volatile = builder.icmp_unsigned("==", self._called, I64(SourceAccess.VOLATILE))
        self.volatile = builder.zext(volatile, I64)

    def _settle(self) -> None:
        """Find the range of the first lane, in which the others are looked for first."""
        out, builder, lanes = self.out, self.out.builder, self.lanes
        with builder.if_then(builder.icmp_unsigned("!=", lanes.live, out.mask(0)), likely=True):
            lane = out.lowest(lanes.live)
            address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
            index = range_of(builder, out.context, address, I64(1))
            in_range = builder.icmp_signed(">=", index, I64(0))
            with builder.if_then(in_range, likely=True):
                for slot, pointer in (
                    (self.start, self.bound(index, 0)),
                    (self.stop, self.bound(index, 1)),
                    *((slot, self.array(index, n)) for n, slot in enumerate(self.arrays)),
                ):
                    builder.store(load(builder, pointer, I64, 8), slot)

    def has_no_records(self) -> Any:
        """Whether all lanes lie in one range without records (i1)."""
        out, builder, lanes = self.out, self.out.builder, self.lanes
        start, stop = out.get(self.start, I64), out.get(self.stop, I64)
        length = builder.sub(stop, start)
        size = I64(out.access.bytes)
        end = builder.add(builder.sub(lanes.highest, start), size)
        return self.watched.all_of(
            builder.icmp_unsigned("==", out.get(self.arrays[WRITES], I64), I64(0)),
            builder.icmp_unsigned("<", builder.sub(lanes.lowest, start), length),
            builder.icmp_unsigned("<=", lanes.lowest, lanes.highest),
            builder.icmp_unsigned("<=", end, length),
        )

    def bound(self, index: Any, which: int) -> Any:
        """The slot of the first (0) or end (1) address of a known range."""
        builder = self.out.builder
        twice = builder.shl(index, I64(1))
        return element(builder, self.ranges, builder.add(twice, I64(which)), I64)

    def array(self, index: Any, which: int) -> Any:
        """The slot with the pointer to an array of records of a known range."""
        builder = self.out.builder
        row = builder.mul(index, I64(TABLE_WORDS))
        return element(builder, self.shadows, builder.add(row, I64(which)), I64)

    def only_loads(self, lane: Any) -> Any:
        """Whether a lane's atomic operation adds zero, where that is neutral (i1)."""
        out, builder = self.out, self.out.builder
        words = [load(builder, out.slot(out.rows, n, lane), I32) for n in range(out.access.dwords)]
        return builder.icmp_unsigned("==", reduce(builder.or_, words), I32(0))

    def is_tracked(self) -> Any:
        """Whether releases of the first lane's range are kept (i1)."""
        releases = self.out.get(self.arrays[RELEASES], I64)
        return self.out.builder.icmp_unsigned("!=", releases, I64(0))

    def _atomicity(self) -> Any:
        """How atomic this access is, i64: a store that may be a release is known by its waits."""
        shadow, builder = self.watched, self.out.builder
        atomicity: Any = I64(int(shadow.traits[0]))
        if not shadow.plain_store or shadow.traits[0] != str(int(Atomicity.UNMARKED)):
            return atomicity
        if RELEASES_TRAIT not in shadow.traits:
            return self._as_called(atomicity)
        words = shadow.word(log.PROGRESS, PTR)
        total = I64(0)
        for stream in (LOAD, STORE):
            at = builder.add(builder.mul(shadow.wave, I64(STREAMS)), I64(stream))
            issued, completions = (
                load(builder, element(builder, words, builder.add(at, I64(first)), I64), I64, 8)
                for first in (ISSUED, DONE)
            )
            total = builder.add(total, builder.sub(issued, completions))
        waited = builder.icmp_unsigned("==", total, I64(1))  # this store itself
        release = builder.and_(waited, self.is_tracked())
        return self._as_called(builder.select(release, I64(Atomicity.RELEASING), atomicity))

    def _as_called(self, unmarked: Any) -> Any:
        """The atomicity of a store whose modifiers do not tell it, where the source does."""
        builder = self.out.builder
        for access, atomicity in (
            (SourceAccess.ATOMIC, Atomicity.STORED),
            (SourceAccess.PLAIN, Atomicity.PLAIN),
        ):
            is_called = builder.icmp_unsigned("==", self._called, I64(access))
            unmarked = builder.select(is_called, I64(atomicity), unmarked)
        return unmarked

    def who(self, bytes_: Any, atomicity: Any = None) -> Any:
        """The first word of a record of this access, of another `atomicity` than its own."""
        builder, shadow = self.out.builder, self.watched
        stream = STORE if COUNTED_AS_STORE in shadow.traits else LOAD
        return together(
            builder, self.me, WAVE.at(builder, self.wave), BYTES.at(builder, bytes_),
            ATOMICITY.at(builder, self.atomicity if atomicity is None else atomicity),
            I64(stream << STREAM.first | int(DECIDES_TRAIT in shadow.traits) << DECIDES.first),
            I64(int(SYSTEM_TRAIT in shadow.traits) << SYSTEM.first),
            VOLATILE.at(builder, self.volatile), INSTRUCTION.at(builder, shadow.instruction),
        )  # fmt: skip

    def numbers(self, loader: Any) -> Any:
        """The second word of a record of this access."""
        builder = self.out.builder
        number = NUMBER.at(builder, self.watched.memory_number)
        number = builder.or_(number, LOADER.at(builder, loader))
        return builder.or_(number, self.watched.word(log.LAUNCH_BITS)) if self.across else number


def _peers(traits: str) -> int:
    """The number of other GPUs."""
    match = re.search(rf"{clocks.ACROSS}(\d+)", traits)
    return int(match[1]) if match else 0


__all__ = [
    "COUNTED_AS_STORE",
    "OBSERVES",
    "PARTS_TRAIT",
    "RELEASES_TRAIT",
    "SCALAR",
    "SYSTEM_TRAIT",
    "ZERO",
    "GlobalAccess",
]
