"""Option values that several verbs take."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import click

from wavecast.options.values import Files, OneOf, OptionValues
from wavecast.patterns import regex


class OptionValue(click.ParamType):
    """The values of an option."""

    def __init__(self, values: OptionValues) -> None:
        self.values = values
        self.name = values.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.values.take(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def click_type(values: OptionValues) -> click.ParamType:
    """The type of an option on a command line: what shells complete are types of click."""
    match values:
        case OneOf():
            return click.Choice(values.words)
        case Files():
            folder, file = values.folder is not False, values.folder is not True
            return click.Path(path_type=Path, dir_okay=folder, file_okay=file)
    return OptionValue(values)


PROCESSES: Final = click.IntRange(1, 1024)
"""Of processes or threads."""


def count(least: int = 0, most: int = (1 << 31) - 1) -> click.IntRange:
    """A number of things."""
    return click.IntRange(least, most)


class NumberRange(click.FloatRange):
    """Numbers of a range, which NaN is not in: no comparison refuses it."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


class RegexParam(click.ParamType):
    """A regular expression, as text. One that does not compile is refused before any work."""

    name = "REGEX"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,  # noqa: ARG002
    ) -> str:
        regex(value, param.opts[0] if param is not None else "")
        return value
