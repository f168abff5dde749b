"""A HIP program, built here and run natively with its launches on the emulator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wavecast.cli.main import run as run_command
from wavecast.compile import hip
from wavecast.compile.toolchain import find
from wavecast.errors import MissingTool
from wavecast.pipeline import hip_programs

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).parent / "features.hip"
CUDA = Path(__file__).parents[2] / "compile" / "data" / "warps.cu"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program for gfx942."""
    try:
        find("gfx942")
    except MissingTool as error:
        pytest.skip(str(error))
    made = tmp_path_factory.mktemp("hip") / "features"
    hip_programs.build(SOURCE, "gfx942", made)
    return made


def ran(
    program: Path, capfd: pytest.CaptureFixture[str], name: str, *options: str, argument: str = ""
) -> tuple[int, str, str]:
    """Exit code and output of `wavecast run` for one part of the program."""
    with pytest.raises(SystemExit) as ended:
        run_command(["run", str(program), "--threads", "1", *options, "--", name, argument])
    out, err = capfd.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


@pytest.mark.parametrize(
    "name", ["memory", "copies", "symbols", "streams", "launches", "device_functions"]
)
def test_a_part_of_the_api_does_what_hip_does(
    program: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    code, out, err = ran(program, capfd, name)
    assert (code, err) == (0, ""), out


def test_code_of_other_compilers_is_read_from_the_program(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hip, "compiled_program", lambda binary: [])
    code, out, err = ran(program, capfd, "memory")
    assert (code, err) == (0, ""), out


@pytest.mark.parametrize("name", ["hipcub", "thrust"])
def test_parallel_algorithms_do_what_those_of_the_host_do(
    program: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    made = tmp_path / name
    hip_programs.build(SOURCE.with_name(f"{name}.hip"), "gfx942", made)
    code, out, err = ran(made, capfd, "")
    assert (code, out, err) == (0, "", "")


def test_properties_are_those_of_the_gpu(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ran(program, capfd, "devices", "--gpus", "2")
    assert code == 0, out
    assert out == "2 of gfx942: AMD Instinct MI300X, 304 CUs, wave 64, 206158430208 bytes\n"


def test_kernels_print_in_order_before_the_host_continues(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = ran(program, capfd, "printing")
    lines = [f"lane {lane} of text: {lane / 2:5.2f} -1 x %" for lane in range(2)]
    assert (code, out.splitlines()) == (0, [*lines, "end"])


def test_a_failed_assertion_ends_the_program(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(program, capfd, "failing")
    assert code == 1
    assert 'Device-side assertion `x == nullptr && "never"\' failed.' in out
    assert "end" not in out.split("\n")
    assert re.match(r"wavecast: failing: .*s_trap", err)


def test_an_access_outside_of_memory_ends_the_program(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(program, capfd, "outside")
    assert (code, out) == (1, "")
    assert "'global_store_dword" in err
    assert "features.hip" in err


def test_an_unsupported_call_is_named(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = ran(program, capfd, "unsupported")
    assert (code, out) == (2, "")
    assert err == "wavecast: hipMallocArray is not supported (docs/hip.md lists what is)\n"


def test_exit_codes_are_the_programs(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ran(program, capfd, "nothing") == (3, "", "")


def test_a_crash_is_named(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = ran(program, capfd, "crash")
    assert (code, err) == (139, f"wavecast: {program} ended by SIGSEGV\n")


def test_code_objects_are_loaded_as_modules(
    program: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = """extern "C" __global__ void twice(float *x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] *= 2;
    }"""
    (code,) = hip.compile(text, "gfx942")
    binary = code.stages["hsaco"]
    assert isinstance(binary, bytes)
    path = tmp_path / "twice.hsaco"
    path.write_bytes(binary)
    status, out, err = ran(program, capfd, "modules", argument=str(path))
    assert (status, err) == (0, ""), out


def test_checks_report_races_with_their_lines(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(program, capfd, "racing", "--check")
    assert (code, out) == (1, "end\n")
    assert "lds-race" in err
    assert "features.hip" in err


def test_predictions_are_a_table_and_the_time_of_events(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(program, capfd, "streams", "--predict")
    assert code == 0, out
    elapsed = re.search(r"elapsed ([\d.]+) ms", out)
    assert elapsed is not None
    row = re.search(r"^scale<…> +1 +128 +5 +([\d.]+) µs +([\d.]+) µs$", err, re.M)
    assert row is not None
    assert float(elapsed[1]) * 1e3 == pytest.approx(3 * float(row[1]), rel=0.02)


def test_a_trace_has_the_programs_launches(
    program: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, _ = ran(program, capfd, "racing", "--trace", str(tmp_path / "trace.json"))
    assert code == 0
    assert '"kernel": "_Z6racingPi"' in (tmp_path / "trace.json").read_text()


def test_a_cuda_program_runs_on_an_amd_gpu(capfd: pytest.CaptureFixture[str]) -> None:
    """It compares what its kernels compute with what CUDA defines."""
    try:
        find("gfx942", cuda=True)
    except MissingTool as error:
        pytest.skip(str(error))
    with pytest.raises(SystemExit) as ended:
        run_command(["run", str(CUDA), "--threads", "1"])
    assert (ended.value.code, *capfd.readouterr()) == (0, "0 wrong, warps of 32\n", "")
