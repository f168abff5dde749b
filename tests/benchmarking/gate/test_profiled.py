"""Profiles under guard: times of categories against a baseline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wavecast.benchmarking.environment import emulated_environment
from wavecast.benchmarking.gate import judge
from wavecast.benchmarking.gate.baseline import Baseline
from wavecast.benchmarking.gate.measuring import measure
from wavecast.benchmarking.gate.settings import GateSettings, of_table
from wavecast.benchmarking.gate.verdict import Status
from wavecast.errors import InputError, UsageError

_GPU = {"name": "AMD Instinct MI300X", "numSms": 304, "totalGlobalMem": 206141652992}


def _write(folder: Path, gemm: int) -> None:
    events = [
        {"ph": "X", "cat": "kernel", "name": name, "pid": 2, "tid": 0, "ts": ts, "dur": duration,
         "args": {"device": 2, "stream": 0}}
        for ts, (name, duration) in enumerate(
            [("Cijk_Alik_Bljk_BBS_BH_MT64x32x256_", gemm), ("at::native::index_elementwise", 10)]
        )
    ]  # fmt: skip
    text = json.dumps({"deviceProperties": [_GPU], "traceEvents": events})
    (folder / "run.json").write_text(text)


def _settings(folder: Path, chip: str = "mi300x") -> GateSettings:
    return of_table({"subjects": [{"profile": "run.json", "arch": [chip]}]}, folder)


def _taken(folder: Path, chip: str = "mi300x"):
    (guard,) = _settings(folder, chip).guards
    return measure(guard, folder, lambda device: emulated_environment(device, folder))


def test_a_slower_category_fails_the_gate(tmp_path: Path) -> None:
    _write(tmp_path, 100)
    taken = _taken(tmp_path)
    keys = [record.subject.key for record in taken[0].records]
    assert keys == ["kernel run.json:all", "kernel run.json:gemm", "kernel run.json:index-and-copy"]
    baseline = judge.update_baseline(Baseline(), taken, judge.everything)
    assert not judge.judge(baseline, taken).broken
    _write(tmp_path, 130)
    verdict = judge.judge(baseline, _taken(tmp_path))
    assert verdict.broken
    worse = {one.subject for one in verdict.judged if one.status is Status.WORSE}
    assert {key.removeprefix("kernel ") for key in worse} == {"run.json:all", "run.json:gemm"}


def test_a_profile_of_another_chip_or_none(tmp_path: Path) -> None:
    _write(tmp_path, 100)
    (taken,) = _taken(tmp_path, "mi355x")
    assert "is a profile of mi300x, not mi355x" in taken.failed
    (tmp_path / "run.json").unlink()
    with pytest.raises(InputError, match="no such profile"):
        _settings(tmp_path)
    with pytest.raises(UsageError, match="operator, function, script or profile"):
        of_table({"subjects": [{"profile": "a", "script": "b"}]}, tmp_path)
