"""Accesses whose pointer only execution tells: chosen from several, or loaded from memory.

Addresses made from one argument are compared with that argument's tensor (`bounds.py`). For the
others this follows the low halves of their addresses backwards, to the registers whose tensor has
to be known while the kernel runs (`pointer_tags.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from wavecast.analyze.values.inputs import user_registers
from wavecast.analyze.values.memory_step import constant_offset
from wavecast.emulate.check.dataflow.flows import VECTORS, FlowForm, vector_flows
from wavecast.emulate.check.dataflow.influence import Bits, InfluenceOps, Reach, UndefinedSource
from wavecast.emulate.lower.mode import machine_of
from wavecast.emulate.lower.operands import constant_bits
from wavecast.isa import semantics
from wavecast.isa.defuse import ENTRY, DefUse, bits_of
from wavecast.isa.instruction import Decoded, Instruction, OperandClass
from wavecast.isa.opcode import MemoryKind, OperandAccess, OperandKind, Role, Space
from wavecast.isa.program import Kernel, KernelDescriptor
from wavecast.isa.registers import special
from wavecast.isa.semantics.machine import FloatMode

_GLOBAL: Final = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT, Space.SCALAR})
POINTER_BYTES: Final = 8
_ANYWHERE: Final = frozenset({Reach.PERMUTED, Reach.ANY, Reach.ACTIVE})
_SCC: Final = special("scc").bit_length() - 1


@dataclass(frozen=True, slots=True)
class PointerFlow:
    """How one register written depends on registers read.

    Where there is a `choice` (the first scalar register of a lane mask, or SCC) the value is from
    `sources` where it is set, and from `otherwise` where it is not. `known` is False where it may
    come from any lane.
    """

    target: int
    form: FlowForm
    sources: tuple[UndefinedSource, ...]
    otherwise: tuple[UndefinedSource, ...] = ()
    choice: int | None = None
    known: bool = True

    @property
    def registers(self) -> Iterable[int]:
        """The positions of the registers it depends on."""
        return (source.cell >> 1 for source in (*self.sources, *self.otherwise))


class PointerFlows:
    """The flows of instructions that touch no memory."""

    def __init__(self, kernel: Kernel) -> None:
        self.machine: FloatMode = machine_of(kernel.program.target, kernel.descriptor)
        self.lanes = kernel.descriptor.wave_size
        self._known: dict[int, tuple[PointerFlow, ...]] = {}

    def of(self, decoded: Decoded) -> tuple[PointerFlow, ...]:
        """The flows of an instruction; none for one that makes no address."""
        flows = self._known.get(id(decoded))
        if flows is None:
            flows = self._known[id(decoded)] = tuple(self._compute_flows(decoded))
        return flows

    def _compute_flows(self, decoded: Decoded) -> list[PointerFlow]:
        opcode = decoded.opcode
        if decoded.memory is not None or opcode.matrix is not None:
            return []
        if opcode.is_vector:
            halves = [decoded] if decoded.second is None else [decoded, decoded.second]
            return [flow for half in halves for flow in self._vector(half)]
        if semantics.of(opcode) is None or opcode.role is Role.MESSAGE:
            return []
        return self._scalar(decoded)

    def _vector(self, decoded: Decoded) -> list[PointerFlow]:
        """The flows of both halves of each register as one."""
        by_register: dict[int, PointerFlow] = {}
        for flow in vector_flows(decoded, self.machine, self.lanes, {}, all_active=False):
            if flow.form is FlowForm.MASK:
                continue
            position = flow.target >> 1
            sources, otherwise = _registers(flow.sources), _registers(flow.otherwise)
            choice = flow.choice >> 1 if flow.choice is not None else None
            is_known = not any(s.reach in _ANYWHERE for s in (*flow.sources, *flow.otherwise))
            other = by_register.get(position)
            if other is not None:
                sources = _union(other.sources, sources)
                otherwise = _union(other.otherwise, otherwise)
                is_known = is_known and other.known and choice == other.choice
            by_register[position] = PointerFlow(
                position, flow.form, sources, otherwise, choice, is_known
            )
        return list(by_register.values())

    def _scalar(self, decoded: Decoded) -> list[PointerFlow]:
        plain = self._scalar_sources(decoded, None)
        if "scc" not in decoded.opcode.implicit_reads:
            return [PointerFlow(p, FlowForm.SCALAR, sources) for p, sources in plain.items()]
        if_set, other = (self._scalar_sources(decoded, value) for value in (1, 0))
        return [
            PointerFlow(p, FlowForm.SCALAR, plain[p])
            if set(if_set[p]) & set(other[p])
            else PointerFlow(p, FlowForm.SCALAR, if_set[p], other[p], _SCC)
            for p in plain
        ]

    def _scalar_sources(
        self, decoded: Decoded, scc: int | None
    ) -> dict[int, tuple[UndefinedSource, ...]]:
        """For every register written, the registers it depends on; SCC is a constant or unknown."""
        meaning = semantics.of(decoded.opcode)
        assert meaning is not None
        ops = InfluenceOps(self.machine, self.lanes)
        values = [
            self._input(ops, decoded, index)
            for index, role in enumerate(decoded.roles)
            if role.access is not OperandAccess.WRITE and role.kind is not OperandKind.LABEL
        ]
        for name in decoded.opcode.implicit_reads:
            is_constant = name == "scc" and scc is not None
            values.append(ops.const(scc or 0, 1) if is_constant else Bits({}))
        results = iter(meaning.evaluate(ops, *values))
        by_position: dict[int, tuple[UndefinedSource, ...]] = {}
        for operand, role in zip(decoded.operands, decoded.roles, strict=True):
            if role.access not in (OperandAccess.WRITE, OperandAccess.READ_WRITE):
                continue
            value = next(results)
            for number, position in enumerate(bits_of(operand.bits)):
                mask = 0xFFFFFFFF << 32 * number
                by_position[position] = tuple(s for s, bits in value.depends.items() if bits & mask)
        return by_position

    def _input(self, ops: InfluenceOps, decoded: Decoded, index: int) -> Bits:
        operand, role = decoded.operands[index], decoded.roles[index]
        bits = 32 * role.dwords if role.dwords else 32
        if operand.kind is OperandClass.CONSTANT:
            return ops.const(constant_bits(operand, role, bits), bits)
        depends = {
            UndefinedSource(2 * position, Reach.UNIFORM): 0xFFFFFFFF << 32 * number
            for number, position in enumerate(bits_of(operand.bits))
        }
        return Bits(depends)


def _registers(sources: Iterable[UndefinedSource]) -> tuple[UndefinedSource, ...]:
    """Sources by register (the low cell of each), without lane masks."""
    registers = (
        UndefinedSource(source.cell & ~1, source.reach)
        for source in sources
        if source.reach is not Reach.MASK and source.reach not in _ANYWHERE
    )
    return tuple(dict.fromkeys(registers))


def _union(
    first: tuple[UndefinedSource, ...], other: tuple[UndefinedSource, ...]
) -> tuple[UndefinedSource, ...]:
    return tuple(dict.fromkeys((*first, *other)))


@dataclass(frozen=True, slots=True)
class Provenance:
    """The accesses that are followed, and the registers whose tensor must be known for them.

    `accesses`: instruction -> registers (positions) with the low half of an address. `words`:
    register -> its first word (32 bits) among those of a wave, one per lane for a vector register.
    `preloaded`: register -> dword of the argument segment that it starts with. `loaded`: accesses
    that may be through a pointer from memory, which need not lie in the tensor of an argument.
    """

    accesses: Mapping[int, tuple[int, ...]]
    words: Mapping[int, int]
    total: int
    preloaded: Mapping[int, int]
    loaded: frozenset[int]


def provenance(kernel: Kernel) -> Provenance:
    """What has to be followed in a kernel; nothing in most."""
    return _Search(kernel).run()


@dataclass(slots=True)
class _Slice:
    """What one address is made from."""

    registers: set[int]
    pointers: set[object]
    loaded: bool = False
    """Whether a pointer may be loaded from memory other than the argument segment."""
    segment: bool = False
    """Whether it is in the argument segment itself."""


class _Search:
    def __init__(self, kernel: Kernel) -> None:
        self.program, self.descriptor = kernel.program, kernel.descriptor
        self.flows = PointerFlows(kernel)
        self.chains = DefUse(self.program)
        user = user_registers(self.descriptor)
        self.segment = user.registers.get("kernarg_segment_ptr", (-1, 0))[0]
        self.preloaded = {position: dword for dword, position in user.preloaded}
        self.pointers = _pointer_dwords(self.descriptor)

    def run(self) -> Provenance:
        accesses: dict[int, tuple[int, ...]] = {}
        tracked: set[int] = set()
        loaded: set[int] = set()
        for instruction in self.program.instructions:
            memory = instruction.memory
            if memory is None or memory.space not in _GLOBAL or memory.kind is MemoryKind.PERMUTE:
                continue
            low = _low_registers(instruction.decoded)
            slice_ = self._slice(instruction, low)
            several = slice_.loaded or len(slice_.pointers) > 1
            if low and several and not slice_.segment:
                accesses[instruction.index] = low
                tracked |= slice_.registers
                loaded |= {instruction.index} if slice_.loaded else set()
        lanes, total = self.descriptor.wave_size, 0
        words: dict[int, int] = {}
        for position in sorted(tracked):
            words[position] = total
            total += lanes if VECTORS >> position & 1 else 1
        preloaded = {p: dword for p, dword in self.preloaded.items() if p in words}
        return Provenance(accesses, words, total, preloaded, frozenset(loaded))

    def _slice(self, access: Instruction, low: tuple[int, ...]) -> _Slice:
        slice_ = _Slice(set(), set())
        work = [(access.index, position) for position in low]
        nodes = set(work)
        while work:
            index, position = work.pop()
            slice_.registers.add(position)
            for definition in self.chains.definitions(index, position):
                if definition == ENTRY:
                    self._entry(slice_, position)
                    continue
                writer = self.program.instructions[definition]
                if writer.memory is not None:
                    self._visit_load(slice_, writer, position)
                    continue
                for flow in self.flows.of(writer.decoded):
                    if flow.target == position:
                        more = {(definition, register) for register in flow.registers} - nodes
                        nodes |= more
                        work += more
        return slice_

    def _entry(self, slice_: _Slice, position: int) -> None:
        slice_.segment |= position == self.segment
        dword = self.preloaded.get(position)
        if dword is not None and self._is_pointer(dword):
            slice_.pointers.add(("preloaded", position))

    def _is_pointer(self, dword: int) -> bool:
        return self.pointers is None or dword in self.pointers

    def _visit_load(self, slice_: _Slice, load: Instruction, position: int) -> None:
        """A register that a load writes: a pointer, if the next register has its high half."""
        memory = load.memory
        assert memory is not None
        if memory.kind is not MemoryKind.LOAD or memory.space not in _GLOBAL:
            return
        if memory.bytes < POINTER_BYTES or not load.decoded.writes >> position + 1 & 1:
            return
        dword = self._segment_dword(load, position)
        if dword is None:
            slice_.loaded = True
            slice_.pointers.add((load.index, position))
        elif self._is_pointer(dword):
            slice_.pointers.add(dword)

    def _segment_dword(self, load: Instruction, position: int) -> int | None:
        """The dword of the argument segment that a register is loaded from, None for other
        memory."""
        decoded = load.decoded
        if decoded.opcode.form != "SMEM":
            return None
        base = next((o for o in decoded.operands[1:] if o.kind is OperandClass.SGPR), None)
        if base is None or self.segment < 0 or not base.bits >> self.segment & 1:
            return None
        if self.chains.definitions(load.index, self.segment) != {ENTRY}:
            return None
        offset = constant_offset(decoded)
        for operand in decoded.operands[2:]:
            if operand.kind is OperandClass.CONSTANT and operand.value is not None:
                offset += operand.value
            elif operand.bits:
                return None
        first = decoded.operands[0].bits
        return offset // 4 + position - ((first & -first).bit_length() - 1)


def _low_registers(decoded: Decoded) -> tuple[int, ...]:
    """The registers with the low half of a 64-bit address, or of a descriptor's base."""
    registers: list[int] = []
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        scalar_base = decoded.opcode.form == "SMEM" and role.access is OperandAccess.READ
        wide = operand.bits.bit_count() >= 2
        address = role.kind in (
            OperandKind.ADDRESS, OperandKind.SCALAR_ADDRESS, OperandKind.RESOURCE,
        )  # fmt: skip
        # the address of a buffer access is an offset, of one register or an index and one
        buffer = decoded.memory is not None and decoded.memory.space is Space.BUFFER
        if buffer and role.kind is OperandKind.ADDRESS:
            continue
        if wide and (address or (scalar_base and operand is not decoded.operands[0])):
            registers.append((operand.bits & -operand.bits).bit_length() - 1)
    return tuple(registers)


def _pointer_dwords(descriptor: KernelDescriptor) -> set[int] | None:
    """The dwords of the argument segment where a pointer may start; None where nothing is known of
    the arguments."""
    if not descriptor.arguments:
        return None
    dwords: set[int] = set()
    for argument in descriptor.arguments:
        number = argument.kind == "by_value" and argument.size <= POINTER_BYTES
        if number or argument.kind.startswith("hidden_"):
            continue
        dwords |= set(range(argument.offset // 4, (argument.offset + argument.size) // 4))
    return dwords


__all__ = ["POINTER_BYTES", "PointerFlow", "PointerFlows", "Provenance", "provenance"]
