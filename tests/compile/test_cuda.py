"""CUDA C++: nvcc for NVIDIA GPUs, and the same source translated for AMD's."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import wavecast
from wavecast.compile import CodeObject, FileKind, cuda, kind_of, load, loads, toolchain
from wavecast.compile.kinds import is_cuda
from wavecast.errors import CompileError, InputError, MissingTool, UsageError

DATA = Path(__file__).parent / "data"
PTX = '__global__ void k(int *p) { int x; asm("mov.u32 %0, %%laneid;" : "=r"(x)); *p = x; }\n'


@pytest.fixture
def nvcc(ptxas: str) -> str:
    """nvcc, with the tools that read what it makes."""
    assert ptxas
    try:
        return cuda.find()
    except MissingTool as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("text", "suffix", "expected"),
    [
        ("#include <cuda_runtime.h>", ".cpp", True),
        ("void f() { cudaFree(p); }", "", True),
        ("__global__ void k() {}", ".cu", True),
        ("__global__ void k() {}", ".hip", False),
        ("__global__ void k() {}", "", False),
        ("#include <hip/hip_runtime.h>", ".cu", False),
        ("hipFree(p); // was cudaFree(p)", ".cu", False),
    ],
)
def test_cuda_is_told_from_hip(text: str, suffix: str, expected: bool) -> None:
    assert is_cuda(text, suffix) == expected


def test_the_kind_of_a_file() -> None:
    path = DATA / "warps.cu"
    assert kind_of(path.read_bytes(), path) is FileKind.CUDA
    path = DATA / "saxpy.hip"
    assert kind_of(path.read_bytes(), path) is FileKind.HIP


def test_hip_source_is_for_amd() -> None:
    with pytest.raises(InputError, match=r"HIP source and needs an AMD target"):
        loads(b"#include <hip/hip_runtime.h>\n__global__ void k() {}", "sm_90")


def test_every_translated_name_is_one_of_hip() -> None:
    folder = toolchain.INCLUDE / "wavecast"
    declared = (folder / "host_api.h").read_text() + (folder / "host_types.h").read_text()
    known = set(re.findall(r"\bhip\w+", declared))
    macros = re.findall(r"^#define (cuda\w+) (\w+)$", (folder / "cuda_api.h").read_text(), re.M)
    assert len(macros) > 250
    assert [(name, hip) for name, hip in macros if hip not in known] == []
    assert len({name for name, _ in macros}) == len(macros)


@pytest.mark.cuda
@pytest.mark.usefixtures("nvcc")
def test_nvcc_gives_sass_with_names_and_lines() -> None:
    code = _kernel(load(DATA / "warps.cu", "sm_90"), "sum")
    assert (code.target, code.origin, code.source_line) == ("sm_90", "cuda", 34)
    assert [(p.name, p.type, p.offset, p.size) for p in code.parameters] == [
        ("x", "__half*", 0, 8),
        ("out", "float*", 8, 8),
        ("n", "int", 16, 4),
    ]
    assert "SHFL.DOWN" in code.assembly
    assert "warps.cu" in code.assembly
    assert code.options["spill_store_bytes"] == 0
    assert code.compiler.startswith("nvcc ")


@pytest.mark.cuda
@pytest.mark.usefixtures("nvcc")
def test_code_may_use_what_only_its_gpu_has() -> None:
    text = '__global__ void k() { asm volatile("wgmma.fence.sync.aligned;"); }'
    (code,) = loads(f"#include <cuda_runtime.h>\n{text}".encode(), "sm_90")
    assert code.kernel == "_Z1kv"


@pytest.mark.cuda
@pytest.mark.usefixtures("nvcc")
def test_errors_of_nvcc(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text("__global__ void k(float *p) {\n    *p = nothing;\n}\n")
    with pytest.raises(CompileError, match=r'k\.cu:2: identifier "nothing" is undefined'):
        load(path, "sm_90")
    path.write_text('#include "own.h"\n__global__ void k(float *p) { *p = SIZE; }\n')
    with pytest.raises(CompileError, match=r"k\.cu:1: own\.h: No such file"):
        load(path, "sm_90")
    with pytest.raises(UsageError, match="-arch=sm_80 cannot be given"):
        load(path, "sm_90", options=("-arch=sm_80",))
    (tmp_path / "own.h").write_text("#define SIZE 2\n")
    before = load(path, "sm_90")[0].digest
    assert load(path, "sm_90")[0].digest == before
    (tmp_path / "own.h").write_text("#define SIZE 3\n")
    assert load(path, "sm_90")[0].digest != before


def test_without_nvcc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(cuda.VARIABLE, str(tmp_path / "nvcc"))
    with pytest.raises(MissingTool, match="WAVECAST_NVCC names no program"):
        load(DATA / "warps.cu", "sm_90")


@pytest.mark.hip
@pytest.mark.usefixtures("hip_compiler")
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_warps_have_32_threads_on_every_gpu(target: str) -> None:
    """Lanes 32 to 63 of a wave are another warp: the kernel's results are those of CUDA."""
    kernels = wavecast.load(DATA / "warps.cu", target)
    values = np.zeros((96, 12), np.uint32)
    kernels["warps"](1, 96, values)
    thread = np.arange(96, dtype=np.uint32)
    warp, lane = thread & ~np.uint32(31), thread & 31
    assert (values[:, 0] == 32).all()
    bits = ((warp[:, None] + np.arange(32)) // 3 & 1) << np.arange(32, dtype=np.uint32)
    assert (values[:, 1] == bits.sum(1)).all()
    assert (values[:, 2] == warp + 5).all()
    assert (values[:, 3] == np.where(lane + 7 < 32, thread + 7, thread)).all()
    assert (values[:, 4] == np.where(lane >= 7, thread - 7, thread)).all()
    assert (values[:, 5] == thread ^ 31).all()
    assert (values[:, 6] == (warp == 32) + 2 * (warp == 0)).all()
    assert (values[:, 7] == 0x11111111 << (thread & 3)).all()
    assert (values[:, 8] == warp * 32 + 31 * 16).all()
    assert (values[:, 9] == (thread & ~np.uint32(15)) * 16 + 120).all()
    assert (values[:, 10] == np.where(thread & 1, 1600 + lane // 2, 0x55555555)).all()
    assert (values[:, 11] == 0).all()


@pytest.mark.hip
@pytest.mark.usefixtures("hip_compiler")
def test_what_has_no_translation_is_named(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(PTX)
    with pytest.raises(CompileError, match=r"k\.cu:1: 'mov.* \(inline PTX is for NVIDIA GPUs"):
        load(path, "gfx942")
    path.write_text(PTX.replace('"=r"', '"=l"'))
    with pytest.raises(CompileError, match=r"k\.cu:1: .* \(inline PTX is for NVIDIA GPUs"):
        load(path, "gfx942")
    path.write_text('__global__ void k(int *p) { asm volatile("" ::: "memory"); *p = 1; }\n')
    assert len(load(path, "gfx942")) == 1
    path.write_text("// a kernel\n#include <mma.h>\n__global__ void k() {}\n")
    with pytest.raises(CompileError, match=r"k\.cu:2: tensor core fragments \(mma\.h\) are for"):
        load(path, "gfx942")
    path.write_text("#include <curand_kernel.h>\n__global__ void k() {}\n")
    with pytest.raises(CompileError, match=r"CUDA's libraries are not translated"):
        load(path, "gfx942")


def _kernel(codes: list[CodeObject], name: str) -> CodeObject:
    return next(code for code in codes if f"{len(name)}{name}" in code.kernel)
