"""The functions of ROCm's headers of 16-bit floats, 8-bit floats and lanes: each can be called, and
gives what numpy and PyTorch compute.

`hip_functions.csv` has the names that these headers of ROCm/clr (f9f995c, October 2024) define.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wavecast

pytestmark = [pytest.mark.hip, pytest.mark.torch]
torch = pytest.importorskip("torch")

LANES = 64
NAMES = Path(__file__).with_name("hip_functions.csv")
Array = np.ndarray
Row = tuple[str, Any]
"""An expression of C++, and what it should be: an array or, of pairs, two."""

LOADS = """#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>
#include <hip/amd_detail/amd_warp_functions.h>
typedef SMALL S;
typedef PAIR P;
__device__ void put(double *to, float x) { to[0] = x, to[1] = 0; }
__device__ void put(double *to, double x) { to[0] = x, to[1] = 0; }
template <typename T> __device__ void put(double *to, T x) { to[0] = (double)x, to[1] = 0; }
__device__ void put(double *to, __half x) { put(to, (float)x); }
__device__ void put(double *to, __hip_bfloat16 x) { put(to, (float)x); }
__device__ void put(double *to, hip_bfloat16 x) { put(to, (float)x); }
__device__ void put(double *to, __half_raw x) { put(to, __half(x)); }
__device__ void put(double *to, float2 x) { to[0] = x.x, to[1] = x.y; }
__device__ void put(double *to, __half2 x) { put(to, __half22float2(x)); }
__device__ void put(double *to, __half2_raw x) { put(to, __half2(x)); }
__device__ void put(double *to, __hip_bfloat162 x) { put(to, __bfloat1622float2(x)); }
extern "C" __global__ void all(const float *in, double *out, float *sum) {
    int lane = threadIdx.x;
    float x = in[lane];
    S a(x), b(in[64 + lane]), c(in[128 + lane]), u(in[192 + lane]), v(in[256 + lane]);
    P p(a, b), q(b, c), r(c, a), w(u, u);
    int n = (int)(float)v * 37;
    unsigned m = (unsigned)(float)u * 37;
"""


def to_half(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(x).astype(np.float16).astype(np.float64)


def to_bfloat(x: Array) -> Array:
    return torch.from_numpy(np.asarray(x, np.float32)).bfloat16().double().numpy()


def numbers() -> Array:
    """Rows: three with some that are not finite, positive numbers, numbers of both signs."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(5, LANES)).astype(np.float32) * 3
    rows[0, :6], rows[1, :6] = [np.nan, 1, np.inf, -np.inf, 0, 2], [1, np.nan, np.inf, 1, -0.0, 2]
    rows[3] = np.abs(rows[3]) + 0.25
    return rows


MATH: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "rcp": lambda x: 1 / x, "exp": np.exp,
    "exp2": np.exp2, "exp10": lambda x: 10**x, "log": np.log, "log2": np.log2, "log10": np.log10,
    "sin": np.sin, "cos": np.cos, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "rint": np.rint,
}  # fmt: skip
ORDER: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
}  # fmt: skip


def clamped(x: Array) -> Array:
    return np.where(x < 0, 0.0, np.where(x > 1, 1.0, x))


