"""Records that are missing, unfinished, in a file twice, or of another time: what is left is right,
the remainder is said, and nothing is said of the host that the whole file does not say."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from wavecast.profiles.critical import HOST as HOST_PART
from wavecast.profiles.critical import WAIT, critical_path
from wavecast.profiles.findings import findings
from wavecast.profiles.profile import Profile
from wavecast.profiles.reading import read
from wavecast.profiles.replay import measured_timeline, replay
from wavecast.profiles.summary import HOST, SYNCHRONISATION, DeviceSummary, summarise

SECOND = 10**9
COLUMNS = "Kind,Agent_Id,Queue_Id,Dispatch_Id,Kernel_Name,Start_Timestamp,End_Timestamp"
Record = dict[str, Any]


def _event(category: str, name: str, start: float, length: float, **args: Any) -> Record:
    host = {"pid": 7, "tid": 7}
    where = {"pid": 0, "tid": 0} if category in ("kernel", "gpu_memcpy") else host
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": length, **where,
            "args": args}  # fmt: skip


def _launch(number: int, call: float, start: float, length: float, stream: int = 0) -> list[Record]:
    """A call and its kernel, in microseconds."""
    kernel = _event(
        "kernel", f"k{number}", start, length, device=0, stream=stream, correlation=number
    )
    return [_event("cuda_runtime", "hipLaunchKernel", call, 4, correlation=number), kernel]


def _copy(number: int, call: float, start: float, length: float) -> list[Record]:
    copy = _event("gpu_memcpy", "HtoD", start, length, device=0, stream=0, correlation=number)
    return [_event("cuda_runtime", "hipMemcpyAsync", call, 4, correlation=number), copy]


def _kineto(tmp_path: Path, events: Sequence[Record]) -> Profile:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events)}))
    return read(path)


def _csv(tmp_path: Path, times: Sequence[tuple[int, int]], columns: str = COLUMNS) -> Profile:
    rows = [
        f"KERNEL_DISPATCH,Agent 4,1,{number},k{number},{start},{end}"
        for number, (start, end) in enumerate(times)
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join((columns, *rows)))
    return read(path)


def _rocprofv3(tmp_path: Path, times: Sequence[tuple[int, int]]) -> Profile:
    records = [
        {"start_timestamp": start, "end_timestamp": end, "dispatch_info": {"kernel_id": number}}
        for number, (start, end) in enumerate(times)
    ]
    process = {"buffer_records": {"kernel_dispatch": records}}
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [process]}))
    return read(path)


def _device(profile: Profile) -> DeviceSummary:
    (found,) = summarise(profile).devices
    return found


def _about_host(profile: Profile) -> set[str]:
    found = findings(profile, summarise(profile), None)
    return {one.what for one in found if "host" in one.what}


def _host_bound() -> list[Record]:
    """Kernels of 100 us that start 10 us after calls that are 300 us apart."""
    return [one for n in range(6) for one in _launch(n + 1, 1000 + 300 * n, 1010 + 300 * n, 100)]


def test_launches_without_kernels_are_counted_and_the_host_is_not_blamed(tmp_path: Path) -> None:
    events = _host_bound()
    whole = _kineto(tmp_path, events)
    assert _about_host(whole) == {"device 0 waits for the host"}
    lost = {2, 3, 5, 6}
    left = [e for e in events if e["cat"] != "kernel" or e["args"]["correlation"] not in lost]
    profile = _kineto(tmp_path, left)
    (note,) = profile.notes
    assert note.startswith("4 of 6 launches without a kernel in the file")
    assert set(_device(profile).idle) == {"not known"}
    assert _about_host(profile) == set()
    parts = critical_path(profile, 0).parts
    assert not {HOST_PART, WAIT} & {*parts}
    assert parts["not known"] == 800_000  # from the end of the first kernel to the fourth
    times = [duration * 1e-9 for duration in profile.launches.duration]
    assert replay(profile, times, graphs=True).span == measured_timeline(profile).span


def test_gaps_before_the_first_lost_launch_keep_their_cause(tmp_path: Path) -> None:
    events = _host_bound()
    profile = _kineto(tmp_path, [one for one in events if one["name"] != "k5"])
    idle = _device(profile).idle
    assert idle[HOST] == 3 * 194_000  # from the end of a kernel to that of the next call
    assert idle["not known"] == 500_000


def test_a_copy_that_is_missing_is_counted(tmp_path: Path) -> None:
    events = [*_launch(1, 0, 10, 100), *_copy(2, 150, 160, 400), *_launch(3, 600, 620, 50)]
    profile = _kineto(tmp_path, [one for one in events if one["name"] != "HtoD"])
    (note,) = profile.notes
    assert note.startswith("1 of 1 copying call without a copy in the file")
    assert set(_device(profile).idle) == {"not known"}


def _random_run(rng: random.Random, longest: int) -> list[Record]:
    """A run that the device bounds, and the host where it computes for up to `longest` us."""
    events: list[Record] = []
    now = free = 0.0
    for number in range(1, 40):
        now += rng.choice([5, 5, 5, longest])
        start = max(now + 8, free)
        free = start + rng.choice([2, 60, 300])
        make = _copy if rng.random() < 0.2 else _launch
        events += make(number, now, start, free - start)
        if rng.random() < 0.1:
            wait = _event("cuda_runtime", "hipDeviceSynchronize", now + 4, max(1, free - now))
            events.append(wait)
            now = wait["ts"] + wait["dur"]
    return events


_LONGEST = (5, 40, 400)


@pytest.mark.parametrize("seed", range(12))
def test_without_some_records_nothing_new_is_said_of_the_host(tmp_path: Path, seed: int) -> None:
    """Those of kernels, copies and the calls that launch them."""
    rng = random.Random(seed)
    events = _random_run(rng, _LONGEST[seed % 3])
    said = _about_host(_kineto(tmp_path, events))
    for _ in range(4):
        share = rng.choice([0.02, 0.2, 0.6])
        left = [
            one for one in events
            if one["name"] == "hipDeviceSynchronize" or rng.random() >= share
            or (one["cat"] == "cuda_runtime" and rng.random() < 0.5)
        ]  # fmt: skip
        assert _about_host(_kineto(tmp_path, left)) <= said


def test_the_runs_of_the_property_say_something_of_the_host(tmp_path: Path) -> None:
    said = [
        _about_host(_kineto(tmp_path, _random_run(random.Random(n), _LONGEST[n % 3])))
        for n in range(12)
    ]
    late = ["device 0 waits for the host" in one for one in said]
    assert any(late)
    assert not all(late)


def _nsys(tmp_path: Path, times: Sequence[tuple[int, int | None]]) -> Profile:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE StringIds (id, value)")
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId,"
            " demangledName)"
        )
        for number, (start, end) in enumerate(times):
            db.execute("INSERT INTO StringIds VALUES (?, ?)", (number, f"k{number}"))
            row = (start, end, 0, 7, number)
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?)", row)
    return read(path)


def _rocpd(tmp_path: Path, times: Sequence[tuple[int, int | None]]) -> Profile:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE rocpd_info_kernel_symbol (id, display_name)")
        db.execute('CREATE TABLE rocpd_kernel_dispatch (agent_id, kernel_id, start, "end")')
        for number, (start, end) in enumerate(times):
            db.execute("INSERT INTO rocpd_info_kernel_symbol VALUES (?, ?)", (number, f"k{number}"))
            row = (1, number, start, end)
            db.execute("INSERT INTO rocpd_kernel_dispatch VALUES (?, ?, ?, ?)", row)
    return read(path)


_READERS = (_csv, _rocprofv3, _nsys, _rocpd)
_BASE = 1_000_000_000
_GOOD = ((_BASE, _BASE + 10_000), (_BASE + 70_000, _BASE + 120_000))


@pytest.mark.parametrize("reader", _READERS)
@pytest.mark.parametrize(
    "bad",
    [
        (_BASE + 20_000, 0),
        (_BASE + 20_000, _BASE + 19_000),
        (_BASE + 20_000, _BASE + 20_000),
        (0, _BASE + 20_000),
        (0, 0),
    ],
)
def test_what_did_not_end_stays_out(
    tmp_path: Path, reader: Callable[..., Profile], bad: tuple[int, int]
) -> None:
    profile = reader(tmp_path, (_GOOD[0], bad, _GOOD[1]))
    assert (
        "1 record without a start and a later end: left out of times, means and spans"
        in profile.notes
    )
    device = _device(profile)
    assert (device.kernels, device.span, device.busy) == (2, 120_000, 60_000)
    assert [one.count for one in summarise(profile).by_kernel.values()] == [1, 1]


@pytest.mark.parametrize("reader", _READERS)
@pytest.mark.parametrize(
    ("far", "side"),
    [
        ((5, 40_005), "1 s before"),
        ((_BASE + 7200 * SECOND, _BASE + 7200 * SECOND + 9), "7,200 s after"),
        ((_BASE // 4, _BASE // 4 + 9), "0.75 s before"),
    ],
)
def test_a_record_far_from_all_others_is_named(
    tmp_path: Path, reader: Callable[..., Profile], far: tuple[int, int], side: str
) -> None:
    profile = reader(tmp_path, (_GOOD[0], far, _GOOD[1]))
    name = profile.kernels[1].name
    (note,) = [one for one in profile.notes if "far" in one or "starts" in one]
    assert note.startswith(f"{name} starts {side}")
    device = _device(profile)
    assert (device.kernels, device.span, device.busy) == (2, 120_000, 60_000)


@pytest.mark.parametrize("reader", [_nsys, _rocpd])
def test_a_row_without_an_end_stays_out(tmp_path: Path, reader: Callable[..., Profile]) -> None:
    profile = reader(tmp_path, (_GOOD[0], (_BASE + 20_000, None), _GOOD[1]))
    assert (profile.unfinished, profile.damaged, _device(profile).busy) == (1, 0, 60_000)


@pytest.mark.parametrize("reader", _READERS)
def test_two_kernels_at_a_time_are_two(tmp_path: Path, reader: Callable[..., Profile]) -> None:
    profile = reader(tmp_path, (_GOOD[0], _GOOD[0], _GOOD[1]))
    assert _device(profile).kernels == 3


def _evenly(first: int, number: int) -> list[tuple[int, int]]:
    return [(first + 50_000 * n, first + 50_000 * n + 20_000) for n in range(number)]


@pytest.mark.parametrize(
    "times",
    [
        _evenly(_BASE, 1) + _evenly(3 * _BASE, 1),  # which one is far?
        _evenly(_BASE, 10) + _evenly(3 * _BASE, 10),  # a pause
        _evenly(_BASE, 10) + _evenly(2 * _BASE, 1) + _evenly(3 * _BASE, 10),
        [(n * _BASE, n * _BASE + 20_000) for n in range(1, 9)],  # one a second
        [(n * _BASE, n * _BASE + 20_000) for n in range(1, 9)] + _evenly(20 * _BASE, 3),
    ],
)
def test_pauses_of_a_run_stay(tmp_path: Path, times: list[tuple[int, int]]) -> None:
    profile = _csv(tmp_path, times)
    assert len(profile.launches) == len(times)
    assert profile.notes == []


def test_a_kernel_far_from_others_that_follows_its_call_stays(tmp_path: Path) -> None:
    events = [
        *_launch(1, 0, 10, 5),
        *(one for n in range(2, 9) for one in _launch(n, 3e6 + 50 * n, 3e6 + 50 * n + 10, 20)),
    ]
    profile = _kineto(tmp_path, events)
    assert (len(profile.launches), profile.notes) == (8, [])


def test_a_kernel_far_from_its_call_does_not_move_the_others(tmp_path: Path) -> None:
    events = _host_bound()
    events[5]["ts"] -= 5e6
    profile = _kineto(tmp_path, events)
    assert list(profile.launches.start) == [1_010_000 + 300_000 * n for n in (0, 1, 3, 4, 5)]
    named, lost = profile.notes
    assert named.startswith("k3 starts 4.9994 s before the nearest other record: left out")
    assert lost.startswith("1 of 6 launches without a kernel")


def test_a_clock_that_jumps_back_has_no_idle_times_by_cause(tmp_path: Path) -> None:
    events = _host_bound()
    for kernel in events[7::2]:
        kernel["ts"] -= 1e6
    profile = _kineto(tmp_path, events)
    assert any(one.startswith("the clock of device 0 jumps") for one in profile.notes)
    assert not set(_device(profile).idle) & {HOST, SYNCHRONISATION}
    assert _about_host(profile) == set()


def test_a_record_in_the_file_twice_counts_once(tmp_path: Path) -> None:
    events = [*_host_bound(), _host_bound()[3]]
    profile = _kineto(tmp_path, events)
    assert profile.notes == ["1 record in the file twice, counted once"]
    assert (len(profile.launches), _device(profile).busy) == (6, 600_000)


_COUNTED = f"{COLUMNS},Counter_Name,Counter_Value"


def _counters(tmp_path: Path, rows: str) -> Profile:
    path = tmp_path / "t.csv"
    path.write_text(f"{_COUNTED}\n{rows}")
    return read(path)


def test_a_counter_of_several_passes_is_their_mean(tmp_path: Path) -> None:
    profile = _counters(
        tmp_path,
        "KERNEL_DISPATCH,4,1,1,k,100,130,A[0],3\n"
        "KERNEL_DISPATCH,4,1,1,k,100,130,A[1],1\n"
        "KERNEL_DISPATCH,4,1,1,k,900,910,A[0],6\n"
        "KERNEL_DISPATCH,4,1,1,k,900,910,B,5\n",
    )
    assert profile.counters == {0: {"A": 5.0, "B": 5.0}}
    assert list(profile.launches.duration) == [20]


def test_another_kernel_with_the_number_of_a_dispatch_is_another_launch(tmp_path: Path) -> None:
    profile = _counters(
        tmp_path,
        "KERNEL_DISPATCH,4,1,1,k,100,130,A,3\nKERNEL_DISPATCH,4,1,1,other,900,910,B,5\n",
    )
    assert profile.counters == {0: {"A": 3.0}, 1: {"B": 5.0}}
    assert [profile.kernels[n].name for n in profile.launches.info] == ["k", "other"]


def test_a_pass_with_times_gives_them_to_one_without(tmp_path: Path) -> None:
    profile = _counters(
        tmp_path,
        "KERNEL_DISPATCH,4,1,1,k,100,0,A,3\n"
        "KERNEL_DISPATCH,4,1,2,k,200,0,A,7\n"
        "KERNEL_DISPATCH,4,1,1,k,900,910,B,5\n",
    )
    assert (list(profile.launches.start), list(profile.launches.duration)) == ([900], [10])
    assert profile.counters == {0: {"A": 3.0, "B": 5.0}}
    assert profile.unfinished == 1
