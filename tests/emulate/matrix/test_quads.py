"""Products of four pairs of bytes are the exact ones, whichever operand is signed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.matrix.support import REGISTERS, compile_all
from wavecast.emulate.matrix import quads
from wavecast.emulate.matrix.detection import detect
from wavecast.isa.decode import wave_lanes_of

IU8 = "v_wmma_i32_16x16x16_iu8"
INSTRUCTIONS = {
    "gfx942": (
        "v_mfma_i32_32x32x16_i8 v[0:15], v[16:17], v[18:19], v[0:15]",
        "v_mfma_i32_16x16x32_i8 v[0:3], v[16:17], v[18:19], 7",
        "v_mfma_i32_32x32x4_2b_i8 v[0:31], v32, v33, v[0:31] cbsz:1 abid:1",
    ),
    "gfx950": ("v_mfma_i32_32x32x32_i8 v[0:15], v[16:19], v[20:23], v[0:15]",),
    "gfx1100": (f"{IU8} v[0:7], v[8:11], v[12:15], v[0:7] neg_lo:[1,1,0]",),
    "gfx1201": (
        f"{IU8} v[0:7], v[8:9], v[10:11], v[0:7] neg_lo:[0,1,0]",
        f"{IU8} v[0:7], v[8:9], v[10:11], v[0:7] neg_lo:[1,1,0]",
    ),
}


@pytest.mark.skipif(not detect().byte_dots, reason="needs products of bytes")
@pytest.mark.parametrize("target", INSTRUCTIONS)
def test_bits_are_those_of_pairs(target: str) -> None:
    texts, lanes = INSTRUCTIONS[target], wave_lanes_of(target)
    quick = compile_all(texts, target, lanes, detect())
    plain = compile_all(texts, target, lanes, replace(detect(), byte_dots=False))
    random = np.random.default_rng(8)
    extremes = np.array([0x80808080, 0x7F7F7F7F, 0xFF0080FF], np.uint32)
    for text, one, other in zip(texts, quick, plain, strict=True):
        assert quads.uses_quads(one.spec, detect()), text
        for kind in ("bits", "extremes"):
            registers = random.integers(0, 1 << 32, (REGISTERS, lanes), dtype=np.uint32)
            if kind == "extremes":
                registers = random.choice(extremes, (REGISTERS, lanes))
            before, wanted = registers.copy(), registers.copy()
            one.run(registers)
            other.run(wanted)
            assert (registers != before).any()
            np.testing.assert_array_equal(registers, wanted, err_msg=f"{text}: {kind}")


@pytest.mark.skipif(not detect().byte_dots, reason="needs products of bytes")
def test_unsigned_b_is_multiplied_in_pairs() -> None:
    (program,) = compile_all(
        [f"{IU8} v[0:7], v[8:9], v[10:11], v[0:7] neg_lo:[1,0,0]"], "gfx1201", 32
    )
    assert not quads.uses_quads(program.spec, detect())
