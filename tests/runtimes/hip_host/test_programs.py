"""A HIP program, built here and run natively with its launches on the emulator."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from wavecast.cli.main import run as run_command
from wavecast.compile import hip, hip_program
from wavecast.compile.toolchain import Toolchain, find
from wavecast.errors import CompileError, MissingTool
from wavecast.pipeline.execute import hip_programs
from wavecast.processes import Finished
from wavecast.runtimes.hip_host.library import runtime_folder

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).parent / "features.hip"
SMALL = ("-fno-exceptions", "-include", str(SOURCE.with_name("small.h")))
"""Flags of programs that the C++ library, which Zig takes most of a minute to build, is not for."""
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


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Other programs for gfx942 by name, each built once and without the C++ library."""
    folder = tmp_path_factory.mktemp("programs")

    @cache
    def build(name: str) -> Path:
        hip_programs.build(SOURCE.with_name(f"{name}.hip"), "gfx942", folder / name, SMALL)
        return folder / name

    return build


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
    "name",
    [
        *("memory", "virtual_memory", "pointers", "copies", "symbols", "streams", "launches"),
        "device_functions",
    ],
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


@pytest.mark.parametrize(
    ("name", "by_host"),
    [
        ("hipcub", ""),
        ("thrust", ""),
        ("libraries", "hipblas, hipfft, hiprand"),
        ("solvers", "hipblas, hipsolver, hipsparse"),
        ("rocsparse", "hipsparse"),
    ],
)
def test_libraries_do_what_loops_of_the_host_do(
    program: Path,
    built: Callable[[str], Path],
    capfd: pytest.CaptureFixture[str],
    name: str,
    by_host: str,
) -> None:
    code, out, err = ran(built(name), capfd, "")
    assert (code, out) == (0, "")
    said = re.fullmatch(r"wavecast: \d+ calls of (.*) were computed by the host\n", err)
    assert (said[1] if said else err) == by_host


@pytest.mark.parametrize(
    ("target", "flags"),
    [
        ("gfx942", ("-DMFMA", *SMALL)),
        ("gfx1201", SMALL),
        pytest.param("gfx1100", (), marks=pytest.mark.thorough),
    ],
)
def test_fragments_of_rocwmma_have_the_products_of_the_host(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, target: str, flags: tuple[str, ...]
) -> None:
    made = tmp_path / "rocwmma"
    hip_programs.build(SOURCE.with_name("rocwmma.hip"), target, made, flags)
    code, out, err = ran(made, capfd, "", "--arch", target)
    assert (code, out, err) == (0, "", "")


def test_zig_builds_its_cxx_library_for_programs_that_need_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands: list[list[str]] = []
    output = tmp_path / "program"
    failing = ["cc"]

    def run(command: list[str]) -> Finished:
        commands.append([*map(str, command)])
        if command[1] in failing:
            return Finished(1, b"", f"ld: error: no symbol for {command[1]}")
        output.touch()
        return Finished(0, b"", "")

    tools = Toolchain("ziglang", ("zig",), (), True, ())
    monkeypatch.setattr(hip_program.toolchain, "find", lambda target: tools)
    monkeypatch.setattr(hip_program.process, "run", run)
    hip_program.link([tmp_path / "object.o"], output, tmp_path)
    assert [command[1] for command in commands] == ["cc", "c++"]
    failing.append("c++")
    with pytest.raises(CompileError, match=r"no symbol for c\+\+"):
        hip_program.link([tmp_path / "object.o"], output, tmp_path)
    failing.clear()
    hip_program.link([tmp_path / "object.o"], output, tmp_path)
    assert [command[1] for command in commands[2:]] == ["cc", "c++", "cc"]


def test_source_is_compiled_while_a_program_runs(
    built: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(built("hiprtc"), capfd, "")
    assert (code, err) == (0, "")
    assert out == "15 15 3\nHIPRTC_ERROR_COMPILATION, the log has the line\n"


def test_symbols_have_the_versions_that_programs_built_with_rocm_ask_for(program: Path) -> None:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerDefSection, GNUVerSymSection
    from elftools.elf.sections import SymbolTableSection

    with (runtime_folder() / hip_program.SONAME).open("rb") as file:
        elf = ELFFile(file)
        defined = elf.get_section_by_name(".gnu.version_d")
        indices = elf.get_section_by_name(".gnu.version")
        symbols = elf.get_section_by_name(".dynsym")
        assert isinstance(defined, GNUVerDefSection)
        assert isinstance(indices, GNUVerSymSection)
        assert isinstance(symbols, SymbolTableSection)
        names = {one["vd_ndx"]: next(aux).name for one, aux in defined.iter_versions()}
        versions = {
            symbol.name: names.get(indices.get_symbol(at)["ndx"])
            for at, symbol in enumerate(symbols.iter_symbols())
            if symbol["st_shndx"] != "SHN_UNDEF"
        }
    expected = {
        "hipMalloc": "hip_4.2",
        "hipGraphLaunch": "hip_4.3",
        "hipMallocAsync": "hip_5.1",
        "hipGetDevicePropertiesR0600": "hip_6.0",
        "hipTexObjectCreate": "hip_4.2",  # not supported, but there
    }
    assert {name: versions.get(name) for name in expected} == expected


def test_a_library_call_beyond_an_allocation_is_one_line(
    built: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(built("libraries"), capfd, "beyond")
    assert (code, out) == (2, "")
    assert re.fullmatch(
        r"wavecast: hipblas scal\.S: 20000 bytes from 0x\w+ are beyond the end of an allocation of "
        r"4096 bytes\n",
        err,
    )


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
