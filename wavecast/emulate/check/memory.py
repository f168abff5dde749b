"""Accesses of memory observed: a call of a shadow function ahead of each, and barriers compared."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.clocks import clocks
from wavecast.emulate.check.clocks.atomicity import Atomicity, ProgramAtomicity
from wavecast.emulate.check.counters import (
    ASYNC,
    DS,
    LOAD,
    STORE,
    TENSOR,
    WAVES,
    Counters,
    issues,
)
from wavecast.emulate.check.global_memory import access as global_access
from wavecast.emulate.check.global_memory import releases
from wavecast.emulate.check.global_memory import shadow as shadow_global
from wavecast.emulate.check.global_memory.order import EVENT
from wavecast.emulate.check.lds import aside, order, records, tags
from wavecast.emulate.check.lds import shadow as shadow_lds
from wavecast.emulate.check.lds.unwritten import masks_copies
from wavecast.emulate.check.named_barriers import NAMED, has_named_barriers
from wavecast.emulate.check.shadow import (
    COMPARES,
    COPIES,
    DECIDES_TRAIT,
    DEFERS,
    DWORD_BYTES,
    WITH_ATOMICS,
    pack_numbers,
)
from wavecast.emulate.lower import named_barriers, runtime, state
from wavecast.emulate.lower.access import AccessTarget, MemoryAccess
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.sites import call_observing
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I1, I32, I64, PTR, context_word, element, load
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind, OpcodeFlag, Role, Space
from wavecast.isa.program import Program
from wavecast.isa.scopes import Scope, is_system, scope_of
from wavecast.isa.waits import arrives, awaits, is_named, is_of_cluster

_MOVES = {"load", "store", "tolds"}
_COPIES = {MemoryKind.LOAD_TO_LDS, MemoryKind.STORE_FROM_LDS}
_ZERO_IS_NEUTRAL = {"add", "sub", "or", "xor"}
"""Atomic operations that only load where their operand is 0."""


_POLLED_ANEW = releases.POLLED_ANEW, releases.polled_anew


def _comparing(program: Program) -> bool:
    """Whether a program compares and swaps in LDS."""
    return any(
        instruction.memory is not None
        and instruction.memory.space is Space.LDS
        and instruction.opcode.memory_form.operation == "cmpswap"
        for instruction in program.instructions
    )


def _counts(program: Program) -> bool:
    """Whether a program has atomic operations in LDS."""
    return any(
        instruction.memory is not None
        and instruction.memory.space in (Space.LDS, Space.FLAT)
        and instruction.memory.kind is MemoryKind.ATOMIC
        for instruction in program.instructions
    )


def partial_stores(program: Program) -> Iterator[int]:
    """The stores of global memory that store parts of dwords, by index."""
    for instruction in program.instructions:
        memory = instruction.memory
        if memory is None or memory.kind is not MemoryKind.STORE or memory.space is Space.LDS:
            continue
        if memory.bytes // instruction.opcode.memory_form.offsets % 4:
            yield instruction.index


def _fills(program: Program) -> bool:
    """Whether a program loads from memory to LDS."""
    return any(
        instruction.memory is not None and instruction.memory.kind is MemoryKind.LOAD_TO_LDS
        for instruction in program.instructions
    )


def _copies(instruction: Instruction) -> bool:
    """Whether an access of LDS is half of a copy between global memory and LDS."""
    return instruction.memory is not None and instruction.memory.kind in _COPIES


def _sites(program: Program) -> list[int]:
    """For every instruction the first one of its role and source location: compilers copy code,
    and copies of a barrier are the same barrier."""
    first: dict[object, int] = {}
    return [
        instruction.index
        if instruction.location is None
        else first.setdefault((instruction.opcode.role, instruction.location), instruction.index)
        for instruction in program.instructions
    ]


def _call(
    emitter: WaveEmitter,
    access: MemoryAccess,
    target: AccessTarget,
    rows: Any,
    numbers: tuple[Any, Any],
    mask: Any = None,
) -> None:
    """Call the shadow function of an access."""
    build = shadow_lds.build if access.mode == "local" else shadow_global.build
    name = f"check.{access.mode}.{access.lanes}.{access.bytes}.{access.detail}"
    call_observing(emitter, name, access, build, target, rows, numbers, mask)


class MemoryChecks(Observer):
    """Races and reads of what was never written, in LDS and in global memory."""

    def __init__(self, counters: Counters, atomicity: ProgramAtomicity, peers: int = 0) -> None:
        """`peers` is the number of other GPUs whose launches run at once."""
        self.counters, self.found = counters, atomicity
        self.across = f"{clocks.ACROSS}{peers}" if peers else ""

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
        builder = emitter.builder
        kind = access.action if access.action in _MOVES else "atomic"
        if kind == "store" and "h" in access.detail:
            kind = "storeh"
        detail = f"{kind}.{self._traits(instruction, target.mode, access.action)}"
        shadow = MemoryAccess("shadow", target.mode, access.lanes, access.bytes, detail)
        streams = issues(instruction, emitter.input.program.target)

        # where waves poll for a barrier in LDS, that tells of copies and not their counter
        told = self.found.polls and target.mode == "local" and _copies(instruction)

        def number(stream: int) -> Any:
            counted = stream in streams and not told
            return self.counters.last_issued(emitter, stream) if counted else I64(0)

        near = next((s for s in (ASYNC, TENSOR) if s in streams), DS)
        near = near if target.mode in ("local", "flat") else LOAD
        numbers = pack_numbers(
            builder, near, number(near), number(STORE if STORE in streams else LOAD)
        )
        _call(emitter, shadow, target, rows, (self._index_and_site(instruction), numbers))

    def _index_and_site(self, instruction: Instruction) -> int:
        """Index and site of an instruction (`shadow.py`)."""
        return instruction.index | 1 + self._sites[instruction.index] << 16

    def scalar_access(
        self, emitter: WaveEmitter, instruction: Instruction, address: Any, size: int
    ) -> None:
        """A load of scalar memory, as lanes of one dword each."""
        memory = instruction.memory
        if memory is None or memory.kind is not MemoryKind.LOAD:
            return
        builder, lanes = emitter.builder, emitter.layout.lanes
        atomicity = self.found.atomicity[instruction.index]
        traits = str(int(atomicity))
        traits += clocks.ORDERS if self.found.ordered else ""
        if self.across and self._reaches_all_gpus(instruction, atomicity):
            traits += global_access.SYSTEM_TRAIT
        traits += self._with_records_aside() + self.across + (NAMED if self._named else "")
        access = MemoryAccess("shadow", global_access.SCALAR, lanes, min(size, 4), f"load.{traits}")
        # it has no number in a stream of vector memory: that of the last vector load does
        issued = self.counters.last_issued(emitter, LOAD)
        number = builder.select(builder.icmp_unsigned("==", issued, I64(0)), I64(1), issued)
        nothing = builder.inttoptr(I64(0), PTR)
        active = ir.IntType(lanes)((1 << max(1, size // 4)) - 1)
        numbers = self._index_and_site(instruction), pack_numbers(builder, LOAD, I64(0), number)
        target = AccessTarget(global_access.SCALAR, nothing, base=address)
        _call(emitter, access, target, nothing, numbers, active)

    def _traits(self, instruction: Instruction, mode: str, action: str) -> str:
        """What the shadow function depends on besides the access (`global_access.py`)."""
        lds = NAMED if self._named else ""
        if mode in ("local", "flat"):
            lds += COMPARES if self._compares else ""
            lds += order.FILLED if self._filled else ""
            lds += WITH_ATOMICS if self._counts else ""
            lds += self._deciding(instruction)
        if action == "tolds" and self._tagged:
            lds += order.FILLED + tags.TAGGED
        if mode == "local":
            lds += COPIES if _copies(instruction) else ""
            lds += DEFERS if self._defers else ""
            polls = order.POLLS if instruction.index in self.found.polls else ""
            if polls and self.counters.waits:
                polls += order.WAITS
            tagged = tags.TAGGED if self._tagged else ""
            return lds + polls + (order.POLLED if self.found.polls else "") + tagged
        atomicity = self.found.atomicity[instruction.index]
        traits = str(int(atomicity))
        if STORE in issues(instruction, self.counters.target):
            traits += global_access.COUNTED_AS_STORE
        if action in _ZERO_IS_NEUTRAL and atomicity is Atomicity.UPDATE:
            traits += global_access.ZERO
        if self.found.ordered:
            traits += clocks.ORDERS
            loads = instruction.memory is not None and instruction.memory.kind is MemoryKind.LOAD
            if atomicity >= Atomicity.AGENT and not loads:
                traits += global_access.RELEASES_TRAIT
            if instruction.index in self.found.observing:
                traits += global_access.OBSERVES
        traits += self._with_records_aside() + self._deciding(instruction)
        if self._reaches_all_gpus(instruction, atomicity):
            traits += global_access.SYSTEM_TRAIT
        return traits + self.across + lds

    def _reaches_all_gpus(self, instruction: Instruction, atomicity: Atomicity) -> bool:
        """Whether an access is of system scope. A plain load that counts as atomic, because a
        compare-and-swap compares with it, needs no scope."""
        target, decoded = self.counters.target, instruction.decoded
        compared = atomicity is Atomicity.AGENT and scope_of(decoded, target) < Scope.AGENT
        return compared or is_system(decoded, target)

    def _deciding(self, instruction: Instruction) -> str:
        return DECIDES_TRAIT if instruction.index in self.found.deciding else ""

    def _with_records_aside(self) -> str:
        """The traits of accesses of memory that this or another launch may access atomically, and
        that it may store parts of dwords of."""
        atomics = WITH_ATOMICS if self.found.atomic or self.across else ""
        return atomics + (global_access.PARTS_TRAIT if self._parted or self.across else "")

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """Cache control that acquires or releases at agent scope; a signal to the cluster, or at a
        named barrier."""
        flags = instruction.opcode.flags
        if arrives(instruction.opcode) and self._tells_clocks(instruction):
            self._tell(emitter, instruction, clocks.ARRIVE)
        if not self.found.ordered or not flags & {OpcodeFlag.INVALIDATES, OpcodeFlag.WRITES_BACK}:
            return
        if scope_of(instruction.decoded, self.counters.target) < Scope.AGENT:
            return
        if OpcodeFlag.WRITES_BACK in flags:
            self._tell(emitter, instruction, clocks.WRITE_BACK)
        if OpcodeFlag.INVALIDATES in flags:
            builder = emitter.builder
            words = context_word(builder, emitter.context, log.CLOCKS, PTR)
            unseen = self._observes_unacquired(emitter, instruction, words)
            with builder.if_then(builder.or_(unseen, self._polled_anew(emitter, words))):
                self._tell(emitter, instruction, clocks.ACQUIRE)

    def after(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """The barrier of the cluster, or a named one, has been passed."""
        if awaits(instruction.opcode) and self._tells_clocks(instruction):
            self._tell(emitter, instruction, clocks.PASS)

    def _tells_clocks(self, instruction: Instruction) -> bool:
        """Whether a barrier passes on what its waves know of other workgroups."""
        return is_of_cluster(instruction) or (self.found.ordered and is_named(instruction))

    def _observes_unacquired(
        self, emitter: WaveEmitter, instruction: Instruction, words: Any
    ) -> Any:
        """Whether any wave has observed what it has not acquired, at the scope of the instruction
        (i1)."""
        builder = emitter.builder
        at = clocks.UNACQUIRED + is_system(instruction.decoded, self.counters.target)
        waves = load(builder, element(builder, words, at, I64), I64, 8)
        return builder.icmp_unsigned("!=", waves, I64(0))

    def _polled_anew(self, emitter: WaveEmitter, words: Any) -> Any:
        """Whether dwords that waves of the workgroup poll have new releases (i1)."""
        function = runtime.outline(emitter.module, "check.polled_anew", *_POLLED_ANEW)
        result = emitter.builder.call(function, [words, self.counters.wave])
        return emitter.builder.icmp_unsigned("!=", result, I64(0))

    def _tell(self, emitter: WaveEmitter, instruction: Instruction, event: int) -> None:
        builder = emitter.builder
        slot = element(builder, emitter.context, log.ORDER_EVENT, I64)
        function = load(builder, slot, ir.PointerType(EVENT), 8)
        nothing = builder.inttoptr(I64(0), PTR)
        what, number = I64(instruction.index << 8 | event), I64(0)
        if is_named(instruction):
            barrier = self._named_barrier(emitter, instruction)
            number = builder.add(builder.zext(barrier, I64), I64(1))
        builder.call(function, [emitter.context, what, nothing, I64(0), number])

    def _named_barrier(self, emitter: WaveEmitter, instruction: Instruction) -> Any:
        """The index of the barrier that is signalled, or that this wave has joined (i32)."""
        if arrives(instruction.opcode):
            number = named_barriers.number_of(emitter, instruction)
        else:
            number = load(
                emitter.builder, element(emitter.builder, emitter.state, state.JOINED, I32), I32
            )
        return named_barriers.index_of(emitter, number)

    def leave(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        if instruction.opcode.role is Role.BARRIER and not is_named(instruction):
            self._whole(emitter, instruction)
            self._same(emitter, instruction)

    def _whole(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """A barrier with lanes masked off that the wave started with."""
        builder = emitter.builder
        first = self._initial_exec(emitter)
        missing: Any = builder.and_(first, builder.not_(emitter.exec_mask()))
        some = builder.icmp_unsigned("!=", missing, missing.type(0))
        with builder.if_then(some, likely=False):
            log.emit(emitter, Kind.PARTIAL_BARRIER, instruction.index, lanes=missing)

    def enter(self, emitter: WaveEmitter) -> None:
        self._named = has_named_barriers(emitter.input.program)
        self._compares = _comparing(emitter.input.program)
        self._filled = _fills(emitter.input.program)
        self._defers = masks_copies(emitter.input.program)
        self._counts = _counts(emitter.input.program)
        self._parted = bool(list(partial_stores(emitter.input.program)))
        self._tagged = not self.found.polls and tags.uses_tags(emitter.input.program)
        self._sites = _sites(emitter.input.program)
        builder = emitter.builder
        self._exec: Any = element(builder, emitter.state, state.FIRST_EXEC, I32)
        entry = load(builder, element(builder, emitter.state, state.ENTRY, I32), I32)
        with builder.if_then(builder.icmp_unsigned("==", entry, I32(0))):
            builder.store(emitter.exec_mask(), self._exec, align=8)
            words = context_word(builder, emitter.context, log.CLOCKS, PTR)
            if self.found.ordered:
                keys = builder.mul(self.counters.wave, I64(clocks.KEYS))
                for first_word in (clocks.KEY, clocks.KEY_READ):
                    at = builder.add(keys, I64(first_word))
                    _zero(emitter, element(builder, words, at, I64), I64(8 * clocks.KEYS))
                slots = builder.mul(self.counters.wave, I64(clocks.SLOTS))
                for first_word in (clocks.ROWS_OF, clocks.BEHIND):
                    at = builder.add(slots, I64(first_word))
                    _zero(emitter, element(builder, words, at, I64), I64(8 * clocks.SLOTS))
            if self.found.polls:
                for other in range(WAVES):
                    row = builder.mul(self.counters.wave, I64(WAVES))
                    at = builder.add(row, I64(clocks.SEEN + other))
                    builder.store(I64(0), element(builder, words, at, I64), align=8)
            first = builder.icmp_unsigned("==", self.counters.wave, I64(0))
            with builder.if_then(first):
                if self.found.ordered:
                    _zero(emitter, element(builder, words, clocks.UNACQUIRED, I64), I64(16))
                arrivals = context_word(builder, emitter.context, log.ARRIVALS, PTR)
                builder.store(I64(0), arrivals, align=8)
                _clear(emitter, atomics=self._counts, tagged=self._tagged)

    def _initial_exec(self, emitter: WaveEmitter) -> Any:
        kind = emitter.exec_mask().type
        return load(emitter.builder, self._exec, kind, 8)

    def _same(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """The first wave of a phase records which barrier it waits at; others must agree."""
        builder = emitter.builder
        here = I64(self._sites[instruction.index] + 1)
        arrivals = context_word(builder, emitter.context, log.ARRIVALS, PTR)
        phase = self.counters.phase
        # one word: the barrier, and its barrier phase
        arrival = load(builder, arrivals, I64, 8)
        mine = builder.or_(builder.shl(builder.add(phase, I64(1)), I64(20)), here)
        same_phase = builder.icmp_unsigned(
            "==", builder.lshr(arrival, I64(20)), builder.add(phase, I64(1))
        )
        differs = builder.and_(same_phase, builder.icmp_unsigned("!=", arrival, mine))
        with builder.if_then(differs, likely=False):
            other = builder.and_(arrival, I64((1 << 20) - 1))
            log.emit(
                emitter, Kind.DIVERGENT_BARRIER, instruction.index,
                lanes=emitter.exec_mask(), other=other,
            )  # fmt: skip
        builder.store(mine, arrivals, align=8)


def _clear(emitter: WaveEmitter, *, atomics: bool, tagged: bool) -> None:
    """Forget the records of LDS, those next to `atomics` operations and, where the program has
    them, its tags: another workgroup has it now."""
    builder = emitter.builder
    word = partial(context_word, builder, emitter.context)
    dwords = builder.lshr(builder.add(word(state.LDS_BYTES, I64), I64(3)), I64(2))
    arrays = [(log.LDS_WRITES, 1), (log.LDS_READS, records.READ_WORDS)]
    if atomics:
        arrays.append((log.LDS_ASIDE, aside.ASIDE_WORDS))
    recorded = tags.clear(emitter, dwords, _zero) if tagged else I1(1)
    with builder.if_then(recorded):
        for index, words in arrays:
            _zero(emitter, word(index, PTR), builder.mul(dwords, I64(8 * words)))
    words_of_parts = builder.mul(dwords, I64(DWORD_BYTES))
    used = element(builder, word(log.LDS_PARTS, PTR), words_of_parts, I64)
    some = builder.icmp_unsigned("!=", load(builder, used, I64, 8), I64(0))
    with builder.if_then(some, likely=False):
        size = builder.mul(builder.add(words_of_parts, I64(1)), I64(8))
        _zero(emitter, word(log.LDS_PARTS, PTR), size)


def _zero(emitter: WaveEmitter, pointer: Any, size: Any) -> None:
    name = "llvm.memset.p0.i64"
    function = emitter.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(ir.VoidType(), [PTR, ir.IntType(8), I64, I1])
        function = ir.Function(emitter.module, kind, name)
    emitter.builder.call(function, [pointer, ir.IntType(8)(0), size, I1(0)])


__all__ = ["MemoryChecks", "partial_stores"]
