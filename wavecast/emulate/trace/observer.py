"""What trace mode adds to a kernel's code: counters, and logs of the waves that are recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from llvmlite import ir

from wavecast.analyze.values.banks import phases
from wavecast.compile.digest import digest
from wavecast.emulate.lower import runtime
from wavecast.emulate.lower.access import AccessTarget, MemoryAccess, Outlined, function_type
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.state import WAVE, WORKGROUP
from wavecast.emulate.trace import layout, lines, passes, record
from wavecast.emulate.trace.layout import TracePlan
from wavecast.emulate.values import I1, I32, I64, PTR, context_word, element, load
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind
from wavecast.isa.program import Block, Program
from wavecast.isa.targets import isa_target


def use_of(kind: MemoryKind) -> str:
    """How LDS sees an access of a kind: read, write or atomic."""
    if kind is MemoryKind.ATOMIC:
        return "atomic"
    return "write" if kind in (MemoryKind.STORE, MemoryKind.STORE_FROM_LDS) else "read"


class TraceObserver(Observer):
    """Counts of one kernel. `memory` adds transactions and conflicts, `streams` the logs; `banks`
    are those of the device's LDS."""

    def __init__(self, program: Program, *, memory: bool, streams: bool, banks: int) -> None:
        self.plan = TracePlan.of(program)
        self.target = isa_target(program.target)
        self.banks = banks
        self.memory, self.streams = memory, streams
        self._regions = {region.start: n for n, region in enumerate(self.plan.regions)}
        self._memory = {index: n for n, index in enumerate(self.plan.memory)}
        self._scalar: Instruction | None = None
        self.counters: Any = None
        self.recording: Any = I1(0)
        self.room: Any = None

    def enter(self, emitter: WaveEmitter) -> None:
        builder = emitter.builder

        word = partial(context_word, builder, emitter.context)
        group = word(WORKGROUP)
        find = _find_function(emitter.module)
        length = word(layout.COUNTED_LENGTH)
        position = builder.call(find, [word(layout.COUNTED, PTR), length, group])
        outside = builder.icmp_signed("<", position, I64(0))
        others = builder.and_(outside, builder.icmp_unsigned("!=", length, I64(0)))
        self.counters = builder.select(
            others, word(layout.DISCARDED, PTR), word(layout.COUNTERS, PTR)
        )
        if not self.streams:
            return
        length = word(layout.SAMPLED_LENGTH)
        position = builder.call(find, [word(layout.SAMPLED, PTR), length, group])
        self.recording = builder.icmp_signed(">=", position, I64(0))
        stream = builder.add(builder.mul(position, word(layout.WAVES)), word(WAVE))
        builder.store(stream, element(builder, emitter.context, layout.STREAM, I64), align=8)
        entry = builder.or_(builder.trunc(stream, I32), I32(layout.STREAM_BIT))
        with builder.if_then(self.recording, likely=False):
            builder.call(_note_function(emitter.module), [emitter.context, entry])
        # a wave that is not recorded has no number: it looks at the first one's
        slot = builder.select(self.recording, stream, I64(0))
        self.room = element(builder, word(layout.ROOM, PTR), slot, I64)

    def block(self, emitter: WaveEmitter, block: Block) -> None:
        self._add(emitter, block.index, I64(1))
        if self.streams:
            self._note(emitter, I32(block.index))

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        region = self._regions.get(instruction.index)
        if region is None:
            return
        builder = emitter.builder
        mask = emitter.exec_mask()
        partial = builder.icmp_unsigned("!=", mask, mask.type(-1))
        with builder.if_then(partial, likely=False):
            word = self.plan.region_word(region)
            slots = element(builder, self.counters, word, I64)
            wide = mask if mask.type.width == 64 else builder.zext(mask, I64)
            lanes = I64(emitter.layout.lanes)
            builder.call(_partial_function(emitter.module), [slots, wide, lanes])

    def branch(self, emitter: WaveEmitter, instruction: Instruction, condition: Any) -> None:
        block = next(
            block.index for block in emitter.input.program.blocks
            if block.start <= instruction.index < block.stop
        )  # fmt: skip
        self._add(emitter, self.plan.taken_word(block), emitter.builder.zext(condition, I64))

    def access(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
        rows: Any,
    ) -> None:
        del rows
        if self.memory:
            self._count(emitter, instruction, access, target)
        if self.streams:
            with self._room(emitter):
                self._record(emitter, instruction, access.mode, access.bytes, target)

    def scalar_access(
        self, emitter: WaveEmitter, instruction: Instruction, address: Any, size: int
    ) -> None:
        first = instruction is not self._scalar
        self._scalar = instruction
        if self.memory:
            self._scalar_lines(emitter, instruction, address, size, first)
        if self.streams and first:
            with self._room(emitter):
                target = AccessTarget("scalar", emitter.spare, base=address)
                self._record(emitter, instruction, "scalar", size, target)

    # parts

    def _add(self, emitter: WaveEmitter, word: int, amount: Any) -> None:
        builder = emitter.builder
        slot = element(builder, self.counters, word, I64)
        builder.store(builder.add(load(builder, slot, I64, 8), amount), slot, align=8)

    def _note(self, emitter: WaveEmitter, entry: Any) -> None:
        """Append to the block log of a wave that is recorded."""
        with self._room(emitter):
            note = _note_function(emitter.module)
            emitter.builder.call(note, [emitter.context, entry])

    @contextmanager
    def _room(self, emitter: WaveEmitter) -> Iterator[None]:
        """Where a wave is recorded and has entries left; takes one."""
        builder = emitter.builder
        with builder.if_then(self.recording, likely=False):
            entries = load(builder, self.room, I64, 8)
            with builder.if_then(builder.icmp_signed(">", entries, I64(0))):
                builder.store(builder.sub(entries, I64(1)), self.room, align=8)
                yield

    def _count(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
    ) -> None:
        """Count the transactions, or the passes through the banks, of an access."""
        assert instruction.memory is not None
        word = self.plan.memory_word(self._memory[instruction.index])
        slots = element(emitter.builder, self.counters, word, I64)
        use = use_of(instruction.memory.kind)
        request = MemoryAccess("count", access.mode, access.lanes, access.bytes, use)
        build: Callable[[Outlined], None] = lines.build
        variant = ""
        if access.mode == "local":
            bank_phases = phases(
                self.target, access.bytes, use == "write", access.lanes, self.banks
            )
            variant = digest(bank_phases.groups, bank_phases.banks)[:16]
            build = partial(passes.build, phases=bank_phases)
        _call(emitter, request, variant, build, target, slots)

    def _record(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        mode: str,
        size: int,
        target: AccessTarget,
    ) -> None:
        request = MemoryAccess("record", mode, emitter.layout.lanes, size)
        number = emitter.builder.inttoptr(I64(instruction.index), PTR)
        _call(emitter, request, "", record.build, target, number)

    def _scalar_lines(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        address: Any,
        size: int,
        first: bool,
    ) -> None:
        """Blocks of a scalar access. Loads through a descriptor come dword by dword: all but the
        first add a block only where they begin one."""
        word = self.plan.memory_word(self._memory[instruction.index])
        builder = emitter.builder
        if first:
            self._add(emitter, word + layout.REQUESTS, I64(1))
            self._add(emitter, word + layout.LANES, I64(1))
        for offset, bytes_ in enumerate(layout.SIZES):
            shift = I64(bytes_.bit_length() - 1)
            end = builder.lshr(builder.add(address, I64(size - 1)), shift)
            start = builder.lshr(address if first else builder.sub(address, I64(1)), shift)
            count = builder.sub(end, start)
            count = builder.add(count, I64(1)) if first else count
            self._add(emitter, word + layout.BLOCKS_32 + offset, count)


