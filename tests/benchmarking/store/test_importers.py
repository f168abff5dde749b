"""Files of other tools: their times in seconds, devices where they are named, and what is refused.

The samples are written by hand after the formats that the importers name.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest

from wavecast.benchmarking.records import BenchRecord
from wavecast.benchmarking.store.importers import FORMATS, Imported, ImportLabels, read_file
from wavecast.benchmarking.store.importers.timings import by_name
from wavecast.errors import InputError, UnknownName, UsageError


def records(found: Imported) -> tuple[BenchRecord, ...]:
    ((_, one),) = found.runs
    return one


def seconds(record: BenchRecord) -> float:
    figure = record.figures["measured_seconds"]
    assert figure.origin == "imported"
    return figure.value


def written(path: Path, content: str | dict[str, Any] | list[Any]) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def _summary(tag: str, **values: object) -> dict[str, Any]:
    return {"tag": tag, "data": [{"name": n, "type": "x", "value": v} for n, v in values.items()]}


def nvbench() -> dict[str, Any]:
    axes = [
        {"name": "Rows", "type": "int64", "value": "4096"},
        {"name": "T", "type": "type", "value": "F32"},
    ]
    times = [
        _summary("nv/cold/time/gpu/mean", value="2.5e-05"),
        _summary("nv/cold/time/gpu/median", value="2.25e-05"),
    ]
    state = {"name": "Device=0 Rows=2^12", "device": 0, "axis_values": axes, "is_skipped": False}
    return {
        "devices": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "sm_version": 900}],
        "benchmarks": [
            {
                "name": "copy",
                "states": [
                    {**state, "summaries": times},
                    {**state, "axis_values": None, "summaries": times[:1]},
                    {**state, "is_skipped": True, "skip_reason": "too large", "summaries": None},
                ],
            }
        ],
    }


def test_nvbench(tmp_path: Path) -> None:
    found = read_file(written(tmp_path / "r.json", nvbench()))
    assert found.format == "nvbench"
    first, second = records(found)
    assert first.subject.key == "callable copy Rows=4096 T=F32"
    assert (seconds(first), seconds(second)) == (2.25e-5, 2.5e-5)
    assert (first.environment.device, first.environment.target) == ("h100_sxm", "sm_90")
    assert (first.conditions.timing, first.conditions.cache) == ("nvbench", "cold")
    assert second.notes == ("mean, no median was kept",)
    assert found.notes == ("copy Device=0 Rows=2^12: skipped, too large",)


def test_nvbench_samples(tmp_path: Path) -> None:
    document = nvbench()
    tag = "nv/json/bin:nv/cold/sample_times"
    state = document["benchmarks"][0]["states"][0]
    state["summaries"].append(_summary(tag, filename="r.json-bin/0.bin", size="3"))
    path = written(tmp_path / "r.json", document)
    with pytest.raises(InputError, match="names its samples"):
        read_file(path)
    (tmp_path / "r.json-bin").mkdir()
    (tmp_path / "r.json-bin" / "0.bin").write_bytes(struct.pack("<3f", 1e-5, 3e-5, 2e-5))
    first = records(read_file(path))[0]
    assert first.figures["measured_seconds"].samples == pytest.approx((1e-5, 3e-5, 2e-5))
    assert seconds(first) == pytest.approx(2e-5)
    (tmp_path / "r.json-bin" / "0.bin").write_bytes(b"12")
    with pytest.raises(InputError, match="has 2 bytes, 3 samples have 12"):
        read_file(path)


def test_pytest_benchmark(tmp_path: Path) -> None:
    stats = {"median": 0.002, "data": [0.001, 0.003, 0.002, 0.002]}
    document = {
        "machine_info": {"node": "box"},
        "commit_info": {"id": "0123456789abcdef", "dirty": True},
        "datetime": "2026-03-01T12:00:00+02:00",
        "benchmarks": [
            {"fullname": "t.py::test_a[8-x]", "name": "test_a[8-x]", "stats": stats,
             "params": {"rows": 8, "shape": [1, 2]}},
            {"fullname": "t.py::test_b", "name": "test_b", "stats": {"median": 0.5}},
        ],
    }  # fmt: skip
    found = read_file(written(tmp_path / "0001.json", document), labels=ImportLabels(label="main"))
    ((run, (first, second)),) = found.runs
    assert (run.label, run.commit, run.dirty) == ("main", "0123456789abcdef", True)
    assert run.started == "2026-03-01T10:00:00.000000+00:00"
    assert first.subject.key == "callable t.py::test_a rows=8 shape=[1, 2]"
    assert first.figures["measured_seconds"].samples == (0.001, 0.003, 0.002, 0.002)
    assert (seconds(first), seconds(second)) == (0.002, 0.5)
    assert first.environment.host == "box"
    assert "host time" in first.notes[0]


def test_google_benchmark(tmp_path: Path) -> None:
    def row(name: str, time: float, unit: str, **more: object) -> dict[str, Any]:
        return {"name": name, "run_name": name, "run_type": "iteration", "real_time": time,
                "time_unit": unit, **more}  # fmt: skip

    document = {
        "context": {"date": "2026-03-01T12:00:00+00:00", "host_name": "box"},
        "benchmarks": [
            row("BM_Copy/64", 1500.0, "us", repetition_index=0),
            row("BM_Copy/64", 2500.0, "us", repetition_index=1),
            row("BM_Copy/64", 2.0, "ms", run_type="aggregate", aggregate_name="median"),
            row("BM_Kernel/manual_time", 3.0, "us", run_type="aggregate", aggregate_name="mean"),
            row("BM_Kernel/manual_time", 2.0, "us", run_type="aggregate", aggregate_name="median"),
            row("BM_Bad", 0.0, "ns", error_occurred=True, error_message="no device"),
        ],
    }
    found = read_file(written(tmp_path / "g.json", document))
    copied, kernel = records(found)
    assert copied.figures["measured_seconds"].samples == (1.5e-3, 2.5e-3)
    assert seconds(copied) == pytest.approx(2e-3)
    assert (kernel.subject.name, seconds(kernel)) == ("BM_Kernel/manual_time", 2e-6)
    assert (bool(copied.notes), bool(kernel.notes)) == (True, False)
    assert found.notes == ("BM_Bad: no device",)


def test_aiter(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    path = written(
        tmp_path / "bf16_tuned_gemm.csv",
        "gfx,cu_num,M,N,K,bias,dtype,outdtype,libtype,kernelId,splitK,us,kernelName\n"
        "gfx942,304,16,5120,8192,False,torch.bfloat16,torch.bfloat16,asm,1,0,20.5,k1\n"
        "gfx942,304,32,5120,8192,False,torch.bfloat16,torch.bfloat16,asm,1,0,inf,k2\n",
    )
    found = read_file(path, labels=ImportLabels(device="mi300x"))
    (record,) = records(found)
    assert seconds(record) == pytest.approx(20.5e-6)
    assert record.subject.name == "aiter gemm"
    assert {"M": 16, "N": 5120, "K": 8192, "dtype_a": "bf16"}.items() <= record.subject.axes.items()
    assert record.environment.device == "mi300x"
    assert record.environment.more["compute_units"] == 304
    assert record.notes == ("kernel k1",)
    assert found.notes == ("1 rows of kernels that failed",)
    assert records(read_file(path))[0].environment.device == ""
    with pytest.raises(UsageError, match=r"says gfx942, mi355x is gfx950"):
        read_file(path, labels=ImportLabels(device="mi355x"))


TRACE = (
    '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name",'
    '"Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size",'
    '"VGPR_Count","Accum_VGPR_Count","SGPR_Count","Workgroup_Size_X","Workgroup_Size_Y",'
    '"Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n'
)


def _dispatch(name: str, start: int, end: int, grid: int) -> str:
    return (
        f'"KERNEL_DISPATCH","Agent 2",1,0,7,1,9,"{name}",1,{start},{end},0,0,16,0,32,'
        f"256,1,1,{grid},1,1\n"
    )


def test_rocprofv3(tmp_path: Path) -> None:
    name = "copy(float*, float const*)"
    rows = (_dispatch(name, 1000, 3500, 512), _dispatch(name, 5000, 7300, 512),
            _dispatch(name, 8000, 9000, 256))  # fmt: skip
    path = written(tmp_path / "1_kernel_trace.csv", TRACE + "".join(rows))
    large, small = records(read_file(path, labels=ImportLabels(device="MI300X", commit="abcdef0")))
    assert large.figures["measured_seconds"].samples == pytest.approx((2.5e-6, 2.3e-6))
    assert large.subject.name == name
    assert large.subject.axes == {"grid": "512x1x1", "workgroup": "256x1x1"}
    assert seconds(small) == pytest.approx(1e-6)
    assert (large.environment.device, large.environment.target) == ("mi300x", "gfx942")
    assert large.environment.commit == "abcdef0"
    with pytest.raises(InputError, match="no dispatch that can be read"):
        read_file(written(tmp_path / "2_kernel_trace.csv", TRACE))
    backwards = TRACE + _dispatch(name, 3500, 1000, 512)
    with pytest.raises(InputError, match="1 dispatch without times"):
        read_file(written(tmp_path / "3_kernel_trace.csv", backwards))


def rocpd(path: Path, *, dispatches: int) -> Path:
    """Tables of schema 3, with the columns that matter here."""
    end = "_0000f0ad"
    database = sqlite3.connect(path)
    database.executescript(f"""
        CREATE TABLE rocpd_info_agent{end} (id INTEGER PRIMARY KEY, guid TEXT, type TEXT,
            name TEXT, model_name TEXT, vendor_name TEXT, product_name TEXT);
        CREATE TABLE rocpd_info_kernel_symbol{end} (id INTEGER PRIMARY KEY, guid TEXT,
            kernel_name TEXT, display_name TEXT);
        CREATE TABLE rocpd_kernel_dispatch{end} (id INTEGER PRIMARY KEY, guid TEXT,
            agent_id INTEGER, kernel_id INTEGER, start BIGINT, "end" BIGINT,
            workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER,
            grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER);
        INSERT INTO rocpd_info_agent{end} VALUES
            (1, 'g', 'CPU', 'cpu', '', 'AMD', 'AMD EPYC'),
            (5, 'g', 'GPU', 'gfx942', 'ip discovery', 'AMD', 'AMD Instinct MI300A');
        INSERT INTO rocpd_info_kernel_symbol{end} VALUES (3, 'g', 'copy.kd', 'copy(float*)');
    """)
    for index in range(dispatches):
        database.execute(
            f"INSERT INTO rocpd_kernel_dispatch{end} VALUES (?, 'g', 5, 3, ?, ?, 64,1,1, 640,1,1)",
            (index + 1, 10_000 * index, 10_000 * index + 1500 + index),
        )
    database.commit()
    database.close()
    return path


def test_rocpd(tmp_path: Path) -> None:
    path = rocpd(tmp_path / "1_results.db", dispatches=3)
    found = read_file(path)
    (record,) = records(found)
    assert found.format == "rocpd"
    assert record.subject.key == "kernel copy(float*) grid=640x1x1 workgroup=64x1x1"
    expected = (1.5e-6, 1.501e-6, 1.502e-6)
    assert record.figures["measured_seconds"].samples == pytest.approx(expected)
    assert (record.environment.device, record.environment.board) == (
        *("mi300a", "AMD Instinct MI300A"),
    )
    with pytest.raises(UsageError, match="the file says AMD Instinct MI300A"):
        read_file(path, labels=ImportLabels(device="mi300x"))
    with pytest.raises(InputError, match="holds no kernel times"):
        read_file(rocpd(tmp_path / "2_results.db", dispatches=0))
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(InputError, match="no known format"):
        read_file(tmp_path / "other.db")


DETAILS = (
    "==PROF== Connected to process 1\n"
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
)


def _metric(launch: int, metric: str, unit: str, value: str) -> str:
    return (
        f'"{launch}","1","app","127.0.0.1","add(float *)","1","7","(256, 1, 1)","(128, 1, 1)",'
        f'"0","9.0","Section","{metric}","{unit}","{value}"\n'
    )


def test_ncu_details(tmp_path: Path) -> None:
    path = written(
        tmp_path / "ncu.csv",
        DETAILS
        + _metric(0, "Duration", "ns", "2,848")
        + _metric(0, "Memory Throughput", "%", "14.26")
        + _metric(0, "gpu__time_duration.sum", "ns", "2,848")
        + _metric(1, "Duration", "us", "3.1")
        + "==PROF== Disconnected\n",
    )
    found = read_file(path)
    (record,) = records(found)
    assert record.figures["measured_seconds"].samples == pytest.approx((2.848e-6, 3.1e-6))
    assert record.subject.axes == {"grid": "128x1x1", "workgroup": "256x1x1"}
    assert (record.environment.target, record.environment.device) == ("sm_90", "")
    assert "clocks" in found.notes[0]


def test_ncu_raw(tmp_path: Path) -> None:
    path = written(
        tmp_path / "raw.csv",
        '"ID","Kernel Name","Block Size","Grid Size","CC","gpu__time_duration.sum"\n'
        '"","","","","","usecond"\n'
        '"0","add","(256, 1, 1)","(128, 1, 1)","10.0","1,012.5"\n',
    )
    (record,) = records(read_file(path))
    assert seconds(record) == pytest.approx(1.0125e-3)
    assert record.environment.target == "sm_100"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (_metric(0, "Duration", "cycle", "5"), "no launch has a time"),
        (_metric(0, "Duration", "ns", "n/a"), "no launch has a time"),
        (_metric(0, "Duration", "ns", "117.344") + _metric(0, "x", "%", "65,77"), "LC_ALL=C"),
        (_metric(0, "x", "%", "65"), "no launch has a time"),
    ],
)
def test_ncu_that_is_not_certain(tmp_path: Path, rows: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_file(written(tmp_path / "ncu.csv", DETAILS + rows))


def _event(category: str, name: str, microseconds: float, grid: int) -> dict[str, Any]:
    launch = {"device": 0, "stream": 7, "grid": [grid, 1, 1], "block": [128, 1, 1]}
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": 1.0,
            "dur": microseconds, "args": launch}  # fmt: skip


def test_chrome_trace(tmp_path: Path) -> None:
    document = {
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
        "traceEvents": [
            _event("kernel", "gemm", 12.5, 64),
            _event("cpu_op", "aten::mm", 99.0, 1),
            _event("kernel", "gemm", 13.5, 64),
            {"ph": "M", "name": "process_name", "pid": 0},
        ],
    }
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    (record,) = records(read_file(path))
    assert record.subject.key == "kernel gemm grid=64x1x1 workgroup=128x1x1"
    assert record.figures["measured_seconds"].samples == pytest.approx((12.5e-6, 13.5e-6))
    assert (record.environment.device, record.conditions.timing) == ("h200", "chrome-trace")
    only_host = [_event("cpu_op", "aten::mm", 99.0, 1)]
    with pytest.raises(InputError, match="holds no kernel times"):
        read_file(written(tmp_path / "host.json", only_host))


def test_files_of_no_known_format(tmp_path: Path) -> None:
    for name, content in (("a.txt", "hello\n"), ("b.json", "{}"), ("c.bin", "\0\1"), ("d", "")):
        with pytest.raises(InputError, match="no known format") as error:
            read_file(written(tmp_path / name, content))
        assert all(known in str(error.value) for known in FORMATS)
    with pytest.raises(InputError, match="begins like JSON, but"):
        read_file(written(tmp_path / "cut.json", '{"benchmarks": ['))
    with pytest.raises(InputError, match="no such file"):
        read_file(tmp_path / "missing")
    with pytest.raises(UnknownName, match="nearest known: nvbench"):
        read_file(tmp_path / "b.json", "nvbnch")
    with pytest.raises(InputError, match="is not a valid google-benchmark file"):
        read_file(tmp_path / "b.json", "google-benchmark")
    packed = tmp_path / "bad.gz"
    packed.write_bytes(gzip.compress(b"{}")[:-4])
    with pytest.raises(InputError, match="cannot unpack"):
        read_file(packed)


def test_the_same_file_is_the_same_run(tmp_path: Path) -> None:
    path = written(tmp_path / "r.json", nvbench())
    ids = [read_file(path, labels=ImportLabels(label)).runs[0][0].id for label in ("a", "a", "b")]
    assert ids[0] == ids[1] != ids[2]


def test_only_names_name_devices() -> None:
    found = by_name("AMD Instinct MI300X")
    assert found is not None
    assert found.id == "mi300x"
    assert by_name("gfx942") is None
    assert by_name("NVIDIA GeForce RTX 4090") is None
