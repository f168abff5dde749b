"""Text and parsed instructions to machine code: spellings, literals, labels, refusals."""

from __future__ import annotations

import struct

import pytest

from tests.targets import swept
from wavecast import isa
from wavecast.isa.encoding.assembler import machine_code
from wavecast.isa.encoding.encoder import EncodeError, machine_encoder
from wavecast.isa.encoding.stream import CodeReader
from wavecast.isa.targets import TARGET_SETS, TARGETS


def _words(target: str, text: str, lanes: int = 64) -> tuple[int, ...]:
    content = machine_encoder(target, lanes).encode(text).content
    return struct.unpack(f"<{len(content) // 4}I", content)


def test_a_spelling_without_suffix_has_the_shortest_encoding() -> None:
    assert _words("gfx942", "v_add_f32 v1, v2, v3") == _words("gfx942", "v_add_f32_e32 v1, v2, v3")
    assert len(_words("gfx942", "v_add_f32 v1, v2, s3")) == 2


def test_numbers_are_inline_constants_where_they_can_be() -> None:
    assert _words("gfx942", "s_mov_b32 s0, 0x40") == (0xBE8000C0,)
    assert _words("gfx942", "s_mov_b32 s0, 0x41") == (0xBE8000FF, 0x41)
    assert _words("gfx942", "s_mov_b32 s0, lit(0x40)") == (0xBE8000FF, 0x40)
    assert _words("gfx942", "s_mov_b32 s0, -5000") == (0xBE8000FF, 0xFFFFEC78)


def test_modifiers_can_be_in_any_order() -> None:
    ordered = "v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1"
    other = "v_mov_b32_dpp v1, v2 bank_mask:0xf bound_ctrl:1 row_mask:0xf row_shr:1"
    assert _words("gfx942", ordered) == _words("gfx942", other) == (0x7E0202FA, 0xFF091102)


def test_a_register_number_that_fields_share_is_found_once() -> None:
    """The address has one register where there is a scalar address, else two."""
    assert _words("gfx942", "global_load_dword v1, v2, s[4:5] offset:-16") != _words(
        "gfx942", "global_load_dword v1, v[2:3], off offset:-16"
    )


@pytest.mark.parametrize(
    "text",
    [
        "v_add_f32_e32 v1, v2, s3",
        "s_add_u32 s0, 0x1234, 0x5678",
        "ds_read_b32 v1, v2 offset:65536",
        "v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf offset:4",
    ],
)
def test_what_has_no_encoding_is_refused(text: str) -> None:
    with pytest.raises(EncodeError, match="no encoding of"):
        machine_encoder("gfx942", 64).encode(text)


LOOP = """
\t.text
\t.type\tf,@function
f:
\ts_mov_b32 s0, 0x1234
.LBB0_1:
\ts_sub_u32 s0, s0, 1
\ts_cmp_eq_u32 s0, 0
\ts_cbranch_scc1 .LBB0_3
\ts_branch .LBB0_1
.LBB0_3:
\ts_endpgm
.Lfunc_end0:
"""


@pytest.mark.parametrize("target", swept(TARGETS))
def test_branches_of_a_function_go_to_its_labels(target: str) -> None:
    program = isa.parse(LOOP, target).functions["f"]
    lanes = 64 if target in TARGET_SETS["gfx9"] else 32
    placed = CodeReader(target, lanes).read(machine_code(program, lanes), 0)
    assert [item.target for item in placed] == [None, None, None, 24, 8, None]
