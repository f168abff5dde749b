"""Pieces of terminal text that every section uses."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from typing import IO

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.text import Text

SEVERITY_STYLE = {"error": "bold red", "warning": "yellow", "note": "cyan"}
"""The colour of a severity; its name is always printed too."""


def safe(text: str) -> str:
    """`text` without control characters, which could drive the terminal it is shown on."""
    if text.isprintable():
        return text
    return "".join(ch if ch.isprintable() else "�" for ch in text.expandtabs(4))


_PADDING = re.compile(r" +$", re.MULTILINE)


class UnpaddedFile:
    """A text file that drops the spaces with which tables fill their lines up.

    What a console prints ends with the end of a line, so a line is never written in two parts.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write `text` without spaces at the ends of its lines."""
        return self._file.write(_PADDING.sub("", text))

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


def plain(render: Callable[[Console], object], width: int = 100) -> str:
    """What a report prints, without colours and padding."""
    out = StringIO()
    render(Console(file=out, width=width))
    return _PADDING.sub("", out.getvalue())


_UNLIMITED = 1 << 12
"""Columns of a terminal in which every table fits."""


def fits(console: Console, shown: RenderableType) -> bool:
    """Whether every cell of a table fits on its line."""
    options = console.options.update_width(_UNLIMITED)
    return Measurement.get(console, options, shown).maximum <= console.width


def print_fitting(console: Console, wide: RenderableType, *narrow: RenderableType) -> None:
    """Print a table, or `narrow` where a cell of it would not fit on its line."""
    for shown in (wide,) if fits(console, wide) else narrow:
        console.print(shown)


def heading(text: str, note: str = "") -> Text:
    """The title of a section."""
    line = Text.assemble("\n", (text, "bold"))
    return line.append(f"  {note}", style="dim") if note else line
