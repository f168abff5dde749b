"""Profiles as a Chrome trace-event file, which Perfetto shows: the measured timeline, and below it
the run on other chips or with changes, from the same start. Queues of launches and memory are
counters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from wavecast.profiles.kernel_names import display_name, recognise
from wavecast.profiles.launching import queue_changes
from wavecast.profiles.memory import outline
from wavecast.profiles.profile import NONE
from wavecast.report.execution.perfetto import complete, name_event
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.profiles.answer import ProfileAnswer
    from wavecast.profiles.elsewhere import MovedProfile
    from wavecast.profiles.replay import ProfileTimeline

_MOST_EVENTS: Final = 500_000
"""Slices a file may have; Perfetto becomes slow with more."""
_MOST_SAMPLES: Final = 10_000
"""Samples of a counter: more cannot be told apart on a screen."""


def dumps(answers: Sequence[ProfileAnswer]) -> str:
    """The timelines of all profiles as JSON text. Host calls follow the kernels."""
    events: list[dict[str, Any]] = []
    complete_ = True
    process = 0
    for answer in answers:
        timelines = [("measured", answer.timeline, None)]
        timelines += [
            (_title(projection), projection.after, projection) for projection in answer.moved
        ]
        for title, timeline, projection in timelines:
            process += 1
            name = f"{answer.path.name}: {title}"
            complete_ &= _activities(answer, timeline, projection, process, name, events)
            if projection is None:
                _counters(answer, process, events)
        process += 1
        complete_ &= _host(answer, process, events)
    document = {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"wavecast": __version__, "complete": complete_},
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _title(projection: MovedProfile) -> str:
    changes = f", {projection.changes.text}" if projection.changes.text else ""
    return f"predicted on {projection.device.id}{changes}"


def _activities(
    answer: ProfileAnswer,
    timeline: ProfileTimeline,
    projection: MovedProfile | None,
    process: int,
    title: str,
    events: list[dict[str, Any]],
) -> bool:
    """Add the kernels and copies of a timeline; False where some are left out."""
    profile = answer.profile
    launches, copies = profile.launches, profile.copies
    events.append(name_event("process_name", process, 0, title))
    tracks: dict[tuple[int, int], int] = {}
    origin = answer.origin
    ratios = (
        {operator.row: operator.ratio for operator in projection.operators} if projection else {}
    )
    rows = projection.here.rows if projection else ()
    for number in range(len(launches) + len(copies)):
        if len(events) >= _MOST_EVENTS:
            return False
        kernel = number < len(launches)
        table, at = (launches, number) if kernel else (copies, number - len(launches))
        key = (table.device[at], table.stream[at])
        if key not in tracks:
            tracks[key] = len(tracks) + 1
            events.append(
                name_event("thread_name", process, tracks[key], f"device {key[0]} stream {key[1]}")
            )
        name = (
            profile.kernels[table.info[at]].name if kernel else profile.copy_names[table.info[at]]
        )
        category = recognise(name).category if kernel else "copy"
        start, end = int(timeline.starts[number]), int(timeline.ends[number])
        event = complete(
            display_name(name),
            category,
            process,
            tracks[key],
            (start - origin) / 1e3,
            (end - start) / 1e3,
        )
        about: dict[str, Any] = {}
        if table.op[at] != NONE:
            about["operator"] = profile.op_infos[profile.ops.info[table.op[at]]].name
        if kernel and rows:
            about["time there / measured"] = round(ratios[rows[at]], 3)
        events.append({**event, "args": about})
    return True


def _counters(answer: ProfileAnswer, process: int, events: list[dict[str, Any]]) -> None:
    """Launches in the queues of streams, and the memory of tensors, over time."""
    profile, origin = answer.profile, answer.origin
    for device in sorted({*profile.launches.device}):
        for stream, times, lengths in queue_changes(profile, device):
            name = f"launches queued, device {device} stream {stream}"
            at = _sample_indices(len(times))
            for time, length in zip(times[at].tolist(), lengths[at].tolist(), strict=True):
                events.append(_counter(name, process, time - origin, {"launches": length}))
    for device, samples in sorted(profile.memory.items()):
        name = f"memory of device {device}"
        for time, allocated, reserved in outline(samples, _MOST_SAMPLES):
            value = {"allocated": allocated, "reserved": reserved - allocated}
            events.append(_counter(name, process, time - origin, value))


def _sample_indices(number: int) -> NDArray[np.int64]:
    """At most `_MOST_SAMPLES` of so many samples, evenly."""
    return np.unique(np.linspace(0, number - 1, min(number, _MOST_SAMPLES)).astype(np.int64))


def _counter(name: str, process: int, time: int, values: dict[str, int]) -> dict[str, Any]:
    return {"ph": "C", "name": name, "pid": process, "ts": time / 1e3, "args": values}


def _host(answer: ProfileAnswer, process: int, events: list[dict[str, Any]]) -> bool:
    profile, origin = answer.profile, answer.origin
    events.append(name_event("process_name", process, 0, f"{answer.path.name}: host, measured"))
    for table, names in (
        (profile.ops, [info.name for info in profile.op_infos.values]),
        (profile.calls, profile.call_names.values),
    ):
        for info, thread, start, duration in zip(
            table.info, table.thread, table.start, table.duration, strict=True
        ):
            if len(events) >= _MOST_EVENTS:
                return False
            at, length = (start - origin) / 1e3, duration / 1e3
            event = complete(names[info], "host", process, thread, at, length)
            events.append({**event, "args": {}})
    return True


__all__ = ["dumps"]
