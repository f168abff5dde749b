"""Where a NaN or an infinity that an instruction computes can end up.

The results of each floating-point instruction are followed through lane-wise arithmetic, and
through comparisons to what these select. They may reach only the intermediate steps of a division,
which its last step replaces (`FATE_NONE`), or only stores and selections that may leave them out:
the compiler computes masked-off elements too, and both sides of a selection. Then what counts is
what is stored or selected (`number_decisions.py`).
All other uses count at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from wavecast.emulate.check.dataflow.flows import VECTORS
from wavecast.emulate.check.dataflow.scalar_steps import constant_written
from wavecast.emulate.lower.sites import data_operands, shape_letters
from wavecast.emulate.lower.whole import is_lane_wise
from wavecast.isa.defuse import DefUse, bits_of
from wavecast.isa.instruction import Decoded, Instruction, Operand
from wavecast.isa.opcode import Control, MemoryKind, OpcodeFlag, OperandAccess, OperandKind, Space
from wavecast.isa.program import Program
from wavecast.isa.registers import EXEC, VCC
from wavecast.isa.semantics.formats import BF16, F16, F32, F64

_STORES = frozenset({MemoryKind.STORE, MemoryKind.ATOMIC})
_MEMORY = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT})
_INFINITIES = frozenset({F16.exponent_mask, F32.exponent_mask, F64.exponent_mask >> 32})
_MOST_NODES = 2000
"""Instructions behind which a result is not followed further: it counts at once."""


@dataclass(frozen=True, slots=True)
class LaneSelection:
    """A selection by a lane mask (its registers). `side` is whether the followed value is the one
    for lanes whose bit is set."""

    instruction: int
    mask: int
    side: bool


@dataclass(frozen=True, slots=True)
class Fate:
    """What decides whether special results of an instruction count: `selections` leave lanes out,
    `last` is the selection that decides (None: the `stores` do). Those of loops (`carried`) stay
    in registers after a decision. NaNs count `at_once` where only infinities have a fate."""

    selections: tuple[LaneSelection, ...] = ()
    last: LaneSelection | None = None
    stores: frozenset[int] = frozenset()
    carried: bool = False
    infinite: bool = True
    """Whether an infinity can be seen: not one that overflowed, where all uses divide by it."""
    at_once: bool = False


FATE_NONE = Fate()
"""Nothing that counts: a division's last step replaces the value."""


@dataclass(slots=True)
class _Slice:
    """Nodes (instruction, part of a pair) that a value reaches, and how: `edges` to further nodes;
    `sides` of selections; terminals by node; `inverting` ones divide by it."""

    edges: dict[tuple[int, int], set[tuple[int, int]]] = field(default_factory=dict)
    sides: dict[tuple[int, int], set[bool]] = field(default_factory=dict)
    stores: set[tuple[int, int]] = field(default_factory=set)
    others: set[tuple[int, int]] = field(default_factory=set)
    inverting: set[tuple[int, int]] = field(default_factory=set)
    replaced: bool = False

    def unused_nodes(self) -> set[tuple[int, int]]:
        """Nodes without a use: their value stays in lanes that the next writer leaves alone."""
        nodes = {node for targets in self.edges.values() for node in targets}
        return nodes - self.edges.keys() - self.stores - self.others


