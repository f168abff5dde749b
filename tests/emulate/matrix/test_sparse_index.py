"""The index of sparse instructions against a sum over lanes, which knows nothing of `layouts`.

What the sum is written from: a lane of A has one row, of B one column; rows (columns) repeat over
the lanes, and lanes of the same repetition share k (AMD CDNA3 instruction set architecture guide,
"Sparse matrices"; RDNA4 guide, "SWMMAC"; AMD matrix instruction calculator, K[] of both). Element
pair j of a lane's A belongs to its elements 4j … 4j + 3 of B; which two of those, two bits each
say, the lower first, in nibble j of an index set. CDNA: `abid` numbers the sets of a register,
unless `cbsz` is not 0; RDNA: `index_key` does. For gfx950's instructions of double depth and
gfx1250's no layout is published: this is what the guides say of their predecessors.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.matrix.support import (
    REGISTERS,
    Program,
    compile_all,
    encode,
    matrix_rows,
    read,
    small_values,
    text_of,
)
from tests.targets import thorough_beyond

CASES = [("gfx942", 64), ("gfx950", 64), ("gfx1201", 32), ("gfx1201", 64), ("gfx1250", 32)]
QUICK = [("gfx942", 64), ("gfx1201", 32)]


def lane_elements(registers: np.ndarray, first: int, count: int, width: int) -> np.ndarray:
    """Raw elements [lane, number] of consecutive registers, the first in the lowest bits."""
    rows = registers[first : first + -(-count * width // 32)].astype(np.uint64)
    number = np.arange(count)
    shifts = (number * width % 32).astype(np.uint64)
    words = rows[number * width // 32]  # [number, lane]
    return (words >> shifts[:, None] & np.uint64((1 << width) - 1)).T


def fill(random, registers: np.ndarray, first: int, kind, count: int) -> np.ndarray:
    """Small values in the elements of every lane [lane, number]."""
    raw, values = small_values(random, kind, (registers.shape[1], count))
    registers[first : first + -(-count * kind.bits // 32)] = 0
    for number in range(count):
        register, bit = divmod(number * kind.bits, 32)
        registers[first + register] |= (raw[:, number] << np.uint64(bit)).astype(np.uint32)
    assert (lane_elements(registers, first, count, kind.bits) == raw).all()
    return values


def check(program: Program, lanes: int, key: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    spec, shape = program.spec, program.spec.shape
    registers = random.integers(0, 2**32, (REGISTERS, lanes), dtype=np.uint32)
    d, a, b, index = (operand.first for operand in program.decoded.operands[:4])
    kept, dense = shape.m * shape.k // 2 // lanes, shape.n * shape.k // lanes
    a_values = fill(random, registers, a, spec.a.format, kept)
    b_values = fill(random, registers, b, spec.b.format, dense)
    bits = key * 2 * kept + 4 * np.arange(kept // 2)  # of the nibbles of the set
    words = registers[index : index + 2].T
    nibbles = words[:, bits // 32] >> (bits % 32).astype(np.uint32) & 15
    positions = np.stack((nibbles & 3, nibbles >> 2), -1).reshape(lanes, kept)
    positions = positions + np.arange(kept) // 2 * 4
    total = np.zeros((shape.m, shape.n))
    for row in range(shape.m):
        for column in range(shape.n):
            for group in range(lanes // shape.m):
                left, right = row + shape.m * group, column + shape.n * group
                chosen = b_values[right][positions[left]]
                total[row, column] += a_values[left] @ chosen
    layout = spec.result_layout(spec.d_type)
    row, column = np.ogrid[: shape.m, : shape.n]
    register, _, lane = layout.position(row)  # proved by dense instructions
    c = random.integers(-8, 9, (shape.m, shape.n)).astype(np.float64)
    registers[register + d, lane + column] = encode(c, spec.d_type).astype(np.uint32)
    program.run(registers)
    got = read(registers, d, layout, shape)[0]
    np.testing.assert_array_equal(got, encode(total + c, spec.d_type), program.decoded.text)


@pytest.mark.parametrize(("target", "lanes"), thorough_beyond(QUICK, CASES))
def test_every_set_of_every_instruction(target: str, lanes: int) -> None:
    texts, keys = [], []
    for row in matrix_rows(target):
        assert row.matrix is not None
        if not row.matrix.sparse or row.matrix.cd_type not in ("f32", "i32"):
            continue
        if lanes == 64 and row.name == "v_swmmac_i32_16x16x32_iu4":
            continue  # too little for all lanes: half of them repeat the others
        per_set = 2 * row.matrix.m * row.matrix.k // 2 // lanes  # bits
        name = "abid" if row.name.startswith("v_smfmac") else "index_key"
        for key in range(max(1, 32 // per_set)):
            texts.append(text_of(row, target, f"{name}:{key}" if key else "", lanes=lanes))
            keys.append(key)
    assert len(texts) > 10
    for seed, program in enumerate(compile_all(texts, target, lanes)):
        check(program, lanes, keys[seed], seed)


def test_a_broadcast_size_hides_the_set() -> None:
    row = next(row for row in matrix_rows("gfx942") if row.name == "v_smfmac_f32_16x16x32_f16")
    for program in compile_all([text_of(row, "gfx942", "cbsz:1 abid:3")], "gfx942", 64):
        check(program, 64, 0, 1)
