"""Traces of JAX for viewers: kernels of streams, calls of the host, limits, damage."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from wavecast.errors import NothingAnalysed
from wavecast.profiles.answer import profiles
from wavecast.profiles.profile import NONE
from wavecast.profiles.readers import xla_json
from wavecast.profiles.reading import read, read_ranks

_DETAILS = "regs:40 static_shared:1024 dynamic_shared:512 grid:64,2,1 block:128,1,1 occ_pct:75"
_GPU, _HOST = 1, 701
_DOT = {
    "correlation_id": "7", "kernel_details": _DETAILS, "hlo_op": "dot.3", "hlo_module": "jit_step",
    "tf_op": "jit(step)/jit(main)/dot_general:",
}  # fmt: skip


def _named(kind: str, name: str, pid: int, tid: int | None = None) -> dict[str, Any]:
    thread = {} if tid is None else {"tid": tid}
    return {"ph": "M", "pid": pid, **thread, "name": kind, "args": {"name": name}}


def _timed(
    name: str, pid: int, tid: int, ts: object, dur: object, **args: object
) -> dict[str, object]:
    return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name, "args": args}


NAMES = [
    _named("process_name", "/device:GPU:0", _GPU),
    {"ph": "M", "pid": _GPU, "name": "process_sort_index", "args": {"sort_index": 1}},
    _named("thread_name", "Stream #13(Compute,MemcpyH2D)", _GPU, 13),
    _named("thread_name", "XLA Ops", _GPU, 1 << 31),
    _named("process_name", "/host:CPU", _HOST),
    _named("thread_name", "python", _HOST, 9),
]
EVENTS = [
    _timed("gemm_fusion_dot_3", _GPU, 13, 5.0, 2.0, **_DOT),
    _timed("MemcpyH2D", _GPU, 13, 8.0, 0.3, memcpy_details="size:4"),
    _timed("loop_add_fusion", _GPU, 13, 9.0, 0.1, hlo_op="loop_add_fusion.2"),
    _timed("dot.3", _GPU, 1 << 31, 5.0, 2.0, **_DOT),
    _timed("cuLaunchKernel", _HOST, 9, 4.0, 0.05, correlation_id="7"),
    _timed("$contextlib.py:132 __enter__", _HOST, 9, 1.0, 99.0),
    {},
]


def _trace(tmp_path: Path, events: list[Any], name: str = "host.trace.json.gz") -> Path:
    given = {
        "displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events
    }  # fmt: skip
    path = tmp_path / name
    path.write_bytes(gzip.compress(json.dumps(given).encode()))
    return path


def test_streams_of_a_gpu_become_kernels(tmp_path: Path) -> None:
    profile = read(_trace(tmp_path, [*NAMES, *EVENTS]))
    assert profile.tool == "JAX/XLA profiler"
    assert (len(profile.launches), len(profile.copies), profile.damaged) == (2, 1, 0)
    assert list(profile.launches.duration) == [2000, 100]
    assert list(profile.launches.correlation) == [7, NONE]
    kernel = profile.kernels[0]
    assert (kernel.blocks, kernel.threads) == ((64, 2, 1), (128, 1, 1))
    assert (kernel.registers, kernel.lds_bytes) == (40, 1536)
    names = [profile.op_infos[profile.ops.info[op]].name for op in profile.launches.op]
    assert names == ["dot_general", "loop_add_fusion"]
    assert profile.modules.values == ["jit_step_0.jit(step)_0.jit(main)_0"]
    assert [profile.call_names[i] for i in profile.calls.info] == ["cuLaunchKernel"]
    assert list(profile.ops.start) == [4_000, 9_000]
    assert profile.notes == []


def test_calls_of_the_host_precede_or_follow_the_kernels(tmp_path: Path) -> None:
    first = read(_trace(tmp_path, [*NAMES, *EVENTS]))
    second = read(_trace(tmp_path, [*NAMES, *reversed(EVENTS)]))
    assert sorted(first.ops.start) == sorted(second.ops.start)


@pytest.mark.parametrize(
    "changed",
    [{"ts": None}, {"dur": None}, {"ts": 1e300}, {"dur": -1}, {"dur": "2"}, {"args": 5}],
)
def test_an_event_without_a_time_is_left_out(tmp_path: Path, changed: dict[str, object]) -> None:
    profile = read(_trace(tmp_path, [*NAMES, {**EVENTS[0], **changed}, *EVENTS[2:]]))
    assert list(profile.launches.duration) == [100]
    why = "without a start and a later end" if changed == {"dur": -1} else "cannot be read"
    left_out, lost = profile.notes
    assert left_out.startswith(f"1 record {why}")
    assert lost.startswith("1 of 1 launch without a kernel in the file")


def test_a_trace_that_ends_early(tmp_path: Path) -> None:
    path = tmp_path / "cut.trace.json"
    path.write_text(json.dumps({"traceEvents": [*NAMES, *EVENTS]})[:-160])
    profile = read(path)
    assert list(profile.launches.duration) == [2000, 100]
    assert profile.notes == ["the file ends early; what follows is of the part that is there"]


def test_a_trace_with_as_many_events_as_xla_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xla_json, "_LIMITS", (6,))
    profile = read(_trace(tmp_path, [*NAMES, *EVENTS]))
    assert profile.notes == [
        "XLA writes no more than 6 events: the .xplane.pb next to the file has all"
    ]


@pytest.mark.parametrize("name", ["/host:CPU", "/device:TPU:0"])
def test_a_trace_without_a_gpu_has_no_kernel(tmp_path: Path, name: str) -> None:
    events = [_named("process_name", name, _GPU), *NAMES[4:], _timed("a", _GPU, 1, 1, 1)]
    with pytest.raises(NothingAnalysed) as caught:
        profiles(_trace(tmp_path, events))
    assert "it has no stream of a GPU with kernels" in caught.value.hint


def test_the_copy_that_jax_writes_for_perfetto_is_not_another_rank(tmp_path: Path) -> None:
    trace = _trace(tmp_path, [*NAMES, *EVENTS])
    copy = _trace(tmp_path, [*NAMES, *EVENTS], "perfetto_trace.json.gz")
    assert [path for path, _ in read_ranks(tmp_path)] == [trace]
    trace.unlink()
    assert [path for path, _ in read_ranks(tmp_path)] == [copy]