class NumberUses:
    """The fates of the results of a program's instructions."""

    def __init__(self, program: Program) -> None:
        self.program, self.defuse = program, DefUse(program)

    def fate(self, instruction: Instruction) -> Fate | None:
        """None where the results count at once."""
        written = instruction.decoded.writes
        if instruction.opcode.matrix is not None or written & EXEC:
            return None
        if written & ~VECTORS and not _compares(instruction.decoded):
            return None
        start = instruction.index, -1
        graph = self._slice(start, written)
        if graph is None:
            return None
        graph.others |= graph.unused_nodes()
        if not graph.stores and not graph.others:
            return FATE_NONE if graph.replaced else None
        return self._fate(graph, start)

    def _slice(self, start: tuple[int, int], registers: int) -> _Slice | None:
        """None for one that is too large."""
        graph = _Slice()
        values = {start: registers}
        stack = [start]
        while stack:
            node = stack.pop()
            if len(values) > _MOST_NODES:
                return None
            for target, bits in self._users(node[0], values[node]):
                onward = self._reach(graph, node, target, bits)
                if onward and onward | values.get(target, 0) != values.get(target, 0):
                    values[target] = values.get(target, 0) | onward
                    stack.append(target)
        return graph

    def _users(self, index: int, registers: int) -> Iterator[tuple[tuple[int, int], int]]:
        """The parts of instructions that read a value, and in which registers."""
        for user in sorted(self.defuse.uses(index)):
            for number, decoded in enumerate(parts(self.program.instructions[user])):
                bits = 0
                for bit in bits_of(_reads(decoded) & registers):
                    if self._arrives(index, user, decoded, bit):
                        bits |= 1 << bit
                if bits:
                    yield (user, number), bits

    def _arrives(self, index: int, user: int, decoded: Decoded, bit: int) -> bool:
        """Whether the value of a register that an instruction writes is what another reads. Half a
        register may have been written again in between."""
        definitions = self.defuse.definitions(user, bit)
        half = _half(decoded, 1 << bit)
        if index not in definitions or not half:
            return index in definitions
        block = self.defuse.block_of(user)
        return not any(
            index < other < user
            and self.defuse.block_of(index) == block
            and _half(self.program.instructions[other].decoded, 1 << bit) == half
            for other in definitions
        )

    def constant(self, index: int, operand: Operand) -> int | None:
        """The value of an operand, where moves of one constant give it."""
        if operand.value is not None or operand.bits.bit_count() != 1:
            return operand.value
        (bit,) = bits_of(operand.bits)
        values = {
            self._move_constant(definition, bit)
            for definition in self.defuse.definitions(index, bit)
        }
        return values.pop() if len(values) == 1 else None

    def _move_constant(self, index: int, bit: int) -> int | None:
        """The constant that an instruction moves to a register."""
        if index < 0:
            return None
        for decoded in parts(self.program.instructions[index]):
            if OpcodeFlag.MOVE in decoded.opcode.flags and decoded.writes >> bit & 1:
                return decoded.operands[1].value
        return constant_written(self.program.instructions[index].decoded)

    def _reach(
        self, graph: _Slice, node: tuple[int, int], target: tuple[int, int], bits: int
    ) -> int:
        """Note a use; the registers that the value is in afterwards."""
        instruction = self.program.instructions[target[0]]
        decoded = parts(instruction)[target[1]]
        flags = decoded.opcode.flags
        targets = graph.edges.setdefault(node, set())
        if OpcodeFlag.DIVISION_END in flags and not bits & _division_operands(decoded):
            graph.replaced = True
            return 0
        if self._tests_class(target[0], decoded):
            return 0
        targets.add(target)
        if _inverts(decoded, bits):
            graph.inverting.add(target)
        if stores_data(decoded, bits):
            graph.stores.add(target)
            return 0
        written = _writes(decoded)
        if (_compares(decoded) or _combines_masks(decoded)) and not written & EXEC:
            return written
        step = OpcodeFlag.DIVISION in flags
        if not step and not _passes(decoded):
            graph.others.add(target)
            return 0
        if selection_mask(decoded) and len(selection_masks(instruction)) == 1:
            first, second = selected_operands(decoded)
            sides = graph.sides.setdefault(target, set())
            sides |= {
                side for side, operand in ((False, first), (True, second)) if operand.bits & bits
            }
            if bits & ~VECTORS or any(
                _is_nan(self.constant(target[0], operand)) for operand in (first, second)
            ):
                sides |= {False, True}  # conversions select a NaN for a NaN
        return written & VECTORS

    def _tests_class(self, index: int, decoded: Decoded) -> bool:
        """Whether an instruction asks if a number is special."""
        if OpcodeFlag.CLASSIFIES in decoded.opcode.flags:
            return True
        if not _compares(decoded):
            return False
        first, second = decoded.operands[-2:]
        if first.bits and first.bits == second.bits:  # a NaN is not equal to itself
            return True
        return any(self.constant(index, operand) in _INFINITIES for operand in (first, second))

    def _fate(self, graph: _Slice, start: tuple[int, int]) -> Fate | None:
        groups = self._groups(graph)
        ends = graph.others or graph.stores
        infinite = self._infinite(graph, start)
        cuts = [nodes for nodes in groups.values() if not _reaches(graph, start, nodes, ends)]
        selections = tuple(
            sorted((self._selection(graph, nodes) for nodes in cuts), key=lambda s: s.instruction)
        )
        if graph.others:
            if not selections:
                return None if infinite else Fate(infinite=False, at_once=True)
            last = selections[-1]
            nodes = next(nodes for nodes in cuts if min(nodes)[0] == last.instruction)
            if _reaches(graph, start, nodes, graph.stores):
                return None
            return Fate(selections, last, infinite=infinite)
        stores = frozenset(index for index, _ in graph.stores)
        return Fate(selections, None, stores, _has_cycle(graph), infinite)

    def _infinite(self, graph: _Slice, start: tuple[int, int]) -> bool:
        flags = self.program.instructions[start[0]].opcode.flags
        if flags & {OpcodeFlag.INVERSE, OpcodeFlag.DIVISION_END}:
            return True
        return _reaches(graph, start, graph.inverting, graph.others | graph.stores)

    def _groups(self, graph: _Slice) -> Mapping[object, set[tuple[int, int]]]:
        """The selections with the followed value on one side, those by the same mask together."""
        groups: dict[object, set[tuple[int, int]]] = {}
        for node, sides in graph.sides.items():
            if len(sides) != 1:
                continue
            mask = selection_mask(parts(self.program.instructions[node[0]])[node[1]])
            values = tuple(self.defuse.definitions(node[0], bit) for bit in bits_of(mask))
            groups.setdefault((mask, values, *sides), set()).add(node)
        return groups

    def _selection(self, graph: _Slice, nodes: set[tuple[int, int]]) -> LaneSelection:
        first = min(nodes)
        (side,) = graph.sides[first]
        return LaneSelection(
            first[0], selection_mask(parts(self.program.instructions[first[0]])[first[1]]), side
        )


