"""Files that `wavecast model` writes next to its text: a page, traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from wavecast.cli import streams

_Command = TypeVar("_Command", bound=Callable[..., object])

_OPTIONS = (
    click.option("--html", type=click.Path(path_type=Path, dir_okay=False), default=None,
                 help="Write a page with plots; it needs no network."),
    click.option("--perfetto", type=click.Path(path_type=Path, dir_okay=False), default=None,
                 help="Write what runs in time to this file, for Perfetto."),
    click.option("--chakra", type=click.Path(path_type=Path, file_okay=False), default=None,
                 help="Write Chakra execution traces to this folder, a file per rank."),
)  # fmt: skip

NAMES = ("html", "perfetto", "chakra")
"""Parameters that `file_options` adds."""


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """The files that were asked for; None: not."""

    html: Path | None
    perfetto: Path | None
    chakra: Path | None

    def __bool__(self) -> bool:
        """Whether any was asked for."""
        return any(getattr(self, name) is not None for name in NAMES)

    def write(self, what: str, answers: Sequence[Any]) -> None:
        """Write them for answers of a kind: `served`, `trained` or `modules`. Raises UsageError for
        a Chakra trace of a training."""
        if self.chakra is not None:
            from wavecast.report import chakra

            chakra.write(getattr(chakra, what)(answers), self.chakra)
        if self.html is not None:
            from wavecast.report import model_pages

            with streams.writing(self.html) as stream:
                stream.write(getattr(model_pages, what)(answers))
        if self.perfetto is not None:
            from wavecast.report import model_traces

            with streams.writing(self.perfetto) as stream:
                stream.write(model_traces.dumps(getattr(model_traces, what)(answers)))


def file_options(command: _Command) -> _Command:
    """Add the options to a command, which gets them by name."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def taken(options: dict[str, Any]) -> OutputFiles:
    """The files of the parameters of a command, which lose them."""
    return OutputFiles(*(options.pop(name) for name in NAMES))


__all__ = ["NAMES", "OutputFiles", "file_options", "taken"]
