"""Memory of tensors over a run, from PyTorch's profiler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wavecast.profiles.answer import profiles
from wavecast.profiles.memory import TensorMemory, memory_use, outline
from wavecast.profiles.profile import MemorySamples, Profile
from wavecast.profiles.reading import read
from wavecast.report.kit.terminal import plain
from wavecast.report.profiles import html, perfetto, terminal
from wavecast.report.profiles import json as profiles_json

_HOST = {"pid": 7, "tid": 7}


def _sample(time: float, allocated: object, kind: object = 6, **more: Any) -> dict[str, Any]:
    about = {"Total Allocated": allocated, "Total Reserved": 8192, "Device Id": 0}
    return {
        "ph": "i", "cat": "cpu_instant_event", "name": "[memory]", **_HOST, "ts": time,
        "args": {**about, "Device Type": kind, **more},
    }  # fmt: skip


def _file(tmp_path: Path) -> Path:
    def host(category: str, name: str, start: float, length: float) -> dict[str, Any]:
        return {"ph": "X", "cat": category, "name": name, **_HOST, "ts": start, "dur": length}

    events = [
        _sample(10, 1000),
        host("python_function", "nn.Module: Model_0", 15, 100),
        host("cpu_op", "aten::mm", 20, 10),
        host("cpu_op", "aten::empty", 22, 4),
        _sample(24, 5000),
        _sample(28, 4000, **{"Total Reserved": 9000}),
        _sample(60, 4500),
        _sample(12, 10**9, kind=0),
        _sample(13, "many"),
        {**_sample(14, 1), "ts": None},
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", **_HOST, "ts": 3},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 0, "ts": 30, "dur": 2,
         "args": {"device": 2, "stream": 0, "correlation": 1}},
    ]  # fmt: skip
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def test_the_peak_is_in_the_operator_and_module_of_its_thread(tmp_path: Path) -> None:
    (used,) = memory_use(read(_file(tmp_path)))
    assert used == TensorMemory(
        device=0, changes=4, first=1000, last=4500, peak=5000, reserved=9000, time=14_000 * 1e-9,
        operator="aten::empty", module="Model_0", allocations=2, allocated=4500,
    )  # fmt: skip


def test_without_samples_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a"}]}))
    assert memory_use(read(path)) == []
    assert memory_use(Profile("test")) == []


def test_every_output_has_it(tmp_path: Path) -> None:
    answers = profiles(_file(tmp_path))
    text = plain(lambda console: terminal.render(answers, console), 100)
    assert "at most 4.88 KiB (in aten::empty, Model_0)" in " ".join(text.split())
    (rank,) = profiles_json.document(answers)["ranks"]
    (used,) = rank["memory"]
    assert (used["peak"], used["operator"]) == (5000, "aten::empty")
    assert "at most 4.88 KiB (in aten::empty, Model_0)" in html.render(answers)
    events = json.loads(perfetto.dumps(answers))["traceEvents"]
    counted = [event["args"] for event in events if event["name"] == "memory of device 0"]
    assert [args["allocated"] for args in counted] == [1000, 5000, 4000, 4500]


def test_an_outline_keeps_the_highest() -> None:
    samples = MemorySamples()
    for number in range(1000):
        samples.add(0, 1000 - number, 7 if number != 500 else 99, 100)
    found = list(outline(samples, 10))
    assert [time for time, _, _ in found] == sorted(time for time, _, _ in found)
    assert max(allocated for _, allocated, _ in found) == 99
    assert len(found) == 10
