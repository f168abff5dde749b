"""Which undefined registers can matter: a backward data flow over the steps of a program."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.emulate.check.dataflow.flows import Flow, FlowForm
from wavecast.emulate.check.dataflow.influence import Reach, UndefinedSource
from wavecast.emulate.check.registers.uses import Use
from wavecast.isa.program import Program
from wavecast.isa.registers import EXEC


@dataclass(slots=True)
class DefinednessStep:
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

    steps: list[DefinednessStep]
    entry: int
    after: list[int]


def relevance(program: Program, steps: list[DefinednessStep]) -> Definedness:
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


def _before(step: DefinednessStep, live: int) -> int:
    live_in = live & ~step.whole
    for flow in step.flows:
        if flow.form in (FlowForm.WHOLE, FlowForm.SCALAR):
            live_in &= ~(1 << flow.target)
        elif flow.form is FlowForm.MASK:
            live_in &= ~(0b101 << flow.target)
    for flow in step.flows:
        reported = flow.form is FlowForm.MASK and EXEC >> (flow.target >> 1) & 1
        cell_mask = 0b101 if flow.form is FlowForm.MASK else 1
        if not reported and not live & cell_mask << flow.target:
            continue
        for source in (*flow.sources, *flow.otherwise):
            live_in |= _cells(source)
        if flow.choice is not None:
            live_in |= 0b101 << flow.choice
    if step.scalars and (step.to_exec or live & step.written):
        live_in = live_in & ~step.written | step.scalars
    for use in step.uses:
        for source in use.sources:
            live_in |= _cells(source)
    return live_in


def _cells(source: UndefinedSource) -> int:
    return (0b101 if source.reach is Reach.MASK else 1) << source.cell


__all__ = ["Definedness", "DefinednessStep", "relevance"]
