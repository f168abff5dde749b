"""Transposing loads of gfx12: which lane's elements each lane gets.

Source: "gfx12-transposing-loads" of `wavecast/arch/sources.toml`.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import run
from wavecast.emulate.errors import Unsupported

LANES, ELEMENTS = 32, 8


def _source(lane: int, element: int, bits: int) -> int:
    """The lane whose element `lane` mod 8 a lane gets as its element."""
    if bits == 16:
        return lane & ~7 | element
    return element & 3 | lane >> 1 & 4 | (element & 4) << 1 | lane & 16


def _expected(codes: np.ndarray, bits: int) -> np.ndarray:
    rows = [
        [codes[_source(lane, element, bits), lane % 8] for element in range(ELEMENTS)]
        for lane in range(LANES)
    ]
    return np.array(rows, codes.dtype)


def _loaded(target: str, instruction: str, codes: np.ndarray, *, lds: bool) -> np.ndarray:
    """The elements that lanes have after loading one run of them each."""
    dwords = codes.nbytes // LANES // 4
    width, shift = 32 * dwords, {2: 3, 4: 4}[dwords]
    registers = f"v[4:{3 + dwords}]"
    if lds:
        fill = (
            f"\tglobal_load_b{width} {registers}, v2, s[8:9]\n\ts_wait_loadcnt 0x0\n"
            f"\tds_store_b{width} v2, {registers}\n\ts_wait_dscnt 0x0\n"
        )
        load = f"{fill}\t{instruction} {registers}, v2\n\ts_wait_dscnt 0x0\n"
    else:
        load = f"\t{instruction} {registers}, v2, s[8:9]\n\ts_wait_loadcnt 0x0\n"
    out = np.zeros_like(codes)
    body = f"\tv_lshlrev_b32_e32 v2, {shift}, v0\n{load}"
    body += f"\tglobal_store_b{width} v2, {registers}, s[10:11]\n"
    run(target, body, codes, out, threads=LANES, lds=1024)
    return out


CASES = [
    ("gfx1201", "global_load_tr_b128", 16, False),
    ("gfx1250", "global_load_tr16_b128", 16, False),
    ("gfx1250", "global_load_tr8_b64", 8, False),
    ("gfx1250", "ds_load_tr16_b128", 16, True),
    ("gfx1250", "ds_load_tr8_b64", 8, True),
]


@pytest.mark.parametrize(("target", "instruction", "bits", "lds"), CASES)
def test_lanes_exchange_elements(target: str, instruction: str, bits: int, lds: bool) -> None:
    kind = np.uint16 if bits == 16 else np.uint8
    codes = np.arange(LANES * ELEMENTS, dtype=kind).reshape(LANES, ELEMENTS)
    found = _loaded(target, instruction, codes, lds=lds)
    np.testing.assert_array_equal(found, _expected(codes, bits))


def test_a_layout_that_nobody_documents_is_refused() -> None:
    codes = np.zeros((LANES, ELEMENTS), np.uint8)
    with pytest.raises(Unsupported, match="transposing loads of 8-bit elements"):
        _loaded("gfx1201", "global_load_tr_b64", codes, lds=False)


def test_blocks_of_sixteen_lanes_on_cdna4() -> None:
    """Lane n gets column n of four rows of sixteen elements."""
    codes = np.arange(64 * 4, dtype=np.uint16).reshape(64, 4)
    out = np.zeros_like(codes)
    body = (
        "\tv_lshlrev_b32_e32 v2, 3, v0\n\tglobal_load_dwordx2 v[4:5], v2, s[8:9]\n"
        "\ts_waitcnt vmcnt(0)\n\tds_write_b64 v2, v[4:5]\n\ts_waitcnt lgkmcnt(0)\n"
        "\tds_read_b64_tr_b16 v[4:5], v2\n\ts_waitcnt lgkmcnt(0)\n"
        "\tglobal_store_dwordx2 v2, v[4:5], s[10:11]\n"
    )
    run("gfx950", body, codes, out, lds=1024)
    blocks = codes.reshape(4, 4, 16).transpose(0, 2, 1).reshape(64, 4)
    np.testing.assert_array_equal(out, blocks)
