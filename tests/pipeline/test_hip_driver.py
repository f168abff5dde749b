"""`wavecast hipcc`: code objects for modules, and wrappers that call it."""

from __future__ import annotations

import ctypes
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import wavecast
from wavecast import compile as compilers
from wavecast.compile import bundle, hip, process, toolchain
from wavecast.errors import CompileError, UsageError
from wavecast.pipeline.execute.hip_driver import drive

pytestmark = pytest.mark.hip

SOURCE = """#include <hip/hip_runtime.h>
extern "C" __global__ void twice(float *x) {
    x[threadIdx.x] *= 2.0f;
}
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "twice.hip"
    path.write_text(SOURCE)
    return path


def write_wrapper(folder: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `hipcc` first in PATH that ends with a command."""
    folder.mkdir()
    wrapper = folder / "hipcc"
    wrapper.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return wrapper


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_a_code_object_has_its_source_lines_and_runs(source: Path, target: str) -> None:
    assert drive(["--genco", f"--offload-arch={target}", "-O3", str(source), "-o", "k.hsaco"]) == 0
    image = Path("k.hsaco").read_bytes()
    assert bundle.is_bundle(image)
    (code,) = compilers.load("k.hsaco", target)
    assert (code.kernel, code.target) == ("twice", target)
    x = np.arange(32, dtype=np.float32)
    wavecast.load("k.hsaco")["twice"](1, 32, x)
    assert np.array_equal(x, 2 * np.arange(32))
    (member,) = bundle.members(image)
    (compiled,) = hip.compiled_program(member.data)
    assert compiled.source == str(source)


def test_names_of_outputs_are_those_of_clang(source: Path) -> None:
    drive(["-c", "--genco", "--offload-arch=gfx942:xnack-", str(source)])
    assert Path("twice-hip-amdgcn-amd-amdhsa.hipfb").is_file()
    drive(["--cuda-device-only", "--no-gpu-bundle-output", "--offload-arch=gfx942", str(source)])
    assert Path("twice-hip-amdgcn-amd-amdhsa-gfx942.o").read_bytes().startswith(b"\x7fELF")


def test_a_shared_library_launches_in_the_process_that_loads_it(source: Path) -> None:
    torch = pytest.importorskip("torch")
    call = 'extern "C" void call(float *x) { twice<<<1, 64>>>(x); }\n'
    # folders of a ROCm that is not there
    headers = '#include "hip_bf16.h"\n#include <rocrand_kernel.h>\n'
    folders = ["-I/nowhere/rocm/include/hip", "-isystem", "/nowhere/rocm/include/rocrand/"]
    source.write_text(headers + SOURCE + call)
    target = ["-fPIC", "--offload-arch=gfx942", *folders]
    drive(["--shared", *target, str(source), "-o", "libtwice.so"])
    with wavecast.device("gfx942"):
        x = torch.arange(64.0, device="cuda")
        ctypes.CDLL(str(Path("libtwice.so").resolve())).call(ctypes.c_void_p(x.data_ptr()))
        assert torch.equal(x, 2 * torch.arange(64.0))


def test_a_static_library_has_its_kernels_where_it_is_linked(source: Path) -> None:
    torch = pytest.importorskip("torch")
    source.write_text(SOURCE + "void launch(float *x) { twice<<<1, 64>>>(x); }\n")
    caller = source.with_name("caller.cpp")
    caller.write_text('void launch(float *); extern "C" void call(float *x) { launch(x); }\n')
    target = ["-fPIC", "--offload-arch=gfx942"]
    drive(["--emit-static-lib", *target, str(source), "-o", "libtwice.a"])
    drive(["--shared", *target, str(caller), "-L.", "-ltwice", "-o", "libcaller.so"])
    with wavecast.device("gfx942"):
        x = torch.arange(64.0, device="cuda")
        ctypes.CDLL(str(Path("libcaller.so").resolve())).call(ctypes.c_void_p(x.data_ptr()))
        assert torch.equal(x, 2 * torch.arange(64.0))


def test_headers_of_the_host_are_for_c_too(source: Path) -> None:
    headers = [
        "hip/hip_complex", "hip/hip_runtime", "hip/hiprtc", "hipblas/hipblas",
        "hipblaslt/hipblaslt", "hipfft/hipfft", "hiprand/hiprand", "hipsolver/hipsolver",
        "hipsparse/hipsparse", "rocblas/rocblas", "rocsolver/rocsolver",
        "rocsparse/rocsparse", "miopen/miopen", "rocrand/rocrand",
    ]  # fmt: skip
    caller = source.with_name("caller.c")
    included = "".join(f"#include <{header}.h>\n" for header in headers)
    caller.write_text(f"{included}hipFloatComplex z;\nrocblas_handle handle;\n")
    drive(["-c", str(caller)])
    assert Path("caller.o").is_file()


def test_a_code_object_has_one_source(source: Path) -> None:
    with pytest.raises(UsageError, match="one source"):
        drive(["--genco", str(source), str(source)])
    source.write_text("int main() {}\n")
    with pytest.raises(hip.NoKernel):
        drive(["--genco", str(source)])


def test_a_script_that_calls_wavecast_is_not_rocm(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wrapper(tmp_path / "bin", "wavecast hipcc", monkeypatch)
    assert toolchain.find("gfx942").own_headers
    drive(["--genco", str(source), "-o", "k.hsaco"])


def test_a_hipcc_that_calls_wavecast_again_ends_with_one_line(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "inner"
    inner.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m wavecast hipcc "$@"\n')
    inner.chmod(0o755)
    write_wrapper(tmp_path / "bin", str(inner), monkeypatch)
    with pytest.raises(CompileError, match="calls wavecast, which would call it again"):
        drive(["--genco", str(source), "-o", "k.hsaco"])
    monkeypatch.setenv(process.DRIVEN, "1")
    with pytest.raises(UsageError, match="calls wavecast"):
        toolchain.find("gfx942")
