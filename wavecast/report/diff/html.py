"""Comparisons of two versions of kernels as one HTML file without scripts."""

from __future__ import annotations

from markupsafe import Markup

from wavecast.benchmarking.diff.result import Diff
from wavecast.report.diff import words
from wavecast.report.kit import pages, units
from wavecast.version import __version__


def render(diff: Diff) -> str:
    """The whole page."""
    return (
        pages.environment()
        .get_template("diff.html.j2")
        .render(
            found=diff,
            shown=words,
            units=units,
            version=__version__,
            style=Markup(pages.asset("style.css")),  # our own files
            own_style=Markup(pages.asset("diff.css")),
        )
    )


__all__ = ["render"]