def common(values: Array, rounded: Callable[[Array], Array], *, half: bool) -> dict[str, Row]:
    """What both headers have."""
    a, b, c, u = values[:4]
    rows: dict[str, Row] = {}
    for name, function in MATH.items():
        rows[f"h{name}"] = f"h{name}(u)", rounded(function(u))
        rows[f"h2{name}"] = f"h2{name}(w)", (rounded(function(u)),) * 2
    for name, function in ARITHMETIC.items():
        pair = "__h2div" if name == "div" else f"__h{name}2"
        rows[f"__h{name}"] = f"__h{name}(a, b)", rounded(function(a, b))
        rows[pair] = f"{pair}(p, q)", (rounded(function(a, b)), rounded(function(b, c)))
    unordered = [np.isnan(a) | np.isnan(b), np.isnan(b) | np.isnan(c)]
    for name, order in ORDER.items():
        first, second = order(a, b), order(b, c)
        rows[f"__h{name}"] = f"__h{name}(a, b)", first
        rows[f"__h{name}u"] = f"__h{name}u(a, b)", first | unordered[0]
        rows[f"__h{name}2"] = f"__h{name}2(p, q)", (first, second)
        rows[f"__hb{name}2"] = f"__hb{name}2(p, q)", first & second
        if half:
            rows[f"__h{name}u2"] = f"__h{name}u2(p, q)", (first, second)
            rows[f"__hb{name}u2"] = f"__hb{name}u2(p, q)", first & second
        else:
            both = (first | unordered[0], second | unordered[1])
            rows[f"__hb{name}u2"] = (
                f"__hb{name}u2(p, q)", both[0] | both[1] if name == "ne" else both[0] & both[1]
            )  # fmt: skip
    rows |= {
        "__habs": ("__habs(a)", np.abs(a)),
        "__habs2": ("__habs2(p)", (np.abs(a), np.abs(b))),
        "__hneg": ("__hneg(a)", -a),
        "__hneg2": ("__hneg2(p)", (-a, -b)),
        "__hisnan": ("__hisnan(a)", np.isnan(a)),
        "__hisnan2": ("__hisnan2(p)", (np.isnan(a), np.isnan(b))),
        "__hisinf": ("__hisinf(a) != 0", np.isinf(a)),
        "__hmax": ("__hmax(a, b)", np.fmax(a, b)),
        "__hmin": ("__hmin(a, b)", np.fmin(a, b)),
        "__hfma": ("__hfma(a, b, c)", rounded(a * b + c)),
        "__hfma2": ("__hfma2(p, q, r)", (rounded(a * b + c), rounded(b * c + a))),
        "__low2float": ("__low2float(p)", a),
        "__high2float": ("__high2float(p)", b),
        "__lowhigh2highlow": ("__lowhigh2highlow(p)", (b, a)),
    }
    return rows


def directed(x: Array, direction: str) -> Array:
    """Half floats of numbers, rounded down, up, or towards zero."""
    near = np.asarray(x).astype(np.float16)
    below = np.where(near > x, np.nextafter(near, np.float16(-np.inf)), near)
    above = np.where(near < x, np.nextafter(near, np.float16(np.inf)), near)
    chosen = {"rd": below, "ru": above, "rz": np.where(x < 0, above, below), "rn": near}[direction]
    return chosen.astype(np.float64)


def halves(values: Array, exact: Array) -> dict[str, Row]:
    a, b, c, u, v = values
    x = exact[0].astype(np.float64)
    bits = a.astype(np.float16).view(np.uint16)
    rows = common(values, to_half, half=True)
    whole = {"short": "n", "int": "n", "ll": "n", "ushort": "m", "uint": "m", "ull": "m"}
    n, m = np.trunc(v) * 37, np.trunc(u) * 37
    for mode in ("rn", "rz", "rd", "ru"):
        rows[f"__float2half_{mode}"] = f"__float2half_{mode}(x)", directed(x, mode)
        for kind, given in whole.items():
            small, integer = ("v", n) if given == "n" else ("u", m)
            value = v if given == "n" else u
            rows[f"__half2{kind}_{mode}"] = f"__half2{kind}_{mode}({small})", np.trunc(value)
            rows[f"__{kind}2half_{mode}"] = f"__{kind}2half_{mode}({given})", to_half(integer)
    for name in ("add", "sub", "mul"):
        first, second = rows[f"__h{name}2"][1]
        rows[f"__h{name}_sat"] = f"__h{name}_sat(a, b)", clamped(first)
        rows[f"__h{name}2_sat"] = f"__h{name}2_sat(p, q)", (clamped(first), clamped(second))
    fused = rows["__hfma2"][1]
    loaded = exact.view(np.float16).astype(np.float64).reshape(-1)[: 2 * LANES : 2]
    nan = np.where(np.isnan(a), a, np.where(np.isnan(b), b, 0.0))
    return rows | {
        "__clamp_01": ("__clamp_01(a)", clamped(a)),
        "__float2half": ("__float2half(x)", to_half(x)),
        "__half2float": ("__half2float(a)", a),
        "__float22half2_rn": (
            "__float22half2_rn(make_float2(x, -x))", (to_half(x), to_half(-x))
        ),
        "__float2half2_rn": ("__float2half2_rn(x)", (to_half(x), to_half(x))),
        "__floats2half2_rn": ("__floats2half2_rn(x, -x)", (to_half(x), to_half(-x))),
        "__half22float2": ("__half22float2(p)", (a, b)),
        "__half2half2": ("__half2half2(a)", (a, a)),
        "__halves2half2": ("__halves2half2(a, c)", (a, c)),
        "make_half2": ("make_half2(a, c)", (a, c)),
        "__half_as_short": ("__half_as_short(a)", bits.view(np.int16)),
        "__half_as_ushort": ("__half_as_ushort(a)", bits),
        "__short_as_half": ("__short_as_half(__half_as_short(a))", a),
        "__ushort_as_half": ("__ushort_as_half(__half_as_ushort(a))", a),
        "__hfma_sat": ("__hfma_sat(a, b, c)", clamped(fused[0])),
        "__hfma2_sat": ("__hfma2_sat(p, q, r)", tuple(map(clamped, fused))),
        "__hisinf2": ("__hisinf2(p)", (np.isinf(a), np.isinf(b))),
        "__hmax_nan": ("__hmax_nan(a, b)", np.fmax(a, b) + nan),
        "__hmin_nan": ("__hmin_nan(a, b)", np.fmin(a, b) + nan),
        "__low2half": ("__low2half(p)", a),
        "__high2half": ("__high2half(p)", b),
        "__low2half2": ("__low2half2(p)", (a, a)),
        "__high2half2": ("__high2half2(p)", (b, b)),
        "__lows2half2": ("__lows2half2(p, q)", (a, b)),
        "__highs2half2": ("__highs2half2(p, q)", (b, c)),
        "amd_mixed_dot": ("amd_mixed_dot(w, w, 1.0f, false)", 2 * u * u + 1),
        **{
            f"__ld{kind}": (f"__ld{kind}((const __half *)in + 2 * lane)", loaded)
            for kind in ("g", "ca", "cg", "cs")
        },
        **{
            name: (f"{name}(v, {argument})", moved(v))
            for name, (argument, moved) in SHUFFLES.items()
        },
        "unsafeAtomicAdd": (SUM, (64.0, 128.0)),
    }  # fmt: skip


