"""Models on systems as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from wavecast.report import html, systems_plot, systems_words, units
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.systems.study import ModelStudy


def render(study: ModelStudy) -> str:
    """The whole page; it needs no script and nothing from outside."""
    return (
        html.environment()
        .get_template("systems.html.j2")
        .render(
            answers=study.answers,
            version=__version__,
            words=systems_words,
            units=units,
            plot=systems_plot,
            style=Markup(html.asset("style.css") + html.asset("systems.css")),  # our own files
        )
    )


def fragment(study: ModelStudy) -> str:
    """A part of a page for notebooks: the figures of serving and notes."""
    return (
        html.environment()
        .get_template("systems_fragment.html.j2")
        .render(
            answers=study.answers,
            words=systems_words,
            units=units,
            style=Markup(html.asset("fragment.css")),  # our own file
        )
    )


__all__ = ["fragment", "render"]
