"""The owner of every address that is chosen from several pointers or loaded from memory.

Registers that such addresses are made from have a tag, the number of the tensor a pointer came
from (`owners.py`). Loads give a pointer the owner of the memory it leads to, arguments that of
their tensor; instructions pass tags on, and selections that of the side they take. Accesses are
compared with the memory of their address's tag. A tag of 0 (no pointer) or `SEVERAL` allows all.

Memory of a host thread: per wave one 32-bit word per scalar register and lane of a vector register
that `provenance.py` found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.dataflow.flows import VECTORS, FlowForm
from wavecast.emulate.check.dataflow.influence import Reach, UndefinedSource
from wavecast.emulate.check.pointers import owners
from wavecast.emulate.check.pointers.owner_functions import (
    build_compare,
    build_loaded,
    build_scalar,
    owner_function,
)
from wavecast.emulate.check.pointers.owners import SEVERAL
from wavecast.emulate.check.pointers.provenance import (
    POINTER_BYTES,
    PointerFlow,
    PointerFlows,
    Provenance,
)
from wavecast.emulate.check.pointers.reach import read_bytes
from wavecast.emulate.lower import runtime, state
from wavecast.emulate.lower.access import MemoryAccess
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.lower.sites import call_observing, local_rows
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
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded, Instruction
from wavecast.isa.opcode import MemoryKind, OperandKind, Space
from wavecast.isa.program import Kernel
from wavecast.isa.registers import SCC

if TYPE_CHECKING:
    from wavecast.emulate.lower.access import AccessTarget

_GLOBAL = frozenset({"wide", "narrow", "buffer", "flat"})


class PointerTags(Observer):
    """Emits the tags of one kernel and the comparisons with them."""

    def __init__(self, kernel: Kernel, provenance: Provenance) -> None:
        self.found, self.flows = provenance, PointerFlows(kernel)
        self.written = sum(1 << position for position in provenance.words)

    def enter(self, emitter: WaveEmitter) -> None:
        builder = emitter.builder
        wave = context_word(builder, emitter.context, state.WAVE)
        first = builder.mul(wave, I64(self.found.total))
        tags = context_word(builder, emitter.context, log.TAGS, PTR)
        self.base = element(builder, tags, first, I32)
        entry = load(builder, element(builder, emitter.state, state.ENTRY, I32), I32)
        with builder.if_then(builder.icmp_unsigned("==", entry, I32(0))):
            for position in self.found.words:
                value = self._kind(emitter, position)(None)
                dword = self.found.preloaded.get(position)
                if dword is not None:
                    table = context_word(builder, emitter.context, log.OWNERS, PTR)
                    segment_owners = load(
                        builder, element(builder, table, owners.SEGMENT_OWNERS, I64), PTR, 8
                    )
                    value = load(builder, element(builder, segment_owners, dword, I32), I32)
                self._set(emitter, position, value)

    # cells

    def _kind(self, emitter: WaveEmitter, position: int) -> ir.Type:
        vector = VECTORS >> position & 1
        return ir.VectorType(I32, emitter.layout.lanes) if vector else I32

    def _slot(self, emitter: WaveEmitter, position: int) -> Any:
        return element(emitter.builder, self.base, self.found.words[position], I32)

    def _get(self, emitter: WaveEmitter, position: int) -> Any:
        kind = self._kind(emitter, position)
        return load(emitter.builder, self._slot(emitter, position), kind, 4)

    def _set(self, emitter: WaveEmitter, position: int, value: Any) -> None:
        emitter.builder.store(value, self._slot(emitter, position), align=4)

    def _row(self, emitter: WaveEmitter, position: int) -> Any:
        """The tags of a register, one per lane."""
        value = self._get(emitter, position)
        vector = VECTORS >> position & 1
        return value if vector else splat(emitter.builder, value, emitter.layout.lanes)

    # instructions without memory

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        decoded = instruction.decoded
        if not decoded.writes & self.written or decoded.memory is not None:
            return
        flows = {flow.target: flow for flow in self.flows.of(decoded)}
        changes = []
        for position in bits_of(decoded.writes & self.written):
            flow = flows.get(position)
            changes.append((position, self._result(emitter, decoded, position, flow)))
        for position, value in changes:
            self._set(emitter, position, value)

    def _result(
        self, emitter: WaveEmitter, decoded: Decoded, position: int, flow: PointerFlow | None
    ) -> Any:
        """The new tags of a register; without a flow it holds no pointer."""
        builder, lanes = emitter.builder, emitter.layout.lanes
        vector = bool(VECTORS >> position & 1)
        if flow is None:
            value = constant(0, 32, lanes if vector else 0)
        elif not flow.known:
            value = constant(SEVERAL, 32, lanes if vector else 0)
        else:
            value = self._value(emitter, decoded, flow, vector)
        if not vector or (flow is not None and flow.form is FlowForm.WHOLE):
            return value
        old = self._get(emitter, position)
        if flow is not None and flow.form is FlowForm.ONE_LANE:
            single = builder.extract_element(value, I32(0))
            return builder.insert_element(old, single, self._chosen_lane(emitter, decoded))
        mask = builder.bitcast(emitter.exec_mask(), ir.VectorType(I1, lanes))
        return builder.select(mask, value, old)

    def _value(
        self, emitter: WaveEmitter, decoded: Decoded, flow: PointerFlow, vector: bool
    ) -> Any:
        builder, lanes = emitter.builder, emitter.layout.lanes
        value = self._union(emitter, decoded, flow.sources, vector)
        if flow.choice is None:
            return value
        other = self._union(emitter, decoded, flow.otherwise, vector)
        if SCC >> flow.choice & 1:
            emitter.pending.flush_before(decoded)
            return builder.select(emitter.special("scc", 1), value, other)
        emitter.pending.flush_masks(((1 << lanes // 32) - 1) << flow.choice)
        mask = emitter.scalar_bits(flow.choice, lanes // 32)
        return builder.select(builder.bitcast(mask, ir.VectorType(I1, lanes)), value, other)

    def _union(
        self,
        emitter: WaveEmitter,
        decoded: Decoded,
        sources: Sequence[UndefinedSource],
        vector: bool,
    ) -> Any:
        """The tag of a value made from several: that of the only pointer among them."""
        builder, count = emitter.builder, emitter.layout.lanes if vector else 0
        word_sources = [source for source in sources if source.cell >> 1 in self.found.words]
        tags = [self._source(emitter, decoded, source, vector) for source in word_sources]
        nothing = constant(0, 32, count)
        return reduce(lambda first, other: union(builder, first, other), tags) if tags else nothing

    def _source(
        self, emitter: WaveEmitter, decoded: Decoded, source: UndefinedSource, vector: bool
    ) -> Any:
        builder, position = emitter.builder, source.cell >> 1
        if source.reach in (Reach.FIRST, Reach.CHOSEN):
            row = self._row(emitter, position)
            if source.reach is Reach.FIRST:
                lane = self._first_lane(emitter)
            else:
                lane = self._chosen_lane(emitter, decoded)
            value = builder.extract_element(row, lane)
            return splat(builder, value, emitter.layout.lanes) if vector else value
        return self._row(emitter, position) if vector else self._get(emitter, position)

    def _first_lane(self, emitter: WaveEmitter) -> Any:
        """The first active lane; 0 where none is."""
        builder = emitter.builder
        first: Any = builder.cttz(emitter.exec_mask(), I1(0))
        first = builder.trunc(first, I32) if first.type != I32 else first
        return builder.and_(first, I32(emitter.layout.lanes - 1))

    def _chosen_lane(self, emitter: WaveEmitter, decoded: Decoded) -> Any:
        """The lane that the last operand names."""
        operand, role = decoded.operands[-1], decoded.roles[-1]
        number = scalar_operand(emitter, operand, role, 32)
        return emitter.builder.and_(number, I32(emitter.layout.lanes - 1))

    # memory

    def access(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
        rows: Any,
    ) -> None:
        del rows
        if target.mode in _GLOBAL and instruction.index in self.found.accesses:
            self._compare(emitter, instruction, access, target)
        self._tag_load(emitter, instruction, access, target)

    def _compare(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
    ) -> None:
        builder, lanes = emitter.builder, emitter.layout.lanes
        tags = [self._row(emitter, p) for p in self.found.accesses[instruction.index]]
        value = reduce(lambda first, other: union(builder, first, other), tags)
        room = local_rows(emitter, 1)
        builder.store(value, room, align=4)
        request = MemoryAccess("owner", target.mode, lanes, access.bytes, _rounding(instruction))
        self._call(emitter, request, target, room, instruction.index)

    def _tag_load(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
    ) -> None:
        """The tags of what a vector load brings."""
        for number, position in self._results(instruction):
            if target.mode not in _GLOBAL:
                self._set(emitter, position, constant(SEVERAL, 32, emitter.layout.lanes))
                continue
            request = MemoryAccess(
                "loaded", target.mode, emitter.layout.lanes, access.bytes, f"{number}"
            )
            self._call(emitter, request, target, self._slot(emitter, position), instruction.index)

    def _results(self, instruction: Instruction) -> Iterator[tuple[int, int]]:
        """The registers of a load that are followed, with their number among those it writes."""
        if _loads_pointers(instruction):
            for number, position in enumerate(bits_of(instruction.operands[0].bits)):
                if position in self.found.words:
                    yield number, position

    def after(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """Other loads: of less than a pointer, or of one whose tag was not kept."""
        memory, lanes = instruction.memory, emitter.layout.lanes
        if memory is None or _loads_pointers(instruction):
            return
        numbers = memory.kind is not MemoryKind.PERMUTE and memory.bytes < POINTER_BYTES
        numbers = numbers and memory.space is not Space.SCRATCH
        for position in bits_of(instruction.decoded.writes & self.written):
            count = lanes if VECTORS >> position & 1 else 0
            self._set(emitter, position, constant(0 if numbers else SEVERAL, 32, count))

    def _call(
        self,
        emitter: WaveEmitter,
        request: MemoryAccess,
        target: AccessTarget,
        rows: Any,
        instruction: int,
    ) -> None:
        parts = (request.action, request.mode, request.lanes, request.bytes, request.detail)
        name = ".".join(("check", *map(str, parts)))
        build = build_compare if request.action == "owner" else build_loaded
        call_observing(emitter, name, request, build, target, rows, (instruction, 0))

    def scalar_access(
        self, emitter: WaveEmitter, instruction: Instruction, address: Any, size: int
    ) -> None:
        builder = emitter.builder
        positions = self.found.accesses.get(instruction.index)
        if positions is not None:
            tags = [self._get(emitter, position) for position in positions]
            tag = reduce(lambda first, other: union(builder, first, other), tags)
            kind = ir.FunctionType(ir.VoidType(), [PTR, I64, I64, I32])
            amount = read_bytes(size)
            name = f"check.owner.scalar.{amount}"

            def recipe(module: ir.Module) -> None:
                build_scalar(ir.Function(module, kind, runtime.OUTLINED + name), amount)

            function = runtime.outline(emitter.module, name, kind, recipe)
            builder.call(function, [emitter.context, address, I64(instruction.index), tag])
        for number, position in self._results(instruction):
            value: Any = I32(0)
            if 4 * number + POINTER_BYTES <= size:
                at = builder.add(address, I64(4 * number))
                value = builder.call(owner_function(emitter.module), [emitter.context, at])
            self._set(emitter, position, value)


def union(builder: ir.IRBuilder, first: Any, other: Any) -> Any:
    """The tag of a value made from two: `SEVERAL` where both are pointers to different owners."""
    count = first.type.count if isinstance(first.type, ir.VectorType) else 0
    nothing = constant(0, 32, count)
    equal = builder.icmp_unsigned("==", first, other)
    mine = builder.or_(equal, builder.icmp_unsigned("==", other, nothing))
    common = builder.select(mine, first, constant(SEVERAL, 32, count))
    return builder.select(builder.icmp_unsigned("==", first, nothing), other, common)


def _loads_pointers(instruction: Instruction) -> bool:
    """Whether an instruction loads from global memory what may be a pointer."""
    memory = instruction.memory
    if memory is None or memory.kind is not MemoryKind.LOAD or memory.bytes < POINTER_BYTES:
        return False
    if memory.space is Space.SCALAR:
        return all(role.kind is not OperandKind.RESOURCE for role in instruction.decoded.roles)
    return memory.space in (Space.GLOBAL, Space.FLAT, Space.BUFFER)


def _rounding(instruction: Instruction) -> str:
    """Atomics of 16 bits are made from those of 32, which reach whole dwords."""
    memory = instruction.memory
    assert memory is not None
    return "rounded" if memory.kind is MemoryKind.ATOMIC else "exact"


__all__ = ["PointerTags"]
