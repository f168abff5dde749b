"""HIP C++ through whatever compiler is here, with wavecast's own headers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import wavecast
from tests.targets import swept
from wavecast.compile import DiskCache, hip, load, toolchain
from wavecast.errors import CompileError, InputError, MissingTool, UnknownName, UsageError
from wavecast.isa import elf
from wavecast.isa.assembly_metadata import descriptors_from_assembly
from wavecast.isa.targets import TARGETS

DATA = Path(__file__).parent / "data"

pytestmark = [pytest.mark.hip, pytest.mark.usefixtures("hip_compiler")]

KERNEL = '#include "size.h"\n__global__ void k(float *p) { p[threadIdx.x] = SIZE; }\n'


def _instructions(assembly: str) -> list[str]:
    return re.findall(r"^\t([a-z]\w+)", assembly, re.MULTILINE)


def test_a_kernel_has_its_parameters_lines_and_code() -> None:
    (code,) = load(DATA / "saxpy.hip", "gfx942")
    assert (code.kernel, code.target, code.origin) == ("saxpy", "gfx942", "hip")
    assert [(p.name, p.type, p.offset, p.size) for p in code.parameters] == [
        ("a", "float", 0, 4),
        ("x", "float*", 8, 8),
        ("y", "float*", 16, 8),
        ("n", "int", 24, 4),
    ]
    assert code.source_line == 4
    assert "clang" in code.compiler
    assert "global_load_dword" in code.assembly
    descriptor = descriptors_from_assembly(code.assembly)["saxpy"]
    assert descriptor.max_workgroup_size == 256


def test_code_of_the_headers_counts_for_the_user_s_lines() -> None:
    (code,) = load(DATA / "saxpy.hip", "gfx942")
    files = re.findall(r"\.file\s+\d+ \"[^\"]*\" \"([^\"]*)\"", code.assembly)
    assert {Path(file).name for file in files} == {"saxpy.hip"}
    lines = {int(line) for line in re.findall(r"\.loc\s+\d+ (\d+)", code.assembly)}
    assert lines <= {0, 4, 5, 6}


@pytest.mark.parametrize("target", swept(TARGETS))
def test_an_ordinary_program_compiles_unchanged(target: str) -> None:
    codes = load(DATA / "program.hip", target)
    names = [code.kernel for code in codes]
    assert len(names) == 5
    for expected in ("ILi256Ef", "ILi128Ef", "4math", "12small_floats", "5lanes"):
        assert any(expected in name for name in names), names
    assert all(parameter.name for code in codes for parameter in code.parameters)


@pytest.mark.parametrize(
    ("target", "instruction"),
    [
        ("gfx908", "v_mfma_f32_16x16x16f16"),
        ("gfx90a", "v_mfma_f32_16x16x16f16"),
        ("gfx942", "v_mfma_f32_16x16x16_f16"),
        ("gfx950", "v_mfma_f32_16x16x16_f16"),
        ("gfx1100", "v_wmma_f32_16x16x16_f16"),
        ("gfx1151", "v_wmma_f32_16x16x16_f16"),
        ("gfx1201", "v_wmma_f32_16x16x16_f16"),
        ("gfx1250", "v_wmma_f32_16x16x32_f16"),
    ],
)
def test_matrix_builtins(target: str, instruction: str) -> None:
    (code,) = load(DATA / "matrix.hip", target)
    assert instruction in _instructions(code.assembly)


def test_launch_bounds_reach_the_descriptor() -> None:
    text = "__global__ void __launch_bounds__(64, 2) k(int *p) { *p = 1; }"
    (code,) = hip.compile(text, "gfx942")
    assert descriptors_from_assembly(code.assembly)[code.kernel].max_workgroup_size == 64


def test_dynamic_and_static_shared_memory() -> None:
    text = """
    __global__ void k(float *p) {
        HIP_DYNAMIC_SHARED(float, dynamic)
        __shared__ float fixed[128];
        fixed[threadIdx.x] = p[threadIdx.x];
        dynamic[threadIdx.x] = p[threadIdx.x + 1];
        __syncthreads();
        p[threadIdx.x] = fixed[threadIdx.x ^ 1] + dynamic[threadIdx.x ^ 2];
    }"""
    (code,) = hip.compile(text, "gfx942")
    assert descriptors_from_assembly(code.assembly)[code.kernel].lds_bytes == 512
    assert "s_barrier" in _instructions(code.assembly)


def test_unsafe_atomics_are_one_instruction() -> None:
    text = "__global__ void k(float *p, float x) { %s(p, x); }"
    (unsafe,) = hip.compile(text % "unsafeAtomicAdd", "gfx90a")
    assert "global_atomic_add_f32" in _instructions(unsafe.assembly)
    (safe,) = hip.compile(text % "atomicAdd", "gfx90a")
    assert "global_atomic_cmpswap" in _instructions(safe.assembly)


@pytest.mark.parametrize(
    ("target", "type_name", "native"),
    [
        ("gfx942", "__hip_fp8_e4m3_fnuz", True),
        ("gfx942", "__hip_fp8_e4m3", False),
        ("gfx950", "__hip_fp8_e4m3", True),
        ("gfx950", "__hip_fp8_e5m2", True),
        ("gfx1201", "__hip_fp8_e4m3", True),
        ("gfx1100", "__hip_fp8_e4m3", False),
    ],
)
def test_fp8_conversions_are_emulated_only_where_they_must_be(
    target: str, type_name: str, native: bool
) -> None:
    text = f"""
    #include <hip/hip_fp8.h>
    __global__ void k({type_name} *p, float x) {{ p[threadIdx.x] = {type_name}(x); }}"""
    (code,) = hip.compile(text, target)
    converts = any("cvt_pk_fp8" in i or "cvt_pk_bf8" in i for i in _instructions(code.assembly))
    assert converts is native


def test_wave64_on_rdna() -> None:
    text = "__global__ void k(int *p) { p[threadIdx.x] = warpSize + __popcll(__ballot(*p)); }"
    (code,) = hip.compile(text, "gfx1100", ["-mwavefrontsize64"])
    assert descriptors_from_assembly(code.assembly)[code.kernel].wave_size == 64
    (narrow,) = hip.compile(text, "gfx1100")
    assert descriptors_from_assembly(narrow.assembly)[narrow.kernel].wave_size == 32


def test_code_for_wave64_on_rdna_is_linked() -> None:
    text = "__global__ void k(float *p) { p[threadIdx.x] = __shfl_xor(1.0f * threadIdx.x, 32); }"
    (code,) = hip.compile(text, "gfx1100", ["-mwavefrontsize64"], program=True)
    binary = code.stages["hsaco"]
    assert isinstance(binary, bytes)
    assert elf.machine(binary) == elf.MACHINE_AMDGPU


def test_constants_of_math_need_no_header() -> None:
    uses = "p[0] = NAN; p[1] = INFINITY; p[2] = HUGE_VALF; p[3] = M_PI;"
    alone = f"__global__ void k(float *p) {{ {uses} }}"
    (code,) = hip.compile(alone, "gfx942")
    for pattern in ("0x7fc00000", "0x7f800000", "0x40490fdb"):
        assert pattern in code.assembly
    (code,) = hip.compile(f"#include <math.h>\n{alone}", "gfx942", ["-Werror"])
    assert "0x40490fdb" in code.assembly


def test_every_header_of_hip_compiles_with_the_others() -> None:
    folder = toolchain.INCLUDE / "hip"
    names = sorted(path.relative_to(folder.parent) for path in folder.rglob("*.h"))
    assert Path("hip/amd_detail/amd_hip_runtime.h") in names
    lines = "".join(f"#include <{name}>\n" for name in names)
    (code,) = hip.compile(f"{lines}__global__ void k(int *p) {{ *p = warpSize; }}\n", "gfx942")
    assert code.kernel


STANDARD = """#include <hip/hip_runtime.h>
__global__ void widen(const std::uint8_t *in, float *out) {
    auto pair = std::make_pair(threadIdx.x, 2u);
    out[pair.first] = std::fmaf(in[pair.first], 1.0f, pair.second) + std::exp(0.0f);
}
"""


@pytest.mark.parametrize("target", swept(("gfx942", "gfx1201")))
def test_standard_headers_that_hip_runtime_includes(target: str) -> None:
    (code,) = hip.compile(STANDARD, target)
    assert "v_cvt_f32_ubyte0" in code.assembly
    assert "WAVECAST_STD" not in str(code.options)


def test_flags_reach_the_compiler() -> None:
    text = "__global__ void k(int *p) { *p = VALUE; }"
    (code,) = hip.compile(text, "gfx942", ["-DVALUE=1234", "-O1"])
    assert "0x4d2" in code.assembly
    assert code.options == {"flags": "-DVALUE=1234 -O1"}
    with pytest.raises(UsageError, match="--offload-arch"):
        hip.compile(text, "gfx942", ["--offload-arch=gfx90a"])


def test_a_compile_error_names_its_line() -> None:
    text = "#include <hip/hip_runtime.h>\n\n__global__ void k(int *p) { *p = missing; }\n"
    with pytest.raises(
        CompileError, match=r"^broken\.hip:3: use of undeclared .*missing"
    ) as caught:
        hip.compile(text, "gfx942", name="broken.hip")
    assert "missing" in caught.value.log
    assert "\n" not in str(caught.value)
    assert "/tmp" not in str(caught.value)


def test_a_library_that_only_rocm_has(hip_compiler: toolchain.Toolchain) -> None:
    if not hip_compiler.own_headers:
        pytest.skip("ROCm's own compiler is here")
    text = "#include <migraphx/migraphx.hpp>\n__global__ void k() {}\n"
    with pytest.raises(CompileError, match=r"migraphx.*file not found.*docs/hip\.md"):
        hip.compile(text, "gfx942")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("#include <mpi.h>", "'mpi.h' file not found"),
        ("__global__ void k(hipTextureObject_t) {}", "textures and surfaces are not supported"),
    ],
)
def test_what_a_program_cannot_have_is_one_line(
    hip_compiler: toolchain.Toolchain, line: str, message: str
) -> None:
    if not hip_compiler.own_headers:
        pytest.skip("ROCm's own compiler is here")
    with pytest.raises(CompileError) as refused:
        hip.compile(f"\n{line}\n", "gfx942", name="program.hip")
    assert str(refused.value).startswith("program.hip:2: ")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_source_without_a_kernel() -> None:
    with pytest.raises(InputError, match="no __global__ function"):
        hip.compile("int main() { return 0; }", "gfx942")


GENERATED = """
typedef long unsigned int size_t;
#define INFINITY (__builtin_inff())
extern "C" __attribute__((device, const)) size_t __ockl_get_local_id(unsigned int);
extern "C" __attribute__((device, const)) size_t __ockl_get_group_id(unsigned int);
extern "C" __attribute__((device, const)) size_t __ockl_get_local_size(unsigned int);
typedef float float4 __attribute__((ext_vector_type(4)));
static inline __attribute__((device)) float4 make_float4(float x, float y, float z, float w) {
    return { x, y, z, w };
}
extern "C" __attribute__((global)) void __attribute__((amdgpu_flat_work_group_size(1, 32)))
place(float4* data0, int by) {
    int at = __ockl_get_group_id(0) * __ockl_get_local_size(0) + __ockl_get_local_id(0);
    *(data0 + at) = make_float4(at * by, INFINITY, __ockl_get_group_id(0), 0.0f);
}
"""
"""HIP as tinygrad writes it, with names of its own that HIP's headers have too."""


