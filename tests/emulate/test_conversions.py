"""Conversions through native code against exact fractions: rounding, overflow, special values.

The values are those at which a conversion can go wrong: every number of a small format, the middles
between neighbours, the floats beside them, infinities, NaN, denormals, zeros of both signs.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.emulate import exact_formats as exact
from tests.emulate.exact_formats import Exact
from tests.emulate.memory_support import run

SATURATE = "\ts_setreg_imm32_b32 hwreg({}, 23, 1), 1\n"


def _kernel(
    target: str, body: str, first: np.ndarray, second: np.ndarray | None = None
) -> np.ndarray:
    """v4 of every thread; v2 and v3 are the thread's values, v5 is 1.0."""
    count = 1024
    a, b, out = (np.zeros(count, np.uint32) for _ in range(3))
    a[: first.size] = first
    b[: first.size] = first if second is None else second
    text = (
        "\tglobal_load_dword v2, v1, s[8:9]\n\tglobal_load_dword v3, v1, s[10:11]\n"
        "\tv_mov_b32_e32 v4, 0\n\tv_mov_b32_e32 v5, 1.0\n\ts_waitcnt vmcnt(0)\n"
        f"{body}\n\tglobal_store_dword v1, v4, s[12:13]\n"
    )
    if target.startswith("gfx12"):
        text = text.replace("s_waitcnt vmcnt(0)", "s_wait_loadcnt 0x0")
    if not target.startswith("gfx9"):
        text = text.replace("load_dword", "load_b32").replace("store_dword", "store_b32")
    run(target, text, a, b, out, threads=count)
    return out[: first.size]


def _saturating(target: str, saturates: bool) -> str:
    name = "HW_REG_WAVE_MODE" if target.startswith("gfx12") else "HW_REG_MODE"
    return SATURATE.format(name) if saturates else ""


def _block(small: str) -> str:
    """The first of 32 floats of a block; the others are zero."""
    rest = "".join(f"\tv_mov_b32_e32 v{row}, 0\n" for row in range(9, 40))
    return (
        f"{rest}\tv_mov_b32_e32 v8, v2\n"
        f"\tv_cvt_scalef32_2xpk16_{small}_f32 v[40:45], v[8:23], v[24:39], v5\n"
        "\tv_mov_b32_e32 v4, v40\n"
    )


PAIR = "v_cvt_pk_{0}_f32 v4, v2, v3"
DOWN: list[tuple[str, str, Exact]] = [
    *((target, "v_cvt_f16_f32_e32 v4, v2", exact.F16) for target in ("gfx90a", "gfx942", "gfx950")),
    ("gfx1100", "v_cvt_f16_f32_e32 v4, v2", exact.F16),
    ("gfx1201", "v_cvt_f16_f32_e32 v4.l, v2", exact.F16),
    ("gfx950", PAIR.format("bf16"), exact.BF16),
    ("gfx942", PAIR.format("fp8"), exact.FP8_FNUZ),
    ("gfx942", PAIR.format("bf8"), exact.BF8_FNUZ),
    ("gfx950", PAIR.format("fp8"), exact.FP8),
    ("gfx950", PAIR.format("bf8"), exact.BF8),
    ("gfx1201", PAIR.format("fp8"), exact.FP8),
    ("gfx1201", PAIR.format("bf8"), exact.BF8),
    ("gfx950", "v_cvt_scalef32_pk_fp8_f32 v4, v2, v3, v5", exact.FP8),
    ("gfx950", "v_cvt_scalef32_pk_bf8_f32 v4, v2, v3, v5", exact.BF8),
    ("gfx950", "v_cvt_scalef32_pk_fp4_f32 v4, v2, v3, v5", exact.FP4),
    ("gfx950", _block("fp6"), exact.FP6),
    ("gfx950", _block("bf6"), exact.BF6),
]


@pytest.mark.parametrize("saturates", [False, True])
@pytest.mark.parametrize(("target", "body", "small"), DOWN)
def test_narrowing(target: str, body: str, small: Exact, saturates: bool) -> None:
    patterns = np.array(exact.critical(small), np.uint32)
    found = _kernel(target, _saturating(target, saturates) + body, patterns)
    mask = (1 << small.bits) - 1
    saturates &= small.bits < 16 or small is exact.F16
    for pattern, result in zip(patterns.tolist(), found.tolist(), strict=True):
        value = exact.F32.value(pattern)
        result &= mask
        if isinstance(value, float) and math.isnan(value):
            assert _is_nan(small, result), hex(pattern)
            continue
        assert result == small.rounded(value, saturates=saturates), (hex(pattern), hex(result))


