"""A history as one HTML page, with a plot of every figure and a box that filters them."""

from __future__ import annotations

import base64
import hashlib

from markupsafe import Markup

from wavecast.benchmarking.history.series import History, Series
from wavecast.report.bench import history, history_plot
from wavecast.report.kit import pages
from wavecast.version import __version__


def render(figure_history: History) -> str:
    """The whole page; it loads no other file. Changes come first."""
    script = pages.asset("theme.js") + pages.asset("history.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        pages.environment()
        .get_template("history.html.j2")
        .render(
            found=figure_history,
            series=sorted(figure_history.series, key=_order),
            version=__version__,
            words=history,
            plot=history_plot.plot,
            style=Markup(pages.asset("style.css")),  # our own files
            own_style=Markup(pages.asset("history.css")),
            script=Markup(script),
            script_digest=f"'sha256-{digest}'",
        )
    )


def _order(series: Series) -> tuple[bool, bool]:
    """What became worse last, then what changed, then the rest."""
    return not (series.changes and series.changes[-1].worse), not series.changes


__all__ = ["render"]
