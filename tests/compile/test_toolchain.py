"""Which compiler HIP is compiled with, and which the users of a chip have."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import wavecast
from tests.conftest import CACHES
from wavecast.compile import DiskCache, device_library, hip, load, rocm, toolchain
from wavecast.compile.toolchain import Toolchain
from wavecast.isa.targets import TARGETS

DATA = Path(__file__).parent / "data"


def _clang(number: int) -> Toolchain:
    return Toolchain("clang", (f"clang-{number}",), (), own_headers=True, arguments=())


def test_every_target_has_a_release() -> None:
    for target in TARGETS:
        found = rocm.release(target)
        assert found.clang >= toolchain.OLDEST_CLANG
        assert found.release
        assert found.source


@pytest.mark.parametrize(
    ("target", "installed", "chosen"),
    [
        ("gfx942", (22, 20, 19), 19),
        ("gfx950", (22, 20, 19), 20),
        ("gfx942", (22, 18), 18),
        ("gfx942", (22,), 22),
        ("", (22, 19), 22),
    ],
)
def test_the_compiler_is_as_near_as_possible_to_the_release(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    target: str,
    installed: tuple[int, ...],
    chosen: int,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    monkeypatch.delenv(toolchain.VARIABLE, raising=False)
    monkeypatch.setattr(toolchain, "_candidates", lambda: [_clang(n) for n in installed])
    monkeypatch.setattr(toolchain, "version", lambda compiler: f"clang version {compiler[0][6:]}.1")
    assert toolchain.find(target) == _clang(chosen)


def test_folders_of_a_rocm_that_is_not_there_are_ours(tmp_path: Path) -> None:
    there = tmp_path / "include" / "hip"
    there.mkdir(parents=True)
    own = toolchain.INCLUDE / "hip"
    flags = ("-I/no/include/hip", "-I", "/no/include/hip/", f"-I{there}", "-I/no/include/other")
    wanted = (f"-I{own}", "-I", str(own), f"-I{there}", "-I/no/include/other")
    assert toolchain.replace_rocm_folders(flags) == wanted


def test_a_difference_is_named() -> None:
    (code,) = load(DATA / "saxpy.gfx942.s", "gfx942")
    assert rocm.difference(code) == ""
    other = replace(code, origin="hip", compiler="ziglang: clang version 22.1.8")
    assert rocm.difference(other).startswith("compiled by clang 22; clang 19 of ROCm 6.4, ")
    assert rocm.difference(replace(other, compiler="clang: Debian clang version 19.1.7")) == ""


@pytest.mark.hip
@pytest.mark.usefixtures("hip_compiler")
def test_a_prediction_names_its_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(CACHES / "wavecast"))  # has the simulator
    kernel = wavecast.load(DATA / "saxpy.hip", "mi300x")["saxpy"]
    x, y = np.ones(256, np.float32), np.ones(256, np.float32)
    found = kernel.predict(1, 256, 2.0, x, y, 256)
    assert "clang" in str(found.assumed["compiler"])
    difference = rocm.difference(kernel.code)
    assert (difference in found.notes) == bool(difference)


@pytest.mark.hip
def test_amd_s_device_library_is_linked(
    tmp_path: Path, hip_compiler: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sine is accurate where the one of wavecast's headers is not."""
    if hip_compiler.library is None:
        pytest.skip("needs the device library in Triton's wheel")
    source = tmp_path / "sine.hip"
    source.write_text("__global__ void k(float *x) { x[threadIdx.x] = sinf(x[threadIdx.x]); }")
    (code,) = hip.compile_file(source, "gfx942", cache=DiskCache(tmp_path / "cache"))
    assert "__oc" not in code.assembly
    x = np.linspace(1e8, 2e9, 64, dtype=np.float32)
    exact = [math.sin(value) for value in x.tolist()]
    wavecast.load(code)["k"](1, 64, x)
    assert np.abs(x - exact).max() < 1e-6
    monkeypatch.setattr(device_library, "find", lambda clang: None)
    (own,) = hip.compile_file(source, "gfx942", cache=DiskCache(tmp_path / "cache"))
    assert own.digest != code.digest


@pytest.mark.parametrize(
    ("target", "version"), [("gfx90a", 9010), ("gfx942:xnack-", 9402), ("gfx1201", 12001)]
)
def test_constants_of_the_device_library(target: str, version: int) -> None:
    text = device_library._constants(target, ("-ffast-math",))
    assert f"__oclc_ISA_version = {version};" in text
    assert "__oclc_finite_only_opt = 1;" in text
    assert "__oclc_finite_only_opt = 0;" in device_library._constants(target, ())
