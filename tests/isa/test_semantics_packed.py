"""Packed rows, dot products, byte sums, lane permutations, clamped integers; what is missing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.isa.semantics_support import f16, f32, one, run
from wavecast.isa import semantics, table
from wavecast.isa.semantics import NOT_DONE, FloatMode, LaneOps

ONE16, TWO16 = f16(1.0), f16(2.0)
ALU = {"VOP1", "VOP2", "VOP3", "VOPC", "VOP3P", "SOP1", "SOP2", "SOPC", "SOPK"}


def test_every_alu_row_has_semantics_or_a_reason() -> None:
    missing = {row.name for row in table.rows() if row.form in ALU and semantics.of(row) is None}
    assert missing == set(NOT_DONE)


def test_only_gfx1250_lacks_a_description() -> None:
    rows = {row.name: row for row in table.rows()}
    for name, reason in NOT_DONE.items():
        if "description" in reason:
            assert set(rows[name].mnemonics) == {"gfx1250"}, name


CASES: list[tuple[str, tuple[int, ...], int]] = [
    ("v_pk_add_f16", (TWO16 << 16 | ONE16, ONE16 << 16 | ONE16), f16(3.0) << 16 | TWO16),
    ("v_pk_fma_f16", (TWO16 << 16 | ONE16,) * 3, f16(6.0) << 16 | TWO16),
    ("v_pk_fmac_f16", (ONE16, TWO16, TWO16), f16(5.0)),
    ("v_pk_add_u16", (0xFFFF0001, 0x00010001), 0x00000002),
    ("v_pk_sub_i16", (0x00050001, 0x00010002), 0x0004FFFF),
    ("v_pk_lshlrev_b16", (0x00040001, 0x00010001), 0x00100002),
    ("v_pk_mad_u16", (0x00020003, 0x00040005, 0x00010001), 0x00090010),
    ("v_pk_max_i16", (0x80000001, 0x00010002), 0x00010002),
    ("v_pk_add_max_i16", (0x7FFF0001, 0x00010001, 0x00000005), 0x7FFF0005),
    ("v_dot2_f32_f16", (TWO16 << 16 | ONE16, TWO16 << 16 | ONE16, f32(10.0)), f32(15.0)),
    ("v_dot2_f32_f16", (0, 0, 1), 0),
    ("v_dot2c_f32_bf16", (f32(1.0), 0x40003F80, 0x40003F80), f32(6.0)),
    ("v_dot2_f16_f16", (TWO16 << 16 | ONE16, TWO16 << 16 | ONE16, ONE16), f16(6.0)),
    ("v_dot4_i32_i8", (0xFF02FF02, 0x01010101, 5), 7),
    ("v_dot4_u32_u8", (0xFF02FF02, 0x01010101, 5), 519),
    ("v_dot8_i32_i4", (0xF0000002, 0x10000003, 0), 5),
    ("v_dot2_i32_i16", (0xFFFF0002, 0x00030004, 1), 6),
    ("v_dot4_i32_iu8", (0xFF, 0xFF, 0, 0b00), 65025),
    ("v_dot4_i32_iu8", (0xFF, 0xFF, 0, 0b01), -255 & 0xFFFFFFFF),
    ("v_dot4_i32_iu8", (0xFF, 0xFF, 0, 0b11), 1),
    ("v_fma_mix_f32", (f32(2.0), TWO16 << 16, f32(1.0), 0b010, 0b010, 0, 0), f32(5.0)),
    ("v_fma_mix_f32", (f32(2.0), TWO16 << 16, f32(1.0), 0b010, 0b010, 0b001, 0), f32(-3.0)),
    ("v_fma_mix_f32", (f32(-2.0), f32(1.0), 0, 0, 0, 0, 0b001), f32(2.0)),
    ("v_fma_mixhi_f16", (0x1234, f32(2.0), f32(3.0), 0, 0, 0, 0, 0), f16(6.0) << 16 | 0x1234),
    ("v_fma_mixlo_f16", (0x12340000, f32(2.0), f32(3.0), 0, 0, 0, 0, 0), 0x12340000 | f16(6.0)),
    ("v_sad_u8", (0x01FF0305, 0x02000503, 10), 10 + 1 + 255 + 2 + 2),
    ("v_msad_u8", (0x01FF0305, 0x02000503, 10), 10 + 1 + 2 + 2),
    ("v_sad_hi_u8", (3, 1, 7), 0x00020007),
    ("v_sad_u16", (0x00010005, 0x00030001, 0), 6),
    ("v_lerp_u8", (0xFF010203, 0xFF020405, 0x00010000), 0xFF020304),
    ("v_cubeid_f32", (f32(1.0), f32(2.0), f32(-3.0)), f32(5.0)),
    ("v_cubema_f32", (f32(1.0), f32(-4.0), f32(-3.0)), f32(-8.0)),
    ("v_cubesc_f32", (f32(-5.0), f32(2.0), f32(3.0)), f32(3.0)),
    ("v_cubetc_f32", (f32(1.0), f32(-4.0), f32(3.0)), f32(-3.0)),
    ("v_mul_hi_u32_u24", (0xFFFFFF, 0xFFFFFF), 0xFFFF),
    ("v_bitop3_b16", (0xFFFFF0F0, 0xFFFFCCCC, 0xFFFFAAAA, 0x80), 0x8080),
    ("v_med3_i16", (0x8000, 5, 1), 1),
    ("v_maxmin_i32", (5, 0xFFFFFFFF, 3), 3),
]


@pytest.mark.parametrize(("name", "inputs", "expected"), CASES)
def test_case(name: str, inputs: tuple[int, ...], expected: int) -> None:
    assert one(name, *inputs) == expected


CLAMPED: list[tuple[str, tuple[int, ...], int]] = [
    ("v_add_nc_u32", (0xFFFFFFFF, 1), 0xFFFFFFFF),
    ("v_sub_nc_u32", (1, 2), 0),
    ("v_subrev_nc_u32", (1, 2), 1),
    ("v_add_nc_i32", (0x7FFFFFFF, 1), 0x7FFFFFFF),
    ("v_sub_nc_i16", (0x8000, 1), 0x8000),
    ("v_add_nc_u16", (0xFFFF, 2), 0xFFFF),
    ("v_mad_u16", (0x200, 0x200, 0), 0xFFFF),
    ("v_mad_i32_i24", (0x7FFFFF, 0x7FFFFF, 0), 0x7FFFFFFF),
    ("v_dot4_i32_i8", (0x7F, 0x7F, 0x7FFFFFFF), 0x7FFFFFFF),
    ("v_dot4_u32_u8", (0xFF, 0xFF, 0xFFFFFFFF), 0xFFFFFFFF),
]


@pytest.mark.parametrize(("name", "inputs", "expected"), CLAMPED)
def test_clamped_integers(name: str, inputs: tuple[int, ...], expected: int) -> None:
    function = semantics.registry()[name].clamped
    assert function is not None
    (found,) = function(LaneOps(1), *(np.array([value], np.uint32) for value in inputs))
    assert found.tolist() == [expected]


def test_elements_of_packed_rows_are_the_halves() -> None:
    entry = semantics.registry()["v_pk_max_num_f16"]
    assert entry.element is not None
    assert entry.element_bits == 16
    low = entry.element(
        LaneOps(1), np.array([0xFFFF0000 | ONE16], np.uint32), np.array([TWO16], np.uint32)
    )
    assert low[0].tolist() == [TWO16]
    assert semantics.registry()["v_pk_mul_f32"].element_bits == 32


def test_packed_singles_and_moves() -> None:
    a = np.array([f32(2.0) | f32(3.0) << 32], dtype=np.uint64)
    (found,) = run("v_pk_mul_f32", a, a)
    assert found.view(np.float32).tolist() == [4.0, 9.0]
    b = np.array([5 | 6 << 32], dtype=np.uint64)
    (moved,) = run("v_pk_mov_b32", a, b, np.array([0b01], np.uint32))
    assert moved.view(np.uint32).tolist() == [f32(3.0), 5]


def test_dot_products_start_where_the_guides_say() -> None:
    """On gfx950 the products come first: a large accumulator does not swallow them one by one."""
    one_ulp = 2.0**24
    inputs = (0x3F803F80, 0x3F803F80, f32(one_ulp))
    rdna, cdna = FloatMode(target="gfx1201"), FloatMode(target="gfx950")
    assert one("v_dot2_f32_bf16", *inputs, machine=rdna) == f32(one_ulp)
    assert one("v_dot2_f32_bf16", *inputs, machine=cdna) == f32(one_ulp + 2)


def test_sliding_sums() -> None:
    a = np.array([0x0706050403020100], dtype=np.uint64)
    b = np.array([0x03020100], dtype=np.uint32)
    c = np.array([0x0001000100010001], dtype=np.uint64)
    (found,) = run("v_qsad_pk_u16_u8", a, b, c)
    assert found.view(np.uint16).tolist() == [1, 5, 9, 13]
    (wide,) = semantics.registry()["v_mqsad_u32_u8"].evaluate(
        LaneOps(1), a, b, tuple(np.array([k], np.uint32) for k in range(4))
    )
    assert [int(word[0]) for word in wide] == [0, 4, 8, 12]


# lanes


def _lanes(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint32)


def _const(value: int) -> np.ndarray:
    return np.array([value], dtype=np.uint32)


def test_permlane16_permutes_rows() -> None:
    reverse = _const(0x89ABCDEF), _const(0x01234567)
    old, a = _const(0), _lanes(32)
    (found,) = run("v_permlane16_b32", old, a, *reverse, _const(0))
    assert found.tolist() == [*range(15, -1, -1), *range(31, 15, -1)]
    (found,) = run("v_permlanex16_b32", old, a, *reverse, _const(0))
    assert found.tolist() == [*range(31, 15, -1), *range(15, -1, -1)]


@pytest.mark.parametrize(("op_sel", "expected"), [(0, 99), (0b01, 1), (0b10, 0)])
def test_inactive_lanes_are_read_as_modifiers_say(op_sel: int, expected: int) -> None:
    active = np.ones(32, dtype=np.bool_)
    active[1] = False
    operations = LaneOps(32, active)
    row = semantics.registry()["v_permlane16_b32"]
    ones = _const(0x11111111)
    (found,) = row.evaluate(operations, _const(99), _lanes(32), ones, ones, _const(op_sel))
    assert found[0] == expected


def test_half_waves_swap() -> None:
    zero = _const(0)
    first, second = run(
        "v_permlane32_swap_b32", _lanes(64), _lanes(64) + np.uint32(100), zero, zero
    )
    assert first.tolist() == [*range(32), *range(100, 132)]
    assert second.tolist() == [*range(32, 64), *range(132, 164)]
    first, second = run(
        "v_permlane16_swap_b32", _lanes(64), _lanes(64) + np.uint32(100), zero, zero
    )
    assert first[16:48].tolist() == [*range(100, 116), *range(32, 48)]
    assert second[:32].tolist() == [*range(16, 32), *range(116, 132)]
    assert run("v_permlane64_b32", _lanes(64))[0].tolist() == [*range(32, 64), *range(32)]


def test_quads() -> None:
    assert one("s_quadmask_b32", 0x10000F01) == 0b10000101
    assert one("s_wqm_b32", 0x10000001) == 0xF000000F
    wide = np.array([0x8000000000000010], dtype=np.uint64)
    assert run("s_quadmask_b64", wide)[0].tolist() == [0x8002]
    assert run("s_bitreplicate_b64_b32", _const(0x80000005))[0].tolist() == [0xC000000000000033]


@pytest.mark.parametrize("width", [4, 6, 8])
def test_tables_of_sixteen_values(width: int) -> None:
    rng = np.random.default_rng(width)
    table = [int(n) for n in rng.integers(0, 1 << width, 16)]
    choices = [int(n) for n in rng.integers(0, 16, 16)]
    whole = sum(value << width * number for number, value in enumerate(table))
    low_bits = {4: 32, 6: 64, 8: 64}[width]
    picks = sum(choice << 4 * number for number, choice in enumerate(choices))
    expected = sum(table[choice] << width * number for number, choice in enumerate(choices))
    row = table_row(f"v_perm_pk16_b{width}_u4")
    operands = (whole >> low_bits, whole & (1 << low_bits) - 1, picks)
    sizes = (64 if width == 8 else 32, low_bits, 64)
    ops = LaneOps(1)
    values = [ops.const(value, bits) for value, bits in zip(operands, sizes, strict=True)]
    meaning = semantics.of(row)
    assert meaning is not None
    assert meaning.function is not None
    (result,) = meaning.function(ops, *values)
    if not isinstance(result, tuple):
        assert int(result[0]) == expected
        return
    words = [int(np.asarray(word).ravel()[0]) for word in result]
    assert sum(word << 32 * number for number, word in enumerate(words)) == expected


def table_row(name: str):
    return next(row for row in table.rows() if row.name == name)


@pytest.mark.parametrize(("small", "count"), [("fp8", 8), ("fp4", 8), ("bf6", 16)])
def test_scales_of_blocks_are_the_lowest_byte(small: str, count: int) -> None:
    """As the rows of gfx950 whose scale is the exponent of a float."""
    rng, ops = np.random.default_rng(3), LaneOps(1)
    bits = {"fp8": 8, "fp4": 4, "bf6": 6}[small]
    words = [int(n) for n in rng.integers(0, 1 << 32, count * bits // 32)]
    packed: object = tuple(ops.const(word, 32) for word in words)
    if len(words) == 1:
        packed = ops.const(words[0], 32)
    elif len(words) == 2:
        packed = ops.const(words[0] | words[1] << 32, 64)
    up = semantics.of(table_row(f"v_cvt_scale_pk{count}_f32_{small}"))
    assert up is not None
    assert up.function is not None
    (first,) = up.function(ops, packed, ops.const(0x55667F, 32))
    (second,) = up.function(ops, packed, ops.const(0x80, 32))
    for one_, two in zip(first, second, strict=True):
        plain, doubled = (np.asarray(v, np.uint32).view(np.float32) for v in (one_, two))
        np.testing.assert_array_equal(2 * plain, doubled)


def test_scales_of_blocks_of_16_are_those_of_both_halves() -> None:
    """Every lane has its scale in its lowest byte, and that of the lane 16 away in the next: all
    get their own."""
    ops, lanes = LaneOps(32), np.arange(32, dtype=np.uint32)
    scales = 110 + lanes
    words = scales | scales[lanes ^ 16] << 8
    packed = ops.const(0x38383838_38383838, 64)  # ones of e4m3
    up = semantics.of(table_row("v_cvt_scale_pk8_f32_fp8"))
    assert up is not None
    assert up.modifiers == ("scale_sel",)
    for selection, source in ((8, lanes), (0, lanes)):
        (result,) = up.function(ops, packed, words, ops.const(selection, 32))
        values = np.asarray(result[0], np.uint32).view(np.float32)
        np.testing.assert_array_equal(values, np.exp2(scales[source] - 127.0))
    other = scales | (scales[lanes ^ 16] + 1) << 8
    (result,) = up.function(ops, packed, other, ops.const(8, 32))
    exponents = np.log2(np.asarray(result[7], np.uint32).view(np.float32)) + 127
    np.testing.assert_array_equal(exponents, scales + (lanes >= 16))
