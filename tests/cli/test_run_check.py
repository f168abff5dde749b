"""`wavecast run --check`: formats, exit codes, and where reports go."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast
from tests.cli.test_main import call
from tests.documents.support import validated
from tests.warm_python import run_python
from wavecast.emulate.errors import ExecutionError

PLANTED = Path(__file__).parents[1] / "emulate/check/planted.hip"
ARGUMENTS = ("--grid", "1", "--block", "256", "--arg", "out=f32[256]:zeros")
SCRIPT = """
import torch, triton, triton.language as tl

@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)

x = torch.empty(1000, device="cuda")
x[:600] = 1.0
y = torch.empty(1000, device="cuda")
copy[(8,)](x, y, 1000, BLOCK=128)
"""


def run(capsys, kernel: str, *options: str) -> tuple[int, str, str]:
    given = ("--kernel", kernel, *ARGUMENTS, "--arg", "in=f32[256]:arange")
    return call(capsys, "run", str(PLANTED), *given, *options)


def line_of(text: str) -> int:
    lines = PLANTED.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


RACE = line_of("place[0] = in[threadIdx.x]")


@pytest.mark.hip
def test_a_clean_kernel_says_so(capsys):
    code, _, err = run(capsys, "rotate", "--check")
    assert (code, err) == (0, "check: nothing found\n")


ASSEMBLY = """\
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.text
	.globl same_wave
	.p2align 8
	.type same_wave,@function
same_wave:
	s_load_dwordx2 s[2:3], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	ds_write_b32 v1, v0
	ds_read_b32 v2, v1
	v_and_b32_e32 v3, 1, v2
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[2:3]
	s_endpgm
.Lend:
	.size same_wave, .Lend-same_wave
	.rodata
	.p2align 6
	.amdhsa_kernel same_wave
		.amdhsa_group_segment_fixed_size 256
		.amdhsa_kernarg_size 8
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 4
		.amdhsa_next_free_sgpr 8
		.amdhsa_accum_offset 4
	.end_amdhsa_kernel
