"""NaNs and infinities that count only where they are stored or selected.

Every instruction whose results a later one decides (`number_uses.py`) has masks of lanes in the
memory of its wave: with a new NaN, with a new infinity, and with what is too large for an 8-bit
float (`overflows.py`). Selections and stores look at the masks
of those they decide: lanes that they leave out are forgotten, the others reported.

Memory of a host thread, per wave: a word that is not 0 once any mask was set, then the masks.
Memory of a launch: for every instruction the entry of the table that its list starts at (0: none);
a list is its length, then a word per instruction decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from llvmlite import ir

from wavecast.emulate import hostmemory
from wavecast.emulate.check import log
from wavecast.emulate.check.counters import WAVES
from wavecast.emulate.check.log import KINDS, log_function
from wavecast.emulate.check.numbers.uses import FATE_NONE, Fate, NumberUses, selection_masks
from wavecast.emulate.lower import runtime, state
from wavecast.emulate.lower.access import MemoryAccess, Outlined, function_type
from wavecast.emulate.lower.addresses import resolve
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I32, I64, PTR, context_word, element, load
from wavecast.isa.instruction import Instruction

if TYPE_CHECKING:
    from wavecast.emulate.lower.access import AccessTarget

SPECIAL: Final = (Kind.NOT_A_NUMBER, Kind.INFINITY, Kind.FP8_OVERFLOW)
_DECIDES, _KEEPS_LEFT_OUT, _KEEPS, _INVERTED = 1, 2, 4, 8
"""Bits of a word of a list: report; keep lanes that are left out, for another store; keep lanes
that are reported, which a loop carries on; a selection takes the lanes whose bit is 0."""
_SLOT, _CREATOR = 8, 32
"""Where the number of the masks and that of the instruction begin in such a word."""

Creator = int | tuple[int, int]
"""An instruction, or one of the numbers that it converts, by its position."""


@dataclass(frozen=True, slots=True)
class NumberDecisions:
    """`fates` of the instructions whose results do not count at once, or of one of the numbers
    that they convert (with its position); `slots` numbers the masks of those that a later
    instruction decides, and `lists` has what each of these decides."""

    fates: Mapping[Creator, Fate]
    slots: Mapping[Creator, int]
    lists: Mapping[int, Sequence[int]]
    instructions: int

    @classmethod
    def of(
        cls,
        uses: NumberUses,
        computing: Sequence[Instruction],
        stores: Mapping[tuple[int, int], frozenset[int]],
    ) -> NumberDecisions:
        """Those of the instructions of a program that compute numbers, and of the numbers that
        reach these `stores` as bytes."""
        fates: dict[Creator, Fate] = {
            instruction.index: fate
            for instruction in computing
            if (fate := uses.fate(instruction)) is not None
        }
        for (index, number), reached in stores.items():
            fate = fates.get(index)
            if fate is not None and fate.stores and not fate.selections and not fate.carried:
                fates[index, number] = replace(fate, stores=reached)
        later = [index for index, fate in fates.items() if fate != FATE_NONE and not fate.at_once]
        slots = {index: number for number, index in enumerate(later)}
        lists: dict[int, list[int]] = {}
        for creator, slot in slots.items():
            fate = fates[creator]
            index = creator if isinstance(creator, int) else creator[0]
            word = slot << _SLOT | index << _CREATOR | (_KEEPS if fate.carried else 0)
            for selection in fate.selections:
                decides = _DECIDES if selection == fate.last else 0
                side = 0 if selection.side else _INVERTED
                lists.setdefault(selection.instruction, []).append(word | decides | side)
            several = _KEEPS_LEFT_OUT if len(fate.stores) > 1 else 0
            for store in fate.stores:
                lists.setdefault(store, []).append(word | several | _DECIDES)
        return cls(fates, slots, lists, len(uses.program.instructions))

    @property
    def words(self) -> int:
        """64-bit words of a wave."""
        return 1 + len(SPECIAL) * len(self.slots)

    def table(self) -> np.ndarray:
        """The memory of a launch."""
        starts, entries = np.zeros(self.instructions, np.uint64), []
        for index, words in self.lists.items():
            starts[index] = self.instructions + len(entries)
            entries += [len(words), *words]
        return np.concatenate([starts, np.array(entries, np.uint64)])

    def attach(self, context: np.ndarray, table: np.ndarray) -> np.ndarray:
        """Put the memory into a host thread's context. Returns what has to stay."""
        masks = hostmemory.zeros(WAVES * self.words, np.uint64)
        context[log.NUMBER_MASKS], context[log.NUMBER_LISTS] = masks.ctypes.data, table.ctypes.data
        return masks


