"""`wavecast bench` as a user calls it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from tests.benchmarking.measure import fake_gpu
from tests.benchmarking.measure.fake_gpu import FakeGpu
from wavecast.api.bench import bench
from wavecast.benchmarking.store.sqlite import open_store
from wavecast.cli.main import run
from wavecast.kernels import registry

pytestmark = pytest.mark.torch

FUNCTIONS = """
import torch

def twice(count):
    x = torch.ones(count, device="cuda")
    return lambda: 2 * x

def broken(count):
    raise RuntimeError("no such\\nluck")

def nothing(count):
    return count
"""


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(["bench", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "bench_functions.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.operators
def test_predicted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("rms_norm", "-a", "rows=4", "--arch", "gfx942", "--label", "main") == 0
    captured = capsys.readouterr()
    assert "operator rms_norm columns=4096 dtype=bfloat16 rows=4" in captured.out
    assert "in .wavecast/bench.sqlite" in captured.err
    store = open_store(folder / ".wavecast/bench.sqlite")
    (stored,) = store.runs()
    assert stored.label == "main"
    assert stored.finished
    assert len(list(store.records(stored.id))) == 1
    store.close()


@pytest.mark.operators
def test_python_gives_the_document_of_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "pyproject.toml").write_text('[tool.wavecast.bench]\ncache = "warm"\n')
    words = ("rms_norm", "-a", "rows=4", "--arch", "gfx942", "--no-store")
    assert call(*words, "--format", "json") == 0  # the setting is for GPUs
    printed = json.loads(capsys.readouterr().out)
    report = bench("rms_norm", axes="rows=4", arch="gfx942", no_store=True)
    assert printed == json.loads(report.json())
    assert "operator rms_norm columns=4096" in str(report)
    assert not (folder / ".wavecast").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["rms_norm", "--arch", "gfx942", "--cache", "warm"],
            "--cache does not apply to predictions (--arch)",
        ),
        (
            ["rms_norm", "--arch", "gfx942", "--no-verify"],
            "--no-verify does not apply to predictions",
        ),
        (["rms_norm", "--execute"], "--execute does not apply to measurements on the local GPU"),
        (["rms_norm", "-k", "x", "--arch", "gfx942"], "--kernels does not apply to predictions"),
        (["rms_norm", "--arch", "gfx942", "--", "-x"], "-x: only scripts take arguments after --"),
        (["a.py", "rms_norm", "--arch", "gfx942"], "a script must be the only subject"),
        (["a.py", "-a", "n=1", "--arch", "gfx942"], "--axis does not apply to scripts"),
        (["a.py", "--arch", "gfx942", "--execute"], "--execute does not apply to scripts"),
        (["a.py", "--cache", "warm"], "--cache does not apply to scripts"),
        (["rms_norm", "--arch", "gfx9"], "unknown"),
        (["rms_nrm", "--arch", "gfx942"], "rms_norm"),
        (["rms_norm", "-a", "row=4", "--arch", "gfx942"], "has no axis 'row'"),
        (["bench_functions:third", "--arch", "gfx942"], "has no function 'third'"),
        (["no_module:third", "--arch", "gfx942"], "cannot import no_module"),
    ],
)
def test_mistakes(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert call(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("wavecast: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert not (folder / ".wavecast").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("rms_norm") == 2
    assert "no GPU that PyTorch can use: choose the GPUs" in capsys.readouterr().err


def test_what_fails_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = ["bench_functions:broken", "bench_functions:nothing", "--no-store"]
    assert call(*both, "-a", "count=8", "--arch", "gfx942") == 3
    out = capsys.readouterr().out
    assert "bench_functions:broken: RuntimeError: no such luck" in out
    assert "bench_functions:nothing returns int, no function" in out


class TestOnAGpu:
    """With the fake GPU of `tests/benchmarking/measure/fake_gpu.py`."""

    @pytest.fixture
    def fake(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        made = FakeGpu()
        known = {"twice": fake_gpu.operator(made), "fast": fake_gpu.operator(made, "fast", seconds=1e-6)}  # noqa: E501  # fmt: skip
        monkeypatch.setattr(registry, "operator", lambda name: known[name])
        with made.present(monkeypatch):
            yield made

    OPTIONS = ("-a", "count=64", "--seconds", "5", "--samples", "12", "--precision", "1e-6")

    def test_measured(
        self, folder: Path, fake: FakeGpu, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert call("twice", *self.OPTIONS, "--timing", "graph", "--cache", "warm") == 0
        out = capsys.readouterr().out
        assert "operator twice count=64" in out
        assert "h200" in out
        assert re.search(r"\d [mµ]s ±0\.\d%", out)
        store = open_store(folder / ".wavecast/bench.sqlite")
        (stored,) = store.runs()
        (record,) = store.records(stored.id)
        assert (record.conditions.timing, record.conditions.cache) == ("graph", "warm")
        assert len(record.figures["measured_seconds"].samples) == 12
        store.close()

    def test_json(self, folder: Path, fake: FakeGpu, capsys: pytest.CaptureFixture[str]) -> None:
        assert call("twice", *self.OPTIONS, "--format", "json", "--no-store") == 0
        captured = capsys.readouterr()
        (record,) = json.loads(captured.out)
        assert record["figures"]["measured_seconds"]["origin"] == "measured"
        assert "note: " in captured.err
        assert not (folder / ".wavecast").exists()

    def test_refused(self, folder: Path, fake: FakeGpu, capsys: pytest.CaptureFixture[str]) -> None:
        assert call("fast", *self.OPTIONS) == 1
        out = capsys.readouterr().out
        assert "refused: operator fast count=64 dtype=float32: " in out
        assert "is faster than the" in out

    def test_interrupted(
        self,
        folder: Path,
        fake: FakeGpu,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        spend = fake.spend

        def until_interrupted(seconds: float, name: str = "") -> None:
            if len(fake.calls) > 70:
                monkeypatch.setattr(fake, "spend", spend)
                raise KeyboardInterrupt
            spend(seconds, name)

        monkeypatch.setattr(fake, "spend", until_interrupted)
        options = ("-a", "count=64,128", "--seconds", "9", "--samples", "200")
        assert call("twice", *options, "--precision", "1e-6") == 130
        out = capsys.readouterr().out
        assert "interrupted: what was measured until then is kept" in out
        store = open_store(folder / ".wavecast/bench.sqlite")
        (stored,) = store.runs()
        assert not stored.finished
        assert len(list(store.records(stored.id))) >= 1
        store.close()
