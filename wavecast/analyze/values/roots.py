"""Which kernel argument every address comes from.

Forward data flow with one bit per pointer argument. A pointer enters by a scalar load from the
kernel argument segment or by preloading; every instruction passes the union of what it reads on to
what it writes, except comparisons and loads from memory, whose results are data. The result is
flow-sensitive and does not depend on a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wavecast.analyze.values.execute import passes_on
from wavecast.analyze.values.inputs import user_registers
from wavecast.analyze.values.memory_step import constant_offset
from wavecast.analyze.values.pointers import SEGMENT, Pointers
from wavecast.analyze.values.scratch import SLOT_BASE, ScratchDwords
from wavecast.analyze.values.slices import ADDRESS_KINDS, Slices
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded, OperandClass
from wavecast.isa.opcode import MemoryKind, OperandAccess, Space
from wavecast.isa.program import KernelDescriptor, Program
from wavecast.isa.registers import EXEC

# bound once: looking an enum member up costs ten times what comparing it does
_PERMUTE = MemoryKind.PERMUTE
_READ = OperandAccess.READ
_WRITE = OperandAccess.WRITE

_GLOBAL = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT, Space.SCALAR})
_COMPARISONS = frozenset({"VOPC", "SOPC"})


def roots(
    program: Program, descriptor: KernelDescriptor, slices: Slices, pointers: Pointers
) -> dict[int, tuple[str, ...]]:
    """Memory instruction -> the arguments its address comes from (none: not derived)."""
    return _Roots(program, descriptor, slices, pointers).run()


@dataclass(frozen=True, slots=True)
class Uses:
    """What a kernel does with its pointer arguments, by name.

    `updated` are the targets of atomics. `complete` is False when the address of some access to
    global memory could not be traced to an argument: then others may be used as well.
    """

    read: frozenset[str]
    written: frozenset[str]
    updated: frozenset[str]
    complete: bool


def uses(program: Program, arguments: Mapping[int, tuple[str, ...]]) -> Uses:
    """The uses of all arguments, from the arguments of every access (`roots`)."""
    by_kind: dict[MemoryKind, set[str]] = {kind: set() for kind in MemoryKind}
    complete = True
    for index, names in arguments.items():
        memory = program.instructions[index].decoded.memory
        if memory is None or memory.space not in _GLOBAL:
            continue
        by_kind[memory.kind].update(names)
        complete &= bool(names) or memory.space is Space.SCALAR
    return Uses(
        frozenset(by_kind[MemoryKind.LOAD] | by_kind[MemoryKind.LOAD_TO_LDS]),
        frozenset(by_kind[MemoryKind.STORE] | by_kind[MemoryKind.STORE_FROM_LDS]),
        frozenset(by_kind[MemoryKind.ATOMIC]),
        complete,
    )


State = list[int]
"""The registers that each root has reached: the segment's, then those of every pointer."""

Step = Callable[[State], None]


_Member = tuple[int, Step, int | None]
"""An instruction that addresses pass through, or that has one: its index, its effect, and the
registers it takes its address from, None for one whose address is not asked for."""


