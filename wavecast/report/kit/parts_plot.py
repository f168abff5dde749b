"""A bar of the parts of a whole: of a time, or of a memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from wavecast.report.kit.svg import COLOURS, PlotFrame, figure, n

FREE: Final = -1
"""The colour of what nothing uses."""


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar: its name, figure in words, share of the whole and colour."""

    name: str
    figure: str
    share: float
    colour: int

    @property
    def style(self) -> str:
        """The class of its colour."""
        return "free" if self.colour == FREE else f"t{self.colour}"


def parts(
    values: Mapping[str, float],
    words: Callable[[float], str],
    names: Sequence[str] = (),
    *,
    most: int | None = None,
    free: float = 0.0,
) -> list[BarPart]:
    """The positive parts of a whole, the largest first, their figures in `words`.

    A part has the colour of its position in `names` (nothing: in `values`), those after the last
    colour share it. Where there are more than `most`, the small ones are one part. `free` is
    added as a part that nothing uses.
    """
    total = sum(values.values()) + free
    if total <= 0:
        return []
    order = names or tuple(values)
    ranked = sorted(values.items(), key=lambda item: -item[1])
    if most is not None and len(ranked) > most:
        others = ranked[most - 1 :]
        ranked = ranked[: most - 1]
        ranked.append((f"{len(others)} others", sum(size for _, size in others)))
    bar_parts = [
        BarPart(
            name,
            words(size),
            size / total,
            min(order.index(name) if name in order else COLOURS, COLOURS - 1),
        )
        for name, size in ranked
        if size > 0
    ]
    if free > 0:
        bar_parts.append(BarPart("free", words(free), free / total, FREE))
    return bar_parts


def bar(parts: Sequence[BarPart], label: str) -> Markup:
    """A bar of its parts; names are written where they have room."""
    frame = PlotFrame(960, 34, 0, 0, 2, 2)
    body, start = [], 0.0
    for part in parts:
        x, width = frame.x(start), part.share * frame.inner_width
        title = f"{part.name}: {part.figure}, {part.share:.0%}"
        text = Markup("")
        if width > 8 * len(part.name) + 12:
            text = Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(
                n(x + width / 2), n(frame.height / 2 + 4), part.name
            )
        body.append(
            Markup(
                '<g class="part {}"><rect x="{}" y="2" width="{}" height="30"/>{}'
                "<title>{}</title></g>"
            ).format(part.style, n(x), n(max(0.5, width - 1)), text, title)
        )
        start += part.share
    return figure("stack", label, frame, body)


__all__ = ["FREE", "BarPart", "bar", "parts"]