SUM = (
    "({ unsafeAtomicAdd((P *)sum, P(S(1), S(2))); __syncthreads();"
    " unsafeAtomicAdd((P *)sum, P(S(0), S(0))); })"
)
SHUFFLES: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "__shfl": ("5", lambda v: np.full(LANES, v[5])),
    "__shfl_up": ("1", lambda v: np.concatenate([v[:1], v[:-1]])),
    "__shfl_down": ("1", lambda v: np.concatenate([v[1:], v[-1:]])),
    "__shfl_xor": ("1", lambda v: v[np.arange(LANES) ^ 1]),
}


def bfloats(values: Array, exact: Array) -> dict[str, Row]:
    a, b, c, _, v = values
    x = exact[0].astype(np.float64)
    bits = torch.from_numpy(v).bfloat16().view(torch.int16).numpy()
    every = "~0ull"
    return common(values, to_bfloat, half=False) | {
        "__hmax2": ("__hmax2(p, q)", (np.fmax(a, b), np.fmax(b, c))),
        "__hmin2": ("__hmin2(p, q)", (np.fmin(a, b), np.fmin(b, c))),
        "__float2bfloat16": ("__float2bfloat16(x)", to_bfloat(x)),
        "__double2bfloat16": ("__double2bfloat16(x)", to_bfloat(x)),
        "__bfloat162float": ("__bfloat162float(a)", a),
        "__bfloat162bfloat162": ("__bfloat162bfloat162(a)", (a, a)),
        "__bfloat1622float2": ("__bfloat1622float2(p)", (a, b)),
        "__float22bfloat162_rn": (
            "__float22bfloat162_rn(make_float2(x, 2 * x))", (to_bfloat(x), to_bfloat(2 * x))
        ),
        "__bfloat16_as_short": ("__bfloat16_as_short(v)", bits),
        "__bfloat16_as_ushort": ("__bfloat16_as_ushort(v)", bits.view(np.uint16)),
        "__short_as_bfloat16": ("__short_as_bfloat16(__bfloat16_as_short(a))", a),
        "__ushort_as_bfloat16": ("__ushort_as_bfloat16(__bfloat16_as_ushort(a))", a),
        "__halves2bfloat162": ("__halves2bfloat162(a, c)", (a, c)),
        "__low2bfloat16": ("__low2bfloat16(p)", a),
        "__high2bfloat16": ("__high2bfloat16(p)", b),
        "__low2bfloat162": ("__low2bfloat162(p)", (a, a)),
        "__high2bfloat162": ("__high2bfloat162(p)", (b, b)),
        "__lows2bfloat162": ("__lows2bfloat162(p, q)", (a, b)),
        "__highs2bfloat162": ("__highs2bfloat162(p, q)", (b, c)),
        **{
            f"{name}_sync": (f"{name}_sync({every}, v, {argument})", moved(v))
            for name, (argument, moved) in SHUFFLES.items()
        },
        "unsafeAtomicAdd": (SUM, (64.0, 128.0)),
    }  # fmt: skip


