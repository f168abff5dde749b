"""What the plots share: a frame that maps shares of its axes to pixels, and number formatting.

Plots are inline SVG. Colours and fonts are the page's style classes; hovers are SVG titles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

COLOURS = 8
"""Colours of the style sheet, `t0` to `t7`."""
Point = tuple[float, float]
"""Pixels, or values of two axes."""


@dataclass(frozen=True, slots=True)
class PlotFrame:
    """A plot area: logarithmic or linear ranges mapped to pixels."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float

    @property
    def inner_width(self) -> float:
        return self.width - self.left - self.right

    @property
    def inner_height(self) -> float:
        return self.height - self.top - self.bottom

    def x(self, share: float) -> float:
        """Pixel of a share 0…1 of the horizontal axis."""
        return self.left + share * self.inner_width

    def y(self, share: float) -> float:
        """Pixel of a share 0…1 of the vertical axis, upwards."""
        return self.top + (1 - share) * self.inner_height


def n(value: float) -> str:
    """A coordinate, to a tenth of a pixel."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def path(points: Sequence[tuple[float, float]]) -> str:
    """Path data of a line through points."""
    return "M" + "L".join(f"{n(x)} {n(y)}" for x, y in points)


def figure(
    kind: str, label: str, frame: PlotFrame, body: Sequence[Markup], **data: object
) -> Markup:
    """An image of the class `kind` with a name for who cannot see it, and `data-` attributes.

    The style sheet keeps the size of its text: it scales the font and scrolls where the page is
    narrow (`--natural` is the width at which the font has its size).
    """
    attributes = Markup("").join(
        Markup(' data-{}="{}"').format(name, value) for name, value in data.items()
    )
    return Markup(
        '<div class="plotted"><svg class="plot {kind}" style="--natural: {w}px" '
        'viewBox="0 0 {w} {h}"{data} role="img" aria-label="{label}">{body}</svg></div>'
    ).format(
        kind=kind, w=n(frame.width), h=n(frame.height), data=attributes, label=label,
        body=Markup("").join(body),
    )  # fmt: skip
