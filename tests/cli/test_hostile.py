"""Hostile options and files: each is one clear line and exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_main import call
from tests.warm_python import run_python
from wavecast import files, limits
from wavecast.compile import toolchain
from wavecast.errors import MissingTool

SAXPY = Path(__file__).parents[1] / "compile" / "data" / "saxpy.gfx942.s"
KERNEL = "__global__ void k(float *a) { a[0] = 1; }\n"
DEEP = "[" * 100_000

FILES = {
    "zero.toml": 'device = "mi300x"\n[fields]\nsimd_per_cu = 0\n',
    "huge.toml": 'device = "mi300x"\n[fields]\npeak_clock = 1e300\n',
    "integer.toml": f'device = "mi300x"\n[fields]\ncu = 1{"0" * 400}\n',
    "part.toml": 'device = "mi300x"\n[fields]\ncu = 0.5\n',
    "unit.toml": 'device = "mi300x"\n[fields]\npeak_clock = { value = 1e9, unit = "GHz" }\n',
    "deep.toml": "a = " + "[" * 5000,
    "tables.toml": "a = " + "{a = " * 5000,
    "digits.toml": "cu = " + "9" * 5000,
    "deep.json": DEEP,
    "deep.jsonl": '{"a": ' * 100_000 + "\n",
    "records.json": '{"devices": 1, "benchmarks": [1, [2]]}',
    "long.csv": f"Kernel_Name,{'x' * 140_000}\n{'y' * 140_000},1\n",
    "x.py": "print(1)\n",
    "k.hip": KERNEL,
    "directive.s": SAXPY.read_text().replace("_denorm_mode_32 3", f"_denorm_mode_32 {'9' * 25}"),
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "WAIT_SECONDS", 0.05)
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("saxpy.s").write_text(SAXPY.read_text())
    os.mkfifo("pipe.s")
    os.mkfifo("pipe.toml")


EXPLAIN = ("explain", "saxpy.s", "--grid", "64", "--block", "256")
RUN = ("run", "saxpy.s", "--grid", "1", "--block", "64")
BENCH = ("bench", "matmul", "--arch", "gfx942", "--no-store")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The line on stderr of a command that is refused."""
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, ""), err
    assert err.startswith("wavecast: ")
    assert err.count("\n") == 1
    assert len(err) < 1000
    assert "internal error" not in err
    return err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((*EXPLAIN, "--arch-file", "zero.toml"), "simd_per_cu must be from 1 to 64 SIMD, not 0"),
        ((*EXPLAIN, "--arch-file", "huge.toml"), "peak_clock must be from 1 to 100,000 MHz"),
        ((*EXPLAIN, "--arch-file", "integer.toml"), "cu must be from 1 to"),
        ((*EXPLAIN, "--arch-file", "part.toml"), "cu must be"),
        ((*EXPLAIN, "--arch-file", "unit.toml"), "peak_clock must be"),
        ((*EXPLAIN, "--arch-file", "deep.toml"), "nested too deeply"),
        (("arch", "mi300x", "--arch-file", "tables.toml"), "nested too deeply"),
        (("arch", "mi300x", "--arch-file", "digits.toml"), "is not TOML"),
        (("arch", "mi300x", "--arch-file", "pipe.toml"), "nothing was written"),
        (("arch", "mi300x", "--arch-file", "/dev/zero"), "is a device"),
        (("arch", "mi300x", "--field", "("), "'(' is not a regular expression"),
        (("explain", "saxpy.s", "-k", "*"), "is not a regular expression"),
        (("run", "x.py", "-k", "(" * 3000 + ")" * 3000), "is not a regular expression"),
        (("tune", "x.py", "-a", "gfx942", "-k", "["), "is not a regular expression"),
        (("tune", "k.hip", "-a", "gfx942"), "k.hip is not a Python script"),
        (("diff", "x.py", "x.py", "-k", "["), "is not a regular expression"),
        (("bench", "x.py", "--arch", "gfx942", "-k", "["), "is not a regular expression"),
        (("ops", "-k", "["), "is not a regular expression"),
        (("history", "["), "is not a regular expression"),
        (("explain", "directive.s"), ".amdhsa_float_denorm_mode_32 must be from 0 to 2^32 - 1"),
        (("explain", "pipe.s"), "nothing was written to the pipe"),
        (("explain", "/dev/zero"), "is a device"),
        (("explain", "x.py", "--grid", "4"), "x.py is a script: it makes its own launches"),
        (("explain", "x.py", "-X", "-O1"), "x.py is a script: it makes its own launches"),
        (("explain", "saxpy.s", "--configs", "best"), "--configs does not apply to saxpy.s"),
        (("explain", "saxpy.s", "--recapture"), "--recapture does not apply to saxpy.s"),
        (("explain", "saxpy.s", "--replace"), "--replace does not apply to saxpy.s"),
        (("explain", "saxpy.s", "--sample"), "--sample executes a launch: it needs its arguments"),
        (("explain", "saxpy.s", "--dtype", "fp16"), "--dtype belongs to --flops"),
        (("diff", "saxpy.s", "saxpy.s", "--timeout", "3"), "--timeout does not apply to saxpy.s"),
        (("run", "x.py", "--predict"), "--predict is for HIP programs, and x.py is a script"),
        (("run", "x.py", "--once"), "--once belongs to --gpus"),
        (("run", "pipe.s"), "nothing was written to the pipe"),
        (("run", "/dev/zero"), "is a device"),
        (("store", "import", "/dev/zero"), "is a device"),
        (("store", "import", "deep.json"), "nested too deeply"),
        (("store", "import", "deep.jsonl"), "in no known format"),
        (("store", "import", "records.json"), "in no known format"),
        (("store", "import", "long.csv"), "in no known format"),
        (("store", "import", "long.csv", "--format", "rocprofv3"), "holds no kernel times"),
        (("ops", "--survey", "deep.json"), "nested too deeply"),
        ((*RUN, "--max-instructions", "9" * 30), "--max-instructions"),
        ((*RUN, "--threads", "1000000"), "--threads"),
        ((*RUN, "--lds", "9" * 30), "--lds"),
        ((*RUN, "--rtol", "nan"), "is not a number"),
        (("run", "saxpy.s", "--args", "deep.toml"), "nested too deeply"),
        (("explain", "x.py", "--timeout", "nan"), "is not a number"),
        (("bench", "matmul", "--seconds", "nan"), "is not a number"),
        (("bench", "matmul", "--samples", "-1"), "--samples"),
        (("arch", "n" * 5000), " … "),
        ((*RUN, "--lds", "9" * 5000), " … "),
    ],
)
def test_a_hostile_command(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    assert says in refused(capsys, *arguments)


@pytest.mark.parametrize("value", ["f32[1180591620717411303424]:zeros", "f32[1099511627776]:ones"])
def test_an_array_larger_than_memory(capsys: pytest.CaptureFixture[str], value: str) -> None:
    given = [part for n in ("1", "3", "4") for part in ("--arg", f"{n}=1")]
    assert "of memory" in refused(capsys, *RUN, *given, "--arg", f"2={value}")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("matmul", "--shape", "m=-1", "-o", "x"), "m must be an integer from 1, not -1"),
        (("matmul", "--shape", "m=1e300", "-o", "x"), "m must be an integer"),
        (("matmul", "--shape", "m=none", "-o", "x"), "m must be an integer"),
        (("matmul", "--shape", f"m={10**12}", "-o", "x"), "no inputs of matmul"),
        (("matmul", "--shape", "zz=1", "-o", "x"), "matmul has no axis 'zz'"),
        (("matmul", "--shape", "dtype=fp99", "-o", "x"), "unknown dtype"),
        (("matmul", "--shape", "m", "-o", "x"), "'m' is not NAME=VALUE"),
        (("matmul_mx", "--shape", "k=1", "-o", "x"), "launches no kernel on mi300x"),
        (("softmax", "-o", "int"), "'int' cannot name a function of C and C++"),
        (("softmax", "-o", "libclass"), "'class' cannot name a function"),
        (("softmax", "-o", "main"), "'main' cannot name a function"),
        (("softmax", "-o", "2x"), "'2x' cannot name a function"),
        (("softmax", "-o", "/"), "'' cannot name a function"),
    ],
)
def test_a_hostile_export(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    assert says in refused(capsys, "export", *arguments)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("axis", "says"),
    [
        ("m=-1", "m must be an integer from 1, not -1"),
        ("m=0.5", "m must be an integer"),
        ("m=nan", "m must be an integer"),
        ("m=1e300", "m must be an integer"),
        ("m=true", "m must be an integer"),
        ("m=abc", "m must be an integer"),
        ("m=" + "9" * 30, "m must be an integer"),
        ("m=" + "9" * 5000, "m must be an integer"),
        ("zz=1", "matmul has no axis 'zz'"),
        ("dtype=3", "dtype must be text"),
    ],
)
def test_a_hostile_axis(capsys: pytest.CaptureFixture[str], axis: str, says: str) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    assert says in refused(capsys, *BENCH, "-a", axis)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("axis", "says"),
    [
        ("m=4611686018427387904", "no inputs of matmul"),
        ("dtype=abc", "unknown dtype of PyTorch 'abc'"),
        ("dtype=nn", "unknown dtype of PyTorch 'nn'"),
    ],
)
def test_an_axis_without_inputs(capsys: pytest.CaptureFixture[str], axis: str, says: str) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    code, out, err = call(capsys, *BENCH, "-a", axis)
    assert (code, err) == (3, "wavecast: nothing was measured\n")
    assert out.startswith("failed: operator matmul")
    assert says in out
    assert out.count("\n") == 1


