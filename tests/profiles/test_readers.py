"""Tables, databases and trees of other profilers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from wavecast.errors import InputError
from wavecast.profiles.profile import NONE, ProfiledDevice
from wavecast.profiles.reading import read


def _file(tmp_path: Path, text: str, name: str = "p.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_kernel_trace_of_rocprofv3(tmp_path: Path) -> None:
    header = (
        "Kind,Agent_Id,Queue_Id,Dispatch_Id,Kernel_Name,Start_Timestamp,End_Timestamp,"
        "LDS_Block_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,"
        "Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z"
    )
    rows = (
        'KERNEL_DISPATCH,"Agent 4",1,1,"add(float*, int)",1000,1700,512,8,4,16,64,1,1,128,3,1',
        'KERNEL_DISPATCH,"Agent 4",1,2,"mul.kd",2000,x,0,8,0,16,64,1,1,128,1,1',
        'KERNEL_DISPATCH,"Agent 5",1,3,"mul.kd",2000,2100,0,8,0,,64,1,1,128,1,one',
    )
    profile = read(_file(tmp_path, "\n".join((header, *rows))))
    first, second = profile.kernels.values
    assert (first.name, first.blocks, first.threads) == ("add(float*, int)", (2, 3, 1), (64, 1, 1))
    assert (first.registers, first.accumulators, first.lds_bytes) == (8, 4, 512)
    assert second.name == "mul"
    assert list(profile.launches.duration) == [700]
    assert profile.notes == [
        "1 record cannot be read, left out",
        "1 record without a start and a later end: left out of times, means and spans",
    ]


def test_counters_of_a_dispatch_are_one_launch_and_instances_are_added(tmp_path: Path) -> None:
    header = (
        "GPU_ID,Dispatch_ID,Grid_Size,Workgroup_Size,Kernel_Name,Start_Timestamp,End_Timestamp,"
        "Counter_Name,Counter_Value"
    )
    text = f"""{header}
2,1,1024,256,k,10,30,TCC_HIT[0],3.0
2,1,1024,256,k,10,30,TCC_HIT[1],4.0
2,2,1024,256,k,40,45,TCC_HIT[0],1.0
"""
    profile = read(_file(tmp_path, text))
    assert list(profile.launches.duration) == [20, 5]
    assert profile.counters == {0: {"TCC_HIT": 7.0}, 1: {"TCC_HIT": 1.0}}
    assert profile.kernels[0].blocks == (4, 1, 1)
    assert profile.notes == []


def test_passes_of_a_dispatch_for_other_counters_are_averaged(tmp_path: Path) -> None:
    header = (
        "GPU_ID,Dispatch_ID,Grid_Size,Workgroup_Size,Kernel_Name,Start_Timestamp,End_Timestamp,"
        "Counter_Name,Counter_Value"
    )
    text = f"""{header}