def parts(instruction: Instruction) -> list[Decoded]:
    """The instruction, or both of a pair."""
    decoded = instruction.decoded
    return [decoded] if decoded.second is None else [decoded, decoded.second]


def _writes(decoded: Decoded) -> int:
    """The registers that an instruction, or one of a pair, writes."""
    return _registers_by_access(decoded, decoded.writes, OperandAccess.READ)


def _reads(decoded: Decoded) -> int:
    """The registers that an instruction, or one of a pair, reads."""
    registers = _registers_by_access(decoded, decoded.reads, OperandAccess.WRITE)
    return registers | (VCC if "vcc" in decoded.opcode.implicit_reads else 0)


def _registers_by_access(decoded: Decoded, registers: int, other: OperandAccess) -> int:
    """The registers of operands with another access than `other`. The first of a pair has the
    registers of both."""
    if decoded.second is None:
        return registers
    mask = 0
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access is not other:
            mask |= operand.bits
    return mask


def selection_mask(decoded: Decoded) -> int:
    """The registers of the lane mask that an instruction selects by; 0 for others."""
    if OpcodeFlag.CHOICE not in decoded.opcode.flags:
        return 0
    if "vcc" in decoded.opcode.implicit_reads:
        return VCC
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.kind is OperandKind.LANE_MASK and role.access is OperandAccess.READ:
            return operand.bits
    return 0


def selection_masks(instruction: Instruction) -> set[int]:
    """The masks that the selections of an instruction use; a pair may have two."""
    return {mask for decoded in parts(instruction) if (mask := selection_mask(decoded))}


