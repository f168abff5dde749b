"""One instruction applied to the registers of a wave.

`compile_step` turns a decoded instruction into a function of the wave's state, once; running it
binds the row's operands to values, evaluates the row's semantics, and writes the results under
EXEC. Rows without semantics, and forms whose modifiers are not modelled (DPP, clamp), make what
they write unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from wavecast.analyze.values import sdwa
from wavecast.analyze.values.domain import WaveOps
from wavecast.analyze.values.kinds import Scattered, Value
from wavecast.analyze.values.operands import (
    Reader,
    Writer,
    constant_reader,
    operand_reader,
    operand_writer,
    part_reader,
    part_writer,
    special_reader,
    special_writer,
)
from wavecast.analyze.values.state import RegisterState
from wavecast.isa import semantics
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded, Operand
from wavecast.isa.opcode import OperandAccess, OperandKind, OperandRole
from wavecast.isa.registers import AGPR_BASE, AGPR_COUNT, EXEC, VGPR_BASE
from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.comparisons import WITHOUT_NAN
from wavecast.isa.semantics.integers import Unknown

# bound once: looking an enum member up costs ten times what comparing it does
_READ = OperandAccess.READ
_READING = (OperandAccess.READ, OperandAccess.READ_WRITE)
_WRITING = (OperandAccess.WRITE, OperandAccess.READ_WRITE)
_LABEL = OperandKind.LABEL
_LANE_MASK = OperandKind.LANE_MASK

_VECTOR_END = AGPR_BASE + AGPR_COUNT
_ENCODINGS = ("", "e32", "e64", "e96", "sdwa")
_HARMLESS = frozenset({"bitop3"}) | sdwa.MODIFIERS


Step = Callable[[RegisterState, int], None]


@lru_cache(maxsize=1 << 14)
def compile_step(decoded: Decoded, lanes: int) -> Step:
    """The effect of one instruction, not a memory access, on the state of a wave.

    The step takes the registers and the instruction's index, which becomes the origin of values
    it makes unknown.
    """
    parts = [decoded] if decoded.second is None else [decoded, decoded.second]
    compiled = [_half(part, lanes) for part in parts]
    if any(item is None for item in compiled):
        return opaque(decoded)
    halves = [item for item in compiled if item is not None]
    changes_exec = bool(decoded.writes & EXEC)
    if len(halves) == 1:
        return _single(*halves[0], changes_exec)

    def step(state: RegisterState, _index: int) -> None:
        ops = state.ops
        results = [
            function(ops, *[read(state) for read in readers]) for function, readers, _ in halves
        ]
        for values, (_, _, writers) in zip(results, halves, strict=True):
            for value, write in zip(values, writers, strict=True):
                write(state, value)
        if changes_exec:
            state.exec_changed()

    return step


def _single(
    function: Function, readers: list[Reader], writers: list[Writer], changes_exec: bool
) -> Step:
    """The effect of an instruction that is not a pair; `_binary` is for the commonest kind."""
    if len(readers) == 2 and len(writers) == 1 and not changes_exec:
        return _binary(function, readers[0], readers[1], writers[0])

    def step(state: RegisterState, _index: int) -> None:
        values = function(state.ops, *[read(state) for read in readers])
        for value, write in zip(values, writers, strict=True):
            write(state, value)
        if changes_exec:
            state.exec_changed()

    return step


def _binary(function: Function, first: Reader, second: Reader, write: Writer) -> Step:
    def step(state: RegisterState, _index: int) -> None:
        (value,) = function(state.ops, first(state), second(state))
        write(state, value)

    return step


def passes_on(decoded: Decoded) -> bool:
    """What it writes follows from what it reads, even where the form (DPP, say) is not modelled."""
    second = decoded.second
    if second is not None and semantics.of(second.opcode) is None:
        return False
    return semantics.of(decoded.opcode) is not None


def _is_modelled(decoded: Decoded) -> bool:
    modifiers = decoded.modifiers
    return decoded.encoding in _ENCODINGS and (not modifiers or _HARMLESS.issuperset(modifiers))


def opaque(decoded: Decoded) -> Step:
    """An instruction whose results are not known."""
    vector, scalar = [], []
    for position in bits_of(decoded.writes):
        (vector if VGPR_BASE <= position < _VECTOR_END else scalar).append(position)
    changes_exec = bool(decoded.writes & EXEC)

    def step(state: RegisterState, index: int) -> None:
        anything = Scattered(index)
        for position in vector:
            state.write_vector(position, anything)
        for position in scalar:
            state.values[position] = Unknown(0, index)
        if changes_exec:
            state.exec_changed()

    return step


def _half(decoded: Decoded, lanes: int) -> tuple[Function, list[Reader], list[Writer]] | None:
    """The function, inputs and outputs of an instruction or of one half of a pair."""
    meaning = semantics.of(decoded.opcode)
    if meaning is None or not _is_modelled(decoded):
        return None
    readers: list[Reader | None] = []
    writers: list[Writer | None] = []
    vector = decoded.opcode.is_vector
    modifiers = decoded.modifiers
    source = 0
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access in _READING and role.kind is not _LABEL:
            reader = operand_reader(operand, role, lanes)
            if role.access is _READ and role.kind is not _LANE_MASK:
                selector = modifiers.get(f"src{source}_sel") if modifiers else None
                source += 1
                if reader is not None and selector is not None:
                    reader = part_reader(reader, selector, operand.sign_extend)
            readers.append(reader)
        if role.access in _WRITING:
            writers.append(_writer(decoded, operand, role, lanes))
    for name in decoded.opcode.implicit_reads:
        if name != "exec" or not vector:
            readers.append(special_reader(name, lanes, vector))
    writers += [special_writer(name, lanes, vector) for name in decoded.opcode.implicit_writes]
    readers += [constant_reader(_modifier(decoded, name)) for name in meaning.modifiers]
    inputs = [reader for reader in readers if reader is not None]
    outputs = [writer for writer in writers if writer is not None]
    if len(inputs) < len(readers) or len(outputs) < len(writers):
        return None
    without_nan = WITHOUT_NAN.get(decoded.opcode.name)
    if without_nan is None:
        return meaning.function, inputs, outputs
    return _of_numbers(meaning.function, without_nan), inputs, outputs


def _of_numbers(function: Function, result: int) -> Function:
    """A test for NaN whose unknown operands are taken to be numbers. Compilers leave loops over
    `fmaxf` at the first NaN."""

    def evaluate(ops: WaveOps, *operands: Value) -> tuple[Value]:
        (value,) = function(ops, *operands)
        if not isinstance(value, (Unknown, Scattered)):
            return (value,)
        ops.takes_numbers = True
        return (ops.const(result, 1),)

    return evaluate


def _writer(decoded: Decoded, operand: Operand, role: OperandRole, lanes: int) -> Writer | None:
    selector = decoded.modifiers.get("dst_sel")
    if selector is None or role.kind is _LANE_MASK:
        return operand_writer(operand, role, lanes)
    return part_writer(operand, selector, decoded.modifiers.get("dst_unused", "UNUSED_PAD"))


def _modifier(decoded: Decoded, name: str) -> int:
    return int(decoded.modifiers.get(name) or "0", 0)
