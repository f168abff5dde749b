"""Two pieces of machine code side by side; renumbered registers do not count as changes.

Instructions are matched (`difflib`) by their shape: mnemonic, modifiers and operands with their
kinds and widths, but no register numbers or labels. Two that match are the same if their inputs
come from instructions that are aligned, too, or from registers at the start whose names map one to
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from wavecast.benchmarking.diff.result import DiffRow, RowChange
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import OperandAccess

_FILES = {OperandClass.VGPR: "v", OperandClass.AGPR: "a", OperandClass.SGPR: "s"}


class AlignedStep(NamedTuple):
    """A row as positions in both listings."""

    kind: RowChange
    before: int | None
    after: int | None


Value = tuple[int, int]
"""Where a register's content is from: (position of the writer, which of its registers), or
(-1, register) where nothing before has written it."""


def side_by_side(
    before: Sequence[Instruction], after: Sequence[Instruction]
) -> tuple[DiffRow, ...]:
    """The rows of two listings, each in its own order."""
    shapes: dict[tuple, int] = {}
    before_shapes, after_shapes = (
        [shapes.setdefault(shape(i.decoded), len(shapes)) for i in side] for side in (before, after)
    )
    steps = list(_steps(before, after, before_shapes, after_shapes))
    pairs = {i: j for _, i, j in steps if i is not None and j is not None}
    fed = _same_sources(before, after, pairs)
    return tuple(
        _row(
            "operands" if kind == "same" and i is not None and not fed[i] else kind,
            None if i is None else before[i],
            None if j is None else after[j],
        )
        for kind, i, j in steps
    )


def _steps(
    before: Sequence[Instruction],
    after: Sequence[Instruction],
    shapes: Sequence[int],
    others: Sequence[int],
) -> Iterator[AlignedStep]:
    """Instructions of one shape, which count as the same for now; among the others between them,
    those of one mnemonic replace each other."""
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, shapes, others, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (AlignedStep("same", i1 + n, j1 + n) for n in range(i2 - i1))
            continue
        names = [i.mnemonic for i in before[i1:i2]], [i.mnemonic for i in after[j1:j2]]
        for inner, k1, k2, m1, m2 in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
            if inner == "equal":
                yield from (
                    AlignedStep("changed", i1 + k1 + n, j1 + m1 + n) for n in range(k2 - k1)
                )
                continue
            yield from (AlignedStep("gone", i1 + k, None) for k in range(k1, k2))
            yield from (AlignedStep("new", None, j1 + m) for m in range(m1, m2))


def shape(decoded: Decoded) -> tuple:
    """What of an instruction does not depend on which registers it was given."""
    key = (
        decoded.mnemonic,
        tuple([_operand_shape(operand) for operand in decoded.operands]),
        tuple(decoded.modifiers.items()),
    )
    return key if decoded.second is None else (*key, shape(decoded.second))


def _operand_shape(operand: Operand) -> tuple | str:
    if operand.kind is OperandClass.LABEL:
        return "label"
    file = _FILES.get(operand.kind)
    if file is None:
        return operand.text
    modifiers = (operand.negate, operand.absolute, operand.sign_extend)
    return (file, operand.count, operand.half, *modifiers)


def _row(kind: RowChange, before: Instruction | None, after: Instruction | None) -> DiffRow:
    return DiffRow(
        kind,
        before.index if before else None,
        after.index if after else None,
        before.decoded.text if before else "",
        after.decoded.text if after else "",
    )


def _same_sources(
    before: Sequence[Instruction], after: Sequence[Instruction], pairs: dict[int, int]
) -> dict[int, bool]:
    """Per paired instruction of `before`, whether all it reads comes from the same places."""
    before_sources, after_sources = _sources(before), _sources(after)
    renamed: dict[int, int] = {}
    inverse: dict[int, int] = {}
    matches = {}
    for i, j in pairs.items():
        same = len(before_sources[i]) == len(after_sources[j])
        for (writer, part), (its_writer, its_part) in zip(
            before_sources[i], after_sources[j], strict=False
        ):
            if writer < 0 and its_writer < 0:
                same &= renamed.setdefault(part, its_part) == its_part
                same &= inverse.setdefault(its_part, part) == part
            else:
                partner = pairs.get(writer, -1) if writer >= 0 else -1
                same &= its_writer >= 0 and (partner, part) == (its_writer, its_part)
        matches[i] = same
    return matches


def _sources(code: Sequence[Instruction]) -> list[list[Value]]:
    """Per instruction, where each register it reads is from, in the order of its operands."""
    writers: dict[int, Value] = {}
    sources = []
    for position, instruction in enumerate(code):
        decoded = instruction.decoded
        registers = list(_read(decoded))
        sources.append([writers.get(register, (-1, register)) for register in registers])
        for part, register in enumerate(_bits(decoded.writes)):
            writers[register] = (position, part)
    return sources


def _read(decoded: Decoded) -> Iterator[int]:
    """Registers read: operand by operand, then those no operand names."""
    operand_bits = 0
    for half in (decoded, decoded.second):
        if half is None:
            continue
        for operand, role in zip(half.operands, half.roles, strict=False):
            if role.access is not OperandAccess.WRITE:
                operand_bits |= operand.bits
                yield from _bits(operand.bits & decoded.reads)
    yield from _bits(decoded.reads & ~operand_bits)


def _bits(registers: int) -> Iterator[int]:
    while registers:
        low = registers & -registers
        yield low.bit_length() - 1
        registers ^= low


__all__ = ["shape", "side_by_side"]
