"""Copies, collectives, annotations, sequences, queues and the variation of kernels."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from wavecast.profiles.annotations import AnnotatedTime, annotated_time
from wavecast.profiles.answer import profiles
from wavecast.profiles.launching import QueueLength, queue_lengths
from wavecast.profiles.profile import (
    NONE,
    CollectiveMessage,
    Profile,
    ProfiledKernel,
)
from wavecast.profiles.reading import read
from wavecast.profiles.sequences import kernel_sequences
from wavecast.profiles.summary import KernelVariation, variations
from wavecast.profiles.traffic import bus_bandwidth, collective_traffic, copy_traffic
from wavecast.report.kit.terminal import plain
from wavecast.report.profiles import html, perfetto, terminal
from wavecast.report.profiles import json as profiles_json


def _event(category: str, name: str, start: float, length: float, **args: Any) -> dict[str, Any]:
    host = {"pid": 7, "tid": args.pop("tid", 7)}
    where = {"pid": 2, "tid": 0} if category in ("kernel", "gpu_memcpy") else host
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": length, **where,
            "args": args}  # fmt: skip


def _trace(path: Path, events: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


_MESSAGE = {
    "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000,
    "dtype": "BFloat16", "Group size": 8,
}  # fmt: skip


def test_copies_have_the_bandwidth_of_those_with_bytes(tmp_path: Path) -> None:
    events = [
        _event("kernel", "k", 0, 1, device=0, stream=0),
        _event("gpu_memcpy", "HtoD", 10, 2, device=0, stream=0, bytes=4000),
        _event("gpu_memcpy", "HtoD", 20, 3, device=0, stream=0, bytes=6000),
        _event("gpu_memcpy", "HtoD", 30, 5, device=0, stream=0),
        _event("gpu_memcpy", "DtoD", 40, 1, device=0, stream=0, bytes="many"),
    ]
    first, second = copy_traffic(read(_trace(tmp_path / "t.json", events)))
    assert (first.name, first.count, first.bytes) == ("HtoD", 3, 10_000)
    assert first.bandwidth == pytest.approx(10_000 / 5e-6)
    assert (second.name, second.bytes, second.bandwidth) == ("DtoD", 0, None)


def test_messages_of_collectives_are_of_the_kernel_or_of_its_operator(tmp_path: Path) -> None:
    events = [
        _event("kernel", "ncclDevKernel_AllReduce", 0, 10, device=0, stream=1, **_MESSAGE),
        _event("kernel", "ncclDevKernel_AllReduce", 20, 30, device=0, stream=1, **_MESSAGE),
        _event("cpu_op", "record_param_comms", 40, 10,
               **{**_MESSAGE, "Collective name": "_allgather_base", "dtype": "Byte",
                  "Out msg nelems": 8000}),
        _event("cuda_runtime", "hipLaunchKernel", 42, 2, correlation=3),
        _event("kernel", "ncclDevKernel_AllGather", 60, 4, device=0, stream=1, correlation=3),
        _event("kernel", "ncclDevKernel_Other", 70, 1, device=0, stream=1,
               **{**_MESSAGE, "dtype": "nothing"}),
    ]  # fmt: skip
    profile = read(_trace(tmp_path / "t.json", events))
    reduce = CollectiveMessage("allreduce", 2000, 2000, 8)
    gather = CollectiveMessage("_allgather_base", 1000, 8000, 8)
    assert profile.messages == {0: reduce, 1: reduce, 2: gather}
    found = collective_traffic(profile)
    assert [(one.operation, one.input_bytes, one.output_bytes, one.ranks) for one in found] == [
        ("allreduce", 2000, 2000, 8), ("_allgather_base", 1000, 8000, 8)
    ]  # fmt: skip
    assert [(one.count, one.seconds) for one in found] == [(2, 40_000 * 1e-9), (1, 4000 * 1e-9)]
    assert found[0].algorithm_bandwidth == pytest.approx(2000 / 20e-6)
    assert found[0].bus_bandwidth == pytest.approx(2000 / 20e-6 * 2 * 7 / 8)
    assert found[0].best_bus_bandwidth == pytest.approx(2000 / 10e-6 * 2 * 7 / 8)
    assert found[1].bus_bandwidth == pytest.approx(8000 / 4e-6 * 7 / 8)


@pytest.mark.parametrize(
    ("operation", "ranks", "factor"),
    [("broadcast", 0, 1.0), ("allreduce", 0, None), ("gossip", 8, None), ("all_to_all", 4, 0.75)],
)
def test_bus_bandwidth_where_operation_and_ranks_are_known(
    operation: str, ranks: int, factor: float | None
) -> None:
    found = bus_bandwidth(CollectiveMessage(operation, 100, 50, ranks), 1e10)
    assert found == (factor and pytest.approx(1e10 * factor))


def _ranges(
    path: tuple[str, ...], count: int, host: int, low: int, high: int, launches: int, device: int
) -> AnnotatedTime:
    """With times in nanoseconds."""
    host_times = (time * 1e-9 for time in (host, low, high))
    return AnnotatedTime(path, count, *host_times, launches, device * 1e-9)


def test_kernels_are_of_the_innermost_range_and_of_those_around_it(tmp_path: Path) -> None:
    def launch(number: int, at: float, length: float, thread: int = 7) -> list[dict[str, Any]]:
        call = _event("cuda_runtime", "launch", at, 1, correlation=number, tid=thread)
        kernel = _event(
            "kernel", "k", 1000 * number, length, device=0, stream=0, correlation=number
        )
        return [call, kernel]

    events = [
        _event("user_annotation", "ProfilerStep#1", 0, 100),
        _event("user_annotation", "forward", 10, 20),
        *launch(1, 12, 3),
        _event("user_annotation", "backward", 40, 50),
        *launch(2, 45, 5, thread=8),  # autograd's thread: the main thread is in `backward`
        *launch(3, 95, 7),
        _event("user_annotation", "ProfilerStep#2", 100, 60),
        *launch(4, 110, 11),
        *launch(5, 170, 13),  # after all ranges
        _event("kernel", "k", 9000, 17, device=0, stream=0),  # without a call
    ]
    found = annotated_time(read(_trace(tmp_path / "t.json", events)))
    assert found == [
        _ranges(("ProfilerStep",), 2, 160_000, 60_000, 100_000, 4, 26_000),
        _ranges(("ProfilerStep", "backward"), 1, 50_000, 50_000, 50_000, 1, 5_000),
        _ranges(("ProfilerStep", "forward"), 1, 20_000, 20_000, 20_000, 1, 3_000),
    ]


def _launched(kernels: list[tuple[str, int, int, int]]) -> Profile:
    """Kernels: (name, stream, start, duration)."""
    profile = Profile("test")
    for name, stream, start, duration in kernels:
        info = profile.kernels.number(ProfiledKernel(name))
        profile.launches.add(info, 0, stream, start, duration)
    return profile


_ADD, _SORT = "at::native::vectorized_elementwise_kernel", "at::native::radixSortKernel"


def test_sequences_of_memory_bound_kernels_on_a_stream() -> None:
    gemm = "Cijk_Ailk_Bljk_SB_MT64x64x16"
    profile = _launched([
        (_ADD, 0, 0, 10), (_ADD, 0, 15, 10), (gemm, 0, 30, 100),
        (_ADD, 0, 140, 20), (_ADD, 1, 150, 1), (_ADD, 0, 170, 20), (gemm, 0, 200, 100),
        (_ADD, 0, 310, 1),
    ])  # fmt: skip
    (found,) = kernel_sequences(profile)
    assert (found.kernels, found.count) == ((0, 0), 2)
    assert (found.seconds, found.gaps) == pytest.approx((60e-9, 15e-9))
    assert found.text.endswith(" x 2")
    profile.timeline = False
    assert kernel_sequences(profile) == []
    assert kernel_sequences(Profile("empty")) == []


def test_long_runs_are_divided() -> None:
    profile = _launched([(_ADD, 0, 10 * number, 5) for number in range(70)])
    assert sorted((len(one.kernels), one.count) for one in kernel_sequences(profile)) == [
        (6, 1),
        (32, 2),
    ]


def test_variation_of_launches() -> None:
    profile = _launched([(_ADD, 0, 0, 10), (_SORT, 0, 20, 7), (_ADD, 0, 40, 30)])
    assert variations(profile) == {0: KernelVariation(10, 30, 10.0), 1: KernelVariation(7, 7, 0.0)}
    profile.timeline = False
    assert variations(profile) == {}


def test_queue_of_launches() -> None:
    profile = Profile("test")
    kernel, call = profile.kernels.number(ProfiledKernel("k")), profile.call_names.number("launch")
    for begin, start, correlation in ((0, 10, 1), (5, 20, 2), (40, 60, 3)):
        profile.calls.add(call, 0, begin, 2, correlation)
        profile.launches.add(kernel, 0, 4, start, 5, correlation)
    profile.launches.add(kernel, 0, 4, 66, 5, 3)  # of the same graph as the one before
    profile.launches.add(kernel, 0, 4, 80, 5, NONE)
    (found,) = queue_lengths(profile, 0)
    assert found == QueueLength(4, 3, 45 / 60, 2, 20 / 60)
    assert queue_lengths(profile, 1) == []


def test_ranges_and_bytes_of_nsight_systems(tmp_path: Path) -> None:
    path = tmp_path / "p.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("""
            CREATE TABLE StringIds (id INTEGER, value TEXT);
            INSERT INTO StringIds VALUES (1, 'k'), (2, 'named'), (3, 'launch');
            CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER, name TEXT, label TEXT);
            INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (2, 'DTOH', 'Device-to-Host');
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
                streamId INTEGER, correlationId INTEGER, demangledName INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 150, 0, 7, 1, 1);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
                streamId INTEGER, correlationId INTEGER, bytes INTEGER, copyKind INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (200, 300, 0, 7, 2, 800, 2);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER,
                globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (20, 30, 9, 1, 3);
            CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, textId INTEGER,
                globalTid INTEGER);
            INSERT INTO NVTX_EVENTS VALUES (10, 60, NULL, 2, 9), (15, NULL, 'mark', NULL, 9);
        """)
        db.commit()
    profile = read(path)
    (copied,) = copy_traffic(profile)
    assert (copied.name, copied.bytes, copied.bandwidth) == ("Memcpy Device-to-Host", 800, 8e9)
    assert annotated_time(profile) == [_ranges(("named",), 1, 50, 50, 50, 1, 50)]


def test_reports_have_them(tmp_path: Path) -> None:
    events = [
        _event("user_annotation", "<b>step</b>", 0, 100),
        _event("cuda_runtime", "hipLaunchKernel", 2, 2, correlation=1),
        _event("kernel", _ADD, 10, 10, device=0, stream=0, correlation=1),
        _event("kernel", _ADD, 21, 10, device=0, stream=0),
        _event("kernel", "ncclDevKernel_AllReduce", 40, 10, device=0, stream=1, **_MESSAGE),
        _event("gpu_memcpy", "HtoD", 60, 2, device=0, stream=0, bytes=4000),
    ]
    answers = profiles(_trace(tmp_path / "t.json", events))
    text = plain(lambda console: terminal.render(answers, console), 100)
    for part in ("2 GB/s  HtoD", "350 MB/s", "allreduce, 8 ranks", "<b>step</b>", "kernel x 2",
                 "copies and fills", "critical path: ",
                 "stream 0: 1.0 launches are queued"):  # fmt: skip
        assert part in text, part
    (rank,) = profiles_json.document(answers)["ranks"]
    assert rank["copies"][0]["bandwidth"] == pytest.approx(2e9)
    assert rank["collectives"][0]["bus_bandwidth"] == pytest.approx(3.5e8)
    assert rank["annotations"][0]["path"] == ["<b>step</b>"]
    assert rank["sequences"][0]["kernels"] == [0, 0]
    assert rank["kernels"][0]["shortest"] == rank["kernels"][0]["longest"] == pytest.approx(1e-5)
    assert rank["devices"][0]["queues"][0]["launches"] == 1
    events = json.loads(perfetto.dumps(answers))["traceEvents"]
    queued = [(one["ts"], one["args"]["launches"]) for one in events if one["ph"] == "C"]
    assert queued == [(0, 1), (8, 0)]
    page = html.render(answers)
    assert "&lt;b&gt;step&lt;/b&gt;" in page
    assert "<b>step</b>" not in page
    assert "350 MB/s" in page
