"""Undefined bits of scalar results against brute force: whatever the undefined bits of the inputs
are, bits of the result that are not undefined stay the same."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from llvmlite import binding, ir

from tests.emulate.check.dataflow.test_influence import SPECIAL, widths_of
from wavecast.compile.processor import load_object, processor
from wavecast.emulate.check.registers.scalar_shadow import ShadowOps
from wavecast.emulate.lower.ops import LlvmOps
from wavecast.emulate.values import I64, PTR, element, load
from wavecast.isa import semantics, table
from wavecast.isa.opcode import Opcode, OperandAccess
from wavecast.isa.semantics.machine import FloatMode

_FORMS = ("SOP1", "SOP2", "SOPC", "SOPK")
_TRIALS, _FLIPS = 12, 8


def _rows() -> list[Opcode]:
    rows = {row.name: row for row in table.rows() if row.form in _FORMS}.values()
    return [row for row in rows if semantics.of(row) is not None and max(widths_of(row)) <= 64]


def _outputs(row: Opcode) -> int:
    return len(row.implicit_writes) + sum(
        role.access in (OperandAccess.WRITE, OperandAccess.READ_WRITE) for role in row.operands
    )


def _emit(module: ir.Module, row: Opcode) -> None:
    """`void NAME(ptr in, ptr out)`: pairs of 64-bit words, value and shadow."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR, PTR]), row.name)
    builder = ir.IRBuilder(function.append_basic_block())
    given, out = function.args
    values = LlvmOps(builder, 0, FloatMode(target=next(iter(row.mnemonics))), 64)
    inputs: list[Any] = []
    for index, bits in enumerate(widths_of(row)):
        pair = (load(builder, element(builder, given, 2 * index + i, I64), I64, 8) for i in (0, 1))
        inputs.append(tuple(builder.trunc(word, ir.IntType(bits)) for word in pair))
    meaning = semantics.of(row)
    assert meaning is not None
    for index, result in enumerate(meaning.evaluate(ShadowOps(values), *inputs)):
        for part, word in enumerate(result):
            wide = word if word.type.width == 64 else builder.zext(word, I64)
            builder.store(wide, element(builder, out, 2 * index + part, I64), align=8)
    builder.ret_void()


def _word(random_: random.Random, bits: int) -> int:
    value = random_.choice(SPECIAL) if random_.random() < 0.5 else random_.getrandbits(64)
    return value & ((1 << bits) - 1)


def _check(run: Any, row: Opcode) -> None:
    random_ = random.Random(row.name)
    widths, count = widths_of(row), _outputs(row)

    def result(values: list[int], shadows: list[int]) -> list[int]:
        words = np.array([w for pair in zip(values, shadows, strict=True) for w in pair], np.uint64)
        out = np.zeros(2 * count, np.uint64)
        run(words.ctypes.data, out.ctypes.data)
        return out.tolist()

    for _ in range(_TRIALS):
        values = [_word(random_, bits) for bits in widths]
        shadows = [
            _word(random_, bits) & _word(random_, bits) if random_.random() < 0.7 else 0
            for bits in widths
        ]
        first = result(values, shadows)
        if not any(shadows):
            assert not any(first[1::2]), row.name
        for _ in range(_FLIPS):
            pairs = zip(values, shadows, strict=True)
            other = result([v ^ (s & random_.getrandbits(64)) for v, s in pairs], shadows)
            for index in range(count):
                wrong = (first[2 * index] ^ other[2 * index]) & ~first[2 * index + 1]
                assert not wrong, f"{row.name}: output {index}, bits {wrong:#x}"


def test_defined_bits_do_not_depend_on_undefined_ones() -> None:
    module = ir.Module(context=ir.Context())
    module.triple = processor().triple
    rows = _rows()
    assert len(rows) > 100
    for row in rows:
        _emit(module, row)
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    engine = load_object(processor().machine(1).emit_object(parsed))
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    for row in rows:
        _check(kind(engine.get_function_address(row.name)), row)