def old_bfloats(values: Array, exact: Array) -> dict[str, Row]:
    a, x = values[0], exact[0].astype(np.float64)
    cut = (exact[0].view(np.uint32) & 0xFFFF0000).view(np.float32)
    return {
        "round_to_bfloat16": ("hip_bfloat16::round_to_bfloat16(x)", to_bfloat(x)),
        "truncated": (
            "hip_bfloat16::round_to_bfloat16(x, hip_bfloat16::truncate)",
            np.where(np.isnan(x), x, cut),
        ),
        "isinf": ("std::isinf(hip_bfloat16((float)a))", np.isinf(a)),
        "isnan": ("std::isnan(hip_bfloat16((float)a))", np.isnan(a)),
        "iszero": ("std::iszero(hip_bfloat16((float)a))", a == 0),
    }


def eights(values: Array, exact: Array) -> dict[str, Row]:
    v = values[4]
    code = torch.from_numpy(v).to(torch.float8_e4m3fnuz)
    low = code.view(torch.uint8).numpy().astype(np.float64)
    back = code.double().numpy()
    how = "__HIP_SATFINITE, __HIP_E4M3_FNUZ"
    big = torch.full((LANES,), 1e4).to(torch.float8_e5m2)
    top = np.full(LANES, float(big.view(torch.uint8)[0]))
    return {
        "__hip_cvt_float_to_fp8": (f"__hip_cvt_float_to_fp8(v, {how})", low),
        "__hip_cvt_double_to_fp8": (f"__hip_cvt_double_to_fp8(v, {how})", low),
        "__hip_cvt_halfraw_to_fp8": (f"__hip_cvt_halfraw_to_fp8(v, {how})", low),
        "__hip_cvt_bfloat16raw_to_fp8": (
            "__hip_cvt_bfloat16raw_to_fp8(__float2bfloat16(1e4f), __HIP_NOSAT, __HIP_E5M2)", top
        ),
        "__hip_cvt_float2_to_fp8x2": (
            f"__hip_cvt_float2_to_fp8x2(make_float2(v, v), {how})", low * 257
        ),
        "__hip_cvt_double2_to_fp8x2": (
            f"__hip_cvt_double2_to_fp8x2(make_double2(v, v), {how})", low * 257
        ),
        "__hip_cvt_halfraw2_to_fp8x2": (f"__hip_cvt_halfraw2_to_fp8x2(P(v, v), {how})", low * 257),
        "__hip_cvt_bfloat16raw2_to_fp8x2": (
            "__hip_cvt_bfloat16raw2_to_fp8x2(__float2bfloat162_rn(1e6f), __HIP_NOSAT, __HIP_E5M2)",
            np.full(LANES, 0x7C7C),
        ),
        "__hip_cvt_fp8_to_halfraw": (
            f"__hip_cvt_fp8_to_halfraw(__hip_cvt_float_to_fp8(v, {how}), __HIP_E4M3_FNUZ)", back
        ),
        "__hip_cvt_fp8x2_to_halfraw2": (
            "__hip_cvt_fp8x2_to_halfraw2(__hip_cvt_halfraw2_to_fp8x2(P(v, u), "
            f"{how}) & 255, __HIP_E4M3_FNUZ)",
            (back, np.zeros(LANES)),
        ),
    }  # fmt: skip


