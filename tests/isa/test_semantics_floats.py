"""Floating-point rows against numpy, exact fractions, and cases worked out by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.isa.semantics_support import (
    f16,
    f32,
    f64,
    one,
    pairs_f32,
    run,
    same,
    samples_f32,
)
from wavecast.isa.semantics import Denormals, FloatMode

INF, NAN = f32(math.inf), 0x7FC00000
SIGNALLING = 0x7F800001
GFX9, GFX12 = FloatMode(target="gfx942"), FloatMode(target="gfx1201")
FLUSH = FloatMode(denormals_f32=Denormals.of(0))
CLASSES = [
    "snan",
    "qnan",
    "-inf",
    "-normal",
    "-denormal",
    "-0",
    "+0",
    "+denormal",
    "+normal",
    "+inf",
]


@pytest.mark.parametrize(
    ("name", "operation"),
    [("v_add_f32", np.add), ("v_sub_f32", np.subtract), ("v_mul_f32", np.multiply)],
)
def test_single_arithmetic_is_ieee(name: str, operation: np.ufunc) -> None:
    a, b = pairs_f32(1, 2000)
    with np.errstate(all="ignore"):
        expected = operation(a.view(np.float32), b.view(np.float32))
    assert same(run(name, a, b)[0].view(np.float32), expected).all()


@pytest.mark.parametrize(
    ("name", "operation"),
    [("v_add_f16", np.add), ("v_sub_f16", np.subtract), ("v_mul_f16", np.multiply)],
)
def test_half_arithmetic_is_ieee(name: str, operation: np.ufunc) -> None:
    generator = np.random.default_rng(2)
    a, b = generator.integers(0, 1 << 16, (2, 4000)).astype(np.uint32)
    halves = [value.astype(np.uint16).view(np.float16) for value in (a, b)]
    with np.errstate(all="ignore"):
        expected = operation(*halves)
    found = run(name, a | np.uint32(0xABCD0000), b)[0]
    assert (found >> np.uint32(16) == 0).all()
    assert same(found.astype(np.uint16).view(np.float16), expected).all()


def _nearest(found: float, exact: Fraction, neighbours: list[float]) -> bool:
    error = abs(Fraction(found) - exact)
    finite = [value for value in neighbours if math.isfinite(value)]
    return all(error <= abs(Fraction(value) - exact) for value in finite)


def test_half_fma_rounds_once() -> None:
    generator = np.random.default_rng(3)
    a, b, c = generator.integers(0, 1 << 16, (3, 1500)).astype(np.uint32)
    found = run("v_fma_f16", a, b, c)[0]
    for row in zip(a, b, c, found, strict=True):
        *operands, result = (float(np.uint16(value).view(np.float16)) for value in row)
        if not all(map(math.isfinite, operands)):
            continue
        exact = Fraction(operands[0]) * Fraction(operands[1]) + Fraction(operands[2])
        if math.isinf(result):
            assert abs(exact) >= 65520
            continue
        steps = [float(np.uint16((int(row[3]) + k) & 0xFFFF).view(np.float16)) for k in (-1, 1)]
        assert _nearest(result, exact, steps)


def test_double_fma_rounds_once() -> None:
    generator = np.random.default_rng(4)
    a, b = generator.standard_normal((2, 300))
    c = -(a * b)  # what is left is the rounding error of the product
    arrays = [value.view(np.uint64) for value in (a, b, c)]
    found = run("v_fma_f64", *arrays)[0].view(np.float64)
    for x, y, z, result in zip(a, b, c, found, strict=True):
        assert Fraction(result) == Fraction(x) * Fraction(y) + Fraction(z)


CASES_F32: list[tuple[str, tuple[int, ...], int]] = [
    ("v_fract_f32", (f32(-0.25),), f32(0.75)),
    ("v_fract_f32", (f32(-1e-20),), 0x3F7FFFFF),
    ("v_rndne_f32", (f32(2.5),), f32(2.0)),
    ("v_rndne_f32", (f32(-0.25),), f32(-0.0)),
    ("v_ceil_f32", (f32(-0.5),), f32(-0.0)),
    ("v_mul_dx9_zero_f32", (0, INF), 0),
    ("v_fma_dx9_zero_f32", (f32(-0.0), INF, f32(3.0)), f32(3.0)),
    ("v_add_f32", (SIGNALLING, f32(1.0)), SIGNALLING | 0x400000),
    ("v_add_f32", (f32(1.0), 0xFFC00123), 0xFFC00123),
    ("v_add_f32", (0x7FC00001, 0x7FC00002), 0x7FC00001),
    ("v_mul_f32", (0, INF), 0xFFC00000),
    ("v_rcp_f32", (f32(-0.0),), f32(-math.inf)),
    ("v_rcp_f32", (1,), INF),
    ("v_rcp_f32", (0x7F000001,), 0),
    ("v_rsq_f32", (0x80000000,), 0xFF800000),
    ("v_sqrt_f32", (f32(-1.0),), 0xFFC00000),
    ("v_sqrt_f32", (f32(2.0),), f32(math.sqrt(2.0))),
    ("v_exp_f32", (f32(-126.5),), 0),
    ("v_exp_f32", (f32(128.0),), INF),
    ("v_exp_f32", (f32(-math.inf),), 0),
    ("v_exp_f32", (f32(3.0),), f32(8.0)),
    ("v_log_f32", (0,), f32(-math.inf)),
    ("v_log_f32", (f32(-1.0),), 0xFFC00000),
    ("v_log_f32", (INF,), INF),
    ("v_log_f32", (f32(0.125),), f32(-3.0)),
    ("v_sin_f32", (f32(0.25),), f32(1.0)),
    ("v_sin_f32", (f32(300.0),), 0),
    ("v_cos_f32", (f32(300.0),), f32(1.0)),
    ("v_cos_f32", (f32(0.5),), f32(-1.0)),
    ("v_sin_f32", (INF,), 0xFFC00000),
    ("v_frexp_mant_f32", (f32(-12.0),), f32(-0.75)),
    ("v_frexp_exp_i32_f32", (f32(-12.0),), 4),
    ("v_frexp_exp_i32_f32", (1,), -148 & 0xFFFFFFFF),
    ("v_frexp_exp_i32_f32", (INF,), 0),
    ("v_med3_num_f32", (f32(3.0), f32(1.0), f32(2.0)), f32(2.0)),
    ("v_med3_num_f32", (NAN, f32(1.0), f32(2.0)), f32(1.0)),
    ("v_mullit_f32", (f32(2.0), f32(3.0), f32(-1.0)), 0xFF7FFFFF),
    ("v_mullit_f32", (f32(2.0), f32(3.0), f32(1.0)), f32(6.0)),
]


@pytest.mark.parametrize(("name", "inputs", "expected"), CASES_F32)
def test_single_case(name: str, inputs: tuple[int, ...], expected: int) -> None:
    assert one(name, *inputs) == expected


MINIMA: list[tuple[FloatMode, int, int, int]] = [
    (GFX9, f32(0.0), f32(-0.0), f32(-0.0)),
    (GFX9, NAN, f32(1.0), f32(1.0)),
    (GFX9, f32(1.0), NAN, f32(1.0)),
    (GFX9, SIGNALLING, f32(1.0), SIGNALLING | 0x400000),
    (FloatMode(target="gfx942", ieee=False), SIGNALLING, f32(1.0), f32(1.0)),
    (GFX12, SIGNALLING, f32(1.0), f32(1.0)),
    (GFX12, SIGNALLING, NAN, SIGNALLING | 0x400000),
    (GFX9, f32(-2.0), f32(-3.0), f32(-3.0)),
    (GFX9, f32(-2.0), f32(3.0), f32(-2.0)),
]


@pytest.mark.parametrize(("machine", "a", "b", "expected"), MINIMA)
def test_minimum_prefers_numbers(machine: FloatMode, a: int, b: int, expected: int) -> None:
    assert one("v_min_num_f32", a, b, machine=machine) == expected


def test_minimum_and_maximum_with_nan_give_nan() -> None:
    assert one("v_minimum_f32", NAN, f32(1.0)) == NAN
    assert one("v_maximum_f32", f32(1.0), SIGNALLING) == SIGNALLING | 0x400000
    assert one("v_minimum_f32", 0xFFC00001, SIGNALLING) == SIGNALLING | 0x400000
    assert one("v_maximum_f32", f32(-0.0), f32(0.0)) == f32(0.0)


def test_denormals_follow_mode() -> None:
    assert one("v_mul_f32", 1, f32(1.0)) == 1
    assert one("v_mul_f32", 1, f32(1.0), machine=FLUSH) == 0
    assert one("v_mul_f32", 0x80000001, f32(1.0), machine=FLUSH) == 0x80000000
    inputs_only = FloatMode(denormals_f32=Denormals(inputs=True, results=False))
    assert one("v_mul_f32", 1, f32(2.0**100), machine=inputs_only) == f32(2.0**-49)
    assert one("v_mul_f32", f32(2.0**-100), f32(2.0**-40), machine=inputs_only) == 0
    assert one("v_add_f64", 1, 0, bits=64, machine=FLUSH) == 1


def test_old_multiply_adds_round_twice_and_flush() -> None:
    a, c = f32(1.0 + 2.0**-23), f32(-1.0 - 2.0**-22)
    assert one("v_fma_f32", a, a, c) == f32(2.0**-46)
    assert one("v_mad_f32", a, a, c) == 0
    assert one("v_mad_f32", 1, f32(1.0), 0) == 0


def test_half_overflow_follows_mode() -> None:
    large, clamps = f16(60000.0), FloatMode(fp16_overflow=True)
    assert one("v_add_f16", large, large) == 0x7C00
    assert one("v_add_f16", large, large, machine=clamps) == 0x7BFF
    assert one("v_add_f16", 0x7C00, large, machine=clamps) == 0x7C00
    assert one("v_cvt_f16_f32", f32(1e6), machine=clamps) == 0x7BFF


@pytest.mark.parametrize("place", range(10))
def test_classes(place: int) -> None:
    values = [
        SIGNALLING,
        NAN,
        f32(-math.inf),
        f32(-1.0),
        0x80000001,
        0x80000000,
        0,
        1,
        f32(1.0),
        INF,
    ]
    hits = [one("v_cmp_class_f32", value, 1 << place) for value in values]
    assert hits == [int(k == place) for k in range(10)], CLASSES[place]


ORDERED = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


@pytest.mark.parametrize("relation", [*ORDERED, "eq", "lg", "o", "u"])
def test_comparisons_and_their_negations(relation: str) -> None:
    a, b = pairs_f32(5, 100)
    x, y = a.view(np.float32), b.view(np.float32)
    unordered = np.isnan(x) | np.isnan(y)
    with np.errstate(invalid="ignore"):
        others = {"eq": x == y, "lg": (x != y) & ~unordered, "o": ~unordered, "u": unordered}
        expected = ORDERED[relation](x, y) if relation in ORDERED else others[relation]
    assert (run(f"v_cmp_{relation}_f32", a, b)[0] == expected).all()
    if relation not in ("o", "u"):
        negated = "neq" if relation == "eq" else f"n{relation}"
        assert (run(f"v_cmp_{negated}_f32", a, b)[0] == ~expected).all()


def _flushed(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) < 2.0**-126, np.copysign(0.0, values), values)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("v_exp_f32", np.exp2),
        ("v_log_f32", np.log2),
        ("v_rcp_f32", np.reciprocal),
        ("v_sqrt_f32", np.sqrt),
        ("v_rsq_f32", lambda x: 1 / np.sqrt(x)),
        ("v_tanh_f32", np.tanh),
    ],
)
def test_transcendentals_are_within_an_ulp(name: str, function: np.ufunc) -> None:
    a = samples_f32(6, 4000)
    with np.errstate(all="ignore"):
        exact = function(_flushed(a.view(np.float32).astype(np.float64)))
        expected = _flushed(exact.astype(np.float32))
    found = run(name, a)[0]
    equal = same(found.view(np.float32), expected.astype(np.float32))
    distance = found.astype(np.int64) - expected.astype(np.float32).view(np.uint32)
    assert (equal | (np.abs(distance) <= 1)).all()
    assert equal.mean() > 0.999


@pytest.mark.parametrize(("name", "function"), [("v_sin_f32", np.sin), ("v_cos_f32", np.cos)])
def test_angles_are_revolutions(name: str, function: np.ufunc) -> None:
    turns = np.random.default_rng(7).uniform(-256, 256, 2000).astype(np.float32)
    rest = turns.astype(np.float64) - np.rint(turns.astype(np.float64))
    found = run(name, turns.view(np.uint32))[0].view(np.float32)
    assert np.abs(found - function(2 * np.pi * rest)).max() < 2.0**-24


# division as compilers expand it


def _divide(width: int, numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    kind = f"f{width}"
    sign = numerator.dtype.type(1 << (width - 1))
    one_ = np.full(numerator.size, f32(1.0) if width == 32 else f64(1.0), numerator.dtype)

    def row(name: str, *inputs: np.ndarray) -> np.ndarray:
        return run(f"{name}_{kind}", *inputs)[0]

    below = row("v_div_scale", denominator, denominator, numerator)
    above, scales = run(f"v_div_scale_{kind}", numerator, denominator, numerator)
    inverse = row("v_rcp", below)
    for _ in range(1 if width == 32 else 2):
        error = row("v_fma", below ^ sign, inverse, one_)
        inverse = row("v_fma", error, inverse, inverse)
    quotient = row("v_mul", above, inverse)
    if width == 32:
        error = row("v_fma", below ^ sign, quotient, above)
        quotient = row("v_fma", error, inverse, quotient)
    error = row("v_fma", below ^ sign, quotient, above)
    found = row("v_div_fmas", error, inverse, quotient, scales)
    return row("v_div_fixup", found, denominator, numerator)


def test_single_division_is_correctly_rounded() -> None:
    a, b = pairs_f32(8, 6000)
    with np.errstate(all="ignore"):
        expected = a.view(np.float32) / b.view(np.float32)
    assert same(_divide(32, a, b).view(np.float32), expected).all()


def test_double_division_is_correctly_rounded() -> None:
    generator = np.random.default_rng(9)
    special = np.array([0.0, -0.0, math.inf, math.nan, 5e-324, 1.0, 1.7e308]).view(np.uint64)
    grid = np.meshgrid(special, special)
    random = generator.integers(0, 1 << 64, (2, 400), dtype=np.uint64)
    a = np.concatenate([random[0], grid[0].reshape(-1)])
    b = np.concatenate([random[1], grid[1].reshape(-1)])
    with np.errstate(all="ignore"):
        expected = a.view(np.float64) / b.view(np.float64)
    assert same(_divide(64, a, b).view(np.float64), expected).all()


def test_ldexp_rounds_once() -> None:
    a = samples_f32(10, 1000)
    n = np.random.default_rng(11).integers(-320, 320, a.size).astype(np.int32)
    with np.errstate(all="ignore"):
        expected = np.ldexp(a.view(np.float32).astype(np.float64), n).astype(np.float32)
    assert same(run("v_ldexp_f32", a, n.view(np.uint32))[0].view(np.float32), expected).all()
    b = np.random.default_rng(12).integers(0, 0x7FE << 52, 400, dtype=np.uint64)
    m = np.random.default_rng(13).integers(-2300, 2300, 400).astype(np.int32)
    with np.errstate(all="ignore"):
        wide = np.ldexp(b.view(np.float64), m)
    assert same(run("v_ldexp_f64", b, m.view(np.uint32))[0].view(np.float64), wide).all()


def test_trig_preop_segments_add_up_to_two_over_pi() -> None:
    segments = np.arange(3, dtype=np.uint32)
    parts = run("v_trig_preop_f64", np.full(3, f64(1.0), dtype=np.uint64), segments)[0]
    total = sum(Fraction(part) for part in parts.view(np.float64).tolist())
    # 2/pi to 200 bits, from its decimal expansion
    digits = "6366197723675813430755350534900574481378385829618257949906693762355"
    assert abs(total - Fraction(int(digits), 10 ** len(digits))) < Fraction(1, 2**155)