"""


def test_assembly_is_its_own_source(capsys, tmp_path):
    path = tmp_path / "same_wave.s"
    path.write_text(ASSEMBLY)
    launch = ("--grid", "1", "--block", "64", "--arg", "@0=f32[64]")
    code, _, err = call(capsys, "run", str(path), *launch, "--check")
    assert code == 1, err
    assert "error[missing-wait] v_and_b32_e32 v3, 1, v2 reads v2 before" in err
    assert f"{path}:11 in same_wave" in err
    assert "11 │ v_and_b32_e32 v3, 1, v2" in err


def test_a_run_that_cannot_start_says_nothing_of_checks(capsys, tmp_path):
    path = tmp_path / "script.py"
    path.write_text("")
    code, out, err = call(capsys, "run", str(path), "--arch", "gfx9999", "--check")
    assert (code, out) == (2, "")
    assert "unknown target 'gfx9999'" in err
    assert "nothing found" not in err


@pytest.mark.hip
def test_an_error_is_shown_with_its_line_and_fails_the_run(capsys):
    code, _, err = run(capsys, "two_waves_one_place", "--check")
    assert code == 1
    assert "error[lds-race]" in err
    assert "overwrites what wave 0 wrote at LDS byte 0x0" in err
    assert f"{RACE} │ if (threadIdx.x % 64 == 0) place[0] = in[threadIdx.x];" in err
    assert err.endswith("check: 1 error\n")


ZEROS = """
#include <hip/hip_runtime.h>
extern "C" __global__ void last_wave(const float *x, float *y) {
  __shared__ float place[64];
  int i = threadIdx.x;
  if (i < 64) place[i] = 0;
  __syncthreads();
  place[i % 64] = x[i];
  __syncthreads();
  if (i < 64) y[i] = place[i];
}
"""


@pytest.mark.hip
def test_a_race_of_zeros_is_not_seen_and_a_note_says_so(capsys, tmp_path):
    path = tmp_path / "zeros.hip"
    path.write_text(ZEROS)
    launch = ("run", str(path), "--grid", "1", "--block", "256", "--arg", "y=f32[64]")
    code, _, err = call(capsys, *launch, "--arg", "x=f32[256]", "--check")
    note = (
        "wavecast: x, y are zeros: races whose stores change nothing are not found; give contents "
        "such as x=f32[4096]:random(1)"
    )
    assert (code, err.splitlines()) == (0, ["check: nothing found", note])
    assert call(capsys, *launch, "--arg", "x=f32[256]")[2] == ""
    code, _, err = call(capsys, *launch, "--arg", "x=f32[256]:random(1)", "--check")
    assert code == 1
    assert "error[lds-race]" in err
    assert "are zeros" not in err


@pytest.mark.hip
def test_an_access_out_of_bounds_is_shown_once(capsys):
    far = ("--arg", f"far={1 << 20}")
    code, _, err = run(capsys, "beyond_its_tensor", "--check", *far)
    assert code == 1
    assert "error[out-of-bounds]" in err
    assert err.count("in[1048576]") == err.count("touches") == 1
    ended = "beyond_its_tensor: the launch ended at the access out of bounds that is reported"
    assert err.splitlines()[-2:] == ["check: 1 error", f"wavecast: {ended}"]
    ignored = ("--check", "--check-ignore", "out-of-bounds", *far)
    for options in ((*far,), ignored):
        code, _, err = run(capsys, "beyond_its_tensor", *options)
        assert (code, err.count("in[1048576]")) == (1, 1)


@pytest.mark.hip
def test_json_names_everything(capsys, tmp_path):
    file = tmp_path / "out.json"
    options = ("--check", "--check-format", "json", "--check-output", str(file))
    assert run(capsys, "two_waves_one_place", *options)[0] == 1
    document = validated(json.loads(file.read_text()), "wavecast.check/1")
    assert document["schema"] == "wavecast.check/1"
    (report,) = document["reports"]
    assert report["kind"] == "lds-race"
    assert report["kernel"] == "two_waves_one_place"
    assert report["location"]["line"] == report["other"]["location"]["line"] == RACE
    assert (report["workgroup"], report["wave"], report["lanes"]) == ([0, 0, 0], 1, [0])


@pytest.mark.hip
def test_python_has_the_document_of_the_command(capsys):
    options = ("--check", "--check-format", "json")
    code, out, _ = run(capsys, "two_waves_one_place", *options)
    ran = wavecast.run(
        PLANTED,
        kernel="two_waves_one_place",
        grid=1,
        block=256,
        arguments=["out=f32[256]:zeros", "in=f32[256]:arange"],
        check=True,
    )
    assert ran.checks is not None
    assert json.loads(out[out.index("{") :]) == ran.checks.to_dict()
    assert code == ran.exit_code() == 1


@pytest.mark.hip
def test_an_error_has_the_checks_until_then():
    arguments = ["out=f32[256]:zeros", "in=f32[256]:arange", f"far={1 << 20}"]
    with pytest.raises(ExecutionError, match="that is reported") as caught:
        wavecast.run(
            PLANTED,
            kernel="beyond_its_tensor",
            grid=1,
            block=256,
            arguments=arguments,
            check=True,
        )
    (report,) = caught.value.partial.checks.reports
    assert report.kind.rule == "out-of-bounds"


@pytest.mark.hip
def test_sarif_goes_to_a_file(capsys, tmp_path):
    file = tmp_path / "out.sarif"
    options = ("--check", "--check-format", "sarif", "--check-output", str(file))
    run(capsys, "two_waves_one_place", *options)
    (log,) = json.loads(file.read_text())["runs"]
    assert [rule["id"] for rule in log["tool"]["driver"]["rules"]] == ["lds-race"]
    (result,) = log["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == RACE


@pytest.mark.hip
def test_annotations_of_a_code_host(capsys):
    _, out, _ = run(capsys, "two_waves_one_place", "--check", "--check-format", "github")
    annotation = next(line for line in out.splitlines() if line.startswith("::error file="))
    assert f",line={RACE},title=wavecast lds-race::two_waves_one_place (gfx942): " in annotation


@pytest.mark.hip
def test_an_ignored_kind_fails_nothing(capsys):
    code, _, err = run(capsys, "two_waves_one_place", "--check", "--check-ignore", "lds-race")
    assert (code, err) == (0, "check: nothing found\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--check-format", "json"], "--check-format belongs to --check"),
        (["--check", "--check-ignore", "races"], "unknown check 'races'"),
        (["--check", "--check-output", "/nowhere/at/all"], "cannot write"),
    ],
)
def test_bad_options(capsys, options, message):
    code, _, err = run(capsys, "rotate", *options)
    assert code == 2
    assert message in err


@pytest.mark.torch
def test_memory_a_script_never_wrote(tmp_path):
    pytest.importorskip("triton")
    path = tmp_path / "copy.py"
    path.write_text(SCRIPT)
    # Triton's cache keeps the paths of the first file with this text
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    ended = run_python("-m", "wavecast", "run", path, "--check", environment=environment)
    assert ended.returncode == 1
    assert "error[uninitialised-global]" in ended.stderr
    assert "memory never written at x[600]" in ended.stderr
    assert "7 │ tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)" in ended.stderr


@pytest.mark.torch
def test_a_script_that_fails_was_checked_until_then(tmp_path):
    pytest.importorskip("triton")
    path = tmp_path / "copy.py"
    path.write_text(SCRIPT.replace("x[:600] = 1.0", "x[:] = 1.0") + "raise SystemExit(5)\n")
    ended = run_python("-m", "wavecast", "run", path, "--check")
    assert ended.returncode == 5
    assert "check: nothing found before it ended with exit code 5" in ended.stderr


@pytest.mark.torch
def test_a_target_that_triton_lacks(tmp_path):
    pytest.importorskip("triton")
    path = tmp_path / "copy.py"
    path.write_text(SCRIPT)
    ended = run_python("-m", "wavecast", "run", path, "--arch", "gfx1030")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("wavecast: Triton has no target gfx1030 (HIP programs run there")


@pytest.mark.torch
def test_a_script_without_launches_was_not_checked(tmp_path):
    pytest.importorskip("triton")
    path = tmp_path / "nothing.py"
    path.write_text("print(1)")
    for options, code in (((), 0), (("--check",), 3)):
        ended = run_python("-m", "wavecast", "run", path, *options)
        assert ended.returncode == code
        assert "launched no kernel" in ended.stderr
        assert "nothing found" not in ended.stderr


@pytest.mark.hip
@pytest.mark.parametrize("word", ["determinism", "--check-determinism"])
def test_determinism_is_asked_for_by_a_word_or_an_option(capsys, word):
    source = PLANTED.with_name("order.hip")
    given = ("--kernel", "last_wins", "--grid", "4", "--block", "64", "--arg", "out=i32[4]:zeros")
    code, _, err = call(capsys, "run", "--check", word, str(source), *given)
    assert code == 1
    assert "error[order-dependent]" in err
    assert "makes out[2] 3 or 0" in err
