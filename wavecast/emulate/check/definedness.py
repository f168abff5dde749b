"""What is known at translation of which registers are written where they are read.

A forward data flow over the program: for every cell (`flows.py`) the set of lanes that have been
written, for every scalar register whether all its bits have, and the sets of lanes EXEC and masks
stand for (`lane_sets.py`). What it proves needs no code; the rest is a `Step`, and a backward data
flow finds the cells whose undefined lanes a later use can see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from wavecast.analyze.values.inputs import user_registers
from wavecast.emulate.check import lane_sets
from wavecast.emulate.check.flows import (
    VECTORS,
    Flow,
    Form,
    first_cell,
    halves,
    matrix_flows,
    memory_flows,
    scalars,
    vector_flows,
)
from wavecast.emulate.check.influence import Reach, Source
from wavecast.emulate.check.lane_sets import EVERY, NONE, covers, unknown
from wavecast.emulate.check.uses import Use, uses
from wavecast.emulate.lower.mode import machine_of
from wavecast.emulate.lower.operands import constant_bits
from wavecast.emulate.lower.sites import shape_letters
from wavecast.isa import semantics
from wavecast.isa.instruction import Decoded, Instruction, OperandClass
from wavecast.isa.opcode import Access, Control, MemoryKind, OperandKind, Role
from wavecast.isa.program import Kernel, KernelDescriptor, Program
from wavecast.isa.registers import (
    EXEC,
    M0,
    SCC,
    SGPR_BASE,
    SGPRS,
    SPECIAL_BASE,
    TTMP_BASE,
    TTMP_COUNT,
    VCC,
    VGPR_BASE,
    span,
)
from wavecast.isa.semantics.integers import IntegerOps
from wavecast.isa.targets import TARGET_SETS, isa_target

_PASSES = 24
"""Passes after which everything that still changes is taken as unknown."""
_SILENT = frozenset({Role.WAIT, Role.HINT, Role.NOP, Role.CACHE, Role.PREFETCH, Role.BARRIER})


@dataclass(slots=True)
class Step:
    """What one instruction does to cells.

    `defined` are cells whose result is known to be written, in the lanes of EXEC; of those in
    `whole` nothing else is left. `flows` may bring undefined lanes along (their `sources` are those
    that may be undefined), `scalars` are scalar cells a scalar instruction reads that may be;
    `uses` are what would be reported. All of them are empty for most instructions.
    """

    defined: int = 0
    whole: int = 0
    flows: tuple[Flow, ...] = ()
    scalars: int = 0
    uses: tuple[Use, ...] = ()
    written: int = 0
    """Scalar cells a scalar instruction with `scalars` writes."""
    to_exec: bool = False
    """Whether it writes EXEC too, which is a use."""


@dataclass(slots=True)
class Definedness:
    """Steps by instruction; cells whose mask is of use at the start of the program and after each
    instruction, as sets of bits."""

    steps: list[Step]
    entry: int
    after: list[int]


def initially_defined(descriptor: KernelDescriptor, target: str) -> tuple[int, int]:
    """The vector and the scalar registers that hold something when a wave starts, as sets.

    Source: LLVM "User Guide for AMDGPU Backend", "Initial Kernel Execution State". Work-item ids
    are packed into v0 on all targets here.
    """
    position = user_registers(descriptor).end
    if isa_target(target) not in TARGET_SETS["gfx12+"]:
        for axis in "xyz":
            asked = f"system_sgpr_workgroup_id_{axis}"
            position += descriptor.directives.get(asked, int(axis == "x"))
        for name in ("workgroup_info", "private_segment_wavefront_offset"):
            position += descriptor.directives.get(f"system_sgpr_{name}", 0)
        if descriptor.directives.get("enable_private_segment"):
            position += 1
    scalars_ = span(SGPR_BASE, 0, position - SGPR_BASE) | span(TTMP_BASE, 0, TTMP_COUNT)
    special = ~(VCC | SCC | M0) & ~((1 << SPECIAL_BASE) - 1) & ((1 << SPECIAL_BASE + 16) - 1)
    return span(VGPR_BASE, 0, 1), scalars_ | special


@dataclass(slots=True)
class _State:
    """What is known at one place. Absent lanes are `base`."""

    execute: int
    base: int
    lanes: dict[int, int]
    masks: dict[int, int]
    scalars: int
    constants: dict[int, int] = field(default_factory=dict)

    def copy(self) -> _State:
        return _State(
            self.execute, self.base, dict(self.lanes), dict(self.masks), self.scalars,
            dict(self.constants),
        )  # fmt: skip

    def at(self, cell: int) -> int:
        return self.lanes.get(cell, self.base)

    def idle(self) -> None:
        """EXEC is empty here: whatever holds for its lanes holds."""
        self.base |= self.execute
        for cell in self.lanes:
            self.lanes[cell] |= self.execute


def analyse(kernel: Kernel) -> Definedness:
    """Both data flows. Raises Unsupported for a MODE that is not executed."""
    return _backward(kernel.program, _Forward(kernel).run())


class _Forward:
    def __init__(self, kernel: Kernel) -> None:
        self.program = kernel.program
        self.machine = machine_of(kernel.program.target, kernel.descriptor)
        self.lanes = kernel.descriptor.wave_size
        self.descriptor = kernel.descriptor
        order = list(self.program.reverse_postorder)
        self.rank = {block: index for index, block in enumerate(order)}
        self.demoted: dict[int, set[object]] = {}
        """By block, what differs between its predecessors for good."""
        self._flows: dict[object, list[Flow]] = {}
        self._uses: dict[int, tuple[Use, ...]] = {}

    def run(self) -> list[Step]:
        vectors, scalar_set = initially_defined(self.descriptor, self.program.target)
        first = _State(EVERY, NONE, dict.fromkeys(halves(vectors), EVERY), {}, scalar_set)
        entering: dict[int, _State] = {0: first}
        leaving: dict[tuple[int, int], _State] = {}
        for number in range(2 * _PASSES):
            changed = False
            for block in self.program.reverse_postorder:
                state = self._joined(block, first, leaving, careful=number >= _PASSES)
                if state is None or (number and entering.get(block) == state):
                    continue
                entering[block] = state.copy()
                changed = True
                for instruction in self.program.block_instructions(block):
                    self._step(instruction, state)
                self._leave(block, state, leaving)
            if not changed:
                break
        steps = [Step() for _ in self.program.instructions]
        for block in self.program.reverse_postorder:
            state = entering[block].copy()
            for instruction in self.program.block_instructions(block):
                steps[instruction.index] = self._step(instruction, state)
        return steps

    # edges

    def _leave(self, block: int, state: _State, leaving: dict[tuple[int, int], _State]) -> None:
        found = self.program.blocks[block]
        last = self.program.instructions[found.stop - 1]
        idle = None
        if last.opcode.control is Control.CONDITIONAL and "exec" in last.opcode.implicit_reads:
            meaning = semantics.of(last.opcode)
            assert meaning is not None
            (taken,) = meaning.evaluate(IntegerOps(), 0)
            follows = block + 1
            jump = next((s for s in found.successors if s != follows), follows)
            idle = jump if taken else follows
        for successor in found.successors:
            if successor == idle and len(found.successors) > 1:
                empty = state.copy()
                empty.idle()
                leaving[block, successor] = empty
            else:
                leaving[block, successor] = state

    def _joined(
        self,
        block: int,
        first: _State,
        leaving: dict[tuple[int, int], _State],
        *,
        careful: bool,
    ) -> _State | None:
        edges = [leaving.get((p, block)) for p in self.program.blocks[block].predecessors]
        states = [state for state in edges if state is not None]
        if block == 0:
            states.append(first)
        if not states:
            return None
        rank = self.rank
        loop = any(rank.get(p, -1) >= rank[block] for p in self.program.blocks[block].predecessors)
        found = states[0].copy()
        for state in states[1:]:
            self._merge(block, found, state, loop)
        if careful and loop:
            found.lanes, found.base = {}, NONE
            found.masks, found.execute = {}, unknown("loop", block)
        demoted = self.demoted.get(block, ())
        for name in demoted:
            self._demote(block, found, name)
        return found

    def _demote(self, block: int, state: _State, name: object) -> None:
        if name == "exec":
            state.execute = unknown("exec", block)
        elif name == "base":
            state.base = NONE
        elif isinstance(name, tuple):
            state.masks[name[0]] = unknown("mask", block, name[0])
        elif isinstance(name, int):
            state.lanes[name] = NONE

    def _merge(self, block: int, into: _State, other: _State, loop: bool) -> None:
        """What both know. Lanes written on both paths are written, except around a loop: there a
        mask of the iteration before is not the mask of this one."""
        demoted = self.demoted.setdefault(block, set())
        into.scalars &= other.scalars
        constants = other.constants
        into.constants = {c: v for c, v in into.constants.items() if constants.get(c) == v}
        if into.execute != other.execute:
            demoted.add("exec")
        for position in into.masks.keys() | other.masks.keys():
            if into.masks.get(position) != other.masks.get(position):
                demoted.add((position,))
        for cell in into.lanes.keys() | other.lanes.keys():
            mine, yours = into.at(cell), other.at(cell)
            if mine == yours:
                into.lanes[cell] = mine
            elif loop:
                demoted.add(cell)
            else:
                into.lanes[cell] = mine & yours
        if into.base != other.base:
            if loop:
                demoted.add("base")
            into.base &= other.base

    # instructions

    def _step(self, instruction: Instruction, state: _State) -> Step:
        decoded, opcode = instruction.decoded, instruction.opcode
        found = Step(uses=self._open_uses(instruction, state))
        if opcode.control is not Control.NONE or opcode.role in _SILENT:
            return found
        if opcode.matrix is not None:
            self._apply(found, state, self._vector(decoded, state))
        elif decoded.memory is not None or opcode.form == "SMEM" or opcode.role is Role.MESSAGE:
            if decoded.writes & VECTORS:
                self._apply(found, state, memory_flows(decoded, _letters(decoded)))
            self._define(state, decoded.writes & ~VECTORS)
            found.defined |= sum(1 << cell for cell in scalars(decoded.writes & ~EXEC))
            found.whole |= sum(1 << cell for cell in scalars(decoded.writes & ~EXEC))
        elif opcode.is_vector:
            self._vector_step(instruction, state, found)
        else:
            self._scalar_step(instruction, state, found)
        return found

    def _open_uses(self, instruction: Instruction, state: _State) -> tuple[Use, ...]:
        known = self._uses.get(id(instruction.decoded))
        if known is None:
            known = self._uses[id(instruction.decoded)] = uses(instruction.decoded)
        return tuple(
            use for each in known
            if (use := each.only(partial(self._may_be_undefined, state))) is not None
        )  # fmt: skip

    def _may_be_undefined(self, state: _State, source: Source) -> bool:
        return not covers(self._covered(state, source), state.execute)

    def _covered(self, state: _State, source: Source) -> int:
        """The lanes of a result for which a source is known to be written."""
        if source.reach in (Reach.UNIFORM, Reach.MASK):
            return EVERY if state.scalars >> (source.cell >> 1) & 1 else NONE
        lanes = state.at(source.cell)
        if source.reach is Reach.OWN:
            return lanes
        needed = EVERY if source.reach in (Reach.ANY, Reach.CHOSEN) else state.execute
        return EVERY if covers(lanes, needed) else NONE

    def _vector(self, decoded: Decoded, state: _State) -> list[Flow]:
        """The flows of a matrix or another vector instruction, kept by what they depend on."""
        if decoded.opcode.matrix is not None:
            found = self._flows.get(id(decoded))
            if found is None:
                found = self._flows[id(decoded)] = matrix_flows(decoded)
            return found
        reads = list(scalars(decoded.reads & SGPRS))
        constants = {cell: state.constants[cell] for cell in reads if cell in state.constants}
        active = state.execute == EVERY
        key = id(decoded), tuple(constants.items()), active
        found = self._flows.get(key)
        if found is None:
            found = vector_flows(
                decoded, self.machine, self.lanes, constants, all_active=active
            )  # fmt: skip
            if decoded.second is not None:
                found = found + vector_flows(
                    decoded.second, self.machine, self.lanes, constants, all_active=active
                )
            self._flows[key] = found
        return found

    def _vector_step(self, instruction: Instruction, state: _State, found: Step) -> None:
        decoded = instruction.decoded
        if self._plainly_defined(decoded, state):
            execute = state.execute
            for cell in halves(decoded.writes):
                state.lanes[cell] = state.at(cell) | execute
                found.defined |= 1 << cell
                if state.lanes[cell] == EVERY:
                    found.whole |= 1 << cell
            written = decoded.writes & ~VECTORS & ~EXEC
            for cell in scalars(written):
                found.defined |= 1 << cell
                found.whole |= 1 << cell
            self._define(state, written)
        else:
            self._apply(found, state, self._vector(decoded, state))
        self._masks_written(instruction, state)

    def _plainly_defined(self, decoded: Decoded, state: _State) -> bool:
        """Every register read is written in EXEC, and the instruction keeps to its own lanes."""
        if "exec" not in decoded.opcode.implicit_reads:
            return False
        wanted = state.execute
        if decoded.opcode.cost_class == "valu_lane" or "fi" in decoded.modifiers:
            wanted = EVERY
        reads = decoded.reads & ~EXEC
        if reads & ~VECTORS & ~state.scalars:
            return False
        return all(covers(state.at(cell), wanted) for cell in halves(reads))

    def _masks_written(self, instruction: Instruction, state: _State) -> None:
        """Lane masks a vector instruction writes are unknown, within EXEC."""
        written = instruction.decoded.writes & ~VECTORS
        if not written:
            return
        self._forget(state, written)
        part = unknown("vector", instruction.index) & state.execute
        if written & EXEC:
            state.execute = part
        first = first_cell(written & ~EXEC) if written & ~EXEC else None
        if first is not None:
            state.masks[first] = part

    def _apply(self, found: Step, state: _State, flows: Iterable[Flow]) -> None:
        """The results of flows, all read before any is written."""
        results = []
        still_open = []
        for flow in flows:
            lanes = self._result(state, flow)
            results.append((flow, lanes))
        for flow, lanes in results:
            bit = 1 << flow.target
            if flow.form in (Form.MASK, Form.SCALAR):
                registers = self._mask_registers(flow)
                good = covers(lanes, state.execute)
                cells = sum(1 << cell for cell in scalars(registers & ~EXEC))
                if good:
                    self._define(state, registers)
                    found.defined |= cells
                    found.whole |= cells
                else:
                    state.scalars &= ~(registers & ~EXEC)
                    still_open.append(self._narrowed(state, flow))
                continue
            good = covers(lanes, EVERY if flow.form is Form.WHOLE else state.execute)
            if flow.form in (Form.PART, Form.ONE_LANE):
                good = good and covers(state.at(flow.target), state.execute)
            if good:
                found.defined |= bit
            else:
                still_open.append(self._narrowed(state, flow))
        for flow, lanes in results:
            if flow.form in (Form.MASK, Form.SCALAR):
                continue
            old = state.at(flow.target)
            execute = state.execute
            if flow.form is Form.WHOLE:
                new = lanes
            elif flow.form is Form.ONE_LANE:
                new = old if lanes == EVERY else NONE
            elif flow.form is Form.PART:
                new = (old & ~execute) | (old & execute & lanes)
            else:
                new = (old & ~execute) | (execute & lanes)
            state.lanes[flow.target] = new
            if new == EVERY and found.defined >> flow.target & 1:
                found.whole |= 1 << flow.target
        found.flows = tuple(still_open)

    def _mask_registers(self, flow: Flow) -> int:
        count = self.lanes // 32 if flow.form is Form.MASK else 1
        return span(flow.target >> 1, 0, count)

    def _result(self, state: _State, flow: Flow) -> int:
        lanes = self._all_covered(state, flow.sources)
        if flow.choice is None:
            return lanes
        other = self._all_covered(state, flow.otherwise)
        if not state.scalars >> (flow.choice >> 1) & 1:
            return NONE
        mask = state.masks.get(flow.choice)
        if mask is None:
            return lanes & other
        return (mask & lanes) | (~mask & EVERY & other)

    def _all_covered(self, state: _State, sources: Iterable[Source]) -> int:
        lanes = EVERY
        for source in sources:
            lanes &= self._covered(state, source)
        return lanes

    def _narrowed(self, state: _State, flow: Flow) -> Flow:
        """The flow with only those sources that may be undefined."""

        def undefined(sources: tuple[Source, ...]) -> tuple[Source, ...]:
            needed = EVERY if flow.form is Form.WHOLE else state.execute
            return tuple(s for s in sources if not covers(self._covered(state, s), needed))

        return Flow(
            flow.target, flow.form, undefined(flow.sources), undefined(flow.otherwise), flow.choice
        )

    # scalar registers

    def _define(self, state: _State, registers: int) -> None:
        if registers:
            state.scalars |= registers & ~VECTORS
            self._forget(state, registers)

    def _forget(self, state: _State, registers: int) -> None:
        """What scalar registers hold is not known any more."""
        for cell in scalars(registers & ~EXEC):
            state.constants.pop(cell, None)
            state.masks.pop(cell, None)
            if self.lanes == 64:
                state.masks.pop(cell - 2, None)

    def _scalar_step(self, instruction: Instruction, state: _State, found: Step) -> None:
        decoded = instruction.decoded
        unwritten = decoded.reads & ~VECTORS & ~EXEC & ~state.scalars
        written = decoded.writes & ~VECTORS
        cells = sum(1 << cell for cell in scalars(written & ~EXEC))
        masks = self._scalar_masks(instruction, state)
        constant = _constant(decoded)
        self._forget(state, written)
        if unwritten:
            found.scalars = sum(1 << cell for cell in scalars(unwritten))
            found.written = cells
            found.to_exec = bool(written & EXEC)
            state.scalars &= ~(written & ~EXEC)
        else:
            state.scalars |= written
            found.defined |= cells
            found.whole |= cells
        for cell, value in masks:
            if cell is None:
                state.execute = value
            else:
                state.masks[cell] = value
        for index, cell in enumerate(scalars(written & SGPRS)):
            if constant is not None:
                state.constants[cell] = constant >> 32 * index & 0xFFFFFFFF

    def _scalar_masks(
        self, instruction: Instruction, state: _State
    ) -> list[tuple[int | None, int]]:
        """Masks written (None: EXEC) with their signatures."""
        decoded = instruction.decoded
        kind = f"b{self.lanes}"
        targets: list[int | None] = []
        for operand, role in zip(decoded.operands, decoded.roles, strict=True):
            if role.access in (Access.WRITE, Access.READ_WRITE):
                if operand.bits & EXEC:
                    targets.append(None)
                elif role.type == kind and operand.bits:
                    targets.append(first_cell(operand.bits))
                else:
                    targets.append(-1)
        for name in decoded.opcode.implicit_writes:
            targets.append(None if name == "exec" else -1)
        if all(target == -1 for target in targets):
            return []
        values = lane_sets.evaluated(
            decoded, self.lanes, list(self._mask_inputs(instruction, state, kind))
        )
        if values is None:
            values = [unknown("scalar", instruction.index, index) for index in range(len(targets))]
        return [
            (target, value)
            for target, value in zip(targets, values, strict=True)
            if target is None or target >= 0
        ]

    def _mask_inputs(
        self, instruction: Instruction, state: _State, kind: str
    ) -> Iterator[int | None]:
        decoded = instruction.decoded
        for operand, role in zip(decoded.operands, decoded.roles, strict=True):
            if role.access is Access.WRITE or role.kind is OperandKind.LABEL:
                continue
            if operand.kind is OperandClass.CONSTANT:
                continue
            if role.type != kind or not operand.bits:
                yield None
            else:
                yield self._mask(instruction, state, operand.bits)
        for name in decoded.opcode.implicit_reads:
            yield state.execute if name == "exec" else None

    def _mask(self, instruction: Instruction, state: _State, registers: int) -> int | None:
        if registers & EXEC:
            whole = registers.bit_count() == self.lanes // 32
            return state.execute if whole else None
        cell = first_cell(registers)
        if cell not in state.masks:
            state.masks[cell] = unknown("read", instruction.index, cell)
        return state.masks[cell]


def _constant(decoded: Decoded) -> int | None:
    """What a scalar move of a constant leaves."""
    meaning = semantics.of(decoded.opcode)
    if meaning is None or decoded.opcode.implicit_reads or len(decoded.operands) != 2:
        return None
    (target, source), (role, own) = decoded.operands, decoded.roles
    if source.kind is not OperandClass.CONSTANT or role.access is not Access.WRITE:
        return None
    value = constant_bits(source, own, 32 * own.dwords if own.dwords else 32)
    result = meaning.evaluate(IntegerOps(), value)[0]
    return result if isinstance(result, int) and target.bits else None


def _letters(decoded: Decoded) -> str:
    memory = decoded.memory
    if memory is None or memory.kind is not MemoryKind.LOAD:
        return "n"
    return shape_letters(decoded)


def _backward(program: Program, steps: list[Step]) -> Definedness:
    """The cells whose undefined lanes may be asked for."""
    live_in = [0] * len(program.blocks)
    after = [0] * len(steps)
    pending = list(program.reverse_postorder)
    while pending:
        index = pending.pop()
        block = program.blocks[index]
        live = 0
        for successor in block.successors:
            live |= live_in[successor]
        for position in range(block.stop - 1, block.start - 1, -1):
            after[position] = live
            live = _before(steps[position], live)
        if live != live_in[index]:
            live_in[index] = live
            pending.extend(block.predecessors)
    return Definedness(steps, live_in[0] if live_in else 0, after)


def _before(step: Step, live: int) -> int:
    wanted = live & ~step.whole
    for flow in step.flows:
        if flow.form in (Form.WHOLE, Form.SCALAR):
            wanted &= ~(1 << flow.target)
        elif flow.form is Form.MASK:
            wanted &= ~(0b101 << flow.target)
    for flow in step.flows:
        reported = flow.form is Form.MASK and EXEC >> (flow.target >> 1) & 1
        asked = 0b101 if flow.form is Form.MASK else 1
        if not reported and not live & asked << flow.target:
            continue
        for source in (*flow.sources, *flow.otherwise):
            wanted |= _cells(source)
        if flow.choice is not None:
            wanted |= 0b101 << flow.choice
    if step.scalars and (step.to_exec or live & step.written):
        wanted = wanted & ~step.written | step.scalars
    for use in step.uses:
        for source in use.sources:
            wanted |= _cells(source)
    return wanted


def _cells(source: Source) -> int:
    return (0b101 if source.reach is Reach.MASK else 1) << source.cell


__all__ = ["Definedness", "Step", "analyse", "initially_defined"]
