"""Traces that Perfetto writes: `.pftrace`, `.perfetto-trace`. Kernels are slices of rocprofv3
(`--output-format pftrace`) and of ROCm Systems Profiler by their categories, and what Perfetto's
own schema describes as compute work of a GPU.

rocprofv3 writes work-items as products of the axes, so its kernels have no grid. Files do not name
the GPU.
"""

from __future__ import annotations

import re
from typing import IO, Final

from wavecast.profiles.profile import NONE, Profile, ProfiledDevice, ProfiledKernel
from wavecast.profiles.readers.perfetto_packets import (
    PacketReader,
    PerfettoSlice,
    fields,
    frames,
)
from wavecast.profiles.readers.sizes import Axes, blocks
from wavecast.profiles.readers.times import activity_duration
from wavecast.wording import count

_KERNELS: Final = frozenset({"kernel_dispatch", "rocm_kernel_dispatch", "gpu_kernel"})
_COPIES: Final = frozenset({"memory_copy", "rocm_memory_copy"})
_CALLS: Final = frozenset({"hip_api", "hsa_api", "rocm_hip_api", "rocm_hsa_api"})
_COUNTER: Final = re.compile(r"[A-Z][A-Z0-9]*_[A-Za-z0-9_]+")
"""Annotations that are counters: others have small letters."""
_NUMBER: Final = re.compile(r"\d{1,9}")
_AGENT: Final = re.compile(r"\[(\d{1,9})\]|Device (\d{1,9})")
_AXES: Final = re.compile(r"\((\d{1,9}),\s*(\d{1,9}),\s*(\d{1,9})\)")
_SEQUENCE: Final = (10, 0)
"""Number and wire type of `trusted_packet_sequence_id`, which messages of other files lack."""
_FIRST: Final = 64
"""Packets among which one has a sequence."""


def recognise(head: bytes) -> bool:
    """Packets one after the other, of which one has a sequence."""
    for number, (packet, end) in enumerate(frames(head)):
        if end is None or number == _FIRST:
            return False
        if _SEQUENCE in fields(packet):
            return True
    return False


def read(stream: IO[bytes]) -> Profile:
    """Kernels, copies and launching calls. Raises MissingTool without the runtime of protobuf."""
    reader = PacketReader(stream)
    profile = Profile("Perfetto trace")
    threads: dict[int, int] = {}
    for track_slice in reader.slices():
        try:
            if track_slice.category in _KERNELS:
                _kernel(profile, track_slice)
            elif track_slice.category in _COPIES:
                device, stream_number = _device(track_slice, "dst_agent"), _queue(track_slice)
                number = profile.copy_names.number(track_slice.name)
                span = track_slice.start, track_slice.duration
                profile.copies.add(number, device, stream_number, *span, _correlation(track_slice))
            elif track_slice.category in _CALLS and _correlation(track_slice) != NONE:
                thread = threads.setdefault(track_slice.track, len(threads))
                number = profile.call_names.number(track_slice.name)
                span = track_slice.start, track_slice.duration
                profile.calls.add(number, thread, *span, _correlation(track_slice))
        except ValueError as error:
            profile.leave_out(error)
    for device in {*profile.launches.device, *profile.copies.device}:
        profile.devices[device] = ProfiledDevice()
    profile.damaged += reader.damaged
    profile.notes += _notes(reader)
    return profile


def _notes(reader: PacketReader) -> list[str]:
    notes = []
    if reader.truncated:
        notes.append("the file ends early; what follows is of the part that is there")
    if reader.incomplete:
        notes.append(
            f"{count(reader.incomplete, 'slice')} without a beginning, an end or a name, left out"
        )
    if reader.unrelated:
        notes.append(
            f"{count(reader.unrelated, 'event')} of a clock that the file relates to no other, "
            "left out"
        )
    if reader.dropped:
        notes.append(
            f"the writer lost packets {count(reader.dropped, 'time')}: kernels can be missing "
            "(rocprofv3 has --perfetto-buffer-size)"
        )
    return notes


def _kernel(profile: Profile, track_slice: PerfettoSlice) -> None:
    threads = track_slice.threads or _axes(track_slice.values.get("workgroup_size"))
    grid = track_slice.blocks or blocks(_axes(track_slice.values.get("grid_size")), threads)
    kernel = ProfiledKernel(
        track_slice.name.removesuffix(".kd"),
        blocks=grid,
        threads=threads,
        lds_bytes=_whole(track_slice.values.get("group_segment_size")),
        scratch_bytes=_whole(track_slice.values.get("private_segment_size")),
    )
    device = _device(track_slice, "agent") if track_slice.device is None else track_slice.device
    span = (
        track_slice.start,
        activity_duration(track_slice.start, track_slice.start + track_slice.duration),
    )
    number = profile.kernels.number(kernel)
    profile.launches.add(number, device, _queue(track_slice), *span, _correlation(track_slice))
    counters = {
        name: float(value)
        for name, value in track_slice.values.items()
        if not isinstance(value, str) and _COUNTER.fullmatch(name)
    }
    if counters:
        profile.counters[len(profile.launches) - 1] = counters


def _device(track_slice: PerfettoSlice, name: str) -> int:
    """The number of the agent, in an annotation or else in the name of the track; 0 without."""
    match = _NUMBER.search(str(track_slice.values.get(name, "")))
    if match:
        return int(match[0])
    track = _AGENT.search(track_slice.track_name)
    return int(track[1] or track[2]) if track else 0


def _queue(track_slice: PerfettoSlice) -> int:
    """The stream or queue: an annotation, or else the number at the end of the track's name."""
    for name in ("stream_id", "queue"):
        value = track_slice.values.get(name)
        if isinstance(value, int):
            return value
    numbers = _NUMBER.findall(track_slice.track_name)
    return int(numbers[-1]) if numbers else 0


def _correlation(track_slice: PerfettoSlice) -> int:
    value = track_slice.values.get("corr_id")
    return value if isinstance(value, int) and value else NONE


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _axes(value: object) -> Axes:
    """Sizes written as `(x, y, z)`; products of them are of no use."""
    match = _AXES.fullmatch(value) if isinstance(value, str) else None
    return (int(match[1]), int(match[2]), int(match[3])) if match else (0, 0, 0)


__all__ = ["read", "recognise"]