class _Roots:
    def __init__(
        self, program: Program, descriptor: KernelDescriptor, slices: Slices, pointers: Pointers
    ) -> None:
        self.program = program
        self.spills = slices.spills
        self.pointers = pointers
        self.entry = self._entry(descriptor)
        self.parked: dict[tuple[int, int], int] = {}
        """Register and lane a scalar is parked in -> the bit position that stands for it."""
        self.first_parked = max(
            (slots.first + slots.count for slots in self.spills.values()), default=SLOT_BASE
        )
        self.steps: dict[int, tuple[Step, int | None]] = {}
        traced = slices.traced
        self.blocks = [
            [self._member(index) for index in range(block.start, block.stop) if traced[index]]
            for block in program.blocks
        ]

    def _entry(self, descriptor: KernelDescriptor) -> State:
        user = user_registers(descriptor)
        segment, count = user.registers.get("kernarg_segment_ptr", (0, 0))
        state = [0] * (1 + len(self.pointers.names))
        state[0] = ((1 << count) - 1) << segment
        for dword, position in user.preloaded:
            root = self.pointers.dword(dword)
            if root:
                state[root.bit_length() - 1] |= 1 << position
        return state

    def _member(self, index: int) -> _Member:
        slots = self.spills.get(index)
        if slots is not None:
            return index, _move(slots), None
        decoded = self.program.instructions[index].decoded
        member = self.steps.get(id(decoded))
        if member is None:
            if _is_access(decoded):
                member = self._load(decoded), _addressing(decoded)
            else:
                member = _pass_on(self._flows(decoded)), None
            self.steps[id(decoded)] = member
        step, addressing = member
        return index, step, addressing

    def run(self) -> dict[int, tuple[str, ...]]:
        blocks = self.program.blocks
        entering: list[State | None] = [None] * len(blocks)
        entering[0] = self.entry
        order = {block: number for number, block in enumerate(self.program.reverse_postorder)}
        # blocks that are never reached keep these
        root_sets = {
            position: 0
            for block in self.blocks
            for position, _, addressing in block
            if addressing is not None
        }
        pending = {0}
        while pending:
            index = min(pending, key=order.__getitem__)
            pending.discard(index)
            state = list(entering[index] or ())
            for position, step, addressing in self.blocks[index]:
                if addressing is not None:
                    root_sets[position] = _roots_in(state, addressing)
                step(state)
            for successor in blocks[index].successors:
                if _merge(entering, successor, state):
                    pending.add(successor)
        return {index: self.pointers.of(root_set) for index, root_set in root_sets.items()}

    def _load(self, decoded: Decoded) -> Step:
        """An access: what it loads from the segment is a pointer, anything else is data."""
        memory = decoded.memory
        writes = decoded.writes
        segment = None
        if memory is not None and (memory.space, memory.kind) == (Space.SCALAR, MemoryKind.LOAD):
            segment = _segment_load(decoded)
        if segment is None:
            return _forget(writes)
        base, offset = segment
        roots = [
            (root.bit_length() - 1, 1 << position)
            for number, position in enumerate(bits_of(writes))
            if (root := self.pointers.dword(offset // 4 + number))
        ]

        def step(state: State) -> None:
            from_segment = _roots_in(state, base) == SEGMENT
            for number, carriers in enumerate(state):
                state[number] = carriers & ~writes
            if from_segment:
                for number, bit in roots:
                    state[number] |= bit

        return step

    def _flows(self, decoded: Decoded) -> list[_Flow]:
        lane_flow = self._moved_lane(decoded)
        return [lane_flow] if lane_flow is not None else _flows(decoded)

    def _moved_lane(self, decoded: Decoded) -> _Flow | None:
        """The registers of a scalar parked in, or fetched from, a constant lane of a vector
        register.

        Every such lane counts as a separate register. None for any other instruction.
        """
        if decoded.opcode.cost_class != "valu_lane" or not decoded.operands:
            return None
        lane = decoded.operands[-1].value
        vectors = [o for o in decoded.operands if o.kind is OperandClass.VGPR]
        scalars = [o for o in decoded.operands if o.bits and o.kind is not OperandClass.VGPR]
        if lane is None or len(vectors) != 1 or len(scalars) > 1:
            return None
        parked_lane = vectors[0].bits, lane
        parked = 1 << self.parked.setdefault(parked_lane, self.first_parked + len(self.parked))
        scalar = scalars[0].bits if scalars else 0
        return (parked, scalar) if decoded.operands[0] is not vectors[0] else (scalar, parked)


_Flow = tuple[int, int]
"""Registers read, and those written that receive the roots of all of them."""


def _is_access(decoded: Decoded) -> bool:
    return decoded.memory is not None and decoded.memory.kind is not _PERMUTE


def _roots_in(state: State, registers: int) -> int:
    """The set of roots that some of these registers have."""
    root_set = 0
    for number, carriers in enumerate(state):
        if carriers & registers:
            root_set |= 1 << number
    return root_set


def _forget(writes: int) -> Step:
    def step(state: State) -> None:
        for number, carriers in enumerate(state):
            if carriers & writes:
                state[number] = carriers & ~writes

    return step


def _pass_on(flows: list[_Flow]) -> Step:
    # where registers do not pair up, an offset may have been added to the segment's address
    plain = [reads if reads.bit_count() == writes.bit_count() else 0 for reads, writes in flows]
    overwritten = registers = 0
    for reads, writes in flows:
        overwritten |= writes
        registers |= reads | writes

    def step(state: State) -> None:
        for number, carriers in enumerate(state):
            if not carriers & registers:
                continue
            after = carriers & ~overwritten
            for (reads, writes), segment_reads in zip(flows, plain, strict=True):
                if carriers & (reads if number else segment_reads):
                    after |= writes
            state[number] = after

    return step


def _move(slots: ScratchDwords) -> Step:
    source, target = slots.register, slots.first
    if slots.load:
        source, target = target, source
    ones = (1 << slots.count) - 1

    def step(state: State) -> None:
        for number, carriers in enumerate(state):
            state[number] = carriers & ~(ones << target) | (carriers >> source & ones) << target

    return step


def _segment_load(decoded: Decoded) -> tuple[int, int] | None:
    """The base register and constant offset of what may be a load from the argument segment; None
    for a load with an offset in a register."""
    base = next((o for o in decoded.operands[1:] if o.kind is OperandClass.SGPR), None)
    if base is None:
        return None
    offset = constant_offset(decoded)
    for operand in decoded.operands[2:]:
        if operand.kind is OperandClass.CONSTANT and operand.value is not None:
            offset += operand.value
        elif operand.bits:
            return None
    return base.bits & -base.bits, offset


def _flows(decoded: Decoded) -> list[_Flow]:
    """By register: everything read reaches everything written, but for 64-bit arithmetic, whose
    low half depends on low halves alone (compilers leave rubbish in high halves they ignore)."""
    if decoded.opcode.form in _COMPARISONS or not passes_on(decoded):
        return [(0, decoded.writes & ~EXEC)]
    if decoded.second is not None:
        return [_half(decoded), _half(decoded.second)]
    reads, writes = decoded.reads & ~EXEC, decoded.writes & ~EXEC
    wide = [
        (operand.bits, role.access)
        for operand, role in zip(decoded.operands, decoded.roles, strict=True)
        if role.type == "u64" and operand.count == 2
    ]
    results = [bits for bits, access in wide if access is _WRITE]
    if len(results) != 1:
        return [(reads, writes)]
    (low,) = (bits & -bits for bits in results)
    low_reads = reads
    for bits, access in wide:
        if access is _READ:
            low_reads &= ~(bits & (bits - 1))
    return [(low_reads, low), (reads, writes & ~low)]


def _half(decoded: Decoded) -> _Flow:
    """One half of a VOPD pair, whose register sets belong to the pair."""
    reads = writes = 0
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access is not _WRITE:
            reads |= operand.bits
        if role.access is not _READ:
            writes |= operand.bits
    return reads, writes


def _addressing(decoded: Decoded) -> int:
    """The registers an access takes its address from."""
    registers = 0
    tensor = decoded.opcode.form == "TENSOR"
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        scalar_base = decoded.opcode.form == "SMEM" and role.access is _READ
        if role.kind in ADDRESS_KINDS or scalar_base or tensor:
            registers |= operand.bits
    return registers


def _merge(entering: list[State | None], block: int, state: State) -> bool:
    """Join a state into a block's entry; True when that changed it."""
    entry = entering[block]
    if entry is None:
        entering[block] = list(state)
        return True
    joined = [a | b for a, b in zip(entry, state, strict=True)]
    entering[block] = joined
    return joined != entry
