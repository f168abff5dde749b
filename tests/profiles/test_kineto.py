"""Traces of PyTorch's profiler: launches, the operators and modules that made them, devices."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from wavecast.errors import InputError, NothingAnalysed
from wavecast.profiles.answer import profiles
from wavecast.profiles.reading import read
from wavecast.profiles.summary import DEPENDENCY, HOST, SYNCHRONISATION, UNKNOWN, summarise

_GPU = {
    "name": "", "numSms": 304, "totalGlobalMem": 206141652992, "computeMajor": 9, "computeMinor": 4,
}  # fmt: skip


def _event(category: str, name: str, start: float, duration: float, **args: Any) -> dict[str, Any]:
    thread = {"pid": 2, "tid": 0} if category in ("kernel", "gpu_memcpy") else {"pid": 7, "tid": 7}
    return {
        "ph": "X", "cat": category, "name": name, **thread, "ts": start, "dur": duration,
        "args": args,
    }  # fmt: skip


def _launch(
    number: int, call: float, start: float, duration: float, kernel: str = "k"
) -> list[dict[str, Any]]:
    return [
        _event("cuda_runtime", "hipLaunchKernel", call, 2, correlation=number),
        _event("kernel", kernel, start, duration, device=2, stream=0, correlation=number),
    ]


def _write(path: Path, events: list[dict[str, Any]], **more: Any) -> Path:
    text = json.dumps(
        {"schemaVersion": 1, "deviceProperties": [_GPU], "traceEvents": events, **more}
    )
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_a_launch_is_of_the_innermost_operator_and_its_module(tmp_path: Path) -> None:
    events = [
        _event("python_function", "nn.Module: Model_0", 0, 100),
        _event("python_function", "nn.Module: Layer_3", 10, 50),
        _event("cpu_op", "aten::linear", 12, 20),
        _event("cpu_op", "aten::mm", 14, 15, **{"Input Dims": [[8, 4], [4, 2]]}),
        *_launch(5, 16, 200, 30),
        _event("cpu_op", "aten::add", 70, 10),
        *_launch(6, 72, 240, 10),
    ]
    profile = read(_write(tmp_path / "t.json.gz", events))
    launches = profile.launches
    ops = [profile.op_infos[profile.ops.info[op]] for op in launches.op]
    assert [op.name for op in ops] == ["aten::mm", "aten::add"]
    assert json.loads(ops[0].sizes) == [[8, 4], [4, 2]]
    assert [profile.modules[profile.ops.module[op]] for op in launches.op] == [
        "Model_0.Layer_3",
        "Model_0",
    ]
    assert list(launches.duration) == [30_000, 10_000]
    assert summarise(profile).by_module.keys() == {"Model.Layer", "Model"}


def test_idle_time_by_cause(tmp_path: Path) -> None:
    events = [
        *_launch(1, 0, 10, 10),  # 10 to 20
        *_launch(2, 30, 40, 10),  # called after the first has ended: 12 late, 8 of the stream
        _event("cuda_runtime", "hipDeviceSynchronize", 45, 15),
        *_launch(3, 62, 70, 5),  # after a wait for the device: 14 of it, 6 of the stream
        _event("kernel", "k", 95, 5, device=2, stream=0, correlation=99),  # no call in the file
    ]
    (device,) = summarise(read(_write(tmp_path / "t.json", events))).devices
    assert device.span == 90_000
    assert device.busy == 30_000
    assert device.idle == {
        HOST: 12_000, DEPENDENCY: 14_000, SYNCHRONISATION: 14_000, UNKNOWN: 20_000,
    }  # fmt: skip
    assert sum(device.idle.values()) == device.span - device.busy


def test_a_gap_that_a_copy_ends_has_a_cause(tmp_path: Path) -> None:
    events = [
        *_launch(1, 0, 10, 10),
        _event("cuda_runtime", "hipMemcpyAsync", 30, 5, correlation=2),
        _event("gpu_memcpy", "Memcpy HtoD", 40, 10, device=2, stream=0, correlation=2),
    ]
    (device,) = summarise(read(_write(tmp_path / "t.json", events))).devices
    assert device.idle == {HOST: 15_000, DEPENDENCY: 5_000}


def test_launches_without_a_correlation_have_no_call(tmp_path: Path) -> None:
    events = [
        _event("cuda_runtime", "hipGetDevice", 25, 4, correlation=0),
        *_launch(1, 0, 10, 10),
        _event("kernel", "k", 30, 10, device=2, stream=0, correlation=0),
    ]
    (device,) = summarise(read(_write(tmp_path / "t.json", events))).devices
    assert device.idle == {UNKNOWN: 10_000}


def test_streams_with_names_have_different_numbers(tmp_path: Path) -> None:
    streams = (7, "compute", "copies", "compute")
    events = [
        _event("kernel", "k", n, 1, device=2, stream=stream) for n, stream in enumerate(streams)
    ]
    numbers = list(read(_write(tmp_path / "t.json", events)).launches.stream)
    assert numbers[0] == 7
    assert numbers[1] == numbers[3]
    assert len(set(numbers)) == 3


def test_a_file_can_be_the_array_of_events_alone(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps(_launch(1, 0, 10, 30)))
    profile = read(file)
    assert list(profile.launches.duration) == [30_000]
    assert profile.notes == []


def test_collectives_that_overlap_are_not_exposed(tmp_path: Path) -> None:
    events = [
        *_launch(1, 0, 10, 20),
        _event("kernel", "ncclDevKernel_Generic_1(a)", 20, 30, device=2, stream=1, correlation=2),
    ]
    (device,) = summarise(read(_write(tmp_path / "t.json", events))).devices
    assert (device.collectives, device.exposed, device.overlapped) == (30_000, 20_000, 10_000)


def test_grids_of_extended_launches_are_in_work_items(tmp_path: Path) -> None:
    sizes = {"grid": [512, 2, 1], "block": [256, 1, 1]}
    events = [
        _event("cuda_runtime", "hipExtModuleLaunchKernel", 0, 1, correlation=1),
        _event("kernel", "Cijk_a", 5, 1, correlation=1, device=2, **sizes),
        _event("cuda_runtime", "hipModuleLaunchKernel", 6, 1, correlation=2),
        _event("kernel", "triton_a", 9, 1, correlation=2, device=2, **sizes),
    ]
    profile = read(_write(tmp_path / "t.json", events))
    assert [profile.kernels[i].blocks for i in profile.launches.info] == [(2, 2, 1), (512, 2, 1)]


def test_a_chip_by_its_units_and_memory(tmp_path: Path) -> None:
    (answer,) = profiles(_write(tmp_path / "t.json", _launch(1, 0, 1, 1)))
    assert answer.chip(2) == "mi300x"
    (answer,) = profiles(tmp_path / "t.json", "mi325x")
    assert answer.chip(2) == "mi325x"


def test_a_chip_that_is_not_certain_is_asked_for(tmp_path: Path) -> None:
    file = _write(tmp_path / "t.json", _launch(1, 0, 1, 1), deviceProperties=[])
    (answer,) = profiles(file)
    assert answer.chip(2) == ""
    assert any("--device" in note for note in answer.notes)


def test_ranks_of_a_folder(tmp_path: Path) -> None:
    for rank in (1, 0):
        _write(
            tmp_path / f"rank{rank}.json",
            _launch(1, 0, 1, 1 + rank),
            distributedInfo={"rank": rank},
        )
    found = profiles(tmp_path)
    assert [answer.profile.rank for answer in found] == [0, 1]


def test_an_unfinished_gzip_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    events = [event for n in range(4000) for event in _launch(n + 1, n * 10, n * 10 + 3, 5)]
    file = _write(tmp_path / "t.json.gz", events)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    profile = read(file)
    assert 0 < len(profile.launches) < 4000
    assert any("ends early" in note for note in profile.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not a profile"),
        (b"\x1f\x8b\x08", "cannot be unpacked"),
        (b'{"a": 1}', "not a profile"),
    ],
)
def test_what_is_no_profile_is_refused(tmp_path: Path, text: bytes, message: str) -> None:
    file = tmp_path / "t.json"
    file.write_bytes(text)
    with pytest.raises(InputError, match=message):
        read(file)


def test_a_trace_without_kernels_is_refused(tmp_path: Path) -> None:
    file = _write(tmp_path / "t.json", [_event("cpu_op", "aten::mm", 0, 1)])
    with pytest.raises(NothingAnalysed, match="has no kernel"):
        profiles(file)
