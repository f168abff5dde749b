"""HIP files and assembly in the laboratory: their launch is stated, and no script captures it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import wavecast.lab
from tests.libraries.launching import OBJECTS, needs_objects
from wavecast import compile as compilers
from wavecast.api.lab_schedule import schedule
from wavecast.api.lab_tune import tune
from wavecast.cli.lab import command
from wavecast.compile import hip, toolchain
from wavecast.errors import CompileError, MissingTool, NothingAnalysed, UsageError
from wavecast.lab import search as search_module
from wavecast.lab.axes import applicable, axes
from wavecast.lab.scheduling import patch_text
from wavecast.lab.setting import Setting

pytestmark = pytest.mark.hip

SOURCE = """
#include <hip/hip_runtime.h>
constexpr int T = 16;
__global__ void product(const float* __restrict__ a, const float* __restrict__ b,
                        float* __restrict__ c, int n, int k) {
  __shared__ float as[2 * T][T + 1], bs[T][2 * T];
  float acc[2][2] = {};
  int tx = threadIdx.x % T, ty = threadIdx.x / T;
  int row = blockIdx.y * 2 * T, col = blockIdx.x * 2 * T;
  for (int s = 0; s < k; s += T) {
    for (int i = 0; i < 2; i++) {
      as[ty + i * T][tx] = a[(row + ty + i * T) * k + s + tx];
      bs[ty][tx + i * T] = b[(s + ty) * n + col + tx + i * T];
    }
    __syncthreads();
    for (int l = 0; l < T; l++)
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) acc[i][j] += as[ty + i * T][l] * bs[l][tx + j * T];
    __syncthreads();
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) c[(row + ty + i * T) * n + col + tx + j * T] = acc[i][j];
}
"""
"""C = A·B in tiles of 32 x 32 of a workgroup of 256."""
LAUNCH = (
    *("--grid", "2,2", "--block", "256", "--arg", "a=f32[64x64]:random(1)"),
    *("--arg", "b=f32[64x64]:random(2)", "--arg", "c=f32[64x64]", "--arg", "n=64", "--arg", "k=64"),
)
STATED = {
    "grid": (2, 2),
    "block": 256,
    "arguments": [word for word in LAUNCH if "=" in word],
}
"""The same launch, from Python."""
NUMBERS = {"a": 1, "b": 2, "c": 3, "n": 4, "k": 5}
"""Assembly does not name arguments."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    try:
        toolchain.find("gfx942")
    except MissingTool as error:
        pytest.skip(str(error))
    path = tmp_path / "product.hip"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize("target", ["gfx1100", pytest.param("gfx942", marks=pytest.mark.thorough)])
def test_hip_and_its_assembly_are_scheduled(source: Path, target: str, tmp_path: Path) -> None:
    """The new code of a HIP file is verified; as assembly, it can be scheduled again."""
    folder = tmp_path / "made"
    options = ["--arch", target, "--work", "1", "--format", "json"]
    given = ["schedule", str(source), *LAUNCH, *options, "--assembly", str(folder)]
    done = CliRunner().invoke(command, given, catch_exceptions=False)
    (found,) = json.loads(done.stdout)["kernels"]
    assert found["wrong"] == ""
    assert found["after"] is not None, "a faster order was found and verified"
    assert {"seed 1", "k=1"} <= set(found["cases"])
    (made,) = folder.iterdir()
    launch = [
        f"{NUMBERS[word.partition('=')[0]]}={word.partition('=')[2]}"
        if word.partition("=")[0] in NUMBERS
        else word
        for word in LAUNCH
    ]
    again = CliRunner().invoke(
        command, ["schedule", str(made), *launch, *options], catch_exceptions=False
    )
    (found,) = json.loads(again.stdout)["kernels"]
    assert found["wrong"] == ""
    report = schedule(source, arch=target, work=1, **STATED)
    assert report.to_dict() == json.loads(done.stdout)
    assert report.exit_code() == 0


