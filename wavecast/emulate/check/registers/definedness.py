"""What is known at translation of which registers are written where they are read.

A forward data flow over the program: for every cell (`flows.py`) the set of lanes that have been
written, for every scalar register whether all its bits have, and the sets of lanes EXEC and masks
stand for (`lane_sets.py`). What it proves needs no code; the rest is a `Step`, and a backward data
flow finds the cells whose undefined lanes a later use can see.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from wavecast.emulate.check.dataflow.flows import (
    INACTIVE_CELL,
    VECTORS,
    Flow,
    FlowForm,
    first_cell,
    halves,
    matrix_flows,
    memory_flows,
    scalars,
    vector_flows,
)
from wavecast.emulate.check.dataflow.influence import Reach, UndefinedSource
from wavecast.emulate.check.dataflow.joins import Joins
from wavecast.emulate.check.dataflow.lane_sets import EVERY, NONE, covers, unknown
from wavecast.emulate.check.dataflow.register_facts import Known, initially_defined
from wavecast.emulate.check.dataflow.scalar_steps import constant_written, masks_written
from wavecast.emulate.check.lds.unwritten import loads_lds, masks_copies
from wavecast.emulate.check.registers.relevance import Definedness, DefinednessStep, relevance
from wavecast.emulate.check.registers.uses import Use, uses
from wavecast.emulate.lower import relative
from wavecast.emulate.lower.mode import machine_of
from wavecast.emulate.lower.sites import shape_letters
from wavecast.emulate.scratch_accesses import may_load_scratch
from wavecast.isa import semantics
from wavecast.isa.instruction import Decoded, Instruction
from wavecast.isa.opcode import Control, MemoryKind, Role
from wavecast.isa.program import Kernel
from wavecast.isa.registers import EXEC, SGPRS, SPECIAL_BASE, span
from wavecast.isa.semantics.integers import IntegerOps

_EVERY_CELL = (1 << 2 * SPECIAL_BASE) - 1
_PASSES = 24
"""Passes after which everything that still changes is taken as unknown."""
_SILENT = frozenset({Role.WAIT, Role.HINT, Role.NOP, Role.CACHE, Role.PREFETCH, Role.BARRIER})


def analyse(kernel: Kernel, *, inactive: bool = False) -> Definedness:
    """Both data flows; with `inactive` from what exchanges read in lanes that are not active, as if
    all else were written. Raises Unsupported for a MODE that is not executed."""
    return relevance(kernel.program, _Forward(kernel, inactive=inactive).run())


class _Forward:
    def __init__(self, kernel: Kernel, *, inactive: bool) -> None:
        self.inactive = inactive
        self.kernel, self.program = kernel, kernel.program
        self.machine = machine_of(kernel.program.target, kernel.descriptor)
        self.lanes = kernel.descriptor.wave_size
        self.descriptor = kernel.descriptor
        self.joins = Joins(self.program)
        self.masks_copies = masks_copies(self.program)
        self._flows: dict[object, list[Flow]] = {}
        self._uses: dict[int, tuple[Use, ...]] = {}

    def _first(self) -> Known:
        """What is known when a wave starts."""
        if self.inactive:
            return Known(self.lanes, EVERY, EVERY, {INACTIVE_CELL: NONE}, {}, -1)
        vectors, scalar_set = initially_defined(self.descriptor, self.program.target)
        defined = dict.fromkeys(halves(vectors), EVERY)
        return Known(self.lanes, EVERY, NONE, defined, {}, scalar_set)

    def run(self) -> list[DefinednessStep]:
        first = self._first()
        entering: dict[int, Known] = {0: first}
        leaving: dict[tuple[int, int], Known] = {}
        for number in range(2 * _PASSES):
            changed = False
            for block in self.program.reverse_postorder:
                state = self.joins.at(block, first, leaving, careful=number >= _PASSES)
                if state is None or (number and entering.get(block) == state):
                    continue
                entering[block] = state.copy()
                changed = True
                for instruction in self.program.block_instructions(block):
                    self._step(instruction, state)
                self._leave(block, state, leaving)
            if not changed:
                break
        steps = [DefinednessStep() for _ in self.program.instructions]
        for block in self.program.reverse_postorder:
            state = entering[block].copy()
            for instruction in self.program.block_instructions(block):
                steps[instruction.index] = self._step(instruction, state)
        return steps

    # edges

    def _leave(self, block: int, state: Known, leaving: dict[tuple[int, int], Known]) -> None:
        basic_block = self.program.blocks[block]
        last = self.program.instructions[basic_block.stop - 1]
        idle = None
        if last.opcode.control is Control.CONDITIONAL and "exec" in last.opcode.implicit_reads:
            meaning = semantics.of(last.opcode)
            assert meaning is not None
            (is_taken,) = meaning.evaluate(IntegerOps(), 0)
            follows = block + 1
            jump = next((s for s in basic_block.successors if s != follows), follows)
            idle = jump if is_taken else follows
        for successor in basic_block.successors:
            if successor == idle and len(basic_block.successors) > 1:
                empty = state.copy()
                empty.idle()
                leaving[block, successor] = empty
            else:
                leaving[block, successor] = state

    # instructions

    def _step(self, instruction: Instruction, state: Known) -> DefinednessStep:
        decoded, opcode = instruction.decoded, instruction.opcode
        step = DefinednessStep(uses=self._open_uses(instruction, state))
        if opcode.role in _SILENT:
            return step
        if opcode.flags & relative.FLAGS:
            state.define_everything()
            step.defined = step.whole = _EVERY_CELL
            return step
        if opcode.matrix is not None:
            self._apply(step, state, self._vector(decoded, state))
        elif opcode.control is not Control.NONE:
            self._define(step, state, decoded.writes & ~VECTORS & ~EXEC)
        elif decoded.memory is not None or opcode.form == "SMEM" or opcode.role is Role.MESSAGE:
            if decoded.writes & VECTORS:
                scratch = not self.inactive and self._may_be_unwritten(decoded)
                some = self.inactive and state.execute != EVERY
                flows = memory_flows(decoded, _letters(decoded), scratch=scratch, inactive=some)
                self._apply(step, state, flows)
            self._define(step, state, decoded.writes & ~VECTORS & ~EXEC)
        elif opcode.is_vector:
            self._vector_step(instruction, state, step)
        else:
            self._scalar_step(instruction, state, step)
        return step

    def _may_be_unwritten(self, decoded: Decoded) -> bool:
        """Whether a load may bring what nothing has written."""
        return may_load_scratch(self.kernel, decoded) or (self.masks_copies and loads_lds(decoded))

    def _open_uses(self, instruction: Instruction, state: Known) -> tuple[Use, ...]:
        all_uses = self._uses.get(id(instruction.decoded))
        if all_uses is None:
            all_uses = self._uses[id(instruction.decoded)] = uses(instruction.decoded)
        return tuple(
            use for each in all_uses
            if (use := each.only(partial(self._may_be_undefined, state))) is not None
        )  # fmt: skip

    def _may_be_undefined(self, state: Known, source: UndefinedSource) -> bool:
        return not covers(self._defined_lanes(state, source), state.execute)

    def _defined_lanes(self, state: Known, source: UndefinedSource) -> int:
        """The lanes of a result for which a source is known to be written."""
        if source.reach in (Reach.UNIFORM, Reach.MASK):
            return EVERY if state.scalars >> (source.cell >> 1) & 1 else NONE
        lanes = state.at(source.cell)
        if source.reach is Reach.OWN:
            return lanes
        required_lanes = EVERY if source.reach in (Reach.ANY, Reach.CHOSEN) else state.execute
        return EVERY if covers(lanes, required_lanes) else NONE

    def _vector(self, decoded: Decoded, state: Known) -> list[Flow]:
        """The flows of a matrix or another vector instruction, kept by what they depend on."""
        if decoded.opcode.matrix is not None:
            flows = self._flows.get(id(decoded))
            if flows is None:
                flows = self._flows[id(decoded)] = matrix_flows(decoded)
            return flows
        reads = list(scalars(decoded.reads & SGPRS))
        constants = {cell: state.constants[cell] for cell in reads if cell in state.constants}
        active = state.execute == EVERY
        key = id(decoded), tuple(constants.items()), active
        flows = self._flows.get(key)
        if flows is None:
            flows = vector_flows(
                decoded, self.machine, self.lanes, constants, all_active=active
            )  # fmt: skip
            if decoded.second is not None:
                flows = flows + vector_flows(
                    decoded.second, self.machine, self.lanes, constants, all_active=active
                )
            self._flows[key] = flows
        return flows

    def _vector_step(self, instruction: Instruction, state: Known, step: DefinednessStep) -> None:
        decoded = instruction.decoded
        if self._plainly_defined(decoded, state):
            execute = state.execute
            for cell in halves(decoded.writes):
                state.lanes[cell] = state.at(cell) | execute
                step.defined |= 1 << cell
                if state.lanes[cell] == EVERY:
                    step.whole |= 1 << cell
            self._define(step, state, decoded.writes & ~VECTORS & ~EXEC)
        else:
            self._apply(step, state, self._vector(decoded, state))
        self._masks_written(instruction, state)

    def _plainly_defined(self, decoded: Decoded, state: Known) -> bool:
        """Every register read is written in EXEC, and the instruction keeps to its own lanes."""
        if "exec" not in decoded.opcode.implicit_reads:
            return False
        required_lanes = state.execute
        if decoded.opcode.cost_class == "valu_lane" or "fi" in decoded.modifiers:
            required_lanes = EVERY
        reads = decoded.reads & ~EXEC
        if reads & ~VECTORS & ~state.scalars:
            return False
        return all(covers(state.at(cell), required_lanes) for cell in halves(reads))

    def _masks_written(self, instruction: Instruction, state: Known) -> None:
        """Lane masks a vector instruction writes are unknown, within EXEC."""
        written = instruction.decoded.writes & ~VECTORS
        if not written:
            return
        state.forget(written)
        part = unknown("vector", instruction.index) & state.execute
        if written & EXEC:
            state.execute = part
        first = first_cell(written & ~EXEC) if written & ~EXEC else None
        if first is not None:
            state.masks[first] = part

    def _apply(self, step: DefinednessStep, state: Known, flows: Iterable[Flow]) -> None:
        """The results of flows, all read before any is written."""
        results = []
        still_open = []
        for flow in flows:
            lanes = self._result(state, flow)
            results.append((flow, lanes))
        for flow, lanes in results:
            bit = 1 << flow.target
            if flow.form in (FlowForm.MASK, FlowForm.SCALAR):
                registers = self._mask_registers(flow)
                good = covers(lanes, state.execute)
                if good:
                    self._define(step, state, registers & ~EXEC)
                else:
                    state.scalars &= ~(registers & ~EXEC)
                    still_open.append(self._narrow(state, flow))
                continue
            good = covers(lanes, EVERY if flow.form is FlowForm.WHOLE else state.execute)
            if flow.form in (FlowForm.PART, FlowForm.ONE_LANE):
                good = good and covers(state.at(flow.target), state.execute)
            if good:
                step.defined |= bit
            else:
                still_open.append(self._narrow(state, flow))
        for flow, lanes in results:
            if flow.form in (FlowForm.MASK, FlowForm.SCALAR):
                continue
            old = state.at(flow.target)
            execute = state.execute
            if flow.form is FlowForm.WHOLE:
                new = lanes
            elif flow.form is FlowForm.ONE_LANE:
                new = old if lanes == EVERY else NONE
            elif flow.form is FlowForm.PART:
                new = (old & ~execute) | (old & execute & lanes)
            else:
                new = (old & ~execute) | (execute & lanes)
            state.lanes[flow.target] = new
            if new == EVERY and step.defined >> flow.target & 1:
                step.whole |= 1 << flow.target
        step.flows = tuple(still_open)

    def _define(self, step: DefinednessStep, state: Known, registers: int) -> None:
        """Scalar registers are written."""
        state.define(registers)
        cells = sum(1 << cell for cell in scalars(registers))
        step.defined |= cells
        step.whole |= cells

    def _mask_registers(self, flow: Flow) -> int:
        count = self.lanes // 32 if flow.form is FlowForm.MASK else 1
        return span(flow.target >> 1, 0, count)

    def _result(self, state: Known, flow: Flow) -> int:
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

    def _all_covered(self, state: Known, sources: Iterable[UndefinedSource]) -> int:
        lanes = EVERY
        for source in sources:
            lanes &= self._defined_lanes(state, source)
        return lanes

    def _narrow(self, state: Known, flow: Flow) -> Flow:
        """The flow with only those sources that may be undefined."""

        def possibly_undefined(sources: tuple[UndefinedSource, ...]) -> tuple[UndefinedSource, ...]:
            required_lanes = EVERY if flow.form is FlowForm.WHOLE else state.execute
            return tuple(
                s for s in sources if not covers(self._defined_lanes(state, s), required_lanes)
            )

        return Flow(
            flow.target,
            flow.form,
            possibly_undefined(flow.sources),
            possibly_undefined(flow.otherwise),
            flow.choice,
        )

    # scalar registers

    def _scalar_step(self, instruction: Instruction, state: Known, step: DefinednessStep) -> None:
        decoded = instruction.decoded
        unwritten = decoded.reads & ~VECTORS & ~EXEC & ~state.scalars
        written = decoded.writes & ~VECTORS
        cells = sum(1 << cell for cell in scalars(written & ~EXEC))
        masks = masks_written(instruction, state)
        constant = constant_written(decoded)
        state.forget(written)
        if unwritten:
            step.scalars = sum(1 << cell for cell in scalars(unwritten))
            step.written = cells
            step.to_exec = bool(written & EXEC)
            state.scalars &= ~(written & ~EXEC)
        else:
            state.scalars |= written
            step.defined |= cells
            step.whole |= cells
        for cell, value in masks:
            if cell is None:
                state.execute = value
            else:
                state.masks[cell] = value
        for index, cell in enumerate(scalars(written & SGPRS)):
            if constant is not None:
                state.constants[cell] = constant >> 32 * index & 0xFFFFFFFF


def _letters(decoded: Decoded) -> str:
    memory = decoded.memory
    if memory is None or memory.kind is not MemoryKind.LOAD:
        return "n"
    return shape_letters(decoded)


__all__ = ["analyse"]
