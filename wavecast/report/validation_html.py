"""A validation as one HTML page, with plots of every op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from wavecast.bench.accuracy.scores import by_op
from wavecast.report import pages, units, validation_plot, validation_words
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.bench.accuracy.result import Validation


def render(validation: Validation) -> str:
    """The whole page; it needs no script and nothing from outside."""
    return (
        pages.environment()
        .get_template("validation.html.j2")
        .render(
            validation=validation,
            version=__version__,
            ops=by_op(validation.outcomes),
            baselines=validation_words.baseline_names(validation.scores),
            titles=validation_words.BASELINES,
            words=validation_words,
            plot=validation_plot,
            units=units,
            style=Markup(pages.asset("style.css")),  # our own file
        )
    )