@pytest.fixture
def _compiler() -> None:
    try:
        toolchain.find()
    except MissingTool as error:
        pytest.skip(str(error))


@pytest.mark.hip
@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize("option", [[], ["-X", "-include/dev/null"]])
def test_a_device_that_is_included(capsys: pytest.CaptureFixture[str], option: list[str]) -> None:
    source = KERNEL if option else f'#include "/dev/null"\n{KERNEL}'
    Path("k.hip").write_text(source)
    said = refused(capsys, "explain", "k.hip", *option)
    assert "k.hip includes /dev/null is a device" in said


@pytest.mark.hip
@pytest.mark.usefixtures("_compiler")
def test_an_option_that_stops_the_compiler(capsys: pytest.CaptureFixture[str]) -> None:
    assert "wrote no code" in refused(capsys, "explain", "k.hip", "-X", "-fsyntax-only")


@pytest.mark.hip
@pytest.mark.usefixtures("_compiler")
def test_source_that_compiles_without_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(limits.SECONDS, "0.1")
    os.mkfifo("header.h")
    Path("k.hip").write_text(f'#include "header.h"\n{KERNEL}')
    said = refused(capsys, "explain", "k.hip")
    assert f"was stopped: it did not finish in 1 s ({limits.SECONDS} and" in said