class DecisionCode:
    """Emits the code of one kernel's decisions."""

    def __init__(self, decisions: NumberDecisions) -> None:
        self.decisions = decisions

    def enter(self, emitter: WaveEmitter) -> None:
        """At the start of a wave its masks are empty."""
        if not self.decisions.slots:
            return
        builder = emitter.builder
        self._base = _wave_words(builder, emitter.context, self.decisions.words)
        entry = load(builder, element(builder, emitter.state, state.ENTRY, I32), I32)
        with builder.if_then(builder.icmp_unsigned("==", entry, I32(0))):
            for word in range(self.decisions.words):
                builder.store(I64(0), element(builder, self._base, word, I64), align=8)

    def note(self, emitter: WaveEmitter, creator: Creator, kind: Kind, lanes: Any) -> None:
        """Lanes of an instruction's result are special. Active lanes have only the new ones."""
        builder = emitter.builder
        word = 1 + len(SPECIAL) * self.decisions.slots[creator] + SPECIAL.index(kind)
        slot = element(builder, self._base, word, I64)
        old, new = load(builder, slot, I64, 8), _wide(builder, lanes)
        either = builder.icmp_unsigned("!=", builder.or_(old, new), I64(0))
        with builder.if_then(either, likely=False):
            if not self.decisions.fates[creator].carried:
                others = builder.not_(_wide(builder, emitter.exec_mask()))
                old = builder.and_(old, others)
            builder.store(builder.or_(old, new), slot, align=8)
            builder.store(I64(1), self._base, align=8)

    def select(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """Ahead of a selection."""
        mask = next(iter(selection_masks(instruction)), 0)
        if instruction.index not in self.decisions.lists or not mask:
            return
        first, count = (mask & -mask).bit_length() - 1, emitter.layout.lanes // 32
        emitter.pending.flush_masks(((1 << count) - 1) << first)
        selection = _wide(emitter.builder, emitter.scalar_bits(first, count))
        self._decide(emitter, instruction.index, selection)

    def store(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
    ) -> None:
        """Ahead of a store: the lanes that are in bounds."""
        if instruction.index not in self.decisions.lists:
            return
        builder = emitter.builder
        some = builder.icmp_unsigned("!=", load(builder, self._base, I64, 8), I64(0))
        with builder.if_then(some, likely=False):
            with builder.goto_entry_block():
                room = builder.alloca(I64)
            pointer = builder.inttoptr(builder.ptrtoint(room, I64), PTR)
            nothing = builder.inttoptr(I64(0), PTR)
            builder.call(
                _live_function(emitter.module, access, target.mode),
                [
                    emitter.context, pointer, nothing, nothing, target.address, target.base,
                    target.limit, target.offset, emitter.exec_mask(),
                ],
            )  # fmt: skip
            self._decide(emitter, instruction.index, load(builder, pointer, I64, 8))

    def _decide(self, emitter: WaveEmitter, instruction: int, selection: Any) -> None:
        builder = emitter.builder
        some = builder.icmp_unsigned("!=", load(builder, self._base, I64, 8), I64(0))
        with builder.if_then(some, likely=False):
            active = _wide(builder, emitter.exec_mask())
            arguments = [emitter.context, self._base, I64(instruction), selection, active]
            builder.call(_decide_function(emitter.module), arguments)


def _wave_words(builder: ir.IRBuilder, context: Any, words: int) -> Any:
    wave = builder.mul(context_word(builder, context, state.WAVE), I64(words))
    return element(builder, context_word(builder, context, log.NUMBER_MASKS, PTR), wave, I64)


def _wide(builder: ir.IRBuilder, lanes: Any) -> Any:
    return lanes if lanes.type == I64 else builder.zext(lanes, I64)


def _live_function(module: ir.Module, access: MemoryAccess, mode: str) -> ir.Function:
    """Stores the lanes whose address is in bounds to `rows` (i64)."""
    looked_at = MemoryAccess("live", mode, access.lanes, access.bytes)
    name = f"check.live.{mode}.{access.lanes}.{access.bytes}"

    def recipe(alone: ir.Module) -> None:
        out = Outlined(alone, looked_at, runtime.OUTLINED + name)
        live = _wide(out.builder, resolve(out, checked=False).live)
        out.builder.store(live, out.rows, align=8)
        out.builder.ret(I32(0))

    return runtime.outline(module, name, function_type(access.lanes), recipe)


def _decide_function(module: ir.Module) -> ir.Function:
    """`void decide(ptr context, ptr masks, i64 instruction, i64 chosen, i64 active)`."""
    kind = ir.FunctionType(ir.VoidType(), [PTR, PTR, I64, I64, I64])

    def recipe(alone: ir.Module) -> None:
        _build(ir.Function(alone, kind, f"{runtime.OUTLINED}check.number_decision"))

    return runtime.outline(module, "check.number_decision", kind, recipe)


def _build(function: ir.Function) -> None:
    context, masks, instruction, selection, active = function.args
    entry = function.append_basic_block("entry")
    body, exit_block = function.append_basic_block("body"), function.append_basic_block("done")
    builder = ir.IRBuilder(entry)
    table = context_word(builder, context, log.NUMBER_LISTS, PTR)
    start = load(builder, element(builder, table, instruction, I64), I64, 8)
    count = load(builder, element(builder, table, start, I64), I64, 8)
    builder.branch(body)
    builder.position_at_end(body)
    number = builder.phi(I64)
    number.add_incoming(I64(1), entry)
    word = load(builder, element(builder, table, builder.add(start, number), I64), I64, 8)
    slot = builder.and_(builder.lshr(word, I64(_SLOT)), I64((1 << _CREATOR - _SLOT) - 1))
    first = builder.add(builder.mul(slot, I64(len(SPECIAL))), I64(1))
    for index, special in enumerate(SPECIAL):
        at = element(builder, masks, builder.add(first, I64(index)), I64)
        _judge(builder, context, at, word, selection, active, special)
    following = builder.add(number, I64(1))
    number.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_unsigned("<=", following, count), body, exit_block)
    builder.position_at_end(exit_block)
    builder.ret_void()


