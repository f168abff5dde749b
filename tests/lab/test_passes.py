"""The passes of a captured kernel."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.lab.conftest import Captured
from wavecast.api import lab_passes
from wavecast.cli.lab import command
from wavecast.errors import CompileError, LaunchError, MissingTool, NothingAnalysed
from wavecast.json_objects import values
from wavecast.lab import passes as module
from wavecast.lab.pass_sources import TritonPasses
from wavecast.lab.passes import PassReport, PassStep, passes_of, switches
from wavecast.report.kit.terminal import plain
from wavecast.report.lab import passes, passes_html

SCRIPT = """
import torch
from tests.lab.kernels import scaled

x, out = torch.randn(1000), torch.zeros(1000)
scaled[(4,)](x, out, 1000, BLOCK=256)
"""


@pytest.fixture(scope="module")
def report(captured: Captured) -> PassReport:
    return passes_of(TritonPasses(captured.launch, captured.subject.devices[0]))


def step(report: PassReport, name: str) -> PassStep:
    return next(step for step in report.steps if step.name == name)


def test_every_stage_is_there_in_order(report: PassReport) -> None:
    assert list(dict.fromkeys(step.stage for step in report.steps)) == ["ttgir", "mir", "assembly"]
    assert report.unchanged > 0


def test_a_pass_of_triton_changes_its_lines(report: PassReport) -> None:
    """Loads and stores become buffer instructions at their source lines."""
    buffers = step(report, "tritonamdgpu-convert-buffer-ops")
    added = [name for change in buffers.changes for name in change.added]
    removed = [name for change in buffers.changes for name in change.removed]
    assert "amdg.buffer_load" in added
    assert "tt.load" in removed
    assert all(re.fullmatch(r"kernels\.py:\d+|", change.line) for change in buffers.changes)


def test_machine_ir_has_waits_after_their_pass(report: PassReport) -> None:
    waits = step(report, "si-insert-waitcnts")
    assert waits.figures["wait"] > 0
    assert "wait" not in step(report, "amdgpu-isel").figures
    assert any("S_WAITCNT" in change.added for change in waits.changes)
    assert len(waits.lines) == len(waits.text.split("\n"))


def test_live_registers_agree_with_those_of_the_assembly(report: PassReport) -> None:
    """The last machine IR has as many live vector registers as the code that is parsed."""
    last = [step for step in report.steps if step.stage == "mir"][-1]
    assert last.figures["peak vector"] == report.shown.peak


def test_without_a_pass_the_code_is_another_one(report: PassReport) -> None:
    names = {one.name for one in report.without}
    assert names <= {name for name, switch in switches().items() if switch.without}
    assert "machine-scheduler" in names
    codes = {one.figures.digest for one in report.without} | {report.shown.digest}
    assert len(codes) > 1


def test_moved_reads_are_counted() -> None:
    """A load that has fewer matrix instructions before it moved up."""
    line = module.MachineLine
    load, matrix = line("load", "GLOBAL_LOAD_DWORD", "k.py:1"), line("m", "V_MFMA_F32", "k.py:2")

    def function(*lines: module.MachineLine) -> module.MachineFunction:
        return module.MachineFunction("", "", "", {0: list(lines)}, {})

    assert module._count_moved_reads(function(matrix, load), function(load, matrix)) == (1, 0)
    assert module._count_moved_reads(function(load, matrix), function(matrix, load)) == (0, 1)
    assert module._count_moved_reads(function(load, matrix), function(load, matrix)) == (0, 0)


def test_formats(report: PassReport) -> None:
    document = values(passes.document([report], ["a note"]))
    json.dumps(document, allow_nan=False)
    assert document["kernels"][0]["steps"][0]["stage"] == "ttgir"
    text = plain(lambda console: passes.render([report], [], console), width=200)
    assert "si-insert-waitcnts" in text
    assert "scheduling before register allocation" in text
    page = passes_html.render([report], ["a <note>"])
    assert "a &lt;note&gt;" in page
    assert '<script type="application/json" id="data">[{"steps"' in page


def test_code_of_another_compiler_is_refused(captured: Captured) -> None:
    other = replace(captured.launch, code=replace(captured.launch.code, origin="hip"))
    with pytest.raises(CompileError, match="code that the script loads"):
        TritonPasses(other, captured.subject.devices[0])


HIP = """
#include <hip/hip_runtime.h>
__global__ void twice(float *x) { x[threadIdx.x] *= FACTOR; }
"""


def test_a_hip_file_and_llvm_ir(tmp_path: Path) -> None:
    """Both have the machine IR of their compiler; its options are those of the command."""
    path, output = tmp_path / "twice.hip", tmp_path / "passes.json"
    path.write_text(HIP)
    arguments = ["passes", "--no-without", "-f", "json", "-o", str(output), "-a", "gfx1100"]
    done = CliRunner().invoke(command, [*arguments, str(path), "--", "-DFACTOR=2.0f"])
    if isinstance(done.exception, MissingTool):
        pytest.skip(done.exception.message)
    assert done.exit_code == 0, done.output
    (kernel,) = json.loads(output.read_text())["kernels"]
    assert kernel["kernel"] == "_Z5twicePf"
    assert {step["stage"] for step in kernel["steps"]} == {"mir", "assembly"}
    assert kernel["shown"]["digest"] == kernel["final"]["digest"]
    changes = [change["line"] for step in kernel["steps"] for change in step["changes"]]
    assert "twice.hip:3" in changes
    report = lab_passes.passes(path, "-DFACTOR=2.0f", without=False, arch="gfx1100")
    assert report.to_dict() == json.loads(output.read_text())
    assert "twice.hip:3" in str(report)
    assert "\ntwice on " in str(report)
    assert report.reports[0].shown.seconds is None
    launch = {
        "grid": 4,
        "block": 64,
        "arguments": ["x=f32[64]"],
        "compiler_options": ["-DFACTOR=2"],
    }
    stated = lab_passes.passes(path, without=False, arch="gfx1100", **launch)
    assert stated.reports[0].shown.seconds
    with pytest.raises(LaunchError, match="'y'"):
        lab_passes.passes(path, arch="gfx1100", **{**launch, "arguments": ["y=3"]})
    if not shutil.which("llc-22"):
        return
    module = tmp_path / "twice.ll"
    module.write_text(
        'target triple = "amdgcn-amd-amdhsa"\n'
        "define amdgpu_kernel void @nothing() {\n  ret void\n}\n"
    )
    done = CliRunner().invoke(command, [*arguments, str(module)])
    assert done.exit_code == 0, done.output
    (kernel,) = json.loads(output.read_text())["kernels"]
    assert kernel["kernel"] == "nothing"
    assert kernel["compiler"].startswith("llc")
    told = CliRunner().invoke(command, [*arguments, str(module), "-k", "other"])
    assert isinstance(told.exception, NothingAnalysed)


@pytest.mark.thorough
def test_the_command(tmp_path: Path, captured: Captured) -> None:
    del captured  # skips without PyTorch
    script, output = tmp_path / "script.py", tmp_path / "passes.json"
    script.write_text(SCRIPT)
    arguments = ["passes", str(script), "--no-without", "-f", "json", "-o", str(output)]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    (kernel,) = json.loads(output.read_text())["kernels"]
    assert kernel["kernel"] == "scaled"
    assert kernel["without"] == []
