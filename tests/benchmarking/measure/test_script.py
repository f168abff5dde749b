"""Kernels of scripts: what tells launches apart, predictions, and times of a profiler."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from wavecast import arch
from wavecast.benchmarking.environment import new_run
from wavecast.benchmarking.measure import script
from wavecast.benchmarking.measure.gpu_environment import LocalGpuState
from wavecast.benchmarking.measure.sensors import Absent
from wavecast.benchmarking.records import Environment
from wavecast.runtimes.gpu import KernelRun, LocalGpu

pytestmark = pytest.mark.torch

SCRIPT = """
import sys
import torch
import triton
import triton.language as tl

@triton.jit
def scale(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, factor * tl.load(x + at, at < n), at < n)

@triton.jit
def copy(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))

size = int(sys.argv[1])
x = torch.ones(size, device="cuda")
y = torch.empty_like(x)
scale[(size // 256,)](x, y, size, 2.5, BLOCK=256)
scale[(size // 256,)](x, y, size, 3.5, BLOCK=256)
copy[(1,)](x, y, BLOCK=256)
copy[(1,)](x, y, BLOCK=512)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("script") / "kernels.py"
    found.write_text(SCRIPT)
    return found


def here() -> LocalGpuState:
    device = arch.load("mi300x")
    local = LocalGpu("AMD Instinct MI300X", "gfx942", 304, "torch")
    environment = Environment("mi300x", "gfx942", emulated=False, board=local.name)
    return LocalGpuState(local, device, Absent("clocks are unknown"), environment)


def test_predicted(path: Path) -> None:
    given = script.MeasuredScript(path, ("1024",))
    outcome = script.script_session(new_run(), [given], [arch.load("gfx942")])
    assert not outcome.failed
    assert [record.subject.key for record in outcome.records] == [
        "kernel scale dtypes=float32 factor=2.5 grid=4x1x1 n=1024",
        "kernel scale dtypes=float32 factor=3.5 grid=4x1x1 n=1024",
        "kernel copy dtypes=float32 grid=1x1x1 launch=1",
        "kernel copy dtypes=float32 grid=1x1x1 launch=2",
    ]
    for record in outcome.records:
        assert record.figures["predicted_seconds"].value > 0
        assert record.digest


def test_a_kernel_no_script_launches(path: Path) -> None:
    given = script.MeasuredScript(path, ("256",), "nothing")
    outcome = script.script_session(new_run(), [given], [arch.load("gfx942")])
    assert not outcome.records
    assert "no launched kernel matches 'nothing'" in outcome.failed[0].why


def test_profiled(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profiler's answer is given; the launches are captured as they would be beside a GPU."""
    runs = (
        KernelRun("scale", (4, 1, 1), 3, 2e-6, (2e-6, 2.1e-6, 2e-6)),
        KernelRun("copy", (1, 1, 1), 2, 1e-6, (1e-6, 1.1e-6)),
        KernelRun("elementwise_kernel", (7, 1, 1), 1, 1e-6, (1e-6,)),
    )
    monkeypatch.setattr(script, "profile_script", lambda *_, **__: runs)
    given = script.MeasuredScript(path, ("1024",), "scale")
    outcome = script.script_session(new_run(), [given], [], here=here())
    (record,) = outcome.records  # two launches share the grid
    assert record.subject.key == "kernel scale grid=4x1x1"
    assert record.figures["measured_seconds"].samples == (2e-6, 2.1e-6, 2e-6)
    assert record.conditions.timing == "profiler"
    assert any("2 different launches have this grid" in note for note in record.notes)
    assert "clocks are unknown" in record.notes


def test_a_profiled_kernel_alone_on_its_grid_has_its_prediction(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    single = tmp_path / "single.py"
    single.write_text(SCRIPT.replace("scale[(size // 256,)](x, y, size, 3.5, BLOCK=256)", ""))
    runs = (KernelRun("scale", (4, 1, 1), 1, 2e-6, (2e-6,)),)
    monkeypatch.setattr(script, "profile_script", lambda *_, **__: runs)
    given = script.MeasuredScript(single, ("1024",))
    outcome = script.script_session(new_run(), [given], [], here=here())
    (record,) = outcome.records
    assert record.subject.axes["factor"] == 2.5
    assert {"measured_seconds", "predicted_seconds", "vgprs"} <= set(record.figures)
    assert record.digest


def test_nothing_profiled(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "profile_script", lambda *_, **__: ())
    outcome = script.script_session(
        new_run(), [script.MeasuredScript(path, ("1024",))], [], here=here()
    )
    assert not outcome.records
    assert "no Triton kernel the profiler saw" in outcome.failed[0].why
