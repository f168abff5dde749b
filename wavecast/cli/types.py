"""Types of click for the values of options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from wavecast.options.values import Files, OneOf, OptionValues


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


__all__ = ["click_type"]
