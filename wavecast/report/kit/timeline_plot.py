"""Slices in time: a row per track, a rectangle per slice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from wavecast.report.kit import units
from wavecast.report.kit.svg import COLOURS, PlotFrame, figure, n

if TYPE_CHECKING:
    from wavecast.systems.slices import TimelineSlice

_ROW: Final = 26
_LEAST: Final = 1.5
"""Pixels of the narrowest slice that is drawn by itself; narrower neighbours of one group are one
rectangle."""
_TICKS: Final = 8


@dataclass(slots=True)
class _Block:
    """Slices of one group that are drawn as one rectangle, in pixels."""

    left: float
    right: float
    group: str
    slices: list[TimelineSlice]


@dataclass(frozen=True, slots=True)
class DrawnTimeline:
    """An image, and the names of its groups with the class of their colour."""

    image: Markup
    legend: tuple[tuple[str, str], ...]


def timeline(
    slices: Sequence[TimelineSlice], tracks: Sequence[str], groups: Sequence[str], label: str
) -> DrawnTimeline | None:
    """Slices on those of `tracks` that have some, coloured by the position of their group in
    `groups`; None without slices."""
    if not slices:
        return None
    tracks = [
        track for track in tracks if any(timeline_slice.track == track for timeline_slice in slices)
    ]
    first, last = (
        min(timeline_slice.start for timeline_slice in slices),
        max(timeline_slice.end for timeline_slice in slices),
    )
    frame = PlotFrame(960, _ROW * len(tracks) + 24, 92, 8, 2, 22)
    scale = frame.inner_width / ((last - first) or 1.0)
    body = [_axis(frame, last - first)]
    for row, track in enumerate(tracks):
        top = frame.top + row * _ROW
        body.append(
            Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(
                n(frame.left - 8), n(top + 16), track
            )
        )
        track_slices = [
            timeline_slice for timeline_slice in slices if timeline_slice.track == track
        ]
        for block in _blocks(track_slices, first, scale, frame.left):
            body.append(_draw_block(block, top, groups))
    present = {timeline_slice.group for timeline_slice in slices}
    legend = tuple(
        (name, f"t{number % COLOURS}") for number, name in enumerate(groups) if name in present
    )
    return DrawnTimeline(figure("timeline", label, frame, body), legend)


def _blocks(
    slices: Iterable[TimelineSlice], first: float, scale: float, left: float
) -> Iterator[_Block]:
    block: _Block | None = None
    for timeline_slice in sorted(slices, key=lambda timeline_slice: timeline_slice.start):
        start, end = (
            left + (at - first) * scale for at in (timeline_slice.start, timeline_slice.end)
        )
        joins = (
            block is not None
            and block.group == timeline_slice.group
            and start - block.right < _LEAST
            and (end - start < _LEAST or block.right - block.left < _LEAST)
        )
        if block is not None and joins:
            block.right = max(block.right, end)
            block.slices.append(timeline_slice)
            continue
        if block is not None:
            yield block
        block = _Block(start, end, timeline_slice.group, [timeline_slice])
    if block is not None:
        yield block


def _draw_block(block: _Block, top: float, groups: Sequence[str]) -> Markup:
    first_slice, width = block.slices[0], block.right - block.left
    together = sum(part.seconds for part in block.slices)
    many = len(block.slices) > 1
    name = f"{len(block.slices):,} slices of {block.group}" if many else first_slice.name
    where = "" if many or not first_slice.where else f", {first_slice.where}"
    colour = groups.index(block.group) % COLOURS if block.group in groups else COLOURS - 1
    text = Markup("")
    if width > 7 * len(name) + 8:
        text = Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(
            n(block.left + width / 2), n(top + 16), name
        )
    return Markup(
        '<g class="part t{}"><rect x="{}" y="{}" width="{}" height="{}"/>{}<title>{}</title></g>'
    ).format(
        colour,
        n(block.left),
        n(top + 1),
        n(max(0.6, width - (0.6 if width > 3 else 0))),
        _ROW - 4,
        text,
        f"{name}{where}: {units.seconds(together)}",
    )


def _axis(frame: PlotFrame, seconds: float) -> Markup:
    """Vertical lines at round times."""
    step = _round(seconds / _TICKS)
    parts = []
    for number in range(int(seconds / step + 1e-9) + 1):
        x = frame.x(number * step / seconds) if seconds else frame.left
        text = units.seconds(number * step) if number else "0"
        parts.append(
            f'<path class="grid" d="M{n(x)} {n(frame.y(1))}V{n(frame.y(0))}"/>'
            f'<text x="{n(x)}" y="{n(frame.height - 6)}" text-anchor="middle">{text}</text>'
        )
    return Markup("".join(parts))  # numbers and units only


def _round(value: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below a positive value."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.999)


__all__ = ["DrawnTimeline", "timeline"]