@pytest.mark.parametrize("target", swept(["gfx942", "gfx1201"]))
def test_source_of_other_compilers_needs_no_header(target: str) -> None:
    (code,) = hip.compile(GENERATED, target, ("-std=c++14",), name="place.hip", generated=True)
    assert [(p.name, p.type) for p in code.parameters][:2] == [("data0", "float4*"), ("by", "int")]
    data = np.zeros((64, 4), np.float32)
    wavecast.load([code])["place"](2, 32, data, np.int32(3))
    assert np.array_equal(data[:, 0], 3.0 * np.arange(64))
    assert np.isinf(data[:, 1]).all()
    assert np.array_equal(data[:, 2], np.arange(64) // 32)


def test_an_unknown_target_is_named() -> None:
    with pytest.raises(UnknownName, match="gfx9999"):
        hip.compile("__global__ void k() {}", "gfx9999")


def test_a_changed_header_compiles_again(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, header = tmp_path / "k.hip", tmp_path / "size.h"
    source.write_text(KERNEL)
    header.write_text("#define SIZE 4660\n")
    (first,) = load(source, "gfx942")
    monkeypatch.setattr(hip, "_run", lambda *_: pytest.fail("should have come from the cache"))
    assert load(source, "gfx942") == [first]
    assert (own_cache / "hip").is_dir()
    monkeypatch.undo()
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(own_cache))
    header.write_text("#define SIZE 8192\n")
    (second,) = load(source, "gfx942")
    assert first.assembly != second.assembly


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(toolchain, "_zig_program", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    with pytest.raises(MissingTool, match="ziglang"):
        toolchain.find()
    monkeypatch.setenv("WAVECAST_HIPCC", "no-such-hipcc")
    with pytest.raises(MissingTool, match="no-such-hipcc"):
        toolchain.find()


def test_the_same_source_gives_the_same_code(tmp_path: Path, hip_compiler) -> None:
    first, second = (
        hip.compile_file(DATA / "saxpy.hip", "gfx942", cache=DiskCache(tmp_path / name))[0]
        for name in "ab"
    )
    assert first.digest == second.digest
    assert first.stages == second.stages


def test_headers_of_every_release_of_libcxx_get_their_definitions() -> None:
    """libc++ 19 (zig 0.14) tests for a name whose absence libc++ 20 tests for."""
    zig = toolchain._zig_program()
    if zig is None:
        pytest.skip("ziglang is not installed")
    arguments = toolchain._zig(zig).arguments
    defined = {one[2:].partition("=")[0] for one in arguments if one.startswith("-D")}
    assert {
        "_LIBCPP_HAS_NO_VENDOR_AVAILABILITY_ANNOTATIONS",
        "_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS",
    } <= defined


def test_overloads_for_vectors_do_not_take_numbers() -> None:
    """A program's own shuffle of vectors, called for their elements, as HIP resolves it."""
    text = """
#include <hip/hip_fp8.h>
__device__ float4 __shfl_down(const float4 v, const unsigned d, const unsigned width = 32) {
    return make_float4(__shfl_down(v.x, d, width), __shfl_down(v.y, d, width),
                       __shfl_down(v.z, d, width), __shfl_down(v.w, d, width));
}
__global__ void k(float4 *p, __hip_bfloat162 *b) {
    p[threadIdx.x] += __shfl_down(p[threadIdx.x], 1) * 2;
    b[threadIdx.x] = __hip_bfloat162{__float2bfloat16(1), __float2bfloat16(2)};
}
"""
    (code,) = hip.compile(text, "gfx942")
    assert code.assembly.count("ds_bpermute_b32") == 4


def test_shuffles_move_what_only_some_lanes_have_set() -> None:
    """The condition stays, though an unset argument of another function says that all lanes meet
    it; ROCm's headers mark the argument too."""
    text = """
#include <hip/hip_runtime.h>
__global__ void k(int *counter, int *out) {
    int first;
    if (threadIdx.x % 64 == 0) first = atomicAdd(counter, 64);
    out[threadIdx.x] = __shfl(first, 0);
}
"""
    (code,) = hip.compile(text, "gfx942")
    assert "br i1" in str(code.stages["llir"])
