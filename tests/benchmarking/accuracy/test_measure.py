"""Measuring on a GPU: torch's answers about the GPU, and its clock, are replaced."""

from __future__ import annotations

import json
import types
from pathlib import Path

import pytest

from tests.benchmarking.accuracy.sample import Copy
from wavecast.benchmarking.accuracy import measure
from wavecast.errors import InputError, NothingAnalysed, UnknownName, UsageError
from wavecast.perfmodel import ops
from wavecast.runtimes import gpu
from wavecast.runtimes.gpu import KernelRun, LocalGpu
from wavecast.runtimes.gpu.profile import kernel_runs

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so() -> None:
    with pytest.raises(NothingAnalysed, match="no GPU that PyTorch can use") as error:
        gpu.local_gpu()
    assert error.value.exit_code == 3


@pytest.mark.parametrize(
    ("hip", "properties", "target"),
    [
        ("6.4", {"gcnArchName": "gfx942:sramecc+:xnack-"}, "gfx942"),
        (None, {"major": 9, "minor": 0}, "sm_90"),
    ],
)
def test_the_gpu_is_named_by_its_runtime(
    monkeypatch: pytest.MonkeyPatch, hip: str | None, properties: dict[str, object], target: str
) -> None:
    answer = types.SimpleNamespace(name="A GPU", multi_processor_count=304, **properties)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: answer)
    monkeypatch.setattr(torch.version, "hip", hip)
    found = gpu.local_gpu()
    assert (found.name, found.target, found.units) == ("A GPU", target, 304)
    assert ("ROCm 6.4" in found.library) is bool(hip)


@pytest.mark.parametrize(
    ("kind", "shape", "options"),
    [
        ("gemm", "8x16x32", {"dtype": "bf16"}),
        ("gemm", "2x8x16x32", {"dtype": "fp32"}),
        ("attention", "1x4x2x16x8", {"dtype": "bf16", "causal": "yes"}),
        ("conv", "1x4x8x8,6x3x3", {"dtype": "fp32", "padding": "1"}),
        ("softmax", "4x8", {"dtype": "bf16"}),
        ("norm", "4x8", {"function": "rms_norm", "dtype": "bf16"}),
        ("elementwise", "4x8", {"function": "add", "dtype": "bf16"}),
    ],
)
def test_programs_run_what_the_op_says(kind: str, shape: str, options: dict[str, str]) -> None:
    if kind not in ops.OPS:
        pytest.skip(f"no {kind}")
    result = gpu.program(ops.op(kind).parse(shape, options), "cpu")()
    assert isinstance(result, torch.Tensor)
    sizes = {
        "gemm": (2, 8, 16) if shape.count("x") == 3 else (8, 16),
        "attention": (1, 4, 16, 8),
        "conv": (1, 6, 8, 8),
    }
    assert tuple(result.shape) == sizes.get(kind, (4, 8))


def test_what_pytorch_does_not_run_is_refused() -> None:
    with pytest.raises(UnknownName, match="unknown operation of PyTorch 'copy'"):
        gpu.program(Copy(8), "cpu")
    with pytest.raises(UsageError, match="fp8 is not measured"):
        gpu.program(ops.op("gemm").parse("8x8x8", {"dtype": "fp8"}), "cpu")


def test_kernels_of_a_profile(tmp_path: Path) -> None:
    def event(name: str, grid: int, microseconds: float) -> dict[str, object]:
        return {"cat": "kernel", "name": name, "dur": microseconds, "args": {"grid": [grid, 1, 1]}}

    trace = tmp_path / "trace.json"
    events = [event("a", 4, 2.0), {"cat": "gpu_memcpy"}, event("b", 4, 9.0), event("a", 4, 4.0)]
    trace.write_text(json.dumps({"traceEvents": [*events, event("a", 8, 5.0)]}))
    first, second, third = kernel_runs(trace)
    assert (first.kernel, first.grid, first.launches) == ("a", (4, 1, 1), 2)
    assert first.seconds == pytest.approx(3e-6)
    assert (second.kernel, third.grid) == ("b", (8, 1, 1))
    trace.write_text("{}")
    with pytest.raises(InputError, match="no trace of torch's profiler"):
        kernel_runs(trace)


def test_measurements_are_stored_and_can_be_scored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from wavecast.benchmarking.accuracy.validate import validate

    def seconds(self: LocalGpu, work: object) -> float:
        return 1e-4

    local = LocalGpu("AMD Instinct MI300X", "gfx942", 304, "torch")
    monkeypatch.setattr(gpu, "local_gpu", lambda: local)
    monkeypatch.setattr(LocalGpu, "seconds", seconds)
    monkeypatch.setattr(gpu, "program", lambda op: None)
    problems = (("gemm", "512x512x512", {"dtype": "bf16"}),)
    monkeypatch.setattr(measure, "PROBLEMS", problems)
    script = tmp_path / "scale.py"
    script.write_text(SCRIPT)
    runs = (KernelRun("scale", (4, 1, 1), 1, 5e-6), KernelRun("fill", (1, 1, 1), 1, 2e-6))
    monkeypatch.setattr(gpu, "profile_script", lambda path: runs)
    path, records = measure.measure([script], tmp_path / "results")
    assert path.name == "mi300x.jsonl"
    assert [record["op"] for record in records] == ["gemm", "kernel"]
    assert [json.loads(line) for line in path.read_text().splitlines()] == list(records)
    assert records[1]["kernel"] == "scale"
    assert records[1]["time_us"] == pytest.approx(5.0)
    assert records[1]["predicted_us"] > 0
    scored = validate([path])
    assert scored.outcomes[0].measured == pytest.approx(1e-4)
    assert scored.outcomes[0].prediction.seconds * 1e6 == pytest.approx(records[0]["predicted_us"])
    assert sum(scored.files[0].not_predicted.values()) == 1


SCRIPT = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offset, 2 * tl.load(x_ptr + offset, mask=offset < n), mask=offset < n)

x = torch.ones(1000, device="cuda")
scale[(4,)](x, 1000, BLOCK=256)
"""