CRASHES = {
    "abort": ("import os\nprint('before')\nprint('unfinished', end='')\nos.abort()\n", 134),
    "fault": ("import ctypes\nprint('before\\nunfinished', end='')\nctypes.string_at(0)\n", 139),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", CRASHES)
def test_a_script_that_crashes(name: str) -> None:
    pytest.importorskip("triton", reason="needs Triton")
    text, code = CRASHES[name]
    Path("crash.py").write_text(text)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    done = run_python("-m", "wavecast", "run", "crash.py", environment=environment)
    assert (done.returncode, done.stdout) == (code, "before\nunfinished")
    line = text[: text.rindex("\n")].count("\n") + 1
    signal = {"abort": "SIGABRT", "fault": "SIGSEGV"}[name]
    assert done.stderr == f"wavecast: crash.py ended by {signal} (crash.py:{line})\n"


@pytest.mark.torch
def test_a_model_whose_script_crashes() -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    Path("crash.py").write_text("import os\nos.abort()\n")
    done = run_python("-m", "wavecast", "model", "crash.py:make")
    said = "wavecast: crash.py ended by SIGABRT (crash.py:2)\n"
    assert (done.returncode, done.stdout, done.stderr) == (134, "", said)


@pytest.mark.torch
@pytest.mark.parametrize("text", ["sys.stdout.close()", "del sys.stdout"])
def test_a_script_without_output(text: str) -> None:
    pytest.importorskip("triton", reason="needs Triton")
    Path("closed.py").write_text(f"import sys\n{text}\n")
    done = run_python("-m", "wavecast", "run", "closed.py")
    said = "wavecast: the script launched no kernel\n"
    assert (done.returncode, done.stderr) == (0, said)


@pytest.mark.torch
def test_a_script_ends_as_it_would_alone() -> None:
    pytest.importorskip("triton", reason="needs Triton")
    Path("end.py").write_text(
        "import atexit, sys\natexit.register(print, 'exit')\nprint(input())\nsys.exit(7)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "wavecast", "run", "end.py"],
        capture_output=True,
        text=True,
        input="line\n",
    )
    assert (done.returncode, done.stdout) == (7, "line\nexit\n")
