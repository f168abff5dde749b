"""Products of pairs of bf16 give the bits of products one by one, whatever the operands are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.matrix.support import REGISTERS, Program, compile_all, values
from wavecast.compile.processor import processor
from wavecast.dtypes import Encoding
from wavecast.emulate.matrix import dot_check, dots
from wavecast.emulate.matrix.byte_tables import pattern
from wavecast.emulate.matrix.detection import detect
from wavecast.emulate.matrix.formats import element_format
from wavecast.emulate.matrix.function import chain_name
from wavecast.emulate.matrix.host import Host
from wavecast.isa.decode import wave_lanes_of

needs_dots = pytest.mark.skipif(not detect().bf16_dots, reason="needs products of pairs of bf16")

MIXED = "v_mfma_f32_16x16x128_f8f6f4 v[0:3]"
SCALED = "v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15], v32, v33"
INSTRUCTIONS = {
    "gfx942": (
        "v_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15]",
        "v_mfma_f32_16x16x16_bf16 v[0:3], v[16:17], v[18:19], v[4:7]",
        "v_mfma_f32_32x32x4_2b_bf16 v[0:31], v[32:33], v[34:35], v[0:31]",
        "v_mfma_f32_16x16x4_4b_bf16 v[0:15], v[16:17], v[18:19], 0 cbsz:1 abid:1",
        "v_mfma_f32_32x32x16_fp8_bf8 v[0:15], v[16:17], v[18:19], 1.0",
    ),
    "gfx950": (
        "v_mfma_f32_16x16x32_bf16 v[0:3], v[16:19], v[20:23], v[0:3]",
        f"{MIXED}, v[4:11], v[12:19], v[0:3]",
        f"{MIXED}, v[4:9], v[12:15], v[0:3] cbsz:2 blgp:4",
        SCALED,
        f"{SCALED} op_sel:[1,1,0] op_sel_hi:[1,0,0]",
        "v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[16:19], v[20:23], v[0:15], v32, v33 "
        "cbsz:4 blgp:4",
    ),
    "gfx1100": ("v_wmma_f32_16x16x16_bf16 v[0:7], v[8:15], v[16:23], v[0:7] neg_lo:[1,0,0]",),
    "gfx1201": (
        "v_wmma_f32_16x16x16_bf16 v[0:7], v[8:11], v[12:15], v[0:7] neg_hi:[0,1,0]",
        "v_wmma_f32_16x16x16_fp8_bf8 v[0:7], v[8:9], v[10:11], v[0:7]",
    ),
    "gfx1250": (
        "v_wmma_f32_16x16x32_bf16 v[0:7], v[8:15], v[16:23], v[0:7]",
        "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:15], v[16:31], v[0:7], v40, v41 "
        "matrix_a_fmt:MATRIX_FMT_FP4 matrix_b_fmt:MATRIX_FMT_BF8",
        "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[0:7], v40, v41 "
        "matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3 matrix_b_scale_fmt:MATRIX_SCALE_FMT_E4M3",
    ),
}
C_REGISTERS = 32


def _registers(random: np.random.Generator, kind: str, lanes: int) -> np.ndarray:
    """Registers `[row][lane] u32` for bf16 and f32: `normal` ones; with `odd` elements among them;
    with `tiny` ones only, whose products are near the least normal number; `finite bytes`; any
    `bits`."""
    shape = (REGISTERS, lanes)
    if kind == "finite bytes":
        numbers = random.integers(0, 256, (*shape, 4), dtype=np.uint8) & 0xBF
        numbers = np.where(numbers == 0x80, 0x81, numbers).astype(np.uint8)
        numbers[C_REGISTERS:] = random.integers(87, 168, numbers[C_REGISTERS:].shape)  # scales
        return numbers.view(np.uint32)[..., 0]
    if kind == "bits":
        return random.integers(0, 1 << 32, shape, dtype=np.uint32)
    scale = 2.0**-57 if kind == "tiny" else 1.0
    numbers = (random.standard_normal((*shape, 2)) * scale).astype(np.float32).view(np.uint32) >> 16
    registers = numbers[..., 0] | numbers[..., 1] << 16
    whole = random.standard_normal((C_REGISTERS, lanes)) * scale * scale
    registers[:C_REGISTERS] = whole.astype(np.float32).view(np.uint32)
    if kind == "odd":
        rows = random.integers(0, 24, 12)
        columns = random.integers(0, lanes, 12)
        values = (0x7F800000, 0x7FC1, 0x1, 0xFF80, 0x00010000, 0x80000001)
        registers[rows, columns] = np.resize(values, 12)
    return registers


def _after(program: Program, registers: np.ndarray) -> np.ndarray:
    """Registers after an instruction, every NaN the same."""
    copied = registers.copy()
    program.run(copied)
    numbers = copied[:C_REGISTERS]
    numbers[np.isnan(numbers.view(np.float32))] = 0x7FC00000
    return copied


@needs_dots
@pytest.mark.parametrize("target", INSTRUCTIONS)
def test_bits_are_those_of_single_products(target: str) -> None:
    texts, lanes = INSTRUCTIONS[target], wave_lanes_of(target)
    quick = compile_all(texts, target, lanes, detect())
    plain = compile_all(texts, target, lanes, replace(detect(), bf16_dots=False))
    random = np.random.default_rng(41)
    for text, one, other in zip(texts, quick, plain, strict=True):
        assert dots.uses_dots(one.spec, detect()), text
        for kind in ("normal", "odd", "tiny", "bits", "finite bytes", "normal"):
            registers = _registers(random, kind, lanes)
            addend = one.decoded.operands[3]
            if kind == "finite bytes" and addend.bits:
                numbers = random.standard_normal((addend.count, lanes)).astype(np.float32)
                registers[addend.first : addend.first + addend.count] = numbers.view(np.uint32)
            np.testing.assert_array_equal(
                _after(one, registers), _after(other, registers), err_msg=f"{text}: {kind}"
            )


@pytest.mark.parametrize("name", ["fp8", "bf8"])
@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_tables_have_the_value_of_every_byte(target: str, name: str) -> None:
    kind = element_format(name, target)
    assert isinstance(kind, Encoding)
    wanted = values(kind)[:128]
    patterns = np.array([pattern(kind, number) for number in range(128)], np.uint32) << 16
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(patterns.view(np.float32)[finite], wanted[finite])
    assert not patterns[~finite].any()


@needs_dots
def test_wider_elements_are_multiplied_one_by_one() -> None:
    texts = (
        "v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]",
        "v_mfma_f32_32x32x2_f32 v[0:15], v16, v18, v[0:15]",
        "v_mfma_f32_4x4x4_16b_bf16 v[0:3], v[16:17], v[18:19], v[0:3]",
    )
    for program in compile_all(texts, "gfx942", 64):
        assert not dots.uses_dots(program.spec, detect())


def test_chains_with_and_without_pairs_have_names_of_their_own() -> None:
    (program,) = compile_all(INSTRUCTIONS["gfx942"][:1], "gfx942", 64)
    with_pairs, without = (Host(512, 32, bf16_dots=able) for able in (True, False))
    assert chain_name(program.spec, with_pairs) != chain_name(program.spec, without)


@needs_dots
def test_a_host_that_rounds_otherwise_does_not_use_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer comes from running both ways: here, pairs in the other order."""
    host, add = processor(), dots.add_products
    assert dot_check.dots_are_exact(host)
    swapped = dots.halves
    monkeypatch.setattr(dots, "halves", lambda builder, word: swapped(builder, word)[::-1])
    assert not dot_check.dots_are_exact(host)
    assert dots.add_products is add
