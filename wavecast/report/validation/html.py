"""A validation as one HTML page, with plots of every op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from wavecast.benchmarking.accuracy.scores import by_op
from wavecast.report.kit import pages, units
from wavecast.report.validation import plot, words
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.benchmarking.accuracy.result import Validation


def render(validation: Validation) -> str:
    """The whole page; it needs no script and nothing from outside."""
    return (
        pages.environment()
        .get_template("validation.html.j2")
        .render(
            validation=validation,
            version=__version__,
            ops=by_op(validation.outcomes),
            baselines=words.baseline_names(validation.scores),
            titles=words.BASELINES,
            words=words,
            plot=plot,
            units=units,
            style=Markup(pages.asset("style.css")),  # our own file
        )
    )
