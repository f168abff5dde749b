"""Conversions: saturation, rounding, and the small formats against torch's own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.isa.semantics_support import f16, f32, f64, one, run, same, samples_f32
from wavecast.isa import semantics
from wavecast.isa.semantics import FloatMode, LaneOps
from wavecast.isa.semantics.formats import BF8, FP4, FP6, FP8, FP8_FNUZ, element_format, format_of

INF, NAN = f32(math.inf), 0x7FC00000
GFX942, GFX950 = FloatMode(target="gfx942"), FloatMode(target="gfx950")
CLAMPS = FloatMode(target="gfx950", fp16_overflow=True)

CASES: list[tuple[str, tuple[int, ...], int]] = [
    ("v_cvt_u32_f32", (f32(-1.0),), 0),
    ("v_cvt_u32_f32", (f32(5e9),), 0xFFFFFFFF),
    ("v_cvt_i32_f32", (f32(-3e9),), 0x80000000),
    ("v_cvt_i32_f32", (f32(-1.9),), 0xFFFFFFFF),
    ("v_cvt_i32_f32", (NAN,), 0),
    ("v_cvt_floor_i32_f32", (f32(-1.1),), 0xFFFFFFFE),
    ("v_cvt_nearest_i32_f32", (f32(1.5),), 2),
    ("v_cvt_f32_ubyte2", (0x00C80000,), f32(200.0)),
    ("v_cvt_f32_u32", (0xFFFFFFFF,), f32(4294967296.0)),
    ("v_cvt_off_f32_i4", (8,), f32(-0.5)),
    ("v_cvt_off_f32_i4", (7,), f32(0.4375)),
    ("v_cvt_f16_f32", (f32(65519.0),), f16(65504.0)),
    ("v_cvt_f16_f32", (f32(65520.0),), 0x7C00),
    ("v_cvt_f16_f32", (f32(2.0**-25),), 0),
    ("v_cvt_f16_f32", (f32(2.0**-24),), 1),
    ("v_cvt_f16_f32", (0x7F802000,), 0x7E01),
    ("v_cvt_f32_f16", (0xFC01,), 0xFFC02000),
    ("v_cvt_pk_rtz_f16_f32", (f32(1e6), f32(-1e6)), 0xFBFF7BFF),
    ("v_cvt_pk_rtz_f16_f32", (INF, f32(2.0**-25)), 0x00007C00),
    ("v_cvt_i16_f16", (f16(-40000.0),), 0x8000),
    ("v_cvt_u16_f16", (0x7C00,), 0xFFFF),
    ("v_cvt_f16_i16", (0xFFFF,), f16(-1.0)),
    ("v_cvt_norm_i16_f16", (f16(-1.0),), 0x8001),
    ("v_cvt_norm_u16_f16", (f16(2.0),), 0xFFFF),
    ("v_cvt_pk_norm_i16_f32", (f32(0.5), NAN), 0x00004000),
    ("v_cvt_pk_i16_i32", (100000, -100000 & 0xFFFFFFFF), 0x80007FFF),
    ("v_cvt_pk_u16_u32", (0xFFFFFFFF, 5), 0x0005FFFF),
    ("v_cvt_pk_u8_f32", (f32(300.0), 1, 0x11111111), 0x1111FF11),
    ("v_cvt_pkaccum_u8_f32", (0x11111111, f32(7.0), 3), 0x07111111),
    ("v_ashr_pk_u8_i32", (0x1000, 0x80000000, 4), 0x00FF),
    ("v_ashr_pk_i8_i32", (0x1000, 0x80000000, 4), 0x807F),
    ("v_sat_pk_u8_i16", (0xFFFF0123,), 0x00FF),
    ("v_pack_b32_f16", (0xABCD1234, 0x5678), 0x56781234),
    ("v_cvt_pk_bf16_f32", (f32(1.0), NAN), 0x7FC03F80),
    ("v_prng_b32", (0x80000001,), 0xC7),
]


@pytest.mark.parametrize(("name", "inputs", "expected"), CASES)
def test_case(name: str, inputs: tuple[int, ...], expected: int) -> None:
    assert one(name, *inputs) == expected


def test_double_conversions() -> None:
    wide = np.array([f64(1.0 + 2.0**-24), f64(1e300), f64(5e-324)], dtype=np.uint64)
    assert run("v_cvt_f32_f64", wide)[0].tolist() == [f32(1.0), INF, 0]
    assert run("v_cvt_f64_f32", np.array([1], dtype=np.uint32))[0][0] == f64(2.0**-149)
    assert run("v_cvt_i32_f64", wide)[0].tolist() == [1, 0x7FFFFFFF, 0]


# small formats

SMALL = [
    ("gfx942", "fp8", "float8_e4m3fnuz"),
    ("gfx942", "bf8", "float8_e5m2fnuz"),
    ("gfx950", "fp8", "float8_e4m3fn"),
    ("gfx950", "bf8", "float8_e5m2"),
    ("gfx1201", "fp8", "float8_e4m3fn"),
]


@pytest.mark.torch
@pytest.mark.parametrize(("target", "small", "dtype"), SMALL)
def test_every_byte_widens_as_torch_does(target: str, small: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    values = np.arange(256, dtype=np.uint32)
    first = np.zeros(1, dtype=np.uint32)
    found = run(f"v_cvt_f32_{small}", values, first, machine=FloatMode(target=target))[0]
    bytes_ = torch.arange(256, dtype=torch.uint8).view(getattr(torch, dtype))
    assert same(found.view(np.float32), bytes_.float().numpy()).all()


@pytest.mark.torch
@pytest.mark.parametrize(("target", "small", "dtype"), SMALL)
def test_numbers_in_range_narrow_as_torch_does(target: str, small: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    fmt = format_of(small, target)
    top = 2.0 ** ((fmt.largest >> fmt.fraction) - fmt.bias)
    fine = np.linspace(-top, top, 9001).astype(np.float32)
    tiny = fine / np.float32(2.0**14)
    numbers = np.concatenate([fine, tiny, np.array([0.0, -0.0], dtype=np.float32)])
    zero = np.zeros_like(numbers, dtype=np.uint32)
    bits = numbers.view(np.uint32)
    pair = run(f"v_cvt_pk_{small}_f32", zero, bits, bits, zero, machine=FloatMode(target=target))[0]
    expected = torch.from_numpy(numbers).to(getattr(torch, dtype)).view(torch.uint8).numpy()
    assert (pair & np.uint32(0xFF) == expected).all()
    assert (pair >> np.uint32(8) == expected).all()


@pytest.mark.torch
def test_bfloat_narrows_as_torch_does() -> None:
    torch = pytest.importorskip("torch")
    bits = samples_f32(20, 4000)
    values = bits.view(np.float32)
    found = run("v_cvt_pk_bf16_f32", bits, bits)[0] & np.uint32(0xFFFF)
    rounded = torch.from_numpy(values.copy()).bfloat16().view(torch.int16).numpy()
    expected = rounded.view(np.uint16).astype(np.uint32)
    nan = np.isnan(values)
    assert (found[~nan] == expected[~nan]).all()
    assert (found[nan] & np.uint32(0x7FC0) == 0x7FC0).all()


OVERFLOW: list[tuple[FloatMode, str, float, int]] = [
    (GFX950, "fp8", 1000.0, 0x7F),
    (GFX950, "fp8", 464.0, 0x7E),
    (GFX950, "fp8", 465.0, 0x7F),
    (CLAMPS, "fp8", -1000.0, 0xFE),
    (CLAMPS, "fp8", math.inf, 0x7E),
    (GFX950, "bf8", 1e6, 0x7C),
    (CLAMPS, "bf8", 1e6, 0x7B),
    (CLAMPS, "fp8", math.nan, 0x7F),
    (GFX942, "fp8", 1000.0, 0x80),
    (FloatMode(target="gfx942", fp16_overflow=True), "fp8", 1000.0, 0x7F),
    (GFX942, "bf8", -1e6, 0x80),
    (GFX942, "fp8", -1e-9, 0x00),
]


@pytest.mark.parametrize(("machine", "small", "value", "expected"), OVERFLOW)
def test_overflow_of_bytes(machine: FloatMode, small: str, value: float, expected: int) -> None:
    found = one(f"v_cvt_pk_{small}_f32", 0, f32(value), 0, 0, machine=machine)
    assert found & 0xFF == expected


def test_op_sel_and_byte_sel_choose_parts() -> None:
    old, a = 0x44332211, f32(1.0)
    assert one("v_cvt_pk_fp8_f32", old, a, a, 0b100, machine=GFX950) == 0x38382211
    assert one("v_cvt_sr_fp8_f32", old, a, 0, 0b1000, 0, machine=GFX950) == 0x44382211
    assert one("v_cvt_sr_fp8_f32", old, a, 0, 0, 3, machine=GFX950) == 0x38332211
    assert one("v_cvt_f32_fp8", 0x00380000, 2, machine=GFX950) == a
    assert one("v_cvt_scalef32_pk_fp8_f32", old, a, a, a, 0b1000, machine=GFX950) == 0x38382211
    assert one("v_cvt_scalef32_pk_fp8_f16", old, 0x3C003C00, a, 0b100, machine=GFX950) == 0x38382211
    assert one("v_cvt_scalef32_pk_fp4_f32", old, a, a, a, 0b1000, machine=GFX950) == 0x44222211
    assert one("v_cvt_scalef32_f32_fp8", 0x38000000, a, 0b11, machine=GFX950) == a


def test_scales_are_the_exponent_of_a_float() -> None:
    two, three = f32(2.0), f32(3.0)
    for scale in (two, three):
        assert one("v_cvt_scalef32_pk_fp8_f32", 0, two, two, scale, 0, machine=GFX950) == 0x3838
        assert one("v_cvt_scalef32_f32_fp8", 0x38, scale, 0, machine=GFX950) == two


@pytest.mark.parametrize(
    ("value", "fp4"),
    [(0.0, 0), (0.25, 0), (0.26, 1), (0.75, 2), (1.25, 2), (2.5, 4), (3.5, 6), (5.0, 6), (7.0, 7),
     (-6.0, 15), (1e9, 7), (-0.1, 8)],
)  # fmt: skip
def test_four_bit_floats_round_to_even_and_saturate(value: float, fp4: int) -> None:
    found = one("v_cvt_scalef32_pk_fp4_f32", 0, f32(value), 0, f32(1.0), 0, machine=GFX950)
    assert found & 0xF == fp4


@pytest.mark.parametrize("name", ["fp6", "bf6"])
def test_six_bit_blocks_survive_a_round_trip(name: str) -> None:
    """32 codes at a time, packed across dwords, up to F32 and back down."""
    for first in (0, 32):
        codes = np.arange(first, first + 32)
        text = "".join(f"{code:06b}" for code in codes[::-1])
        words = [np.array([int(text[i - 32 : i], 2)], np.uint32) for i in range(192, 0, -32)]
        scale = np.array([f32(1.0)], dtype=np.uint32)
        (wide,) = run_wide(f"v_cvt_scalef32_pk32_f32_{name}", tuple(words), scale)
        assert len(wide) == 32
        halves = wide[0::2], wide[1::2]
        (back,) = run_wide(f"v_cvt_scalef32_2xpk16_{name}_f32", *halves, scale)
        assert [int(word[0]) for word in back] == [int(word[0]) for word in words]


def run_wide(name: str, *inputs: object) -> tuple:
    return semantics.registry()[name].evaluate(LaneOps(1, machine=GFX950), *inputs)


def test_types_of_operands_name_formats() -> None:
    assert element_format("f16x2") is format_of("f16")
    assert element_format("fp8x4", "gfx942") is FP8_FNUZ
    assert element_format("u32") is None
    assert element_format("") is None


def test_values_of_small_formats() -> None:
    """Largest numbers and smallest denormals as the OCP specifications list them."""
    assert (FP8.largest, FP8.nan) == (0x7E, 0x7F)
    assert FP8_FNUZ.largest == 0x7F
    assert (BF8.largest, FP6.largest, FP4.largest) == (0x7B, 0x1F, 7)
    scale = np.array([f32(1.0)], dtype=np.uint32)
    word = np.array([0x71], dtype=np.uint32)
    (pair,) = run_wide("v_cvt_scalef32_pk_f32_fp4", word, scale, np.zeros(1, np.uint32))
    assert pair.view(np.float32).tolist() == [0.5, 6.0]


def test_stochastic_rounding_is_fair_and_bounded() -> None:
    """A value a quarter of the way between two neighbours goes up for a quarter of the numbers."""
    random = np.arange(0, 1 << 32, 1 << 20, dtype=np.uint32)
    value = np.full(random.size, f32(1.0 + 0.125 / 4), dtype=np.uint32)
    zero = np.zeros_like(random)
    found = run("v_cvt_sr_fp8_f32", zero, value, random, zero, zero, machine=GFX950)[0]
    assert set(found.tolist()) == {0x38, 0x39}
    assert (found == 0x39).mean() == 0.25
    exact = np.full(random.size, f32(1.5), dtype=np.uint32)
    found = run("v_cvt_sr_bf8_f32", zero, exact, random, zero, zero, machine=GFX950)[0]
    assert (found == 0x3E).all()
    half = run("v_cvt_sr_bf16_f32", zero, value, random, np.full_like(zero, 4))[0]
    assert (half & np.uint32(0xFFFF) == 0).all()
