"""Every matrix row of every target against numpy by formula, bit for bit.

Values are small multiples of 1/4, so that every order of summation gives the same f32 sum.
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
    write,
)

CASES = [
    ("gfx90a", 64),
    ("gfx942", 64),
    ("gfx950", 64),
    ("gfx1100", 32),
    ("gfx1100", 64),
    ("gfx1151", 32),
    ("gfx1201", 32),
    ("gfx1201", 64),
]
NARROW = {"f16", "bf16"}


class Case:
    """Random operands of one instruction in a register file, and what has to come out."""

    def __init__(self, program: Program, lanes: int, seed: int) -> None:
        self.program = program
        self.spec = spec = program.spec
        self.random = np.random.default_rng(seed)
        self.registers = self.random.integers(0, 2**32, (REGISTERS, lanes), dtype=np.uint32)
        shape = spec.shape
        self.operands = program.decoded.operands
        self.depth = shape.k // 2 if shape.sparse else shape.k
        self.a = self._source(1, spec.a, spec.a_layout, shape.m, self.depth)
        self.b = self._source(2, spec.b, spec.b_layout, shape.n, shape.k)
        self.c = self._addend()

    def _source(self, position: int, source, layout, rows: int, depth: int) -> np.ndarray:
        blocks = self.spec.shape.blocks
        raw, found = small_values(self.random, source.format, (blocks, rows, depth))
        block, row, k = np.ogrid[:blocks, :rows, :depth]
        write(self.registers, self.operands[position].first, layout, raw, row, k, block)
        signs = np.array(source.negate)[np.arange(depth) & 1]
        found = np.where(signs, -found, found)
        if source.blocks:
            found = found[list(source.blocks)]
        if source.groups:
            lane = layout.place(row, k, block)[2]
            lane = np.broadcast_to(lane, found.shape)
            wanted = np.array(source.groups)[lane // 16] * 16 + lane % 16
            by_place = {
                (self._element(layout, where), int(lane[where])): found[where]
                for where in np.ndindex(found.shape)
            }
            found = np.array(
                [
                    by_place[self._element(layout, where), int(wanted[where])]
                    for where in np.ndindex(found.shape)
                ]
            ).reshape(found.shape)
        return found

    def _element(self, layout, where) -> int:
        block, row, k = where
        return layout.element(row, k, block)[0]

    def _addend(self) -> np.ndarray:
        spec, shape = self.spec, self.spec.shape
        size = (shape.blocks, shape.m, shape.n)
        if spec.c.constant is not None:
            raw = np.full(size, spec.c.constant, np.uint64)
            return decode(raw, spec.c.type)
        found = self.random.integers(-8, 9, size).astype(np.float64)
        first = self.operands[0 if shape.sparse else 3].first
        layout = spec.result_layout(spec.c.type)
        block, row, column = np.ogrid[: shape.blocks, : shape.m, : shape.n]
        raw = encode(found, spec.c.type)
        if spec.half is not None and spec.c.type in NARROW:
            register, _, lane = layout.place(row, 0, block)
            places = np.broadcast_arrays(register + first, lane + column)
            kept = self.registers[tuple(places)] & np.uint32(0xFFFF0000 >> (16 * spec.half))
            raw = kept.astype(np.uint64) | raw << np.uint64(16 * spec.half)
        write(self.registers, first, layout, raw, row, 0, block, column)
        return found

    def indices(self) -> np.ndarray:
        """Writes a random index and returns the k of B for each row and stored k of A."""
        shape, layout = self.spec.shape, self.spec.index_layout
        found = self.random.integers(0, 4, (shape.m, self.depth))
        row, group = np.ogrid[: shape.m, : shape.k // 4]
        raw = found[:, 0::2] | found[:, 1::2] << 2
        write(self.registers, self.operands[3].first, layout, raw, row, group, 0)
        return found + np.arange(self.depth) // 2 * 4

    def scales(self) -> None:
        """Writes random block scales near one and folds them into the sources."""
        shape = self.spec.shape
        for position, name, rows in ((4, "a", shape.m), (5, "b", shape.n)):
            source = getattr(self.spec, name)
            exponent = self.random.integers(-2, 3, (rows, shape.k // 32))
            row, run = np.ogrid[:rows, : shape.k // 32]
            lane = row + rows * run
            bits = np.uint32(8 * source.scale_byte)
            old = self.registers[self.operands[position].first]
            old[lane] &= ~np.uint32(0xFF << bits)
            old[lane] |= (exponent + 127).astype(np.uint32) << bits
            factor = np.repeat(2.0**exponent, 32, axis=1)
            setattr(self, name, getattr(self, name) * factor)

    def expected(self) -> np.ndarray:
        spec, shape = self.spec, self.spec.shape
        c = np.abs(self.c) if spec.c.absolute else self.c
        c = -c if spec.c.negate else c
        if shape.sparse:
            chosen = self.b[0][:, self.indices()]  # [column][row][stored k]
            total = np.einsum("ik,jik->ij", self.a[0], chosen)[None] + c
        else:
            if shape.scaled:
                self.scales()
            total = np.einsum("bik,bjk->bij", self.a, self.b) + c
        if spec.clamp:
            total = np.clip(total, -(2**31), 2**31 - 1)
        return encode(total, spec.d_type)

    def check(self) -> None:
        wanted = self.expected()
        before = self.registers.copy()
        self.program.run(self.registers)
        spec = self.spec
        first = self.operands[0].first
        found = read(self.registers, first, spec.result_layout(spec.d_type), spec.shape)
        if spec.d_type in NARROW:
            found = found >> np.uint64(16 * (spec.half or 0)) & np.uint64(0xFFFF)
        text = self.program.decoded.text
        np.testing.assert_array_equal(found, wanted, err_msg=f"{spec.target} {text}")
        self._check_rest(before, first, text)

    def _check_rest(self, before: np.ndarray, first: int, text: str) -> None:
        """Nothing but D has changed."""
        rows = self.spec.result_rows
        after = self.registers.copy()
        if self.spec.half is not None and self.spec.d_type in NARROW:
            kept = np.uint32(0xFFFF0000 >> (16 * self.spec.half))
            same = (before[first : first + rows] ^ after[first : first + rows]) & kept
            assert not same.any(), text
        after[first : first + rows] = before[first : first + rows]
        assert (after == before).all(), text


def decode(raw: np.ndarray, element: str) -> np.ndarray:
    """Values of C's bits."""
    if element == "i32":
        return raw.astype(np.uint32).view(np.int32).astype(np.float64)
    if element == "f64":
        return raw.view(np.float64)
    if element == "f16":
        return raw.astype(np.uint16).view(np.float16).astype(np.float64)
    bits = raw.astype(np.uint32)
    return (bits << np.uint32(16) if element == "bf16" else bits).view(np.float32).astype(float)


def texts(target: str) -> list[str]:
    """Every row once, with the modifiers its kind allows somewhere in the list."""
    found = []
    for number, row in enumerate(matrix_rows(target)):
        shape = row.matrix
        assert shape is not None
        narrow, modifiers = "", ""
        if shape.a_type == "f8f6f4" and target == "gfx950":
            narrow = "fp8,bf8"
            modifiers = "cbsz:0 blgp:1"
        found.append(text_of(row, target, modifiers, narrow=narrow))
        del number
    return found


@pytest.mark.parametrize(("target", "lanes"), CASES)
def test_every_row(target: str, lanes: int) -> None:
    for seed, program in enumerate(compile_all(texts(target), target, lanes)):
        Case(program, lanes, seed).check()
