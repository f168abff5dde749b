"""Profiles as a Chrome trace-event file, which Perfetto shows: the measured timeline, and below it
the run on other chips or with changes, from the same start."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from wavecast.bench.profiles.kernel_names import recognise, short
from wavecast.bench.profiles.profile import NONE
from wavecast.report.perfetto import complete, named
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.bench.profiles.answer import ProfileAnswer
    from wavecast.bench.profiles.elsewhere import MovedProfile
    from wavecast.bench.profiles.replay import ProfileTimeline

_MOST_EVENTS: Final = 500_000
"""Slices a file may have; Perfetto becomes slow with more."""


def dumps(answers: Sequence[ProfileAnswer]) -> str:
    """The timelines of all profiles as JSON text. Host calls follow the kernels."""
    events: list[dict[str, Any]] = []
    complete_ = True
    process = 0
    for answer in answers:
        timelines = [("measured", answer.timeline, None)]
        timelines += [(_title(moved), moved.after, moved) for moved in answer.moved]
        for title, timeline, moved in timelines:
            process += 1
            name = f"{answer.path.name}: {title}"
            complete_ &= _activities(answer, timeline, moved, process, name, events)
        process += 1
        complete_ &= _host(answer, process, events)
    document = {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"wavecast": __version__, "complete": complete_},
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _title(moved: MovedProfile) -> str:
    changes = f", {moved.changes.text}" if moved.changes.text else ""
    return f"predicted on {moved.device.id}{changes}"


def _activities(
    answer: ProfileAnswer,
    timeline: ProfileTimeline,
    moved: MovedProfile | None,
    process: int,
    title: str,
    events: list[dict[str, Any]],
) -> bool:
    """Add the kernels and copies of a timeline; False where some are left out."""
    profile = answer.profile
    launches, copies = profile.launches, profile.copies
    events.append(named("process_name", process, 0, title))
    tracks: dict[tuple[int, int], int] = {}
    origin = answer.origin
    ratios = {one.row: one.ratio for one in moved.operators} if moved else {}
    rows = moved.here.rows if moved else ()
    for number in range(len(launches) + len(copies)):
        if len(events) >= _MOST_EVENTS:
            return False
        kernel = number < len(launches)
        table, at = (launches, number) if kernel else (copies, number - len(launches))
        key = (table.device[at], table.stream[at])
        if key not in tracks:
            tracks[key] = len(tracks) + 1
            events.append(
                named("thread_name", process, tracks[key], f"device {key[0]} stream {key[1]}")
            )
        name = (
            profile.kernels[table.info[at]].name if kernel else profile.copy_names[table.info[at]]
        )
        category = recognise(name).category if kernel else "copy"
        start, end = int(timeline.starts[number]), int(timeline.ends[number])
        event = complete(
            short(name), category, process, tracks[key], (start - origin) / 1e3, (end - start) / 1e3
        )
        about: dict[str, Any] = {}
        if table.op[at] != NONE:
            about["operator"] = profile.op_infos[profile.ops.info[table.op[at]]].name
        if kernel and rows:
            about["time there / measured"] = round(ratios[rows[at]], 3)
        events.append({**event, "args": about})
    return True


def _host(answer: ProfileAnswer, process: int, events: list[dict[str, Any]]) -> bool:
    profile, origin = answer.profile, answer.origin
    events.append(named("process_name", process, 0, f"{answer.path.name}: host, measured"))
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
