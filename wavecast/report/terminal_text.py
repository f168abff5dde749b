"""Pieces of terminal text that every section uses."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

from rich.console import Console
from rich.text import Text

SEVERITY_STYLE = {"error": "bold red", "warning": "yellow", "note": "cyan"}
"""The colour of a severity; its name is always printed too."""


def safe(text: str) -> str:
    """`text` without control characters, which could drive the terminal it is shown on."""
    return "".join(ch if ch.isprintable() else "�" for ch in text.expandtabs(4))


def plain(render: Callable[[Console], None], width: int = 100) -> str:
    """What a report prints, without colours."""
    out = StringIO()
    render(Console(file=out, width=width))
    return out.getvalue()


def heading(text: str, note: str = "") -> Text:
    """The title of a section."""
    line = Text.assemble("\n", (text, "bold"))
    return line.append(f"  {note}", style="dim") if note else line
