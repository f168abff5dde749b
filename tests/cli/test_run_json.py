"""`wavecast run --format json`: one document, whatever is executed prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast
from tests.cli.test_main import call
from tests.cli.test_run_code import SAXPY
from tests.warm_python import run_module
from wavecast.documents.run import RunDocument
from wavecast.errors import CompileError
from wavecast.json_schema import json_schema

LAUNCH = (
    "--grid", "4", "--block", "256", "--arg", "1=2.0", "--arg", "2=f32[1000]:arange",
    "--arg", "3=f32[1000]:ones", "--arg", "4=1000",
)  # fmt: skip


def run(capsys, *arguments: object) -> tuple[int, dict, str]:
    code, out, err = call(capsys, "run", str(SAXPY), *map(str, arguments), "-f", "json")
    document = json.loads(out)
    jsonschema.validate(document, json_schema(RunDocument))
    return code, document, err


def test_a_launch_of_a_file(capsys, tmp_path: Path) -> None:
    code, document, _ = run(capsys, *LAUNCH, "--expect", "3=1", "--check", "--fidelity")
    assert code == document["exit_code"] == 1
    assert document["complete"]
    assert document["checks"]["reports"] == []
    assert (document["status"], document["traces"]) == ("failed", None)
    assert document["reason"] == "999 of 1,000 elements of 3 differ from what is expected"
    assert document["fidelity"][0]["open"] == []
    kernel = document["kernels"][0]
    assert (kernel["symbol"], kernel["grid"], kernel["launches"]) == ("saxpy", [4, 1, 1], 1)
    launch = document["launch"]
    assert (launch["kernel"], launch["target"], launch["grid"]) == ("saxpy", "gfx942", [4, 1, 1])
    x, y = launch["arrays"]
    assert (x["changed"], x["comparison"]) == (0, None)
    assert (y["dtype"], y["shape"], y["changed"], y["stated"]) == ("float32", [1000], 999, True)
    assert y["comparison"]["different"] == 999
    assert y["comparison"]["first"] == [1]
    assert (y["comparison"]["actual"], y["comparison"]["expected"]) == (3.0, 1.0)
    _, document, _ = run(capsys, *LAUNCH)
    assert document["checks"] is document["traces"] is document["fidelity"] is None
    path = tmp_path / "run.json"
    assert call(capsys, "run", str(SAXPY), *LAUNCH, "-o", str(path))[1] == ""
    assert json.loads(path.read_text())["launch"]["arrays"] == document["launch"]["arrays"]
    report = wavecast.run(SAXPY, grid=4, block=256, arguments=LAUNCH[5::2])
    assert report.to_dict()["launch"]["arrays"] == document["launch"]["arrays"]


def test_a_run_that_breaks_off(capsys) -> None:
    short = [word.replace("f32[1000]:arange", "f32[4]") for word in LAUNCH]
    code, document, err = run(capsys, *short)
    assert code == 1
    assert (document["complete"], document["status"]) == (False, "stopped")
    assert document["exit_code"] == 1
    assert "touches" in err
    assert document["reason"] in err
    assert [kernel["kernel"] for kernel in document["kernels"]] == ["saxpy"]


PROGRAM = """
import os, subprocess, sys
print("by the script")
os.system("echo by its child")
print("an error", file=sys.stderr)
{}
"""


@pytest.mark.parametrize(
    ("last", "code", "raised"),
    [("sys.stdout.close()", 0, ""), ("raise ValueError('wrong')", 1, "ValueError: wrong")],
)
def test_a_script_prints_to_standard_error(
    tmp_path: Path, last: str, code: int, raised: str
) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "script.py"
    script.write_text(PROGRAM.format(last))
    done = subprocess.run(
        [sys.executable, "-m", "wavecast", "run", str(script), "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    document = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode == code
    assert (document["status"], document["reason"]) == (
        ("raised", raised) if raised else ("passed", "")
    )
    for text in ("by the script", "by its child", "an error", raised):
        assert text in done.stderr
    assert raised in document["traceback"]


ENDS = (
    ("os.abort()", 134, "signal", "ended by SIGABRT (script.py:3)"),
    ("os._exit(3)", 3, "exited", "os._exit(3)"),
    ("sys.exit(7)", 7, "exited", "exit code 7"),
    ("sys.exit('no size')", 1, "exited", "no size"),
    ("os.kill(os.getpid(), signal.SIGINT)", 130, "interrupted", "interrupted"),
    ("os.kill(os.getppid(), signal.SIGTERM); signal.pause()", 143, "signal", "ended by SIGTERM"),
    ("atexit.register(os.abort)", 134, "passed", ""),
    ("if os.fork() == 0: sys.exit(0)\nos.wait(); os._exit(5)", 5, "exited", "os._exit(5)"),
)


@pytest.mark.parametrize(("last", "code", "status", "reason"), ENDS, ids=[end[0] for end in ENDS])
def test_a_document_however_a_script_ends(
    tmp_path: Path, last: str, code: int, status: str, reason: str
) -> None:
    pytest.importorskip("torch")
    script, path = tmp_path / "script.py", tmp_path / "run.json"
    script.write_text(f"import atexit, os, signal, sys\nprint('begins')\n{last}\n")
    run_ended = run_module("wavecast", "run", str(script), "-o", str(path), folder=tmp_path)
    document = json.loads(path.read_text())
    jsonschema.validate(document, json_schema(RunDocument))
    assert run_ended[0] == code
    assert (document["status"], document["reason"]) == (status, reason)
    assert document["exit_code"] == (0 if status == "passed" else code)
    assert (document["kernels"] is None) == (status == "signal" or "_exit" in last)


C_PROGRAM = """
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  int *class = malloc(sizeof *class), count = 0;
  *class = hipGetDeviceCount(&count);
  printf("%d %d\\n", *class, count);
  return count + 6;
}
"""


@pytest.mark.hip
def test_c_is_compiled_as_c(tmp_path: Path) -> None:
    """`class` and a pointer from malloc are C, not C++."""
    source = tmp_path / "count.c"
    source.write_text(C_PROGRAM)
    report = wavecast.run(source, arch="gfx942")
    assert report.to_dict()["exit_code"] == 7
    assert report.to_dict()["kernels"] == []
    source.write_text(f"{C_PROGRAM}__global__ void kernel() {{}}\n")
    with pytest.raises(CompileError, match=r"count\.c:6"):
        wavecast.run(source, arch="gfx942")
