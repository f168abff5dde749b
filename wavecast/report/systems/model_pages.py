"""Pages of served models, of training and of modules: a file each that needs nothing else, made of
the same tables, bars, timelines and rooflines."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from wavecast.report.kit import pages, units
from wavecast.report.kit.kernel_roofline import roofline
from wavecast.report.kit.parts_plot import bar
from wavecast.report.systems import (
    module_plot,
    module_words,
    serving_plot,
    serving_words,
    training_plot,
    training_words,
)
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.systems.answer import ModelAnswer
    from wavecast.systems.sources.answer import ModuleAnswer
    from wavecast.systems.training.answer import TrainingAnswer


def serving_page(answers: Sequence[ModelAnswer]) -> str:
    """The page of a served model."""
    title = answers[0].architecture.name
    return _page("systems", answers, title, words=serving_words, plot=serving_plot)


def training_page(answers: Sequence[TrainingAnswer]) -> str:
    """The page of a training."""
    title = f"training {answers[0].architecture.name}"
    return _page("training", answers, title, words=training_words, plot=training_plot)


def modules(answers: Sequence[ModuleAnswer]) -> str:
    """The page of a module, a program or a description."""
    title = answers[0].graph.name
    return _page("graphs", answers, title, words=module_words, plot=module_plot)


def served_fragment(answers: Sequence[ModelAnswer]) -> str:
    """A part of a page for notebooks: the figures of serving and notes."""
    return _fragment("systems_fragment", answers, words=serving_words)


def trained_fragment(answers: Sequence[TrainingAnswer]) -> str:
    """The same of a training: the figures of a step."""
    return _fragment("training_fragment", answers, words=training_words)


def modules_fragment(answers: Sequence[ModuleAnswer]) -> str:
    """The same of a module: the time of a run, and what takes it."""
    return _fragment("graphs_fragment", answers, words=module_words)


def _page(
    template: str, answers: Sequence[Any], title: str, *, words: ModuleType, plot: ModuleType
) -> str:
    return (
        pages.environment()
        .get_template(f"{template}.html.j2")
        .render(
            answers=answers,
            title=title,
            version=__version__,
            words=words,
            units=units,
            plot=plot,
            bar=bar,
            roofline=roofline,
            range_=serving_words.range_,
            times=serving_words.times,
            style=Markup(pages.asset("style.css") + pages.asset("systems.css")),  # our own files
        )
    )


def _fragment(template: str, answers: Sequence[Any], *, words: ModuleType) -> str:
    return (
        pages.environment()
        .get_template(f"{template}.html.j2")
        .render(
            answers=answers,
            words=words,
            units=units,
            times=serving_words.times,
            style=Markup(pages.asset("fragment.css")),  # our own file
        )
    )


__all__ = [
    "modules",
    "modules_fragment",
    "served_fragment",
    "serving_page",
    "trained_fragment",
    "training_page",
]
