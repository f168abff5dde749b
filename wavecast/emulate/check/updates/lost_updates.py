"""Updates that get lost: lanes of one wave load an element, change the value, and store it back.

Loads that feed a store (`updates.py`) keep the addresses of their lanes. A store of one value by
two lanes to one address is a lost update where both have loaded it from there; where values are
exchanged on the way, if two lanes of the workgroup have. Lanes that store different values are for
`lane-race`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.counters import WAVES
from wavecast.emulate.check.shadow import Findings, Watched, unlike
from wavecast.emulate.check.updates.read_modify_write import updates
from wavecast.emulate.lower import runtime, state
from wavecast.emulate.lower.access import MemoryAccess, Outlined
from wavecast.emulate.lower.addresses import resolve
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.sites import call_observing
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I1, I64, PTR, context_word, element, load
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import Program

if TYPE_CHECKING:
    from wavecast.emulate.lower.access import AccessTarget

_LANES = 64
_SLOTS = 64
"""Loads whose addresses a wave keeps; more share them, and the last one counts."""
_SLOT_WORDS = 2 + _LANES
"""64-bit words of a slot: bytes per lane, the instruction, and the address of each lane."""
UPDATE_WORDS = WAVES * _SLOTS * _SLOT_WORDS
"""Words of the waves of a workgroup."""
_STORES = frozenset({"store"})
MOVED = "m"
"""Trait of stores of values that lanes may have exchanged."""


class LostUpdates(Observer):
    """Emits the calls ahead of stores that update, and of the loads that feed them."""

    def __init__(self, program: Program) -> None:
        self.updates = updates(program)
        loads = sorted({load for update in self.updates.values() for load in update.loads})
        # instructions that have two addresses count twice
        self.slots = {load: 2 * number % _SLOTS for number, load in enumerate(loads)}
        self._second: set[int] = set()

    def access(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
        rows: Any,
    ) -> None:
        if target.mode == "private":
            return
        index = instruction.index
        if index in self.slots:
            call = MemoryAccess("updated", target.mode, access.lanes, access.bytes, "load.")
            self._call(emitter, call, target, rows, index, self._slot(index))
        if index in self.updates and access.action in _STORES:
            kind = "storeh" if "h" in access.detail else "store"
            update = self.updates[index]
            detail = f"{kind}.{MOVED if update.moved else ''}"
            call = MemoryAccess("updated", target.mode, access.lanes, access.bytes, detail)
            slots = {self.slots[load] for load in update.loads}
            mask = sum(3 << slot for slot in slots)
            self._call(emitter, call, target, rows, index, mask)

    def scalar_access(
        self, emitter: WaveEmitter, instruction: Instruction, address: Any, size: int
    ) -> None:
        if instruction.index not in self.slots:
            return
        builder, lanes = emitter.builder, emitter.layout.lanes
        name = f"check.updated.scalar.{lanes}"
        kind = ir.FunctionType(ir.VoidType(), [PTR] + [I64] * 4)
        function = runtime.outline(emitter.module, name, kind, partial(_scalar, name, kind, lanes))
        slot = self.slots[instruction.index]
        numbers = [I64(slot), I64(instruction.index), I64(size)]
        builder.call(function, [emitter.context, address, *numbers])

    def _slot(self, index: int) -> int:
        """The slot of a load; those that have two addresses alternate."""
        self._second ^= {index}
        return self.slots[index] + int(index not in self._second)

    def _call(
        self,
        emitter: WaveEmitter,
        access: MemoryAccess,
        target: AccessTarget,
        rows: Any,
        index: int,
        slots: int,
    ) -> None:
        build = _keep if access.detail == "load." else _compare
        name = f"check.{access.name}"
        call_observing(emitter, name, access, build, target, rows, (index, slots))


def _slot(builder: ir.IRBuilder, context: Any, slot: Any, wave: Any = None) -> Any:
    """A slot of a wave, that at hand unless given."""
    words = context_word(builder, context, log.UPDATES, PTR)
    wave = context_word(builder, context, state.WAVE) if wave is None else wave
    number = builder.add(builder.mul(wave, I64(_SLOTS)), slot)
    return element(builder, words, builder.mul(number, I64(_SLOT_WORDS)), I64)


def _scalar(name: str, kind: ir.FunctionType, lanes: int, module: ir.Module) -> None:
    """`void keep(ptr context, i64 address, i64 slot, i64 instruction, i64 bytes)`: every lane has
    loaded from one address."""
    function = ir.Function(module, kind, runtime.OUTLINED + name)
    context, address, slot, instruction, size = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    words = _slot(builder, context, slot)
    for word, value in enumerate([size, instruction] + [address] * lanes):
        builder.store(value, element(builder, words, word, I64), align=8)
    builder.ret_void()


def _keep(out: Outlined) -> None:
    """Keep the addresses of a load's lanes."""
    builder = out.builder
    accessed = resolve(out)
    words = _slot(builder, out.context, builder.ptrtoint(out.result, I64))
    builder.store(I64(out.access.bytes), words, align=8)
    instruction = builder.ptrtoint(out.other, I64)
    builder.store(instruction, element(builder, words, 1, I64), align=8)
    with out.each_lane(accessed.live) as lane:
        address = load(builder, element(builder, accessed.addresses, lane, I64), I64, 8)
        at = builder.add(lane, I64(2))
        builder.store(address, element(builder, words, at, I64), align=8)
    builder.ret(ir.Constant(out.function.function_type.return_type, 0))