2,1,1024,256,k,100,130,A,3.0
2,2,1024,256,k,140,145,A,1.0
2,1,1024,256,k,900,910,B,4.0
2,1,1024,256,k,900,910,C,4.0
2,1,1024,256,k,500,550,D,4.0
2,1,1024,256,k,5e9,7e9,E,4.0
"""
    profile = read(_file(tmp_path, text))
    assert list(profile.launches.duration) == [30, 5]  # the mean of 30, 10 and 50
    assert list(profile.launches.start) == [100, 140]
    assert profile.counters[0] == {"A": 3.0, "B": 4.0, "C": 4.0, "D": 4.0, "E": 4.0}
    assert profile.notes == ["1 dispatch ran up to 3 times for all counters: their times are means"]


def test_json_of_rocprofv3_names_kernels_by_their_symbols(tmp_path: Path) -> None:
    def dispatch(kernel: int, start: int, correlation: int) -> dict[str, object]:
        return {
            "start_timestamp": start, "end_timestamp": start + 5,
            "correlation_id": {"internal": correlation},
            "dispatch_info": {
                "agent_id": {"handle": 9}, "queue_id": {"handle": 3}, "kernel_id": kernel,
                "workgroup_size": {"x": 64, "y": 1, "z": 1},
                "grid_size": {"x": 640, "y": 1, "z": 1},
            },
        }  # fmt: skip

    process = {
        "agents": [
            {"id": {"handle": 8}, "type": 1, "name": "cpu"},
            {"id": {"handle": 9}, "type": 2, "name": "gfx950",
             "product_name": "AMD Instinct MI350X", "cu_count": 256,
             "mem_banks": [{"size_in_bytes": 100}]},
        ],
        "kernel_symbols": [{"kernel_id": 4, "demangled_kernel_name": "f(int)", "sgpr_count": 32}],
        "buffer_records": {"kernel_dispatch": [dispatch(4, 10, 1), dispatch(5, 20, 0)]},
    }  # fmt: skip
    profile = read(_file(tmp_path, json.dumps({"rocprofiler-sdk-tool": [process]}), "r.json"))
    assert [profile.kernels[i].name for i in profile.launches.info] == ["f(int)", "kernel 5"]
    assert list(profile.launches.correlation) == [1, NONE]
    assert profile.kernels[0].blocks == (10, 1, 1)
    assert profile.devices == {0: ProfiledDevice("AMD Instinct MI350X", "gfx950", 256, 100)}
    assert profile.notes == ["1 dispatch without a symbol that names the kernel"]


def test_rocpd_with_two_processes_and_without_a_column(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    with closing(sqlite3.connect(path)) as db, db:
        for process in ("_a", "_b"):
            db.execute(f"CREATE TABLE rocpd_info_agent{process} (id, name, product_name)")
            db.execute(f"INSERT INTO rocpd_info_agent{process} VALUES (1, 'gfx942', 'MI300X')")
            db.execute(
                f"CREATE TABLE rocpd_info_kernel_symbol{process} (id, display_name, sgpr_count)"
            )
            db.execute(
                f"INSERT INTO rocpd_info_kernel_symbol{process} VALUES (7, 'k{process}', 24)"
            )
            db.execute(f"CREATE TABLE rocpd_string{process} (id, string)")
            db.execute(f"CREATE TABLE rocpd_memory_copy{process} (name_id, start, end)")
            db.execute(
                f"CREATE TABLE rocpd_kernel_dispatch{process} (agent_id, kernel_id, stream_id,"
                ' start, "end", workgroup_size_x, workgroup_size_y, workgroup_size_z,'
                " grid_size_x, grid_size_y, grid_size_z)"
            )
            db.execute(
                f"INSERT INTO rocpd_kernel_dispatch{process} VALUES (1,7,2,10,30,64,1,1,128,1,1)"
            )
    profile = read(path)
    assert [profile.kernels[i].name for i in profile.launches.info] == ["k_a", "k_b"]
    assert list(profile.launches.duration) == [20, 20]
    assert {device.target for device in profile.devices.values()} == {"gfx942"}


def test_nsight_systems(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE StringIds (id, value)")
        db.executemany(
            "INSERT INTO StringIds VALUES (?, ?)", [(1, "k(int)"), (2, "cudaLaunchKernel")]
        )
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId,"
            " correlationId, demangledName, registersPerThread, gridX, gridY, gridZ, blockX,"
            " blockY, blockZ, staticSharedMemory, dynamicSharedMemory)"
        )
        db.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 25, 0, 7, 3, 1, 40, 2, 1, 1,"
            " 128, 1, 1, 16, 32)"
        )
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid,"
            " correlationId, nameId)"
        )
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 4, 1, 3, 2)")
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (6, 7, 1, 0, 2)")
    profile = read(path)
    assert list(profile.calls.correlation) == [profile.launches.correlation[0], NONE]
    (kernel,) = profile.kernels.values
    assert (kernel.name, kernel.blocks, kernel.registers, kernel.lds_bytes) == (
        "k(int)", (2, 1, 1), 40, 48,
    )  # fmt: skip
    assert profile.call_names.values == ["cudaLaunchKernel"]


def test_correlations_of_nsight_systems_are_those_of_a_process(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE StringIds (id, value)")
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, globalPid,"
            " correlationId)"
        )
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId)"
        )
        for process in (1 << 24, 2 << 24):
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 25, 0, 7, ?, 3)", (process,)
            )
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 4, ?, 3)", (process + 77,)
            )
    profile = read(path)
    assert list(profile.calls.correlation) == list(profile.launches.correlation)
    assert len(set(profile.launches.correlation)) == 2


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE t (a)")
    with pytest.raises(InputError, match="neither a rocpd database nor"):
        read(path)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(InputError, match="cannot be read"):
        read(path)


_NCU = (
    '"ID","Kernel Name","Stream","Block Size","Grid Size","Device","CC",'
    '"Metric Name","Metric Unit","Metric Value"'
)


def test_details_of_nsight_compute_after_its_messages(tmp_path: Path) -> None:
    text = f"""==PROF== Connected
{_NCU}
"0","k(int)","7","(256, 1, 1)","(10, 2, 1)","0","9.0","Duration","us","1,234.5"
"0","k(int)","7","(256, 1, 1)","(10, 2, 1)","0","9.0","Registers Per Thread","register/thread","32"
"1","k(int)","7","(256, 1, 1)","(10, 2, 1)","0","9.0","Registers Per Thread","register/thread","32"
"""
    profile = read(_file(tmp_path, text))
    assert list(profile.launches.duration) == [1_234_500]
    assert profile.kernels[0].registers == 32
    assert profile.counters[0]["Duration"] == 1234.5
    assert profile.devices[0].target == "sm_90"
    assert any("1 launch without a time" in note for note in profile.notes)


def test_decimal_commas_of_nsight_compute_are_refused(tmp_path: Path) -> None:
    text = f'{_NCU}\n"0","k","7","(1, 1, 1)","(1, 1, 1)","0","9.0","Duration","us","1.234,56"\n'
    with pytest.raises(InputError, match="decimal commas"):
        read(_file(tmp_path, text))


def test_hatchet_of_proton_has_launches_in_their_scopes(tmp_path: Path) -> None:
    leaf = {
        "frame": {"name": "k"}, "children": [],
        "metrics": {"time (ns)": 300, "count": 3, "device_id": "0", "device_type": "HIP"},
    }  # fmt: skip
    tree = {"frame": {"name": "ROOT"}, "metrics": {}, "children": [
        {"frame": {"name": "layer"}, "metrics": {}, "children": [leaf]},
    ]}  # fmt: skip
    info = {"HIP": {"0": {"arch": "gfx942", "num_sms": 304}}}
    profile = read(_file(tmp_path, json.dumps([tree, info]), "p.hatchet"))
    assert list(profile.launches.duration) == [100, 100, 100]
    assert {profile.op_infos[profile.ops.info[op]].name for op in profile.launches.op} == {"layer"}
    assert profile.devices[0] == ProfiledDevice(target="gfx942", units=304)