def _call(
    emitter: WaveEmitter,
    access: MemoryAccess,
    variant: str,
    build: Callable[[Outlined], None],
    target: AccessTarget,
    rows: Any,
) -> None:
    """Call an outlined function that looks at an access; `variant` names what else it depends
    on."""
    name = f"trace.{access.action}.{access.mode}.{access.lanes}.{access.bytes}.{access.detail}"
    name = f"{name}.{variant}" if variant else name

    def recipe(alone: ir.Module) -> None:
        build(Outlined(alone, access, runtime.OUTLINED + name))

    kind = function_type(access.lanes)
    emitter.builder.call(
        runtime.outline(emitter.module, name, kind, recipe),
        [
            emitter.context, rows, rows, rows, target.address, target.base, target.limit,
            target.offset, emitter.exec_mask(),
        ],
    )  # fmt: skip


def _internal(module: ir.Module, name: str, result: ir.Type, *kinds: ir.Type) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(result, kinds), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function


def _find_function(module: ir.Module) -> ir.Function:
    """`i64 find(ptr numbers, i64 length, i64 number)`: its index in a sorted list, or -1."""
    declaration = module.globals.get("trace.find")
    if declaration is not None:
        return declaration
    function = _internal(module, "trace.find", I64, PTR, I64, I64)
    numbers, length, number = function.args
    entry, test, look, step, hit, miss = (
        function.append_basic_block(name)
        for name in ("entry", "test", "look", "step", "hit", "miss")
    )
    builder = ir.IRBuilder(entry)
    builder.branch(test)
    builder.position_at_end(test)
    low, high = builder.phi(I64), builder.phi(I64)
    low.add_incoming(I64(0), entry)
    high.add_incoming(length, entry)
    builder.cbranch(builder.icmp_unsigned("<", low, high), look, miss)
    builder.position_at_end(look)
    middle = builder.lshr(builder.add(low, high), I64(1))
    value = load(builder, element(builder, numbers, middle, I64), I64, 8)
    builder.cbranch(builder.icmp_unsigned("==", value, number), hit, step)
    builder.position_at_end(step)
    below = builder.icmp_unsigned("<", value, number)
    low.add_incoming(builder.select(below, builder.add(middle, I64(1)), low), step)
    high.add_incoming(builder.select(below, high, middle), step)
    builder.branch(test)
    builder.position_at_end(hit)
    builder.ret(middle)
    builder.position_at_end(miss)
    builder.ret(I64(-1))
    return function