@needs_objects
def test_library_object_is_scheduled(tmp_path: Path) -> None:
    """The disassembly of a code object assembles again: its new order is executed and verified, and
    survives as a patch."""
    try:
        toolchain.find("gfx1100")
    except MissingTool as error:
        pytest.skip(str(error))
    path = OBJECTS / "ggml_conv2d_1_gfx1100.co"
    sizes = [19, 17, 10, 17, 3, 3, 2, 1, 1, 2, 1, 2, 3, 2]
    arrays = ["1=f32[1938]:random(1)", "2=f32[27]:random(2)", "3=f32[4000]"]
    report = schedule(
        path,
        kernels="kernelIf11whcn",
        grid=(8,),
        block=256,
        arguments=[*arrays, *(f"{number}=i32:{size}" for number, size in enumerate(sizes, 4))],
        work=1,
        patch=tmp_path,
    )
    ((_, found),) = report.run.results
    assert found.wrong == ""
    assert found.saved > 0
    assert found.execution is not None
    assert found.execution.same
    (before,) = tmp_path.glob("*.s")
    assert before.read_text() == found.original
    (patch,) = tmp_path.glob("*.patch")
    assert patch.read_text() == patch_text(found, before.name)


@needs_objects
def test_code_that_ends_in_zeros_assembles() -> None:
    """rocBLAS's functions are filled with zeros, which are no instruction that LLVM assembles."""
    file = "rocblas_TensileLibrary_Type_HH_HPA_Fp16AltRnz_Fp16Alt_Contraction_l_Alik_Bjlk_Cijk_Dijk"
    code, *_ = compilers.load(OBJECTS / f"{file}_gfx90a.co", kernels="MT64x64x64")
    assert ".long 0x0" in code.assembly
    try:
        assert hip.assemble_program(code.assembly, code.target)
    except MissingTool as error:
        pytest.skip(str(error))


