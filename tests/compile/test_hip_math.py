"""Accuracy of the math headers, compiled for the host: the figures docs/hip.md states."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wavecast.compile import process, toolchain

pytestmark = pytest.mark.hip

DOCS = Path(__file__).parents[2] / "docs" / "hip.md"

FLOAT: dict[str, tuple[float, float, Callable[[float], float]]] = {
    "sinf": (-1000, 1000, math.sin),
    "cosf": (-1000, 1000, math.cos),
    "tanf": (-1000, 1000, math.tan),
    "asinf": (-1, 1, math.asin),
    "acosf": (-1, 1, math.acos),
    "atanf": (-50, 50, math.atan),
    "sinhf": (-80, 80, math.sinh),
    "coshf": (-80, 80, math.cosh),
    "tanhf": (-10, 10, math.tanh),
    "asinhf": (-1e4, 1e4, math.asinh),
    "expm1f": (-20, 80, math.expm1),
    "log1pf": (-0.99, 100, math.log1p),
    "erff": (-5, 5, math.erf),
    "erfcf": (-5, 9, math.erfc),
    "cbrtf": (-1e6, 1e6, lambda x: math.copysign(abs(x) ** (1 / 3), x)),
}
DOUBLE: dict[str, tuple[float, float, Callable[[float], float]]] = {
    "exp": (-700, 700, math.exp),
    "exp2": (-1000, 1000, lambda x: 2.0**x),
    "log": (1e-10, 1e10, math.log),
    "sin": (-1e4, 1e4, math.sin),
    "cos": (-1e4, 1e4, math.cos),
    "tan": (-1e4, 1e4, math.tan),
    "tanh": (-20, 20, math.tanh),
    "expm1": (-10, 100, math.expm1),
    "log1p": (-0.99, 100, math.log1p),
}


def _source() -> str:
    def function(name: str, kind: str) -> str:
        return (
            f"void v_{name}(const {kind} *x, {kind} *y, long n) "
            f"{{ for (long i = 0; i < n; ++i) y[i] = {name}(x[i]); }}"
        )

    body = [function(name, "float") for name in FLOAT]
    body += [function(name, "double") for name in DOUBLE]
    return "#include <wavecast/math.h>\n" + 'extern "C" {\n' + "\n".join(body) + "\n}\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    zig = toolchain._zig_program()
    if zig is None:
        pytest.skip("needs the ziglang package")
    folder = tmp_path_factory.mktemp("math")
    source, unlinked, linked = folder / "m.cpp", folder / "m.o", folder / "m.so"
    source.write_text(_source())
    options = ("-x", "c++", "-std=c++17", "-O2", "-w", "-fPIC", "-nostdinc", "-nostdinc++")
    include = ("-I", str(toolchain.INCLUDE), "-isystem", str(zig.parent / "lib" / "include"))
    done = process.run([zig, "clang", *options, *include, "-c", source, "-o", unlinked])
    assert done.status == 0, done.log
    done = process.run([zig, "ld.lld", "-shared", unlinked, "-o", linked])
    assert done.status == 0, done.log
    ctypes.CDLL(None, mode=ctypes.RTLD_GLOBAL)
    try:
        return ctypes.CDLL(str(linked))
    except OSError as error:
        pytest.skip(f"the host's C library lacks a function: {error}")


def _documented() -> dict[str, float]:
    """Function -> largest error in ulp, from the table in docs/hip.md."""
    rows = re.findall(r"^\| `([^|]+)` \| ([\d.]+) \|", DOCS.read_text(), re.MULTILINE)
    return {name: float(error) for names, error in rows for name in names.split("`, `")}


def _error(
    library: ctypes.CDLL, name: str, dtype: type, case: tuple[float, float, Callable]
) -> float:
    low, high, reference = case
    rng = np.random.default_rng(7)
    near = (max(low, -1.0), min(high, 1.0))
    x = np.concatenate([rng.uniform(low, high, 20000), rng.uniform(*near, 20000)]).astype(dtype)
    y = np.empty_like(x)
    pointer = ctypes.c_void_p
    getattr(library, f"v_{name}")(
        x.ctypes.data_as(pointer), y.ctypes.data_as(pointer), ctypes.c_long(len(x))
    )
    exact = np.array([reference(float(value)) for value in x])
    unit = np.spacing(np.abs(exact.astype(dtype))).astype(np.float64)
    return float(np.max(np.abs(y.astype(np.float64) - exact) / unit))


@pytest.mark.parametrize("name", [*FLOAT, *DOUBLE])
def test_the_error_stays_within_what_is_documented(library: ctypes.CDLL, name: str) -> None:
    dtype, case = (np.float32, FLOAT[name]) if name in FLOAT else (np.float64, DOUBLE[name])
    limit = _documented()[name]
    error = _error(library, name, dtype, case)
    assert error <= limit
    assert error > limit / 8, "the documented figure is far too large"


@pytest.mark.parametrize("name", sorted(FLOAT))
def test_nan_stays_nan(library: ctypes.CDLL, name: str) -> None:
    x = np.array([np.nan], np.float32)
    y = np.zeros_like(x)
    pointer = ctypes.c_void_p
    getattr(library, f"v_{name}")(
        x.ctypes.data_as(pointer), y.ctypes.data_as(pointer), ctypes.c_long(1)
    )
    assert np.isnan(y[0])
