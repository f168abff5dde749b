"""Which tensor the addresses of an instruction are in, where data decides which element.

A forward data flow from the pointers among a kernel's parameters, over the registers that have the
low words: what is computed from a pointer points into its tensor. Shared memory and the stack count
as one register each, and pass pointers on; what is loaded from a tensor points nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from wavecast.analyze.sass.launch_constants import named_arrays, parameters_offset
from wavecast.analyze.sass.operands import ZERO, Register, SassOperand, SassOperation
from wavecast.analyze.sass.slices import LOADS, STORES
from wavecast.compile.codeobject import Launch
from wavecast.isa.program import Program

_WORDS: Final = {"64": 2, "WIDE": 2, "128": 4}
"""Registers of a result by a modifier of its instruction."""
_CONSTANT_LOADS: Final = ("LDC", "ULDC", "LDCU")

_Pointers = dict[Register, frozenset[str]]
"""The tensors that registers point into."""


def tensors(
    program: Program, operations: Sequence[SassOperation], launch: Launch
) -> Mapping[int, str]:
    """The tensor argument of the memory instructions (by number) whose addresses are computed from
    one pointer. Raises Unpredictable for a target whose constant bank has an unknown layout."""
    first, arrays = parameters_offset(launch), named_arrays(launch)
    names = {
        first + parameter.offset: frozenset({parameter.name})
        for parameter in launch.code.named_parameters
        if parameter.offset is not None and parameter.name in arrays
    }
    entries: list[_Pointers] = [{} for _ in program.blocks]
    pending = list(range(len(program.blocks)))
    while pending:
        block = program.blocks[pending.pop(0)]
        state = dict(entries[block.index])
        for at in range(block.start, block.stop):
            _step(state, operations[at], program.instructions[at].memory is not None, names)
        for following in block.successors:
            if _join(entries[following], state) and following not in pending:
                pending.append(following)
    tensor_of = {}
    for block in program.blocks:
        state = dict(entries[block.index])
        for at in range(block.start, block.stop):
            loads = program.instructions[at].memory is not None
            if loads and operations[at].addresses:
                terms = (term for term, _, _ in operations[at].addresses[-1].terms)
                pointees = frozenset[str]().union(*(state.get(term, ()) for term in terms))
                if len(pointees) == 1:
                    (tensor_of[at],) = pointees
            _step(state, operations[at], loads, names)
    return tensor_of


def _step(
    state: _Pointers, operation: SassOperation, loads: bool, names: Mapping[int, frozenset[str]]
) -> None:
    """What registers point to after an instruction."""
    if operation.name in STORES:
        memory = STORES[operation.name]
        state[memory] = state.get(memory, frozenset()).union(*_stored_pointees(state, operation))
    for register in operation.writes:
        if register.number == ZERO or register.file not in ("R", "UR"):
            continue
        for part, value in enumerate(_values(state, operation, loads, names)):
            target = Register(register.file, register.number + part)
            before = state.get(target, frozenset()) if operation.guard is not None else frozenset()
            state[target] = before | value


def _values(
    state: _Pointers, operation: SassOperation, loads: bool, names: Mapping[int, frozenset[str]]
) -> Iterator[frozenset[str]]:
    """What each word of a result points to."""
    words = max((_WORDS.get(modifier, 1) for modifier in operation.modifiers), default=1)
    constant = next((operand for operand in operation.reads if operand.bank is not None), None)
    if operation.name in _CONSTANT_LOADS and constant is not None:
        for part in range(words):
            yield _constant(constant, names, 4 * part)
        return
    if operation.name in LOADS:
        yield from (state.get(LOADS[operation.name], frozenset()) for _ in range(words))
        return
    reads = () if loads else operation.reads
    value = frozenset[str]().union(*(_pointees(state, operand, names) for operand in reads))
    yield value
    yield from (frozenset[str]() for _ in range(words - 1))


def _stored_pointees(state: _Pointers, operation: SassOperation) -> Iterator[frozenset[str]]:
    """What each word that an instruction stores points to."""
    words = max((_WORDS.get(modifier, 1) for modifier in operation.modifiers), default=1)
    for operand in operation.reads:
        register = operand.register
        if register is not None and register.number != ZERO and register.file in ("R", "UR"):
            for part in range(words):
                yield state.get(Register(register.file, register.number + part), frozenset())


def _pointees(
    state: _Pointers, operand: SassOperand, names: Mapping[int, frozenset[str]]
) -> frozenset[str]:
    if operand.bank is not None:
        return _constant(operand, names, 0)
    register = operand.register
    return state.get(register, frozenset()) if register is not None else frozenset()


def _constant(
    operand: SassOperand, names: Mapping[int, frozenset[str]], after: int
) -> frozenset[str]:
    if operand.bank != 0 or operand.register is not None:
        return frozenset()
    return names.get(operand.offset + after, frozenset())


def _join(entry: _Pointers, state: _Pointers) -> bool:
    """Add what a block leaves to what the next one begins with; whether that was new."""
    new = False
    for register, value in state.items():
        before = entry.get(register, frozenset())
        if not value <= before:
            entry[register] = before | value
            new = True
    return new


__all__ = ["tensors"]
