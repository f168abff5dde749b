"""Dependencies of results against the results themselves: a bit of an input that changes a result
must be among what the result depends on. Every row with semantics, random and special inputs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from wavecast.emulate.check.dataflow.influence import Bits, InfluenceOps, Reach, UndefinedSource
from wavecast.isa import semantics, table
from wavecast.isa.opcode import Opcode, OperandAccess, OperandKind
from wavecast.isa.semantics.integers import IntegerOps
from wavecast.isa.semantics.machine import FloatMode

_FORMS = ("VOP1", "VOP2", "VOP3", "VOPC", "VOP3P", "SOP1", "SOP2", "SOPC")
SPECIAL = (0, 1, 2, 4, 16, 31, 0xFF, 0xFFFF, 0x8000, 0x7C00, 0x3C00, 0x80000000, 0x7F800000,
            0x3F800000, 0x7FC00000, 0xFFFFFFFF, 0x07060504, 0x0C0C0100)  # fmt: skip
_TRIALS = 6


def _rows() -> list[Opcode]:
    return [
        row
        for row in {row.name: row for row in table.rows()}.values()
        if row.form in _FORMS and row.matrix is None and semantics.of(row) is not None
    ]


def widths_of(row: Opcode) -> list[int]:
    """Bits per input; more than 64 stand for a tuple of registers."""
    found = []
    for role in row.operands:
        if role.access is OperandAccess.WRITE or role.kind is OperandKind.LABEL:
            continue
        if role.kind is OperandKind.LANE_MASK:
            found.append(1)
        else:
            found.append(max(32 * role.dwords, 32))
    widest = max([32, *found])
    for name in row.implicit_reads:
        if name != "exec" or row.form.startswith("SOP"):
            vector = not row.form.startswith("SOP")
            mask = name == "scc" or (name == "vcc" and vector)
            found.append(1 if mask else widest if name == "exec" else 32)
    return found


def _value(random_: random.Random, bits: int) -> int:
    words = [
        random_.choice(SPECIAL) if random_.random() < 0.5 else random_.getrandbits(32)
        for _ in range(-(-bits // 32))
    ]
    return sum(word << 32 * index for index, word in enumerate(words)) & ((1 << bits) - 1)


def _split(value: int, bits: int) -> Any:
    if bits <= 64:
        return value
    return tuple(value >> 32 * index & 0xFFFFFFFF for index in range(bits // 32))


def _source(index: int, bits: int, first: int = 0) -> Bits:
    """An input whose every 16 bits are a source of their own."""
    pieces = range(0, bits, 16)
    return Bits(
        {
            UndefinedSource(100 * index + first + piece // 16, Reach.OWN): (0xFFFF << piece)
            & ((1 << bits) - 1)
            for piece in pieces
        }
    )


def _symbols(index: int, bits: int) -> Any:
    if bits <= 64:
        return _source(index, bits)
    return tuple(_source(index, 32, 2 * word) for word in range(bits // 32))


def _flat(outputs: tuple[Any, ...]) -> list[Any]:
    return [part for value in outputs for part in (value if isinstance(value, tuple) else (value,))]


def _check(row: Opcode, seed: int) -> None:
    meaning = semantics.of(row)
    assert meaning is not None
    random_ = random.Random(f"{row.name} {seed}")
    widths = widths_of(row)
    target = next(iter(row.mnemonics))
    machine = FloatMode(target=target)
    ops, numbers = InfluenceOps(machine, 64), IntegerOps(machine)
    values = [_value(random_, bits) for bits in widths]
    constant = [random_.random() < 0.3 for _ in widths]
    symbols = [
        _constant(ops, value, bits) if fixed else _symbols(index, bits)
        for index, (value, bits, fixed) in enumerate(zip(values, widths, constant, strict=True))
    ]
    extra = [random_.getrandbits(3) for _ in meaning.modifiers]
    depends = _flat(meaning.evaluate(ops, *symbols, *(ops.const(v, 32) for v in extra)))

    def result(inputs: list[int]) -> list[Any]:
        given = [_split(value, bits) for value, bits in zip(inputs, widths, strict=True)]
        return _flat(meaning.evaluate(numbers, *given, *extra))

    before = result(values)
    for index, bits in enumerate(widths):
        if constant[index]:
            continue
        flipped = random_.randrange(bits)
        changed = values.copy()
        changed[index] ^= 1 << flipped
        source = UndefinedSource(100 * index + flipped // 16, Reach.OWN)
        for old, new, seen in zip(before, result(changed), depends, strict=True):
            if isinstance(old, int) and isinstance(new, int):
                missing = (old ^ new) & ~seen.depends.get(source, 0)
                assert not missing, f"{row.name}: input {index} bit {flipped}, {missing:#x}"
    for old, seen in zip(before, depends, strict=True):
        if isinstance(old, int):
            assert not (old ^ seen.value) & seen.known, row.name


def _constant(ops: InfluenceOps, value: int, bits: int) -> Any:
    if bits <= 64:
        return ops.const(value, bits)
    return tuple(ops.const(value >> 32 * index, 32) for index in range(bits // 32))


@pytest.mark.parametrize("form", _FORMS)
def test_what_changes_a_result_is_among_its_dependencies(form: str) -> None:
    rows = [row for row in _rows() if row.form == form]
    assert rows
    for row in rows:
        if row.cost_class == "valu_lane":  # results of other lanes: test_registers
            continue
        for seed in range(_TRIALS):
            _check(row, seed)


def test_dependencies_are_no_wider_than_they_need_be() -> None:
    ops = InfluenceOps(FloatMode(), 64)
    value = _source(0, 32)
    low, high = UndefinedSource(0, Reach.OWN), UndefinedSource(1, Reach.OWN)
    assert ops.and_(value, ops.const(0xFFFF, 32), 32).depends == {low: 0xFFFF}
    assert ops.shl(value, ops.const(16, 32), 32).depends == {low: 0xFFFF0000}
    assert ops.lshr(value, ops.const(24, 32), 32).depends == {high: 0xFF}
    assert ops.ashr(value, ops.const(24, 32), 32).depends == {high: 0xFFFFFFFF}
    assert ops.or_(value, ops.const(0xFFFFFFFF, 32), 32).depends == {}
    assert ops.add(value, ops.const(1, 32), 32).depends == {low: 0xFFFFFFFF, high: 0xFFFF0000}
    assert ops.truncate(value, 32, 16).depends == {low: 0xFFFF}