def selected_operands(decoded: Decoded) -> tuple[Operand, Operand]:
    """What a selection takes for a bit of 0, and of 1."""
    _, first, second = decoded.operands[:3]
    return first, second


def _division_operands(decoded: Decoded) -> int:
    """The registers of divisor and dividend in the last step of a division."""
    return decoded.operands[2].bits | decoded.operands[3].bits


def _half(decoded: Decoded, register: int) -> str:
    """`l` or `h` where an instruction only accesses half of a vector register, else ""."""
    if decoded.memory is not None:
        small = stores_data(decoded, register) and decoded.memory.bytes < 4
        return shape_letters(decoded).strip("sk").replace("n", "l") if small else ""
    halves = {operand.half for operand in decoded.operands if operand.bits & register}
    return halves.pop() if len(halves) == 1 else ""


def _inverts(decoded: Decoded, bits: int) -> bool:
    """Whether an instruction divides by the value."""
    if OpcodeFlag.DIVISION_END in decoded.opcode.flags:
        return not bits & decoded.operands[3].bits
    return OpcodeFlag.INVERSE in decoded.opcode.flags


def _compares(decoded: Decoded) -> bool:
    """Whether the result of an instruction is a lane mask."""
    if decoded.memory is not None or decoded.writes & VECTORS:
        return False
    return any(
        role.kind is OperandKind.LANE_MASK and role.access is OperandAccess.WRITE
        for role in decoded.roles
    )


def _combines_masks(decoded: Decoded) -> bool:
    return decoded.opcode.form in ("SOP1", "SOP2") and decoded.opcode.control is Control.NONE


def _is_nan(value: int | None) -> bool:
    """Whether a constant, or half of it, is a NaN."""
    if value is None:
        return False
    return any(
        number & fmt.exponent_mask == fmt.exponent_mask and number & (1 << fmt.fraction) - 1
        for fmt in (F32, F16, BF16)
        for number in ({value, value >> 16} if fmt.bits == 16 else {value})
        if number < 1 << fmt.bits
    )


def stores_data(decoded: Decoded, bits: int) -> bool:
    """Whether the registers are data that goes to global memory."""
    memory = decoded.memory
    if memory is None or memory.kind not in _STORES or memory.space not in _MEMORY:
        return False
    data = 0
    for operand, _ in data_operands(decoded):
        data |= operand.bits
    return not bits & ~data


def _passes(decoded: Decoded) -> bool:
    """Whether each lane's result, in a vector register, depends on that lane alone."""
    opcode = decoded.opcode
    if decoded.memory is not None or not opcode.is_vector or opcode.matrix is not None:
        return False
    if opcode.control is not Control.NONE or _writes(decoded) & ~VECTORS:
        return False
    return bool(_writes(decoded)) and is_lane_wise(decoded)


def _reaches(
    graph: _Slice,
    start: tuple[int, int],
    without: Iterable[tuple[int, int]],
    ends: set[tuple[int, int]],
) -> bool:
    """Whether the value reaches one of some nodes on a way that leaves out others."""
    nodes, stack = {start, *without}, [start]
    while stack:
        for node in graph.edges.get(stack.pop(), ()):
            if node in ends and node not in nodes:
                return True
            if node not in nodes:
                nodes.add(node)
                stack.append(node)
    return False


def _has_cycle(graph: _Slice) -> bool:
    """Whether the value can stay in registers over iterations of a loop."""
    waiting = dict.fromkeys(graph.edges, 0)
    for targets in graph.edges.values():
        for node in targets:
            waiting[node] = waiting.get(node, 0) + 1
    ready = [node for node, count in waiting.items() if not count]
    remainder = len(waiting)
    while ready:
        remainder -= 1
        for node in graph.edges.get(ready.pop(), ()):
            waiting[node] -= 1
            if not waiting[node]:
                ready.append(node)
    return remainder > 0


__all__ = [
    "FATE_NONE",
    "Fate",
    "LaneSelection",
    "NumberUses",
    "parts",
    "selected_operands",
    "selection_mask",
    "selection_masks",
    "stores_data",
]
