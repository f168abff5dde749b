"""The whole program with blocks in another order, checked and completed.

Waits and no-ops are computed block by block; what follows a block still counts on the compiler's
order. So the program is parsed again, and what the checks of `analyze.sync` miss is put in, until
they miss nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wavecast.analyze.sync import Violation, hazards, missing_waits
from wavecast.analyze.sync.outstanding import OutstandingFlow, OutstandingState
from wavecast.errors import CompileError
from wavecast.isa.program import Program
from wavecast.lab.schedule.layout import Item, Layout
from wavecast.lab.schedule.memory_order import completion, concerns, outstanding_before
from wavecast.lab.schedule.waiting import wait_texts

ROUNDS: Final = 12
"""Times that a program is completed before it is given up."""

Parse = Callable[[str], Program]
"""The program of an assembly text."""


def insert_waits(layout: Layout, assembly: str, parse: Parse) -> Layout:
    """The layout with the waits and no-ops that it lacks. `assembly` is the compiler's code.

    What is missing in the compiler's own code stays missing. Raises CompileError where the checks
    are not content after `ROUNDS` rounds, MissingFact for a target whose hazards are not known.
    """
    outstanding_ops = outstanding_before(OutstandingFlow(layout.program))
    original_violations = {_identity(v, list(range(len(layout.program.instructions)))) for v in
             (*missing_waits(layout.program), *hazards(layout.program))}  # fmt: skip
    for _ in range(ROUNDS):
        program = parse(layout.text(assembly))
        items = layout.items
        texts: dict[int, list[str]] = {}
        for violation in missing_waits(program):
            if _identity(violation, items) not in original_violations:
                _add(texts, violation)
        _fences(program, items, outstanding_ops, texts)
        if not texts:  # waits also are wait states
            for violation in hazards(program):
                if _identity(violation, items) not in original_violations:
                    _add(texts, violation)
        if not texts:
            return layout
        layout = layout.with_texts(texts)
    raise CompileError(f"{layout.program.name}: waits or wait states are still missing")


def _identity(violation: Violation, items: list[Item]) -> tuple[Item, Item, str]:
    return items[violation.instruction], items[violation.cause], violation.counter


def _add(texts: dict[int, list[str]], violation: Violation) -> None:
    before = texts.setdefault(violation.instruction, [])
    if violation.remedy not in before:
        before.append(violation.remedy)


def _fences(
    program: Program,
    items: list[Item],
    outstanding_ops: dict[int, frozenset[int]],
    texts: dict[int, list[str]],
) -> None:
    """Waits before instructions that order memory, for operations that were complete there."""
    flow = OutstandingFlow(program)
    instructions = program.instructions
    for block in program.blocks:
        entry = flow.entries[block.index]
        if entry is None:
            continue
        state = OutstandingState(entry)
        steps = {step.index: step for step in flow.steps[block.index]}
        for index in range(block.start, block.stop):
            item = items[index]
            if isinstance(item, int) and item in outstanding_ops:
                requirement = completion(instructions[index].decoded)
                waits: dict[str, int] = {}
                for number, scores in enumerate(state.scores):
                    queue = flow.queues[number]
                    for operation, score in scores.items():
                        distance = state.issued[number] - score
                        full = not queue.unordered and distance >= flow.limits[queue.counter]
                        if full or items[operation] in outstanding_ops[item]:
                            continue
                        if concerns(requirement, instructions[operation].decoded):
                            value = 0 if queue.unordered else distance
                            waits[queue.counter] = min(waits.get(queue.counter, value), value)
                if waits:
                    texts.setdefault(index, []).extend(wait_texts(program.target, waits))
            if index in steps:
                flow.apply(state, steps[index])


__all__ = ["insert_waits"]
