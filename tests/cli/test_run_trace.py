"""`wavecast run --trace` and its companions: files, summary, bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast
from tests.cli.test_main import call
from tests.cli.test_run_code import SAXPY
from wavecast.report.execution import traces

LAUNCH = (
    "--grid", "4", "--block", "256", "--arg", "1=2.0", "--arg", "2=f32[1000]:arange",
    "--arg", "3=f32[1000]:ones", "--arg", "4=1000",
)  # fmt: skip


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    return call(capsys, "run", str(SAXPY), *LAUNCH, *map(str, arguments))


def test_counts_and_timeline(capsys, tmp_path: Path) -> None:
    trace, timeline = tmp_path / "trace.json", tmp_path / "waves.json"
    code, out, err = run(capsys, "--trace", trace, "--perfetto", timeline)
    assert code == 0
    assert out.startswith("saxpy on gfx942")
    assert "4 workgroups, 16 waves" in err
    document = json.loads(trace.read_text())
    jsonschema.validate(document, traces.schema())
    (launch,) = document["launches"]
    stores = [m for m in launch["memory"] if m["kind"] == "store"]
    assert sum(m["bytes"] for m in stores) == 4000
    assert [stream["wave"] for stream in launch["streams"]] == [0, 1, 2, 3]
    assert json.loads(timeline.read_text())["otherData"]["complete"]


def test_a_timeline_by_its_name(capsys, tmp_path: Path) -> None:
    path = tmp_path / "a.perfetto.json"
    assert run(capsys, "--trace", path, "--trace-streams", 2)[0] == 0
    events = json.loads(path.read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {1, 2}


def test_chosen_workgroups(capsys, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    more = ("--trace-workgroups", "1-2", "--trace-only", "--save", f"3={tmp_path / 'y.npy'}")
    code, out, _ = run(capsys, "--trace", path, *more)
    assert code == 0
    assert "512 of 1,000 changed" in out
    assert json.loads(path.read_text())["launches"][0]["workgroups"] == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--trace-only",), "--trace-only belongs to --trace-workgroups"),
        (("--trace-streams", "1"), "--trace-streams belongs to --trace or --perfetto"),
        (("--trace-workgroups", "1"), "--trace-workgroups belongs to --trace or --perfetto"),
        (("--trace", "{}/t.json", "--trace-workgroups", "3-1"), "'3-1' is not a range"),
        (("--trace", "{}/t.json", "--trace-workgroups", "x"), "not a list of workgroups"),
        (("--trace", "{}/t.json", "--trace-workgroups", "4"), "workgroup 4 is not in the grid"),
        (("--trace", "{}/none/t.json"), "cannot write"),
        (("--trace", "{}"), "is a directory"),
    ],
)
def test_bad_input(capsys, tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    code, _, err = run(capsys, *(option.format(tmp_path) for option in options))
    assert code == 2
    assert says in err


def test_fidelity_of_code(capsys, tmp_path: Path) -> None:
    """Multiplication and addition are documented to the bit; a quotient is not."""
    code, _, err = run(capsys, "--fidelity")
    assert code == 0
    assert "100% with a documented result" in err
    assert "instr." not in err  # the table of traces
    source = tmp_path / "quotient.hip"
    source.write_text(
        """#include <hip/hip_runtime.h>
extern "C" __global__ void quotient(float* x, int* y) {
    float value = __expf(x[threadIdx.x]);
    y[(int)value & 63] = 1;
}
"""
    )
    launch = ("--arg", "1=f32[64]:ones", "--arg", "2=i32[64]:zeros", "--grid", "1", "--block", "64")
    trace = tmp_path / "trace.json"
    options = ("--fidelity", "--trace", str(trace), "--arch", "gfx942")
    code, _, err = call(capsys, "run", str(source), *launch, *options)
    assert code == 0
    assert "v_exp_f32" in err
    assert "of line 3 may decide an address: global_store_dword, line 4" in " ".join(err.split())
    report = wavecast.run(source, arguments=launch[1:4:2], grid="1", block="64", fidelity=True)
    (kernel,) = report.to_dict()["fidelity"]
    (line,) = [line for line in kernel["open"] if line["mnemonic"] == "v_exp_f32"]
    assert line["executions"] == 1
    assert {decision["kind"] for decision in line["decides"]} == {"address"}
    assert report.to_dict()["traces"] is None
    assert report.traces is not None
    document = json.loads(trace.read_text())
    jsonschema.validate(document, traces.schema())
    assert document["fidelity"] == report.to_dict()["fidelity"]


def test_kernels_of_cpp_have_readable_names(capsys, tmp_path: Path) -> None:
    source = tmp_path / "names.hip"
    source.write_text(
        """#include <hip/hip_runtime.h>
namespace lib { template <typename T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; } }
template __global__ void lib::twice<float>(float*);
"""
    )
    launch = ("--arg", "1=f32[64]:ones", "--grid", "1", "--block", "64", "--arch", "gfx942")
    timeline = tmp_path / "waves.perfetto.json"
    files = ("--trace", timeline, "--trace-streams", "1")
    for options in (("--fidelity",), files):
        code, _, err = call(capsys, "run", str(source), *launch, *map(str, options))
        assert code == 0
        assert "lib::twice<…>" in err
        assert "_ZN" not in err
    events = json.loads(timeline.read_text())["traceEvents"]
    assert any(" lib::twice<…> " in event.get("args", {}).get("name", "") for event in events)


@pytest.mark.torch
def test_an_interrupted_script_has_its_traces(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("triton", reason="needs Triton")
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(sys, "path", [*sys.path])
    script, trace = tmp_path / "script.py", tmp_path / "trace.json"
    script.write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt) as caught:
        wavecast.run(script, trace=trace)
    assert caught.value.__dict__["partial"].traces == []
    assert json.loads(trace.read_text())["launches"] == []
