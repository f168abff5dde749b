"""Constants in instructions take the format of the operand they stand for.

Source: AMD instruction set architecture guides (CDNA3, RDNA3), "Inline constants" and "Literal
constants": floats of 64-bit operands are doubles, a literal of a 64-bit float is its high half.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.emulate.memory_support import run


def _f64(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


_MOVED = "\tv_mov_b32_e32 v4, s4\n\tv_mov_b32_e32 v5, s5"
CASES = [
    ("gfx942", "v_mov_b64_e32 v[4:5], 2.0", _f64(2.0)),
    ("gfx942", "v_mov_b64_e32 v[4:5], -1", (1 << 64) - 1),
    ("gfx942", "v_add_f64 v[4:5], v[2:3], 0.5", _f64(0.5)),
    ("gfx90a", "v_add_f64 v[4:5], v[2:3], -4.0", _f64(-4.0)),
    ("gfx1100", "v_add_f64 v[4:5], v[2:3], 0x40590000", _f64(100.0)),
    ("gfx1201", "v_add_f64_e32 v[4:5], 0x40590000, v[2:3]", _f64(100.0)),
    ("gfx942", "v_add_f32_e32 v4, 1.0, v2\n\tv_mov_b32_e32 v5, 0.15915494", 0x3E22F9833F800000),
    ("gfx942", "v_add_f16_e32 v4, 1.0, v2\n\tv_mov_b32_e32 v5, 64", 0x4000003C00),
    ("gfx942", "v_pk_add_f16 v4, v2, 2.0 op_sel_hi:[1,0]\n\tv_mov_b32_e32 v5, 0", 0x40004000),
    ("gfx90a", "v_pk_add_f16 v4, v2, 2.0\n\tv_mov_b32_e32 v5, 0", 0x4000),
    *((target, f"v_pk_add_f32 v[4:5], v[2:3], 1.0{select}", 0x3F8000003F800000)
      for target in ("gfx90a", "gfx942", "gfx950")
      for select in ("", " op_sel_hi:[1,0]", " op_sel:[0,1] op_sel_hi:[1,0]")),
    ("gfx942", "v_pk_add_f32 v[4:5], v[2:3], 1.0 neg_hi:[0,1]", 0xBF8000003F800000),
    ("gfx942", "v_pk_fma_f32 v[4:5], 0.5, 4.0, v[2:3] op_sel:[1,0,0]", 0x4000000040000000),
    ("gfx942", "v_pk_fma_f32 v[4:5], v[2:3], v[2:3], 2 op_sel_hi:[1,1,0]", 0x200000002),
    ("gfx942", "v_pk_mov_b32 v[4:5], 1.0, -2 op_sel:[1,0]", 0xFFFFFFFE3F800000),
    ("gfx942", "v_pk_add_f32 v[4:5], v[2:3], s[4:5]", 0x4000000040400000),
    ("gfx942", "v_pk_add_f32 v[4:5], v[2:3], s[4:5] op_sel_hi:[1,0]", 0x4040000040400000),
    ("gfx1250", "v_pk_add_f32 v[4:5], v[2:3], s[4:5]", 0x4040000040400000),
    # LLVM 22 writes the first of these for 1.0 in both halves, LLVM 24 the second
    ("gfx1250", "v_pk_add_bf16 v4, v2, 1.0 op_sel_hi:[1,0]\n\tv_mov_b32_e32 v5, 0", 0),
    ("gfx1250", "v_pk_add_bf16 v4, v2, 1.0 op_sel:[0,1]\n\tv_mov_b32_e32 v5, 0", 0x3F803F80),
    ("gfx1250", "v_pk_add_bf16 v4, v2, 1.0\n\tv_mov_b32_e32 v5, 0", 0x3F800000),
    ("gfx1250", "v_pk_add_bf16 v4, v2, 0xc0003f80\n\tv_mov_b32_e32 v5, 0", 0xC0003F80),
    ("gfx942", f"s_mov_b64 s[4:5], 1.0\n{_MOVED}", _f64(1.0)),
    ("gfx942", f"s_mov_b64 s[4:5], -2\n{_MOVED}", -2 & (1 << 64) - 1),
]  # fmt: skip


@pytest.mark.parametrize(("target", "body", "expected"), CASES)
def test_constant(target: str, body: str, expected: int) -> None:
    """v[2:3] is zero; the result is v[4:5]."""
    out = np.zeros(128, np.uint32)
    pair = "\ts_mov_b32 s4, 0x40400000\n\ts_mov_b32 s5, 2.0\n"
    zero = pair + "\tv_mov_b32_e32 v2, 0\n\tv_mov_b32_e32 v3, 0\n"
    store = "\tv_lshlrev_b32_e32 v1, 1, v1\n\tglobal_store_dwordx2 v1, v[4:5], s[8:9]\n"
    if not target.startswith("gfx9"):
        store = store.replace("dwordx2", "b64")
    run(target, f"{zero}\t{body}\n{store}", out)
    assert int(out[0]) | int(out[1]) << 32 == expected
