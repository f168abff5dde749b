"""Traces that Perfetto writes, made with the messages of its schema; damaged and hostile ones."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from wavecast.errors import InputError, NothingAnalysed
from wavecast.profiles.answer import profiles
from wavecast.profiles.profile import NONE, Profile
from wavecast.profiles.readers import perfetto
from wavecast.profiles.readers.perfetto_schema import BEGIN, END, messages
from wavecast.profiles.reading import read

pytest.importorskip("google.protobuf", reason="needs protobuf")

_QUEUE, _THREAD = 77, 88
_OWN = 64
_BOOT, _MONOTONIC, _GPU_CLOCK = 6, 3, 11
_ROCPROF = "COMPUTE Agent [4] QUEUE [1] GPU"


def _packet(sequence: int = 1, **given: Any) -> Any:
    return messages().TracePacket(trusted_packet_sequence_id=sequence, **given)


def _bytes(packets: Sequence[Any]) -> bytes:
    """As Perfetto writes them: each is a field 1 with its length."""
    found = bytearray()
    for packet in packets:
        text = packet if isinstance(packet, bytes) else packet.SerializeToString()
        size = len(text)
        found.append(0x0A)
        while size > 0x7F:
            found.append(size & 0x7F | 0x80)
            size >>= 7
        found += bytes([size]) + text
    return bytes(found)


def _read(tmp_path: Path, packets: Sequence[Any] | bytes) -> Profile:
    path = tmp_path / "run.pftrace"
    path.write_bytes(packets if isinstance(packets, bytes) else _bytes(packets))
    return read(path)


def _slice(
    category: str, name: str, start: int, end: int, track: int = _QUEUE, **values: Any
) -> list[Any]:
    """The beginning and the end of a slice."""
    kinds = {int: "uint_value", float: "double_value", str: "string_value"}
    notes = [
        {"name": key.encode(), kinds[type(one)]: one.encode() if isinstance(one, str) else one}
        for key, one in values.items()
    ]
    begin = {
        "type": BEGIN, "track_uuid": track, "name": name.encode(),
        "categories": [category.encode()], "debug_annotations": notes,
    }  # fmt: skip
    return [
        _packet(timestamp=start, track_event=begin),
        _packet(timestamp=end, track_event={"type": END, "track_uuid": track}),
    ]


def _kernel(start: int, end: int, name: str = "gemm.kd", **values: Any) -> list[Any]:
    return _slice("kernel_dispatch", name, start, end, **values)


_TRACKS = [
    _packet(track_descriptor={"uuid": _QUEUE, "name": _ROCPROF.encode()}),
    _packet(track_descriptor={"uuid": _THREAD, "static_name": b"THREAD 1"}),
]


def test_slices_of_rocprofv3_become_kernels(tmp_path: Path) -> None:
    values = {
        "corr_id": 5, "agent": "Agent-4", "queue": 3, "group_segment_size": 1024,
        "private_segment_size": 16, "workgroup_size": 256, "grid_size": 4096, "SQ_WAVES": 64.0,
    }  # fmt: skip
    profile = _read(
        tmp_path,
        [
            *_TRACKS,
            *_slice("hip_api", "hipLaunchKernel", 900, 950, _THREAD, corr_id=5),
            *_kernel(1000, 1700, **values),
            *_slice("memory_copy", "MEMORY_COPY_HOST_TO_DEVICE", 2000, 2100, dst_agent="Agent-4"),
            *_slice("marker_api", "my range", 0, 5000, _THREAD, corr_id=6),
        ],
    )
    kernel = profile.kernels[0]
    assert (kernel.name, kernel.lds_bytes, kernel.scratch_bytes) == ("gemm", 1024, 16)
    assert (kernel.blocks, kernel.threads) == ((0, 0, 0), (0, 0, 0))
    launches, copies = profile.launches, profile.copies
    assert (list(launches.start), list(launches.duration)) == ([1000], [700])
    assert (list(launches.device), list(launches.stream), list(launches.correlation)) == (
        [4], [3], [5],
    )  # fmt: skip
    assert (list(copies.duration), list(copies.device)) == ([100], [4])
    assert [profile.call_names[i] for i in profile.calls.info] == ["hipLaunchKernel"]
    assert profile.counters == {0: {"SQ_WAVES": 64.0}}
    assert profile.notes == []


def test_slices_of_the_systems_profiler_have_axes_and_tracks(tmp_path: Path) -> None:
    track = {"uuid": _QUEUE, "name": b"GPU Kernel Dispatch [2] Queue 7"}
    profile = _read(
        tmp_path,
        [
            _packet(track_descriptor=track),
            *_slice(
                "rocm_kernel_dispatch",
                "k",
                10,
                30,
                workgroup_size="(64,2,1)",
                grid_size="(640,4,1)",
            ),
        ],
    )
    assert profile.kernels[0].blocks == (10, 2, 1)
    assert (list(profile.launches.device), list(profile.launches.stream)) == ([2], [7])
    assert list(profile.launches.correlation) == [NONE]


def test_compute_stages_of_a_gpu_are_kernels(tmp_path: Path) -> None:
    told = {
        "gpu_specifications": [
            {"iid": 1, "name": b"Stream 2"}, {"iid": 2, "name": b"Kernel", "category": 2},
            {"iid": 3, "name": b"Fragment", "category": 1},
        ],
        "event_names": [{"iid": 9, "name": b"gemm"}],
    }  # fmt: skip
    launch = {"grid_size": {"x": 8, "y": 2}, "workgroup_size": {"x": 128}}

    def stage(now: int, **given: Any) -> Any:
        return _packet(
            timestamp=now,
            gpu_render_stage_event={"duration": 40, "gpu_id": 1, "hw_queue_iid": 1, **given},
        )

    profile = _read(
        tmp_path,
        [
            _packet(interned_data=told, sequence_flags=1),
            stage(100, stage_iid=2, name_iid=9, launch=launch),
            stage(200, stage_iid=2, name=b"scan"),
            stage(300, stage_iid=3),
        ],
    )
    found = [profile.kernels[i] for i in profile.launches.info]
    assert [one.name for one in found] == ["gemm", "scan"]
    assert (found[0].blocks, found[0].threads) == ((8, 2, 1), (128, 1, 1))
    assert list(profile.launches.duration) == [40, 40]
    assert (list(profile.launches.device), list(profile.launches.stream)) == ([1, 1], [2, 2])


def test_texts_that_repeat_belong_to_their_sequence(tmp_path: Path) -> None:
    def told(name: bytes) -> dict[str, Any]:
        return {
            "event_names": [{"iid": 1, "name": name}],
            "event_categories": [{"iid": 1, "name": b"kernel_dispatch"}],
            "debug_annotation_names": [{"iid": 4, "name": b"agent"}],
            "debug_annotation_string_values": [{"iid": 2, "name": b"Agent-3"}],
        }

    begin = {
        "type": BEGIN, "name_iid": 1, "category_iids": [1],
        "debug_annotations": [{"name_iid": 4, "string_value_iid": 2}],
    }  # fmt: skip
    packets = []
    for sequence, name in ((1, b"first"), (2, b"second")):
        defaults = {"track_event_defaults": {"track_uuid": 10 + sequence}}
        packets += [
            _packet(
                sequence, sequence_flags=1, interned_data=told(name), trace_packet_defaults=defaults
            ),
            _packet(sequence, timestamp=5, sequence_flags=2, track_event=begin),
        ]
    packets += [_packet(s, timestamp=9, track_event={"type": END}) for s in (1, 2)]
    lost = _packet(3, timestamp=7, sequence_flags=2, track_event=begin)
    profile = _read(tmp_path, [*packets, lost])
    names = [profile.kernels[i].name for i in profile.launches.info]
    assert names == ["first", "second"]
    assert list(profile.launches.device) == [3, 3]
    assert profile.notes == ["1 slice without a beginning, an end or a name, left out"]


def test_clocks_of_a_sequence_count_units_since_the_packet_before(tmp_path: Path) -> None:
    snapshot = {
        "clocks": [
            {"clock_id": _BOOT, "timestamp": 1_000_000},
            {"clock_id": _MONOTONIC, "timestamp": 400_000},
            {"clock_id": _OWN, "timestamp": 70, "is_incremental": True, "unit_multiplier_ns": 100},
            {"clock_id": _OWN + 1, "timestamp": 50, "unit_multiplier_ns": 10},
        ]
    }

    def timed(start: int, end: int, clock: int, sequence: int = 1) -> list[Any]:
        found = _kernel(start, end)
        for packet in found:
            packet.timestamp_clock_id = clock
            packet.trusted_packet_sequence_id = sequence
        return found

    profile = _read(
        tmp_path,
        [
            _packet(clock_snapshot=snapshot),
            *timed(20, 5, _OWN),
            *timed(10, 5, _OWN),
            *timed(60, 90, _OWN + 1),
            *timed(401_000, 401_500, _MONOTONIC),
            *timed(1, 2, _OWN, sequence=2),
            *timed(1, 2, _GPU_CLOCK),
        ],
    )
    assert list(profile.launches.start) == [1_002_000, 1_003_500, 1_000_100, 1_001_000]
    assert list(profile.launches.duration) == [500, 500, 300, 500]
    assert profile.notes == ["4 events of a clock that the file relates to no other, left out"]


def test_packed_packets_and_packed_files(tmp_path: Path) -> None:
    packed = _packet(compressed_packets=zlib.compress(_bytes(_kernel(5, 9))))
    damaged = _packet(compressed_packets=b"not packed")
    cut = _packet(compressed_packets=zlib.compress(_bytes(_kernel(5, 9))[:-1]))
    profile = _read(tmp_path, gzip.compress(_bytes([*_TRACKS, packed, damaged, cut])))
    assert list(profile.launches.duration) == [4]
    assert profile.damaged == 2


@pytest.mark.parametrize("missing", [1, 5, 11])
def test_a_trace_that_ends_early(tmp_path: Path, missing: int) -> None:
    text = _bytes([*_TRACKS, *_kernel(1, 4), *_kernel(6, 9)])
    profile = _read(tmp_path, text[:-missing])
    assert list(profile.launches.duration) == [3]
    assert profile.notes[0] == "the file ends early; what follows is of the part that is there"


@pytest.mark.parametrize(
    ("packets", "durations", "note"),
    [
        (_kernel(1, 4)[:1], [], "1 slice without a beginning"),
        (_kernel(1, 4)[1:], [], "1 slice without a beginning"),
        (_kernel(9, 4), [], "1 record without a start and a later end: left out"),
        (_kernel(9, 9), [], "1 record without a start and a later end: left out"),
        (_kernel(1 << 63, (1 << 63) + 2), [], "1 record cannot be read, left out"),
        ([b"\x08", *_kernel(1, 4)], [3], "1 record cannot be read, left out"),
        ([_packet(previous_packet_dropped=1), *_kernel(1, 4)], [3], "the writer lost packets"),
        (_kernel(1, 4, name=""), [3], ""),
        (_kernel(1, 4, queue=(1 << 64) - 1), [], "1 record cannot be read, left out"),
    ],
)
def test_what_cannot_be_read_is_counted(
    tmp_path: Path, packets: list[Any], durations: list[int], note: str
) -> None:
    profile = _read(tmp_path, [*_TRACKS, *packets])
    assert list(profile.launches.duration) == durations
    assert "".join(profile.notes).startswith(note)


def test_a_trace_of_other_activities_has_no_kernel(tmp_path: Path) -> None:
    path = tmp_path / "phone.perfetto-trace"
    path.write_bytes(_bytes([*_TRACKS, *_slice("sched", "switch", 1, 2)]))
    with pytest.raises(NothingAnalysed, match="has no kernel"):
        profiles(path)


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (_bytes(_TRACKS), True),
        (_bytes([b"\x08\x01"]), False),
        (_bytes([b"\x50"]), False),
        (b'\n{"traceEvents": []}', False),
        (b"\n", False),
        (b"\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", False),
        (b"", False),
    ],
)
def test_traces_are_recognised_by_a_sequence(head: bytes, known: bool) -> None:
    assert perfetto.recognise(head) == known


def test_other_binary_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a profile that Wavecast reads"):
        _read(tmp_path, b"\n\x02\x08\x01" * 9)
