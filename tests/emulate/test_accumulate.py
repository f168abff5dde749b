"""Instructions that read what they write: modifiers of the first source are not the target's."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

from tests.emulate.memory_support import lanes_of, run


def _accumulate(target: str, instruction: str) -> np.ndarray:
    """1000 + lane, plus twice what `instruction` takes from v2 (the lane number as f32)."""
    out = np.zeros(lanes_of(target), np.float32)
    store = "global_store_dword" if target.startswith("gfx9") else "global_store_b32"
    wait = "\ts_waitcnt lgkmcnt(0)\n" if not target.startswith("gfx12") else "\ts_wait_kmcnt 0x0\n"
    run(
        target,
        f"{wait}"
        "\tv_cvt_f32_u32_e32 v2, v0\n"
        "\tv_mov_b32_e32 v3, 2.0\n"
        "\tv_add_f32_e32 v4, 0x447a0000, v2\n"
        f"\t{instruction}\n"
        f"\t{store} v1, v4, s[8:9]\n",
        out,
    )
    return out


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_dpp_permutes_the_source_of_an_accumulation(target: str) -> None:
    found = _accumulate(
        target, "v_fmac_f32_dpp v4, v2, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
    )
    lane = np.arange(lanes_of(target))
    np.testing.assert_array_equal(found, 1000 + lane + 2 * (lane ^ 1))