def _compare(out: Outlined) -> None:
    """Report a store of one value by two lanes that have loaded from where they store."""
    builder, shadow = out.builder, Watched(out)
    accessed = resolve(out)
    lost = Findings(out, Kind.LOST_UPDATE)
    shared = builder.not_(_ascending(out, accessed))
    with builder.if_then(shared, likely=False), out.each_lane(accessed.live) as lane:
        address = load(builder, element(builder, accessed.addresses, lane, I64), I64, 8)
        changes = _changes(out, shadow, lane, address)
        number = lane if out.lanes == 64 else builder.trunc(lane, out.mask)
        lower = builder.sub(builder.shl(out.mask(1), number), out.mask(1))
        with out.each_lane(builder.and_(accessed.live, lower)) as other:
            theirs = load(builder, element(builder, accessed.addresses, other, I64), I64, 8)
            same = builder.icmp_unsigned("==", theirs, address)
            with builder.if_then(builder.and_(same, changes), likely=False):
                alike: Any = I1(1)
                for index in range(out.access.dwords):
                    values = shadow.stored_dword(lane, index), shadow.stored_dword(other, index)
                    alike = builder.and_(alike, builder.not_(unlike(builder, *values)))
                if MOVED in shadow.traits:
                    source = _loaded_by_two(out, address)
                else:
                    source = _feeding_load(out, (lane, other), address)
                where = address
                if out.access.mode == "local":
                    where = builder.sub(address, shadow.word(state.LDS_BASE))
                some = builder.icmp_unsigned("!=", source, I64(0))
                lost.when(builder.and_(alike, some), lane, where, source, other)
    lost.log(builder.ptrtoint(out.other, I64))
    builder.ret(ir.Constant(out.function.function_type.return_type, 0))


def _changes(out: Outlined, shadow: Watched, lane: Any, address: Any) -> Any:
    """Whether what a lane stores is another value than memory has (i1)."""
    builder = out.builder
    total: Any = I1(0)
    for index in range(out.access.dwords):
        pointer = builder.inttoptr(builder.add(address, I64(4 * index)), PTR)
        total = builder.or_(total, shadow.changes(lane, index, pointer))
    return total


def _ascending(out: Outlined, accessed: Any) -> Any:
    """Whether each lane's address lies beyond that of the lane before, so that no two are equal
    (i1)."""
    builder = out.builder
    good, last = out.room(I1, I1(1)), out.room(I64, I64(0))
    with out.each_lane(accessed.live) as lane:
        address = load(builder, element(builder, accessed.addresses, lane, I64), I64, 8)
        beyond = builder.icmp_unsigned(">", address, out.get(last, I64))
        builder.store(builder.and_(out.get(good, I1), beyond), good)
        builder.store(address, last)
    return out.get(good, I1)


def _feeding_load(out: Outlined, lanes: tuple[Any, Any], address: Any) -> Any:
    """The instruction + 1 of a load that feeds this store, by which both lanes have loaded from an
    address; 0 for none (i64)."""
    builder = out.builder
    with builder.goto_entry_block():
        source = builder.alloca(I64)
    builder.store(I64(0), source)
    slots = builder.ptrtoint(out.result, I64)
    with out.counted_loop(_SLOTS) as slot:
        in_use = builder.trunc(builder.lshr(slots, slot), I1)
        with builder.if_then(in_use):
            words = _slot(builder, out.context, slot)
            size = load(builder, words, I64, 8)
            both: Any = I1(1)
            for lane in lanes:
                at = element(builder, words, builder.add(lane, I64(2)), I64)
                inset = builder.sub(address, load(builder, at, I64, 8))
                both = builder.and_(both, builder.icmp_unsigned("<", inset, size))
            with builder.if_then(both):
                index = load(builder, element(builder, words, 1, I64), I64, 8)
                builder.store(builder.add(index, I64(1)), source)
    return out.get(source, I64)


def _loaded_by_two(out: Outlined, address: Any) -> Any:
    """The same, where two lanes of any waves have."""
    builder = out.builder
    with builder.goto_entry_block():
        source, lanes = builder.alloca(I64), builder.alloca(I64)
    builder.store(I64(0), source)
    builder.store(I64(0), lanes)
    slots = builder.ptrtoint(out.result, I64)
    with out.counted_loop(WAVES * _SLOTS) as number:
        wave, slot = builder.lshr(number, I64(6)), builder.and_(number, I64(_SLOTS - 1))
        words = _slot(builder, out.context, slot, wave)
        in_use = builder.trunc(builder.lshr(slots, slot), I1)
        size = load(builder, words, I64, 8)
        with (
            builder.if_then(builder.and_(in_use, builder.icmp_unsigned("!=", size, I64(0)))),
            out.counted_loop(out.lanes) as lane,
        ):
            at = element(builder, words, builder.add(lane, I64(2)), I64)
            inset = builder.sub(address, load(builder, at, I64, 8))
            with builder.if_then(builder.icmp_unsigned("<", inset, size)):
                before = out.get(lanes, I64)
                builder.store(builder.add(before, I64(1)), lanes)
                with builder.if_then(builder.icmp_unsigned("!=", before, I64(0))):
                    index = load(builder, element(builder, words, 1, I64), I64, 8)
                    builder.store(builder.add(index, I64(1)), source)
    return out.get(source, I64)


assert _SLOTS == 1 << 6

__all__ = ["UPDATE_WORDS", "LostUpdates"]
