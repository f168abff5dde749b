"""Accesses of memory observed: a call of a shadow function ahead of each, and barriers compared."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from wavecast.emulate.check import log, shadow_global, shadow_lds
from wavecast.emulate.check.counters import DS, LOAD, Counters, issues
from wavecast.emulate.check.report import Kind
from wavecast.emulate.check.shadow import COMPARES
from wavecast.emulate.lower import runtime, state
from wavecast.emulate.lower.access import MemoryAccess, Outlined, function_type
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.values import I1, I32, I64, PTR, context_word, element, load
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import Role, Space
from wavecast.isa.program import Program

if TYPE_CHECKING:
    from wavecast.emulate.lower.access import AccessTarget

_MOVES = {"load", "store", "tolds"}


def _coherent(instruction: Instruction) -> bool:
    """Whether an access bypasses caches as atomic loads and stores of device scope do.

    Source: LLVM AMDGPUUsage, "Memory model": glc (gfx90a, gfx11), sc1 (gfx942, gfx950; sc0 alone is
    the scope of a workgroup), scope (gfx12).
    """
    modifiers = instruction.decoded.modifiers
    scope = modifiers.get("scope", "")
    return bool({"glc", "sc1"} & set(modifiers)) or scope in ("SCOPE_DEV", "SCOPE_SYS")


def _comparing(program: Program) -> set[bool]:
    """Whether a program compares and swaps in LDS (True), in global memory (False)."""
    return {
        instruction.memory.space is Space.LDS
        for instruction in program.instructions
        if instruction.memory is not None and instruction.opcode.memory_form.operation == "cmpswap"
    }


def _function(module: ir.Module, access: MemoryAccess) -> ir.Function:
    """The shadow function of an access, declared in `module`."""
    build = shadow_lds.build if access.mode == "local" else shadow_global.build
    name = f"check.{access.mode}.{access.lanes}.{access.bytes}.{access.detail}"

    def recipe(alone: ir.Module) -> None:
        build(Outlined(alone, access, runtime.OUTLINED + name))

    return runtime.outline(module, name, function_type(access.lanes), recipe)


class MemoryChecks(Observer):
    """Races and reads of what was never written, in LDS and in global memory."""

    def __init__(self, counters: Counters) -> None:
        self.counters = counters

    def access(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        place: AccessTarget,
        rows: Any,
    ) -> None:
        if place.mode == "private":
            return
        builder = emitter.builder
        detail = access.action if access.action in _MOVES else "atomic"
        if detail == "store" and "h" in access.detail:
            detail = "storeh"
        atomic = detail == "atomic"
        if (atomic or detail == "load") and (place.mode == "local") in self._compares:
            detail += COMPARES
        shadow = MemoryAccess("shadow", place.mode, access.lanes, access.bytes, detail)
        streams = issues(instruction, emitter.input.program.target)
        stream = DS if place.mode in ("local", "flat") else LOAD
        number = self.counters.issued(emitter, stream) if stream in streams else I64(0)
        packed = builder.or_(builder.shl(number, I64(2)), I64(stream))
        if place.mode != "local" and (atomic or _coherent(instruction)):
            self._synchronise(emitter)
        builder.call(
            _function(emitter.module, shadow),
            [
                emitter.context, rows, builder.inttoptr(I64(instruction.index), PTR),
                builder.inttoptr(packed, PTR), place.address, place.base, place.limit,
                place.offset, emitter.exec_mask(),
            ],
        )  # fmt: skip

    def _synchronise(self, emitter: WaveEmitter) -> None:
        """Count an operation that may order this workgroup with others."""
        builder = emitter.builder

        word = partial(context_word, builder, emitter.context)
        slot = element(builder, word(log.RELEASES, PTR), word(state.WORKGROUP, I64), I32)
        builder.atomic_rmw("add", slot, I32(1), "monotonic")

    def leave(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        if instruction.opcode.role is Role.BARRIER:
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
        self._compares = _comparing(emitter.input.program)
        builder = emitter.builder
        self._exec: Any = element(builder, emitter.state, state.FIRST_EXEC, I32)
        entry = load(builder, element(builder, emitter.state, state.ENTRY, I32), I32)
        with builder.if_then(builder.icmp_unsigned("==", entry, I32(0))):
            builder.store(emitter.exec_mask(), self._exec, align=8)
            first = builder.icmp_unsigned("==", self.counters.wave, I64(0))
            with builder.if_then(first):
                _clear(emitter)

    def _initial_exec(self, emitter: WaveEmitter) -> Any:
        kind = emitter.exec_mask().type
        return load(emitter.builder, self._exec, kind, 8)

    def _same(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """The first wave of a turn says which barrier it waits at; others must agree."""
        builder = emitter.builder
        here = I64(instruction.index + 1)
        arrivals = context_word(builder, emitter.context, log.ARRIVALS, PTR)
        turn = self.counters.turn
        # one word: the barrier, and the turn it is of
        seen = load(builder, arrivals, I64, 8)
        mine = builder.or_(builder.shl(builder.add(turn, I64(1)), I64(20)), here)
        same_turn = builder.icmp_unsigned(
            "==", builder.lshr(seen, I64(20)), builder.add(turn, I64(1))
        )
        first = builder.icmp_unsigned("==", self.counters.wave, I64(0))
        differs = builder.and_(
            builder.and_(same_turn, builder.icmp_unsigned("!=", seen, mine)), builder.not_(first)
        )
        with builder.if_then(differs, likely=False):
            other = builder.and_(seen, I64((1 << 20) - 1))
            log.emit(
                emitter, Kind.DIVERGENT_BARRIER, instruction.index,
                lanes=emitter.exec_mask(), other=other,
            )  # fmt: skip
        builder.store(mine, arrivals, align=8)


def _clear(emitter: WaveEmitter) -> None:
    """Forget the records of LDS: another workgroup has it now."""
    builder = emitter.builder
    name = "llvm.memset.p0.i64"
    function = emitter.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(ir.VoidType(), [PTR, ir.IntType(8), I64, I1])
        function = ir.Function(emitter.module, kind, name)

    word = partial(context_word, builder, emitter.context)
    dwords = builder.lshr(builder.add(word(state.LDS_BYTES, I64), I64(3)), I64(2))
    for index, words in ((log.LDS_WRITES, 1), (log.LDS_READS, shadow_lds.READ_WORDS)):
        size = builder.mul(dwords, I64(8 * words))
        builder.call(function, [word(index, PTR), ir.IntType(8)(0), size, I1(0)])


__all__ = ["MemoryChecks"]
