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
from tests.targets import thorough_beyond
from wavecast.emulate.matrix.detection import detect
from wavecast.emulate.matrix.formats import F8F6F4
from wavecast.emulate.matrix.host import Host
from wavecast.isa.decode import wave_lanes_of
from wavecast.isa.opcode import Opcode

CASES = [
    ("gfx90a", 64),
    ("gfx942", 64),
    ("gfx950", 64),
    ("gfx1100", 32),
    ("gfx1100", 64),
    ("gfx1151", 32),
    ("gfx1201", 32),
    ("gfx1201", 64),
    ("gfx1250", 32),
]
QUICK = [("gfx942", 64), ("gfx1201", 32)]
UNKNOWN = ("v_swmmac_bf16f32",)
"""Prefixes of gfx1250's instructions that are refused: layouts no source describes."""
NARROW = {"f16", "bf16"}


def scale_byte(scale, rows: int, row: int, run: int) -> tuple[int, int]:
    """The lane and byte of a block scale."""
    if scale.byte is not None:
        return row + rows * run, scale.byte
    return row + scale.first_lane, run


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
            lane = layout.position(row, k, block)[2]
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
            register, _, lane = layout.position(row, 0, block)
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
            length = source.scale.run
            runs = range(shape.k // length)
            exponent = self.random.integers(-2, 3, (rows, len(runs)))
            for row, run in np.ndindex(exponent.shape):
                lane, byte = scale_byte(source.scale, rows, row, run)
                first = self.operands[position].first + byte // 4
                raw = int(exponent[row, run]) + 127
                if source.scale_format is not None:  # E4M3
                    raw = int(exponent[row, run]) + 7 << 3
                bits = 8 * (byte % 4)
                self.registers[first, lane] &= np.uint32(~(0xFF << bits) & 0xFFFFFFFF)
                self.registers[first, lane] |= np.uint32(raw << bits)
            factor = np.repeat(2.0**exponent, length, axis=1)
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


def texts(target: str, lanes: int) -> list[str]:
    """Every row once."""
    found = []
    for row in matrix_rows(target):
        assert row.matrix is not None
        if row.name.startswith(UNKNOWN):
            continue
        formats = row.matrix.a_type == "f8f6f4" and target == "gfx950"
        found.append(text_of(row, target, "cbsz:0 blgp:1" if formats else "", lanes=lanes))
    return found


@pytest.mark.parametrize(("target", "lanes"), thorough_beyond(QUICK, CASES))
def test_every_row(target: str, lanes: int) -> None:
    for seed, program in enumerate(compile_all(texts(target, lanes), target, lanes)):
        Case(program, lanes, seed).check()


def row_named(name: str, target: str) -> Opcode:
    return next(row for row in matrix_rows(target) if row.mnemonics[target] == name)


def check(name: str, target: str, lanes: int, variants: list[dict[str, str]]) -> None:
    """One row with several sets of `text_of` options."""
    row = row_named(name, target)
    listed = [text_of(row, target, lanes=lanes, **variant) for variant in variants]
    for seed, program in enumerate(compile_all(listed, target, lanes)):
        Case(program, lanes, seed).check()


def modifiers(*found: str) -> list[dict[str, str]]:
    return [{"modifiers": text} for text in found]


def test_blocks_of_a_and_lanes_of_b() -> None:
    check(
        "v_mfma_f32_4x4x1_16b_f32",
        "gfx942",
        64,
        modifiers("cbsz:1 abid:1", "cbsz:3 abid:5", "cbsz:4 abid:11", "blgp:1", "blgp:3"),
    )
    check(
        "v_mfma_f32_16x16x4_4b_f16",
        "gfx942",
        64,
        modifiers("cbsz:2 abid:3 blgp:2", "cbsz:1 abid:1", "blgp:5", "blgp:7"),
    )
    check("v_mfma_i32_32x32x4_2b_i8", "gfx942", 64, modifiers("cbsz:1 abid:1", "blgp:1"))
    check("v_mfma_f32_16x16x16_f16", "gfx942", 64, modifiers("blgp:3", "blgp:6"))


def test_signs_of_doubles() -> None:
    signs = modifiers("neg:[1,0,0]", "neg:[0,1,1]", "neg:[1,1,0]")
    check("v_mfma_f64_16x16x4_f64", "gfx942", 64, signs)
    check("v_mfma_f64_4x4x4f64", "gfx90a", 64, modifiers("blgp:1", "blgp:6"))


def test_signs_of_wmma() -> None:
    signs = modifiers("neg_lo:[1,0,0]", "neg_hi:[0,1,0]", "neg_lo:[0,0,1] neg_hi:[1,0,1]")
    for target in ("gfx1100", "gfx1201"):
        check("v_wmma_f32_16x16x16_f16", target, 32, signs)
    check("v_swmmac_f32_16x16x32_f16", "gfx1201", 32, modifiers("neg_lo:[1,0,0]"))


def test_signedness_and_clamp() -> None:
    variants = modifiers("neg_lo:[1,0,0]", "neg_lo:[0,1,0] clamp", "neg_lo:[1,1,0]")
    for target in ("gfx1100", "gfx1201"):
        check("v_wmma_i32_16x16x16_iu8", target, 32, variants)
        check("v_wmma_i32_16x16x16_iu4", target, 32, variants)
    check("v_swmmac_i32_16x16x32_iu8", "gfx1201", 32, variants)


def test_sets_of_a_sparse_index() -> None:
    keys = modifiers("abid:0", "abid:1", "abid:2", "abid:3", "cbsz:1 abid:3")
    check("v_smfmac_f32_16x16x32_f16", "gfx942", 64, keys)
    check("v_smfmac_i32_32x32x32_i8", "gfx942", 64, keys[:2])
    for lanes, count in ((32, 2), (64, 4)):
        named = modifiers(*(f"index_key:{key}" for key in range(count)))
        check("v_swmmac_f32_16x16x32_f16", "gfx1201", lanes, named)


def test_high_half_of_results() -> None:
    for lanes in (32, 64):
        for name in ("v_wmma_f16_16x16x16_f16", "v_wmma_bf16_16x16x16_bf16"):
            check(name, "gfx1100", lanes, modifiers("op_sel:[0,0,1]"))


@pytest.mark.parametrize("name", ["v_mfma_f32_16x16x128_f8f6f4", "v_mfma_f32_32x32x64_f8f6f4"])
def test_every_pair_of_narrow_formats(name: str) -> None:
    variants = [
        {"modifiers": f"cbsz:{left} blgp:{right}", "narrow": f"{F8F6F4[left]},{F8F6F4[right]}"}
        for left in range(5)
        for right in range(5)
    ]
    check(name, "gfx950", 64, variants)


def test_bytes_of_block_scales() -> None:
    variants = [
        {"modifiers": f"{text} cbsz:{code} blgp:4", "narrow": f"{F8F6F4[code]},fp4"}
        for text in ("op_sel:[1,0,0] op_sel_hi:[0,1,0]", "op_sel:[1,1,0] op_sel_hi:[1,0,0]")
        for code in (0, 2)
    ]
    check("v_mfma_scale_f32_16x16x128_f8f6f4", "gfx950", 64, variants)
    check("v_mfma_scale_f32_32x32x64_f8f6f4", "gfx950", 64, variants)


@pytest.mark.parametrize("name", ["v_wmma_scale_f32_16x16x128_f8f6f4",
                                  "v_wmma_scale16_f32_16x16x128_f8f6f4"])  # fmt: skip
def test_scales_of_wave_products(name: str) -> None:
    formats = {"fp8": "FP8", "bf8": "BF8", "fp6": "FP6", "bf6": "BF6", "fp4": "FP4"}
    variants = [
        {
            "modifiers": f"matrix_a_fmt:MATRIX_FMT_{formats[left]} "
            f"matrix_b_fmt:MATRIX_FMT_{formats[right]} {rows}",
            "narrow": f"{left},{right}",
        }
        for left, right, rows in (
            ("fp8", "fp8", ""),
            ("bf8", "fp4", "matrix_a_scale:MATRIX_SCALE_ROW1"),
            ("fp4", "fp6", "matrix_b_scale:MATRIX_SCALE_ROW1"),
            ("bf6", "fp4", "matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3"),
        )
    ]
    check(name, "gfx1250", 32, variants)


@pytest.mark.parametrize("name", ["v_wmma_scale_f32_32x16x128_f4",
                                  "v_wmma_scale16_f32_32x16x128_f4"])  # fmt: skip
def test_scales_of_tall_wave_products(name: str) -> None:
    check(name, "gfx1250", 32, modifiers("", "matrix_b_scale:MATRIX_SCALE_ROW1"))


def test_constants_as_c() -> None:
    constants = [{"c": text} for text in ("0", "1.0", "-4.0", "0.5")]
    for name in ("v_mfma_f32_32x32x8_f16", "v_mfma_f64_16x16x4_f64", "v_mfma_f32_4x4x4_16b_f16"):
        check(name, "gfx942", 64, constants)
    check("v_mfma_i32_32x32x16_i8", "gfx942", 64, [{"c": text} for text in ("0", "7", "-16")])
    for name in ("v_wmma_f16_16x16x16_f16", "v_wmma_bf16_16x16x16_bf16"):
        check(name, "gfx1201", 32, constants)


@pytest.mark.parametrize(
    "host",
    [
        Host(256, 16, True, "llvm.x86.avx2.pmadd.wd" if detect().pair_product else ""),
        Host(128, 16),
        Host(128, 32),
    ],
    ids=["256", "plain", "many"],
)
def test_other_vector_widths(host: Host) -> None:
    names = {
        "gfx942": (
            *("v_mfma_f32_32x32x8_bf16", "v_mfma_f32_16x16x16_f16", "v_mfma_i32_16x16x32_i8"),
            *("v_mfma_f32_16x16x32_fp8_bf8", "v_mfma_f64_16x16x4_f64", "v_mfma_f32_4x4x4_16b_f16"),
            *("v_smfmac_f32_16x16x32_f16", "v_mfma_f32_16x16x8_xf32"),
        ),
        "gfx1201": (
            *("v_wmma_f16_16x16x16_f16", "v_wmma_bf16_16x16x16_bf16", "v_wmma_i32_16x16x32_iu4"),
            "v_wmma_f32_16x16x16_bf8_fp8",
        ),
    }
    for target, listed in names.items():
        rows = [text_of(row_named(name, target), target) for name in listed]
        lanes = wave_lanes_of(target)
        for seed, program in enumerate(compile_all(rows, target, lanes, host)):
            Case(program, lanes, seed).check()