def _is_nan(small: Exact, result: int) -> bool:
    """Any quiet NaN of the format; formats without NaN give their largest number here."""
    if small.beyond == "none":
        return result & (1 << small.bits - 1) - 1 == len(small.sizes) - 1
    value = small.value(result)
    quiet = small.beyond != "ieee" or bool(result >> small.fraction - 1 & 1)
    return isinstance(value, float) and math.isnan(value) and quiet


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_rounding_towards_zero(target: str) -> None:
    name = "v_cvt_pkrtz_f16_f32" if target.startswith("gfx9") else "v_cvt_pk_rtz_f16_f32"
    patterns = np.array(exact.critical(exact.F16), np.uint32)
    found = _kernel(target, f"\t{name} v4, v2, v3", patterns)
    for pattern, result in zip(patterns.tolist(), found.tolist(), strict=True):
        value = exact.F32.value(pattern)
        assert result >> 16 == result & 0xFFFF
        if isinstance(value, float) and math.isnan(value):
            assert _is_nan(exact.F16, result & 0xFFFF)
        else:
            expected = exact.F16.rounded(value, towards_zero=True)
            assert result & 0xFFFF == expected, hex(pattern)


UP: list[tuple[str, str, Exact]] = [
    ("gfx942", "v_cvt_f32_fp8_e32 v4, v2", exact.FP8_FNUZ),
    ("gfx942", "v_cvt_f32_bf8_e32 v4, v2", exact.BF8_FNUZ),
    ("gfx950", "v_cvt_f32_fp8_e32 v4, v2", exact.FP8),
    ("gfx950", "v_cvt_f32_bf8_e32 v4, v2", exact.BF8),
    ("gfx1201", "v_cvt_f32_fp8_e32 v4, v2", exact.FP8),
    ("gfx1201", "v_cvt_f32_bf8_e32 v4, v2", exact.BF8),
    ("gfx950", "v_cvt_scalef32_f32_fp8 v4, v2, v5", exact.FP8),
    ("gfx950", "v_cvt_scalef32_pk_f32_fp4 v[4:5], v2, v5", exact.FP4),
    ("gfx90a", "v_cvt_f32_f16_e32 v4, v2", exact.F16),
    ("gfx1100", "v_cvt_f32_f16_e32 v4, v2", exact.F16),
]


@pytest.mark.parametrize(("target", "body", "small"), UP)
def test_widening(target: str, body: str, small: Exact) -> None:
    """Every pattern of the format; of 16 bits the ones at the edges and some between."""
    patterns = np.arange(1 << min(small.bits, 8), dtype=np.uint32)
    if small.bits == 16:
        patterns = np.array(
            [*range(16), *range(0x3F0, 0x410), *range(0, 0x10000, 97), 0x7BFF, 0x7C00, 0xFC00,
             0x7C01, 0x7E00, 0xFE37], np.uint32)  # fmt: skip
    found = _kernel(target, f"\t{body}", patterns)
    for pattern, result in zip(patterns.tolist(), found.tolist(), strict=True):
        expected, value = small.value(pattern), exact.F32.value(result)
        if isinstance(expected, float) and math.isnan(expected):
            assert _is_nan(exact.F32, result), hex(pattern)
        else:
            assert value == expected, hex(pattern)
            assert math.copysign(1, value) == math.copysign(1, expected), hex(pattern)


STOCHASTIC: list[tuple[str, str, Exact]] = [
    ("gfx942", "v_cvt_sr_fp8_f32 v4, v2, v3", exact.FP8_FNUZ),
    ("gfx942", "v_cvt_sr_bf8_f32 v4, v2, v3", exact.BF8_FNUZ),
    ("gfx950", "v_cvt_sr_fp8_f32 v4, v2, v3", exact.FP8),
    ("gfx950", "v_cvt_sr_bf8_f32 v4, v2, v3", exact.BF8),
    ("gfx1201", "v_cvt_sr_fp8_f32 v4, v2, v3", exact.FP8),
    ("gfx950", "v_cvt_sr_f16_f32 v4, v2, v3", exact.F16),
    ("gfx950", "v_cvt_sr_bf16_f32 v4, v2, v3", exact.BF16),
]