def lanes(values: Array, exact: Array) -> dict[str, Row]:
    v = values[4]
    lane = np.arange(LANES)
    positive = v > 0
    mask = float(sum(1 << int(number) for number in lane[positive]))
    swapped, full = lane ^ 1, float(2**64 - 1)
    same = {
        f"{name}{end}": (f"{name}{end}({first}v, {argument})", moved(v))
        for name, (argument, moved) in SHUFFLES.items()
        for end, first in (("", ""), ("_sync", "~0ull, "))
    }
    match = np.where(lane % 2 == 0, float(0x5555555555555555), float(0xAAAAAAAAAAAAAAAA))
    equal = "({ int same; MATCH + (unsigned long long)(same == 2); })"
    return same | {
        "__activemask": ("__activemask()", full),
        "__all": ("__all(lane < 64)", 1.0),
        "__any": ("__any(lane == 3)", 1.0),
        "__ballot": ("__ballot(v > 0)", mask),
        "__ballot64": ("__ballot64(v > 0)", mask),
        "__all_sync": ("__all_sync(~0ull, lane < 3)", 0.0),
        "__any_sync": ("__any_sync(~0ull, lane < 0)", 0.0),
        "__ballot_sync": ("__ballot_sync(~0ull, v > 0)", mask),
        "__lane_id": ("__lane_id()", lane),
        "__hip_readfirstlane": ("__hip_readfirstlane((float)v)", v[0]),
        "__match_any": ("__match_any(lane % 2)", match),
        "__match_any_sync": ("__match_any_sync(~0ull, lane % 2)", match),
        "__match_all": (equal.replace("MATCH", "__match_all(lane % 2, &same)"), 0.0),
        "__match_all_sync": (equal.replace("MATCH", "__match_all_sync(~0ull, 7, &same)"), full),
        "__hip_ds_bpermute": ("__hip_ds_bpermute((lane ^ 1) * 4, (unsigned)lane)", swapped),
        "__hip_ds_permute": ("__hip_ds_permute((lane ^ 1) * 4, (unsigned)lane)", swapped),
        "__hip_ds_bpermutef": ("__hip_ds_bpermutef((lane ^ 1) * 4, (float)v)", v[swapped]),
        "__hip_ds_permutef": ("__hip_ds_permutef((lane ^ 1) * 4, (float)v)", v[swapped]),
        "__hip_ds_swizzle_N": ("__hip_ds_swizzle((unsigned)lane, 0x41f)", swapped),
        "__hip_ds_swizzlef_N": ("__hip_ds_swizzlef((float)v, 0x41f)", v[swapped]),
        "__hip_move_dpp_N": ("__hip_move_dpp(lane, 0xb1, 0xf, 0xf, true)", swapped),
    }


HALF, BFLOAT = ("__half", "__half2"), ("__hip_bfloat16", "__hip_bfloat162")
HEADERS: dict[str, tuple[tuple[str, str], Callable[[Array, Array], dict[str, Row]]]] = {
    "hip_fp16.h": (HALF, halves),
    "hip_bf16.h": (BFLOAT, bfloats),
    "hip_bfloat16.h": (BFLOAT, old_bfloats),
    "hip_fp8.h": (HALF, eights),
    "amd_warp_functions.h": (HALF, lanes),
    "amd_warp_sync_functions.h": (HALF, lanes),
}


def names_of(header: str) -> set[str]:
    with NAMES.open() as file:
        return {row["name"] for row in csv.DictReader(file) if row["header"] == header}


@pytest.mark.parametrize(
    "header", [name for name in HEADERS if name != "amd_warp_sync_functions.h"]
)
def test_functions_of_a_header_give_what_the_host_computes(header, tmp_path: Path) -> None:
    types, build = HEADERS[header]
    exact = numbers()
    values = (to_half if types == HALF else to_bfloat)(exact)
    with np.errstate(all="ignore"):
        rows = build(values, exact)
    body = "".join(
        f"    put(out + 2 * ({number} * 64 + lane), {expression});\n"
        for number, (expression, _) in enumerate(rows.values())
    )
    path = tmp_path / "functions.hip"
    path.write_text(LOADS.replace("SMALL", types[0]).replace("PAIR", types[1]) + body + "}\n")
    out = np.zeros((len(rows), LANES, 2))
    wavecast.load(path, arch="gfx942")["all"](1, LANES, exact.copy(), out, np.zeros(1, np.float32))
    tolerance = 2e-3 if types == HALF else 2e-2
    for (name, (expression, right)), computed in zip(rows.items(), out, strict=True):
        first, second = right if isinstance(right, tuple) else (right, np.zeros(LANES))
        expected = np.stack([np.broadcast_to(first, LANES), np.broadcast_to(second, LANES)], -1)
        exactly = name.removeprefix("h2").removeprefix("h") not in MATH
        np.testing.assert_allclose(
            computed, expected.astype(np.float64), rtol=1e-7 if exactly else tolerance,
            atol=0 if exactly else 1e-3, err_msg=f"{name}: {expression}",
        )  # fmt: skip


def test_every_name_of_the_headers_is_tested() -> None:
    exact = numbers()
    with np.errstate(all="ignore"):
        for header, (types, build) in HEADERS.items():
            values = (to_half if types == HALF else to_bfloat)(exact)
            assert names_of(header) - build(values, exact).keys() == set(), header