def _judge(
    builder: ir.IRBuilder, context: Any, at: Any, word: Any, selection: Any, active: Any, kind: Kind
) -> None:
    """Report the chosen lanes of one mask, and forget those that are decided."""
    lanes = load(builder, at, I64, 8)

    def flag(bit: int) -> Any:
        return builder.icmp_unsigned("!=", builder.and_(word, I64(bit)), I64(0))

    with builder.if_then(builder.icmp_unsigned("!=", lanes, I64(0)), likely=False):
        selection = builder.select(flag(_INVERTED), builder.not_(selection), selection)
        hit = builder.and_(lanes, builder.and_(selection, active))
        hit = builder.select(flag(_DECIDES), hit, I64(0))
        lost = builder.and_(active, builder.not_(selection))
        lost = builder.select(flag(_KEEPS_LEFT_OUT), I64(0), lost)
        dead = builder.or_(lost, builder.select(flag(_KEEPS), I64(0), hit))
        builder.store(builder.and_(lanes, builder.not_(dead)), at, align=8)
        with builder.if_then(builder.icmp_unsigned("!=", hit, I64(0)), likely=False):
            creator = builder.lshr(word, I64(_CREATOR))
            site = builder.add(builder.mul(creator, I64(KINDS)), I64(int(kind)))
            arguments = [context, site, hit, I64(0), I64(0), I64(0)]
            builder.call(log_function(builder.module), arguments)
            count_values(builder, context, creator, hit)


def count_values(builder: ir.IRBuilder, context: Any, instruction: Any, lanes: Any) -> None:
    """Add lanes to the number of an instruction's values."""
    values = context_word(builder, context, log.NUMBER_VALUES, PTR)
    slot = element(builder, values, builder.shl(instruction, I64(1)), I64)
    builder.atomic_rmw("add", slot, builder.ctpop(_wide(builder, lanes)), "monotonic")


__all__ = ["SPECIAL", "DecisionCode", "NumberDecisions", "count_values"]