@pytest.mark.parametrize("noise", [0, 0xFFFFFFFF])
@pytest.mark.parametrize(("target", "body", "small"), STOCHASTIC)
def test_stochastic_rounding_at_its_ends(target: str, body: str, small: Exact, noise: int) -> None:
    """Without noise the rest is cut off; with the most, every rest rounds away from zero. Results
    that are denormal are left out: their noise is not documented."""
    least = 1 << small.fraction
    patterns = np.array(
        [p for p in exact.critical(small) if _normal(small, exact.F32.value(p), least)], np.uint32
    )
    found = _kernel(target, f"\t{body}", patterns, np.full_like(patterns, noise))
    for pattern, result in zip(patterns.tolist(), found.tolist(), strict=True):
        value = Fraction(exact.F32.value(pattern))
        low, high, between = small.neighbours(abs(value))
        sign = 1 << small.bits - 1 if value < 0 else 0
        expected = sign | (high if noise and between else low)
        assert result & (1 << small.bits) - 1 == expected, hex(pattern)


def _normal(small: Exact, value: exact.Number, least: int) -> bool:
    finite = not isinstance(value, float)
    return finite and small.sizes[least] <= abs(value) <= small.sizes[-2]


# integers

INTEGERS: list[tuple[str, str, int, bool]] = [
    ("gfx90a", "v_cvt_i32_f32_e32 v4, v2", 32, True),
    ("gfx942", "v_cvt_u32_f32_e32 v4, v2", 32, False),
    ("gfx1100", "v_cvt_i32_f32_e32 v4, v2", 32, True),
    ("gfx1201", "v_cvt_u32_f32_e32 v4, v2", 32, False),
]
_EDGES = [
    *(0.0, -0.0, 0.5, -0.5, 0.99999994, 1.0, 1.5, -1.5, 2147483520.0, 2147483648.0, -2147483648.0),
    *(-2147483904.0, 4294967040.0, 4294967296.0, 1e30, -1e30, 1e-45, math.inf, -math.inf, math.nan),
]


def _integer(value: float, bits: int, signed: bool) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return (high if value > 0 else low) & (1 << bits) - 1
    return min(max(math.trunc(value), low), high) & (1 << bits) - 1


@pytest.mark.parametrize(("target", "body", "bits", "signed"), INTEGERS)
def test_singles_to_integers(target: str, body: str, bits: int, signed: bool) -> None:
    values = np.array(_EDGES, np.float32)
    found = _kernel(target, f"\t{body}", values.view(np.uint32))
    assert found.tolist() == [_integer(float(value), bits, signed) for value in values]


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("signed", [True, False])
def test_doubles_to_integers(target: str, signed: bool) -> None:
    wide = [*_EDGES, 2147483647.5, 2147483648.5, -2147483648.5, 4294967295.5, 4294967296.5, 5e-324]
    words = np.array(wide, np.float64).view(np.uint32)
    kind = "i" if signed else "u"
    body = f"\tv_cvt_{kind}32_f64_e32 v4, v[2:3]"
    found = _kernel(target, body, words[0::2], words[1::2])
    assert found.tolist() == [_integer(value, 32, signed) for value in wide]


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100"])
@pytest.mark.parametrize("signed", [True, False])
def test_halves_to_integers(target: str, signed: bool) -> None:
    patterns = np.array([*range(0, 0x10000, 89), 0x7C00, 0xFC00, 0x7E00, 0x7BFF, 0xFBFF], np.uint32)
    kind = "i" if signed else "u"
    found = _kernel(target, f"\tv_cvt_{kind}16_f16_e32 v4, v2", patterns)
    values = patterns.astype(np.uint16).view(np.float16).astype(float)
    assert (found & 0xFFFF).tolist() == [_integer(value, 16, signed) for value in values]


FROM: list[tuple[str, str, Exact, bool]] = [
    ("gfx90a", "v_cvt_f32_i32_e32 v4, v2", exact.F32, True),
    ("gfx942", "v_cvt_f32_u32_e32 v4, v2", exact.F32, False),
    ("gfx1201", "v_cvt_f32_i32_e32 v4, v2", exact.F32, True),
]


@pytest.mark.parametrize(("target", "body", "large", "signed"), FROM)
def test_integers_to_singles(target: str, body: str, large: Exact, signed: bool) -> None:
    """Ties around 2^24, and what rounds up to a power of two."""
    near = [0, 1, 0xFFFFFF, 0x1000000, 0x1000001, 0x1000002, 0x1000003, 0x7FFFFFBF, 0x7FFFFFC0]
    values = np.array(
        [*near, 0x80000000, 0x80000001, 0xFFFFFF7F, 0xFFFFFF80, 0xFFFFFFFF], np.uint32
    )
    found = _kernel(target, f"\t{body}", values).view(np.float32)
    whole = values.view(np.int32) if signed else values
    assert found.tolist() == [float(np.float32(int(value))) for value in whole]
