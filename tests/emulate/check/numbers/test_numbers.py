"""The first NaN and the first infinity: who computes them, and who only passes them on."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.check.support import checked
from tests.emulate.memory_support import masked, whole
from wavecast.emulate.check.mode import CheckMode
from wavecast.emulate.reports import Kind

_INF, _NAN, _LARGE = "0x7f800000", "0x7fc00000", "0x7f000000"


def _found(body: str, target: str = "gfx942") -> list[tuple[Kind, str, int]]:
    """Kind, mnemonic and lanes of the reports."""
    wait = "s_waitcnt lgkmcnt(0)\n" if not target.startswith("gfx12") else "s_wait_kmcnt 0x0\n"
    start = f"v_mov_b32_e32 v2, {_INF}\nv_mov_b32_e32 v3, {_NAN}\nv_mov_b32_e32 v4, {_LARGE}\n"
    start += "".join(f"v_mov_b32_e32 v{index}, 0\n" for index in range(5, 32))
    out = np.zeros(1024, np.uint32)
    mode = partial(CheckMode, numbers=True)
    reports = checked(target, wait + start + body, out, mode=mode)
    kinds = (Kind.NOT_A_NUMBER, Kind.INFINITY)
    return [(r.kind, r.text.split()[0], len(r.lanes)) for r in reports if r.kind in kinds]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("v_sub_f32_e32 v20, v2, v2", Kind.NOT_A_NUMBER),
        ("v_add_f32_e32 v20, v4, v4", Kind.INFINITY),
        ("v_mul_f32_e32 v20, v2, v5", Kind.NOT_A_NUMBER),
        ("v_rcp_f32_e32 v20, v5", Kind.INFINITY),
        ("v_log_f32_e32 v20, v5", Kind.INFINITY),
        ("v_fma_f32 v20, v4, v4, v5", Kind.INFINITY),
        ("v_cvt_f16_f32_e32 v20, v4", Kind.INFINITY),
        ("v_pk_add_f32 v[20:21], v[4:5], v[4:5]", Kind.INFINITY),
        ("v_sqrt_f32_e32 v20, -1.0", Kind.NOT_A_NUMBER),
    ],
)
def test_computed(text: str, kind: Kind) -> None:
    assert _found(text + "\n") == [(kind, text.split()[0], 64)]


@pytest.mark.parametrize(
    "text",
    [
        "v_mov_b32_e32 v20, v3",
        "v_add_f32_e32 v20, v3, v5",
        "v_add_f32_e32 v20, v2, v5",
        "v_max_f32_e32 v20, v2, v5",
        "v_add_f32_e32 v20, 1.0, v5",
        "v_exp_f32_e32 v20, -v2",
        "v_cvt_f64_f32_e32 v[20:21], v2",
        "v_add_u32_e32 v20, v3, v3",
    ],
)
def test_passed_on(text: str) -> None:
    assert not _found(text + "\n")


def test_only_active_lanes_count() -> None:
    body = masked("gfx942", 0xFF) + "v_rcp_f32_e32 v20, v5\n" + whole("gfx942")
    assert _found(body) == [(Kind.INFINITY, "v_rcp_f32_e32", 8)]


def test_halves() -> None:
    large = "v_mov_b32_e32 v6, 0x{}\n"
    upper, lower = large.format("7bff0000"), large.format("00007bff")
    add = "v_add_f16_e32 v20, v6, v6\n"
    assert [kind for kind, *_ in _found(lower + add)] == [Kind.INFINITY]
    assert not _found(upper + add)
    packed = "v_pk_add_f16 v20, v6, v6\n"
    assert [kind for kind, *_ in _found(upper + packed)] == [Kind.INFINITY]
    select = "v_add_f16_sdwa v20, v6, v6 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:WORD_1\n"  # noqa: E501
    assert [kind for kind, *_ in _found(upper + select)] == [Kind.INFINITY]


def test_doubles() -> None:
    pair = "v_mov_b32_e32 v6, {}\nv_mov_b32_e32 v7, {}\nv_add_f64 v[20:21], v[6:7], v[6:7]\n"
    assert [kind for kind, *_ in _found(pair.format(0, "0x7fe00000"))] == [Kind.INFINITY]
    assert not _found(pair.format(1, "0x7ff00000"))
    assert not _found(pair.format(0, "0x7ff00000"))


def test_matrix_instructions() -> None:
    body = "v_mfma_f32_4x4x4_16b_f16 v[8:11], v[6:7], v[6:7], v[12:15]\ns_nop 7\n"
    large = "v_mov_b32_e32 v12, 0x7f7fffff\nv_mov_b32_e32 v6, 0x7bff\n"
    assert not _found(large + body)
    assert not _found("v_mov_b32_e32 v6, 0x7e00\n" + body)
    infinite = "v_mov_b32_e32 v6, 0x7c00\n"
    found = _found(infinite + body.replace("v[6:7], v[12", "v[16:17], v[12"))
    assert [kind for kind, *_ in found] == [Kind.NOT_A_NUMBER]


def test_mixed_precision() -> None:
    """v6 is infinite as f16 and a small number as f32."""
    body = "v_mov_b32_e32 v6, 0x7c00\nv_fma_mix_f32 v20, v6, v6, v5 op_sel_hi:[{0},{0},0]\n"
    assert not _found(body.format(1))
    assert not _found(body.format(0))
    invalid = "v_mov_b32_e32 v6, 0x7c00\nv_fma_mix_f32 v20, v6, v5, v5 op_sel_hi:[1,0,0]\n"
    assert [kind for kind, *_ in _found(invalid)] == [Kind.NOT_A_NUMBER]


def test_pairs_of_gfx11() -> None:
    body = "v_dual_add_f32 v20, v4, v4 :: v_dual_mul_f32 v21, v5, v5\n"
    assert [kind for kind, *_ in _found(body, "gfx1100")] == [Kind.INFINITY]
