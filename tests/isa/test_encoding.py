"""Sections of machine code: labels, data, bits without a meaning, upper bits of registers."""

from __future__ import annotations

import struct

from wavecast.isa.encoding.stream import CodeReader, Placed

BRANCH_OVER_TWO = 0xBF820002
END = 0xBF810000
MOVE = 0x7E020302


def _read(target: str, *words: int, lanes: int = 64, address: int = 0x100) -> list[Placed]:
    return CodeReader(target, lanes).read(struct.pack(f"<{len(words)}I", *words), address)


def _texts(items: list[Placed]) -> list[str]:
    return [item.decoding.text if item.decoding is not None else "data" for item in items]


def test_targets_of_branches_come_from_the_encoding() -> None:
    items = _read("gfx942", BRANCH_OVER_TWO, MOVE, MOVE, END)
    assert items[0].target == 0x10C
    assert _texts(items)[1:] == ["v_mov_b32_e32 v1, v2", "v_mov_b32_e32 v1, v2", "s_endpgm"]


def test_data_in_code_does_not_hide_the_instruction_behind_it() -> None:
    """The second word of data looks like the first of a long instruction."""
    unknown, first_of_two = 0xFFFFFFFF, 0xD3CD0000
    items = _read("gfx942", BRANCH_OVER_TWO, unknown, first_of_two, MOVE, END)
    assert _texts(items) == ["s_branch 2", "data", "data", "v_mov_b32_e32 v1, v2", "s_endpgm"]
    assert [item.address for item in items] == [0x100, 0x104, 0x108, 0x10C, 0x110]


def test_bits_without_a_meaning_are_ignored() -> None:
    plain = _read("gfx1151", 0xD73C0002, 0x00020084, lanes=32)
    marked = _read("gfx1151", 0xD73C0002, 0x02020084, lanes=32)
    assert _texts(plain) == _texts(marked) == ["v_lshlrev_b64 v[2:3], 4, v[0:1]"]


def test_a_literal_with_the_value_of_an_inline_constant_is_marked() -> None:
    assert _texts(_read("gfx942", 0x820FFF0F, 0xFFFFFFFF)) == [
        "s_addc_u32 s15, s15, lit(0xffffffff)"
    ]


def test_upper_bits_of_registers_are_those_of_the_mode() -> None:
    items = _read("gfx1250", MOVE, 0xBF860041, MOVE, 0xBF860000, MOVE, lanes=32)
    assert _texts(items)[::2] == [
        "v_mov_b32_e32 v1, v2",
        "v_mov_b32_e32 v1 /*v257*/, v2 /*v258*/",
        "v_mov_b32_e32 v1, v2",
    ]
    halves = _read("gfx1250", 0xBF860041, 0x7E023982, lanes=32)
    assert _texts(halves)[1] == "v_mov_b16_e32 v1.l /*v257.l*/, v2.h /*v258.h*/"


def test_scales_are_in_the_first_registers() -> None:
    """As llvm-objdump 22 prints it: the mode leaves the scales of a matrix instruction alone."""
    words = 0xBF860001, 0xCC350000, 0x040393C8, 0xCC330000, 0x04A23108
    assert _texts(_read("gfx1250", *words, lanes=32))[1] == (
        "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:23] /*v[264:279]*/, v[24:39], v[40:47], "
        "v200, v201"
    )


def test_the_source_that_a_scale_does_not_have_is_not_read() -> None:
    """LLVM 22 writes v0 into its field, LLVM 24 the constant 0."""
    half = 0xCC330000, 0x04A23108
    texts = {
        _texts(_read("gfx1250", 0xCC350000, 0x000393C8 | unused << 18, *half, lanes=32))[0]
        for unused in (0x100, 0x80)
    }
    assert len(texts) == 1
    assert texts.pop().startswith("v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:23]")


def test_tuples_of_gfx1250_go_on_behind_v255() -> None:
    """As llvm-mc 22 prints them; a tuple cannot begin at an odd number, or go on behind v1023."""
    across = 0xCC600008, 0x1C2205FA
    mode = 0xBF860001
    text = "v_wmma_f32_16x16x32_f16 v[8:15], v[250:257]{}, v[2:9], v[8:15]"
    assert _texts(_read("gfx1250", *across, lanes=32)) == [text.format("")]
    upper = _texts(_read("gfx1250", mode, *across, lanes=32))
    assert upper[1] == text.format(" /*v[506:513]*/")
    assert _texts(_read("gfx1250", mode | 3, *across, lanes=32))[1] == "data"
    assert _texts(_read("gfx1250", 0xCC600008, 0x1C2205FB, lanes=32))[0] == "data"


def test_a_truncated_instruction_is_data() -> None:
    assert _texts(_read("gfx942", MOVE, 0xD3CD0000)) == ["v_mov_b32_e32 v1, v2", "data"]


def test_a_known_instruction_without_its_last_word_is_data() -> None:
    """The missing word is not the literal 0 of the first instruction."""
    assert _texts(_read("gfx942", 0xBE8000FF, 0, 0xBE8000FF)) == ["s_mov_b32 s0, lit(0x0)", "data"]


def test_offsets_of_gfx1250_can_count_elements() -> None:
    words = (0xEE050004, 0x00010001, 0x00000002, 0xF4000001, 0x09000000)
    assert _texts(_read("gfx1250", *words, lanes=32)) == [
        "global_load_b32 v1, v2, s[4:5] scale_offset",
        "s_load_b32 s0, s[2:3], s4 offset:0x0 scale_offset",
    ]


def test_only_the_lower_half_of_a_16_bit_literal_is_read() -> None:
    assert _texts(_read("gfx942", 0x4C46E4FF, 0x6A3CD048)) == ["v_add_u16_e32 v35, 0xd048, v114"]


def test_fields_without_a_meaning_are_no_instruction() -> None:
    """A literal in a format of gfx9 without one, and registers behind the last scalar one."""
    assert _texts(_read("gfx942", 0xD1010000, 0x000002FF)) == ["data", "data"]
    assert _texts(_read("gfx1201", 0x86E98100, lanes=32)) == ["data"]