def _partial_function(module: ir.Module) -> ir.Function:
    """`void partial(ptr slots, i64 mask, i64 lanes)`: a region runs with some lanes off."""
    declaration = module.globals.get("trace.partial")
    if declaration is not None:
        return declaration
    function = _internal(module, "trace.partial", ir.VoidType(), PTR, I64, I64)
    slots, mask, lanes = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    empty = builder.zext(builder.icmp_unsigned("==", mask, I64(0)), I64)
    off = builder.sub(lanes, builder.ctpop(mask))
    for word, amount in (
        (layout.PARTIAL, I64(1)),
        (layout.EMPTY, empty),
        (layout.INACTIVE, off),
    ):
        slot = element(builder, slots, word, I64)
        builder.store(builder.add(load(builder, slot, I64, 8), amount), slot, align=8)
    builder.ret_void()
    return function


def _note_function(module: ir.Module) -> ir.Function:
    """`void note(ptr context, i32 entry)`: append to the block log."""
    declaration = module.globals.get("trace.note")
    if declaration is not None:
        return declaration
    function = _internal(module, "trace.note", ir.VoidType(), PTR, I32)
    context, entry = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    fill = element(builder, context, layout.BLOCK_FILL, I64)
    full = builder.icmp_unsigned(">=", load(builder, fill, I64, 8), I64(layout.BLOCK_ROOM))
    with builder.if_then(full, likely=False):
        record.flush(builder, context, layout.BLOCK_LOG)
    number = load(builder, fill, I64, 8)
    log = context_word(builder, context, layout.BLOCK_LOG, PTR)
    builder.store(entry, element(builder, log, number, I32))
    builder.store(builder.add(number, I64(1)), fill, align=8)
    builder.ret_void()
    return function


__all__ = ["TraceObserver", "use_of"]
