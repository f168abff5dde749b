"""Damaged and hostile profiles: what can be read is read, the remainder is counted or refused."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from wavecast.errors import InputError, NothingAnalysed
from wavecast.profiles import json_stream
from wavecast.profiles.answer import profiles
from wavecast.profiles.profile import ProfiledDevice
from wavecast.profiles.reading import read

LONG = "9" * 30
DIGITS = "9" * 5000
DEEP = "[" * 100_000
KERNEL: dict[str, Any] = {
    "ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 0, "ts": 1, "dur": 2,
    "args": {"device": 0, "stream": 0, "correlation": 1},
}  # fmt: skip
COLUMNS = (
    "Kind,Kernel_Name,Start_Timestamp,End_Timestamp,Agent_Id,Queue_Id,Workgroup_Size,Grid_Size"
)
NCU = '"ID","Kernel Name","Grid Size","Device","Metric Name","Metric Unit","Metric Value"'
ROCPROF = "rocprofiler-sdk-tool"


def _file(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "profile"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(
    "changed",
    [
        {"ts": 1e300},
        {"ts": -1e16},
        {"dur": 1e18},
        {"args": {"device": 1 << 63}},
        {"args": {"correlation": (1 << 64) - 1}},
        {"name": 5},
        {"args": {"grid": DEEP}},
    ],
)
def test_an_event_with_absurd_numbers_is_left_out(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    events = [KERNEL, {**KERNEL, **changed}, {**KERNEL, "ts": 9}]
    profile = read(_file(tmp_path, {"traceEvents": events}))
    assert list(profile.launches.duration) == [2000, 2000]
    columns = (profile.launches.device, profile.launches.start, profile.launches.op)
    assert [len(column) for column in columns] == [2, 2, 2]
    assert profile.notes == ["1 record cannot be read, left out"]


@pytest.mark.parametrize(
    "given", [5, {"a": 1}, [{"id": [1], "name": ["x"]}], [{"id": 0, "numSms": "abc"}], [None]]
)
def test_properties_of_devices_that_cannot_be_read(tmp_path: Path, given: object) -> None:
    path = _file(tmp_path, {"deviceProperties": given, "traceEvents": [KERNEL]})
    (answer,) = profiles(path)
    assert answer.notes == ("the file does not name the chip of device 0: use --device",)


def test_what_follows_the_events_is_nested_too_deeply(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": [KERNEL]})[:-1] + f', "a": {DEEP}'
    profile = read(_file(tmp_path, text))
    assert (len(profile.launches), profile.devices) == (1, {0: ProfiledDevice()})


@pytest.mark.parametrize(
    "row",
    [
        f"KERNEL_DISPATCH,k,1,5,a,{LONG},64,128",
        f"KERNEL_DISPATCH,k,1,{'9' * 19},a,1,64,128",
        "KERNEL_DISPATCH,k,1,5,a,1,1e400,128",
        "KERNEL_DISPATCH,k,1,5,a,nan,64,128",
    ],
)
def test_a_row_with_absurd_numbers_is_left_out(tmp_path: Path, row: str) -> None:
    good = "KERNEL_DISPATCH,k,{},{},a,1,64,128"
    rows = (good.format(1, 5), row, good.format(6, 10))
    profile = read(_file(tmp_path, "\n".join((COLUMNS, *rows))))
    assert list(profile.launches.duration) == [4, 4]
    assert profile.notes == ["1 record cannot be read, left out"]


@pytest.mark.parametrize(
    "cells", ["k,1,5,a,1,64", "k,1,5,a,1,64,128,7", "void k<int, 3>(),1,5,a,1,64,128"]
)
def test_a_row_with_other_cells_than_the_header_is_left_out(tmp_path: Path, cells: str) -> None:
    good = "KERNEL_DISPATCH,k,1,5,a,1,64,128"
    profile = read(_file(tmp_path, "\n".join((COLUMNS, good, f"KERNEL_DISPATCH,{cells}"))))
    assert list(profile.launches.duration) == [4]
    assert profile.notes == ["1 record cannot be read, left out"]


def test_a_byte_order_mark_precedes_the_json(tmp_path: Path) -> None:
    given = {"traceEvents": [KERNEL], "deviceProperties": [{"id": 0, "name": "x"}]}
    profile = read(_file(tmp_path, b"\xef\xbb\xbf" + json.dumps(given).encode()))
    assert (profile.devices[0].name, profile.notes) == ("x", [])


def test_times_of_different_clocks_are_a_note(tmp_path: Path) -> None:
    events = [KERNEL, {**KERNEL, "ts": 1.7e15}]
    profile = read(_file(tmp_path, {"traceEvents": events}))
    assert list(profile.launches.duration) == [2000, 2000]
    (note,) = profile.notes
    assert note.startswith("kernels start up to 19,675 days apart: their times are of different")


def test_digits_of_other_scripts_are_no_times(tmp_path: Path) -> None:
    profile = read(_file(tmp_path, f"{COLUMNS}\nKERNEL_DISPATCH,k,1,²,a,1,64,128\n"))
    assert profile.notes == ["1 dispatch without times in whole nanoseconds"]


@pytest.mark.parametrize(
    ("row", "notes"),
    [
        (f'"0","k","({DIGITS}, 1, 1)","0","Duration","us","5"', 0),
        ('"0","k","(1, 1, 1)","²","Duration","us","5"', 0),
        ('"0","k","(1, 1, 1)","0","Duration","us","1e999"', 1),
        ('"0","k","(1, 1, 1)","0","Duration","us","-5"', 1),
    ],
)
def test_nsight_compute(tmp_path: Path, row: str, notes: int) -> None:
    good = '"1","k","(2, 1, 1)","0","Duration","us","5"'
    profile = read(_file(tmp_path, "\n".join((NCU, row, good))))
    assert list(profile.launches.duration) == [5000] * (2 - notes)
    assert len(profile.notes) == 1 + notes


@pytest.mark.parametrize(
    "text",
    [
        f'"{"n" * 140_000}","Kernel Name","Metric Name"\n',
        gzip.compress(f"{NCU}\n".encode() * 9000, mtime=0)[:60],
        '"ID","Kernel Name","Metric Name"\n"0","k","Duration"\n',
    ],
)
def test_nsight_compute_is_refused(tmp_path: Path, text: object) -> None:
    with pytest.raises(InputError):
        read(_file(tmp_path, text))


def _node(**metrics: object) -> dict[str, object]:
    return {"frame": {"name": "k"}, "metrics": {"count": 1, "time (ns)": 5, **metrics}}


@pytest.mark.parametrize(
    "tree",
    [
        _node(count=10**15),
        _node(count="many"),
        _node(count=-3),
        {"frame": 5, "metrics": {}},
        {"frame": {"name": "ROOT"}, "metrics": {}, "children": 5},
        {"frame": {"name": "ROOT"}, "metrics": [1], "children": []},
        "frame metrics",
    ],
)
def test_a_tree_of_proton_is_refused(tmp_path: Path, tree: object) -> None:
    with pytest.raises(InputError):
        read(_file(tmp_path, json.dumps([tree, {}, '"frame" "metrics"']).replace("\\", "")))


@pytest.mark.parametrize("info", [{"CUDA": 5}, {"CUDA": {"0": 7}}, {"CUDA": {"x": {}}}, [1]])
def test_devices_of_proton_that_cannot_be_read(tmp_path: Path, info: object) -> None:
    profile = read(_file(tmp_path, [_node(), info]))
    assert (len(profile.launches), profile.devices) == (1, {})


@pytest.mark.parametrize("changed", [{"time (ns)": 1e300}, {"time (ns)": -5}])
def test_a_scope_of_proton_with_an_absurd_time(tmp_path: Path, changed: dict[str, object]) -> None:
    profile = read(_file(tmp_path, [_node(**changed), {}]))
    assert (len(profile.launches), profile.damaged) == (0, 1)


def test_json_of_rocprofv3(tmp_path: Path) -> None:
    def dispatch(end: int, stream: int) -> dict[str, object]:
        info = {"kernel_id": 1}
        return {
            "start_timestamp": 1,
            "end_timestamp": end,
            "dispatch_info": info,
            "stream_id": {"handle": stream},
        }

    big = (1 << 64) - 1
    records = [dispatch(5, 1), dispatch(0, 1), dispatch(big, 1), dispatch(5, big)]
    process = {"buffer_records": {"kernel_dispatch": records}}
    profile = read(_file(tmp_path, {ROCPROF: [process]}))
    assert list(profile.launches.duration) == [4]
    assert (profile.damaged, profile.unfinished) == (2, 1)
    for text in (f'{{"{ROCPROF}": 5}}', f'{{"{ROCPROF}": [{{"a": {DEEP}'):
        with pytest.raises(InputError, match="not the JSON of rocprofv3"):
            read(_file(tmp_path, text))


_NSYS = (
    "start,end,deviceId,streamId,correlationId,demangledName,shortName,registersPerThread,gridX,"
    "gridY,gridZ,blockX,blockY,blockZ,staticSharedMemory,dynamicSharedMemory,localMemoryPerThread"
)


@pytest.mark.parametrize("value", [None, "abc", 1.5, b"x", 1 << 62])
def test_rows_of_a_database_with_other_types(tmp_path: Path, value: object) -> None:
    path = tmp_path / "p.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({_NSYS})")
        db.execute("CREATE TABLE StringIds (id, value)")
        for row in ((1, 5, 0, 7) + (1,) * 13, (value,) * 17):
            db.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({','.join('?' * 17)})", row)
        db.execute(
            "CREATE TABLE TARGET_INFO_GPU (id,name,smCount,totalMemory,computeMajor,computeMinor)"
        )
        db.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 5, 'a', 'b', null, null)")
    (answer,) = profiles(path)
    assert list(answer.profile.launches.duration) == [4]
    assert answer.profile.damaged == 1


def test_views_of_a_database_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    columns = ", ".join(f"x AS {name}" for name in _NSYS.split(","))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL "
            f"SELECT x + 1 FROM c) SELECT {columns} FROM c"
        )
    with pytest.raises(InputError, match="is neither a rocpd database"):
        read(path)


def test_a_packed_file_that_unpacks_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream.files, "LARGEST", 1 << 20)
    text = f'{{"{ROCPROF}": ' + " " * (2 << 20)
    with pytest.raises(InputError, match="has more than"):
        read(_file(tmp_path, gzip.compress(text.encode())))


def test_a_profile_without_kernels_says_what_could_not_be_read(tmp_path: Path) -> None:
    path = _file(tmp_path, {"traceEvents": [{**KERNEL, "ts": 1e300}]})
    with pytest.raises(NothingAnalysed, match="has no kernel") as caught:
        profiles(path)
    assert "1 record cannot be read" in caught.value.hint