def test_settings_of_hip_are_options_of_its_compiler(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [(axes()["unroll-loops"], False), (axes()["disable-lsr"], True)]
    monkeypatch.setattr(search_module, "applicable", lambda _: iter(few))
    monkeypatch.setattr(search_module, "WORTH", -1.0)
    monkeypatch.setattr(search_module, "LEAST", -1.0)
    saved = tmp_path / "settings.json"
    given = ["tune", str(source), *LAUNCH, "--jobs", "1", "--verify", "3", "-o", str(saved)]
    done = CliRunner().invoke(command, [*given, "--format", "json"], catch_exceptions=False)
    (entry,) = json.loads(done.stdout)["entries"]
    rows = {json.dumps(row["setting"]): row for row in entry["rows"]}
    assert len(rows) >= 2
    assert all(row["figures"] is not None for row in rows.values())
    assert [row["status"] for row in rows.values()].count("same") >= 1
    assert saved.exists()
    told = CliRunner().invoke(command, [*given[:-2], "-o", str(tmp_path / "other.json")])
    assert "product on mi300x" in told.stdout, "the name of the settings is no format"
    report = tune(source, jobs=1, verify=3, **STATED)
    assert report.to_dict() == json.loads(done.stdout)
    assert report.exit_code() == 0
    for one in wavecast.lab.load(saved).entries:
        assert one.words
        assert not one.environment


def test_which_decisions_hip_has(source: Path) -> None:
    from dataclasses import replace

    from wavecast.compile import hip

    (code,) = hip.compile_file(source, "gfx942")
    launched = replace(code, workgroup_size=256)
    found = [(axis.name, value) for axis, value in applicable(launched)]
    assert ("max-threads", 256) in found
    assert ("max-threads", 128) not in found, "the launch has more threads"
    names = {name for name, _ in found}
    assert {"disable-lsr", "amdgpu-sched-strategy"} <= names
    assert not names & {"num_stages", "AMDGCN_USE_BUFFER_OPS", "cumode", "iglp_opt"}
    setting = Setting.of({"max-threads": 256, "disable-lsr": True})
    assert setting.words == ("-mllvm", "-disable-lsr", "--gpu-max-threads-per-block=256")


def test_what_is_refused(source: Path, tmp_path: Path) -> None:
    told = CliRunner().invoke(command, ["tune", str(source)])
    assert isinstance(told.exception, UsageError)
    assert "--grid and --block and --arg NAME=VALUE are missing" in str(told.exception)
    given = ["schedule", str(source), "--grid", "2,2", "--block", "256"]
    told = CliRunner().invoke(command, given)
    assert "by executing one: --arg NAME=VALUE is missing" in str(told.exception)
    told = CliRunner().invoke(command, [*given, "-k", "nothing"])
    assert isinstance(told.exception, NothingAnalysed)
    assert "no kernel matches 'nothing' (it has product" in str(told.exception)
    told = CliRunner().invoke(command, ["schedule", str(tmp_path / "none.co"), *LAUNCH])
    assert "no such file" in str(told.exception)
    ptx = tmp_path / "dot.ptx"
    ptx.write_text(".version 8.0\n.target sm_90\n.visible .entry k() { ret; }\n")
    told = CliRunner().invoke(command, ["tune", str(ptx), *LAUNCH])
    assert isinstance(told.exception, UsageError)
    assert "dot.ptx is PTX: only AMD code is searched" in str(told.exception)
    told = CliRunner().invoke(command, ["schedule", "script.py", "--grid", "4"])
    assert isinstance(told.exception, UsageError)
    assert "makes its own launches" in str(told.exception)


PLAIN = """	.text
	.globl plain
	.p2align 8
	.type plain,@function
plain:
	v_mov_b32_e32 v1, 0
	s_mov_b32 s4, 0
loop:
	v_exp_f32_e32 v2, v1
	v_exp_f32_e32 v3, v2
	v_add_f32_e32 v1, 1.0, v1
	s_add_i32 s4, s4, 1
	s_cmp_lt_u32 s4, 64
	s_cbranch_scc1 loop
	s_endpgm
.Lend:
	.size plain, .Lend-plain
	.rodata
	.amdhsa_kernel plain
		.amdhsa_next_free_vgpr 8
		.amdhsa_next_free_sgpr 16
		.amdhsa_accum_offset 8
{}	.end_amdhsa_kernel
"""


def test_a_kernel_without_arguments_is_scheduled(tmp_path: Path) -> None:
    assembly = tmp_path / "plain.s"
    assembly.write_text(PLAIN.format(""))
    report = schedule(assembly, arch=("gfx942",), grid=1, block=64, work=1)
    ((problem, _),) = report.run.results
    assert problem.kernel == "plain"
    with pytest.raises(UsageError, match="--grid is missing"):
        schedule(assembly, arch=("gfx942",), block=64)
    assembly.write_text(PLAIN.format("\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1\n"))
    with pytest.raises(UsageError, match="--arg NAME=VALUE is missing"):
        schedule(assembly, arch=("gfx942",), grid=1, block=64)


def test_kernels_that_the_arguments_do_not_fit(source: Path) -> None:
    text = source.read_text() + "\n__global__ void other(float* x) { *x = 1; }\n"
    source.write_text(text)
    result = CliRunner().invoke(
        command, ["schedule", str(source), "-a", "gfx942", *LAUNCH, "--work", "1", "-f", "json"]
    )
    (message,) = json.loads(result.stdout)["failures"]
    assert "unknown argument of other" in message
    assert "-k REGEX chooses one of 2 kernels" in message


def test_a_refused_setting_says_why(source: Path) -> None:
    """An option that the compiler's LLVM has not."""
    (code,) = [one for one in compilers.load(source, "gfx942") if "product" in one.kernel]
    with pytest.raises(CompileError, match="has no option -no-such-thing of LLVM"):
        hip.recompile(code, ("-mllvm", "-no-such-thing"))


def test_launches_that_cannot_run_are_no_wrong_orders(source: Path) -> None:
    short = [word.replace("f32[64x64]:random(1)", "f32[8]") for word in STATED["arguments"]]
    with pytest.raises(NothingAnalysed) as refused:
        schedule(source, arch="gfx942", work=1, **{**STATED, "arguments": short})
    assert "product on mi300x: the launch as it is cannot run" in refused.value.hint
    assert "outside a" in refused.value.hint


def test_lds_that_a_launch_must_add_is_asked_for(source: Path) -> None:
    source.write_text(
        "#include <hip/hip_runtime.h>\n"
        "__global__ void twice(float* x, int n) {\n"
        "  extern __shared__ float part[];\n"
        "  for (int i = 0; i < n; i++) part[threadIdx.x] += x[i * 64 + threadIdx.x];\n"
        "  x[threadIdx.x] = part[threadIdx.x ^ 1];\n}\n"
    )
    stated = {"grid": 1, "block": 64, "arguments": ["x=f32[640]", "n=10"], "work": 1}
    with pytest.raises(NothingAnalysed) as refused:
        schedule(source, arch="gfx942", **stated)
    assert "accesses LDS and declares none, which a launch must add (--lds" in refused.value.hint
    ((_, found),) = schedule(source, arch="gfx942", lds=256, **stated).run.results
    assert found.loops


@needs_objects
def test_objects_with_data_are_refused_at_once() -> None:
    path = OBJECTS / "cupy_rng_1_gfx942.co"
    stated = {"grid": 1, "block": 64, "arguments": ["1=u8[65536]", "2=i64:64", "3=i64:64"]}
    with pytest.raises(NothingAnalysed) as refused:
        schedule(path, kernels="init_curandI19curand_pseudo_stateI12hip", work=1, **stated)
    assert "it uses data of its object" in refused.value.hint
