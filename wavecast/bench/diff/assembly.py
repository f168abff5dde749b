"""Two pieces of machine code side by side, so that renumbered registers are no change.

Instructions are matched (`difflib`) by their shape: mnemonic, modifiers and operands with their
kinds and widths, but no register numbers or labels. Two that match are the same when what they read
comes from instructions that match, too, or is there at the start under names that map one to one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from wavecast.bench.diff.result import Row
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import Access

_FILES = {OperandClass.VGPR: "v", OperandClass.AGPR: "a", OperandClass.SGPR: "s"}

Value = tuple[int, int]
"""Where a register's content is from: (position of the writer, which of its registers), or
(-1, register) where nothing before has written it."""


def side_by_side(before: Sequence[Instruction], after: Sequence[Instruction]) -> tuple[Row, ...]:
    """The rows of two listings, each in its own order."""
    shapes: dict[tuple, int] = {}
    one, other = (
        [shapes.setdefault(shape(i.decoded), len(shapes)) for i in side] for side in (before, after)
    )
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    codes = matcher.get_opcodes()
    pairs = {
        i1 + offset: j1 + offset
        for tag, i1, i2, j1, _ in codes
        if tag == "equal"
        for offset in range(i2 - i1)
    }
    fed = _same_sources(before, after, pairs)
    rows: list[Row] = []
    for tag, i1, i2, j1, j2 in codes:
        if tag == "equal":
            for offset in range(i2 - i1):
                kind = "same" if fed[i1 + offset] else "operands"
                rows.append(_row(kind, before[i1 + offset], after[j1 + offset]))
        else:
            rows.extend(_replaced(before[i1:i2], after[j1:j2]))
    return tuple(rows)


def shape(decoded: Decoded) -> tuple:
    """What of an instruction does not depend on which registers it was given."""
    own = (
        decoded.mnemonic,
        tuple([_operand_shape(operand) for operand in decoded.operands]),
        tuple(decoded.modifiers.items()),
    )
    return own if decoded.second is None else (*own, shape(decoded.second))


def _operand_shape(operand: Operand) -> tuple | str:
    if operand.kind is OperandClass.LABEL:
        return "label"
    file = _FILES.get(operand.kind)
    if file is None:
        return operand.text
    modifiers = (operand.negate, operand.absolute, operand.sign_extend)
    return (file, operand.count, operand.half, *modifiers)


def _replaced(before: Sequence[Instruction], after: Sequence[Instruction]) -> Iterator[Row]:
    """Instructions in the place of others: those of one mnemonic stand side by side."""
    matcher = SequenceMatcher(
        None, [i.mnemonic for i in before], [i.mnemonic for i in after], autojunk=False
    )
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            pairs = zip(before[i1:i2], after[j1:j2], strict=True)
            yield from (_row("changed", one, other) for one, other in pairs)
            continue
        yield from (_row("gone", one, None) for one in before[i1:i2])
        yield from (_row("new", None, other) for other in after[j1:j2])


def _row(kind, before: Instruction | None, after: Instruction | None) -> Row:
    return Row(
        kind,
        before.index if before else None,
        after.index if after else None,
        before.decoded.text if before else "",
        after.decoded.text if after else "",
    )


def _same_sources(
    before: Sequence[Instruction], after: Sequence[Instruction], pairs: dict[int, int]
) -> dict[int, bool]:
    """Per matched instruction of `before`, whether all it reads comes from the same places."""
    one, other = _sources(before), _sources(after)
    renamed: dict[int, int] = {}
    named: dict[int, int] = {}
    found = {}
    for i, j in pairs.items():
        same = len(one[i]) == len(other[j])
        for (writer, part), (its_writer, its_part) in zip(one[i], other[j], strict=False):
            if writer < 0 and its_writer < 0:
                same &= renamed.setdefault(part, its_part) == its_part
                same &= named.setdefault(its_part, part) == part
            else:
                known = pairs.get(writer, -1) if writer >= 0 else -1
                same &= its_writer >= 0 and (known, part) == (its_writer, its_part)
        found[i] = same
    return found


def _sources(code: Sequence[Instruction]) -> list[list[Value]]:
    """Per instruction, where each register it reads is from, in the order of its operands."""
    writers: dict[int, Value] = {}
    found = []
    for position, instruction in enumerate(code):
        decoded = instruction.decoded
        registers = list(_read(decoded))
        found.append([writers.get(register, (-1, register)) for register in registers])
        for part, register in enumerate(_bits(decoded.writes)):
            writers[register] = (position, part)
    return found


def _read(decoded: Decoded) -> Iterator[int]:
    """Registers read: operand by operand, then those no operand names."""
    named = 0
    for half in (decoded, decoded.second):
        if half is None:
            continue
        for operand, role in zip(half.operands, half.roles, strict=False):
            if role.access is not Access.WRITE:
                named |= operand.bits
                yield from _bits(operand.bits & decoded.reads)
    yield from _bits(decoded.reads & ~named)


def _bits(registers: int) -> Iterator[int]:
    while registers:
        low = registers & -registers
        yield low.bit_length() - 1
        registers ^= low


__all__ = ["shape", "side_by_side"]
