"""Which kernel argument every address comes from.

Forward data flow with one bit per pointer argument. A pointer enters by a scalar load from the
kernel argument segment or by preloading; every instruction passes the union of what it reads on to
what it writes, except comparisons and loads from memory, whose results are data. The result is
flow-sensitive and does not depend on a launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wavecast.analyze.values.execute import passes_on
from wavecast.analyze.values.inputs import user_registers
from wavecast.analyze.values.scratch import Slots
from wavecast.analyze.values.slices import ADDRESS_KINDS, Slices
from wavecast.compile.codeobject import CodeObject
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded, OperandClass
from wavecast.isa.opcode import Access, MemoryKind, Space
from wavecast.isa.program import KernelArgument, KernelDescriptor, Program
from wavecast.isa.registers import EXEC

_POINTER_KINDS = ("global_buffer", "dynamic_shared_pointer")
_SEGMENT = 1 << 0
"""The root of the kernel argument segment itself."""

_GLOBAL = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT, Space.SCALAR})
_COMPARISONS = frozenset({"VOPC", "SOPC"})


class Pointers:
    """The pointer arguments of a kernel, numbered; bit `n + 1` stands for the n-th."""

    def __init__(self, code: CodeObject, descriptor: KernelDescriptor) -> None:
        self.names: list[str] = []
        self._at: dict[int, int] = {}
        kinds = {argument.offset: argument for argument in descriptor.arguments}
        for parameter in code.parameters:
            if parameter.offset is None:
                continue
            known = kinds.get(parameter.offset)
            if _is_pointer(parameter.type, parameter.size, known):
                self._add(parameter.name, parameter.offset, parameter.size or 8)
        if not code.parameters:
            for number, argument in enumerate(descriptor.arguments):
                if argument.kind in _POINTER_KINDS:
                    self._add(argument.name or f"argument {number}", argument.offset, argument.size)

    def _add(self, name: str, offset: int, size: int) -> None:
        self.names.append(name)
        for dword in range(offset // 4, (offset + size) // 4):
            self._at[dword] = 1 << len(self.names)

    def dword(self, index: int) -> int:
        """The root of one dword of the argument segment, 0 for one that is no pointer."""
        return self._at.get(index, 0)

    def of(self, roots: int) -> tuple[str, ...]:
        """The names in a set of roots."""
        return tuple(self.names[bit - 1] for bit in bits_of(roots & ~_SEGMENT))


def _is_pointer(type_name: str, size: int | None, known: KernelArgument | None) -> bool:
    if type_name:
        return "*" in type_name or type_name.startswith("tensordesc")
    if known is not None and known.kind in _POINTER_KINDS:
        return True
    # a structure passed by value may hold pointers
    return known is not None and known.kind == "by_value" and (size or 0) > 8


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


State = dict[int, int]
"""Register -> roots; registers that are missing have none."""


class _Roots:
    def __init__(
        self, program: Program, descriptor: KernelDescriptor, slices: Slices, pointers: Pointers
    ) -> None:
        self.program = program
        self.spills = slices.spills
        self.pointers = pointers
        member = slices.addresses.member
        self.blocks = [
            [i for i in range(block.start, block.stop) if member[i] or self._is_access(i)]
            for block in program.blocks
        ]
        self.entry = self._entry(descriptor)
        self.plans: dict[int, list[_Flow]] = {}

    def _is_access(self, index: int) -> bool:
        memory = self.program.instructions[index].decoded.memory
        return memory is not None and memory.kind is not MemoryKind.PERMUTE

    def _entry(self, descriptor: KernelDescriptor) -> State:
        user = user_registers(descriptor)
        segment, count = user.places.get("kernarg_segment_ptr", (0, 0))
        state = {segment + index: _SEGMENT for index in range(count)}
        for dword, position in user.preloaded:
            root = self.pointers.dword(dword)
            if root:
                state[position] = root
        return state

    def run(self) -> dict[int, tuple[str, ...]]:
        blocks = self.program.blocks
        entering: list[State | None] = [None] * len(blocks)
        entering[0] = self.entry
        order = {block: number for number, block in enumerate(self.program.reverse_postorder)}
        pending = {0}
        while pending:
            index = min(pending, key=order.__getitem__)
            pending.discard(index)
            state = dict(entering[index] or {})
            for position in self.blocks[index]:
                self._apply(position, state)
            for successor in blocks[index].successors:
                if _merge(entering, successor, state):
                    pending.add(successor)
        found: dict[int, tuple[str, ...]] = {}
        for index, members in enumerate(self.blocks):
            state = dict(entering[index] or {})
            for position in members:
                decoded = self.program.instructions[position].decoded
                if self._is_access(position) and position not in self.spills:
                    found[position] = self.pointers.of(_address_roots(decoded, state))
                self._apply(position, state)
        return found

    def _apply(self, index: int, state: State) -> None:
        decoded = self.program.instructions[index].decoded
        slots = self.spills.get(index)
        if slots is not None:
            _move(slots, state)
            return
        memory = decoded.memory
        if memory is not None and memory.kind is not MemoryKind.PERMUTE:
            self._load(decoded, state)
            return
        found = []
        for reads, writes in self._plan(decoded):
            root = 0
            for position in reads:
                root |= state.get(position, 0)
            if len(reads) != len(writes):
                # no plain move: an offset may have been added to the segment's address
                root &= ~_SEGMENT
            found.append((root, writes))
        for root, writes in found:
            for position in writes:
                if root:
                    state[position] = root
                else:
                    state.pop(position, None)

    def _plan(self, decoded: Decoded) -> list[_Flow]:
        """What passes roots on to what: registers read, registers written."""
        key = id(decoded)
        known = self.plans.get(key)
        if known is None:
            moved = _moved_lane(decoded)
            known = [moved] if moved is not None else _flows(decoded)
            self.plans[key] = known
        return known

    def _load(self, decoded: Decoded, state: State) -> None:
        memory = decoded.memory
        assert memory is not None
        writes = bits_of(decoded.writes)
        offset = None
        if memory.space is Space.SCALAR and memory.kind is MemoryKind.LOAD:
            offset = self._segment_offset(decoded, state)
        for position in writes:
            state.pop(position, None)
        if offset is None:
            return
        for number, position in enumerate(writes):
            root = self.pointers.dword(offset // 4 + number)
            if root:
                state[position] = root

    def _segment_offset(self, decoded: Decoded, state: State) -> int | None:
        """The constant offset of a load from the kernel argument segment; None for other loads."""
        base = next((o for o in decoded.operands[1:] if o.kind is OperandClass.SGPR), None)
        if base is None or state.get((base.bits & -base.bits).bit_length() - 1) != _SEGMENT:
            return None
        offset = int(decoded.modifiers.get("offset") or "0", 0)
        for operand in decoded.operands[2:]:
            if operand.kind is OperandClass.CONSTANT and operand.value is not None:
                offset += operand.value
            elif operand.bits:
                return None
        return offset


_Flow = tuple[list[int], list[int]]


def _flows(decoded: Decoded) -> list[_Flow]:
    """By register: everything read reaches everything written, but for 64-bit arithmetic, whose
    low half depends on low halves alone (compilers leave rubbish in high halves they ignore)."""
    if decoded.opcode.form in _COMPARISONS or not passes_on(decoded):
        return [([], bits_of(decoded.writes & ~EXEC))]
    if decoded.second is not None:
        return [_half(decoded), _half(decoded.second)]
    reads, writes = decoded.reads & ~EXEC, decoded.writes & ~EXEC
    wide = [
        (operand.bits, role.access)
        for operand, role in zip(decoded.operands, decoded.roles, strict=True)
        if role.type == "u64" and operand.count == 2
    ]
    results = [bits for bits, access in wide if access is Access.WRITE]
    if len(results) != 1:
        return [(bits_of(reads), bits_of(writes))]
    (low,) = (bits & -bits for bits in results)
    low_reads = reads
    for bits, access in wide:
        if access is Access.READ:
            low_reads &= ~(bits & (bits - 1))
    return [(bits_of(low_reads), bits_of(low)), (bits_of(reads), bits_of(writes & ~low))]


def _half(decoded: Decoded) -> _Flow:
    """One half of a VOPD pair, whose register sets belong to the pair."""
    reads = writes = 0
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access is not Access.WRITE:
            reads |= operand.bits
        if role.access is not Access.READ:
            writes |= operand.bits
    return bits_of(reads), bits_of(writes)


def _moved_lane(decoded: Decoded) -> _Flow | None:
    """The registers of a scalar parked in, or fetched from, a constant lane of a vector register.

    Every such lane counts as a register of its own. None for any other instruction.
    """
    if decoded.opcode.cost_class != "valu_lane" or not decoded.operands:
        return None
    lane = decoded.operands[-1].value
    vectors = [o for o in decoded.operands if o.kind is OperandClass.VGPR]
    scalars = [o for o in decoded.operands if o.bits and o.kind is not OperandClass.VGPR]
    if lane is None or len(vectors) != 1 or len(scalars) > 1:
        return None
    parked = (vectors[0].bits.bit_length() - 1) + ((lane + 1) << 16)
    scalar = bits_of(scalars[0].bits) if scalars else []
    return ([parked], scalar) if decoded.operands[0] is not vectors[0] else (scalar, [parked])


def _address_roots(decoded: Decoded, state: State) -> int:
    found = 0
    tensor = decoded.opcode.form == "TENSOR"
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        scalar_base = decoded.opcode.form == "SMEM" and role.access is Access.READ
        if role.kind in ADDRESS_KINDS or scalar_base or tensor:
            for position in bits_of(operand.bits):
                found |= state.get(position, 0)
    return found


def _move(slots: Slots, state: State) -> None:
    source, target = slots.register, slots.first
    if slots.load:
        source, target = target, source
    for index in range(slots.count):
        root = state.get(source + index, 0)
        if root:
            state[target + index] = root
        else:
            state.pop(target + index, None)


def _merge(entering: list[State | None], block: int, state: State) -> bool:
    """Join a state into a block's entry; True when that changed it."""
    known = entering[block]
    if known is None:
        entering[block] = dict(state)
        return True
    changed = False
    for position, root in state.items():
        joined = known.get(position, 0) | root
        if joined != known.get(position):
            known[position] = joined
            changed = True
    return changed
