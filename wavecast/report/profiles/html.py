"""A profile as one HTML page: timeline, treemap, roofline, tables that sort and search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from markupsafe import Markup

from wavecast.compile.names import readable
from wavecast.profiles.kernel_forms import form
from wavecast.profiles.kernel_names import display_name, recognise
from wavecast.report.explain import html
from wavecast.report.explain import summary as findings_of
from wavecast.report.kit import pages, units
from wavecast.report.profiles import activity, code, plot, trace
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.profiles.answer import ProfileAnswer
    from wavecast.profiles.comparison import ProfileComparison
    from wavecast.profiles.elsewhere import MovedProfile
    from wavecast.profiles.replay import ProfileTimeline

_MOST: Final = 100_000
"""Slices of a timeline in a page: the longest ones."""
_ROWS: Final = 2_000
"""Rows of a table in a page."""


def render(answers: Sequence[ProfileAnswer], against: ProfileComparison | None = None) -> str:
    """The whole page; it loads no other file."""
    script = pages.asset("theme.js") + pages.asset("profile.js") + "\n" + pages.asset("tables.js")
    data = [_data(answer) for answer in answers]
    return (
        html.environment()
        .get_template("profile.html.j2")
        .render(
            answers=answers,
            against=against,
            version=__version__,
            units=units,
            plot=plot,
            shown=display_name,
            form=form,
            memory_text=activity.memory_text,
            code=code,
            trace=trace,
            readable=readable,
            summary_of=findings_of,
            recognise=recognise,
            rows=_ROWS,
            left_out=[entry["left_out"] for entry in data],
            style=Markup(pages.asset("style.css") + pages.asset("profile.css")),  # our own files
            script=Markup(script),
            script_digest=pages.digest(script),
            island=pages.island(data),
        )
    )


def _data(answer: ProfileAnswer) -> dict[str, Any]:
    """The timelines of a profile: names, and columns of slices in nanoseconds from the start."""
    profile, colour = answer.profile, plot.colours(answer)
    names = [display_name(kernel.name) for kernel in profile.kernels.values]
    styles = [colour[recognise(kernel.name).category] for kernel in profile.kernels.values]
    names += profile.copy_names.values
    styles += [colour["copy"]] * len(profile.copy_names)
    timelines = [("measured", answer.timeline)]
    timelines += [(_title(projection), projection.after) for projection in answer.moved]
    slices = [_slices(answer, timeline) for _, timeline in timelines]
    return {
        "names": names,
        "colours": styles,
        "timelines": [
            {"title": title, **columns}
            for (title, _), columns in zip(timelines, slices, strict=True)
        ],
        "left_out": max(columns["left_out"] for columns in slices),
    }


def _title(projection: MovedProfile) -> str:
    changes = f", {projection.changes.text}" if projection.changes.text else ""
    return f"{projection.device.id}{changes}"


def _slices(answer: ProfileAnswer, timeline: ProfileTimeline) -> dict[str, Any]:
    profile = answer.profile
    launches, copies = profile.launches, profile.copies
    info = np.concatenate(
        [np.asarray(launches.info), np.asarray(copies.info, dtype=np.int64) + len(profile.kernels)]
    )
    streams = np.concatenate([np.asarray(launches.stream), np.asarray(copies.stream)])
    keys = sorted(set(zip(timeline.devices.tolist(), streams.tolist(), strict=True)))
    row = {key: number for number, key in enumerate(keys)}
    lengths = timeline.ends - timeline.starts
    indices = np.arange(len(lengths))
    if len(indices) > _MOST:
        indices = np.sort(np.argpartition(-lengths, _MOST)[:_MOST])
    indices = indices[np.argsort(timeline.starts[indices], kind="stable")]
    origin = int(timeline.starts.min())
    return {
        "rows": [f"device {device}, stream {stream}" for device, stream in keys],
        "row": [
            row[int(timeline.devices[number]), int(streams[number])] for number in indices.tolist()
        ],
        "start": (timeline.starts[indices] - origin).tolist(),
        "length": lengths[indices].tolist(),
        "name": info[indices].tolist(),
        "span": timeline.span,
        "left_out": len(lengths) - len(indices),
    }


__all__ = ["render"]
