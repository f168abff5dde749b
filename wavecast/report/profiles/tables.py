"""Pieces that the tables of profiles in the terminal share."""

from __future__ import annotations

from typing import Final

from rich.table import Table
from rich.text import Text

from wavecast.report.kit.terminal import safe

ROWS: Final = {"brief": 5, "normal": 12, "full": 1 << 30}
"""Rows of a table by the level of detail."""


def columns(*heads: tuple[str, str]) -> Table:
    """A table with these columns: (head, `right` or `left`)."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for title, side in heads:
        if side == "right":
            table.add_column(title, justify="right", no_wrap=True)
        else:
            table.add_column(title, overflow="fold")
    return table


def with_form(name: str, text: str) -> Text:
    """A name of a kernel or an operator, then what its form is, dim."""
    return Text.assemble(safe(shorten(name, 100)), (f"  {safe(text)}", "dim"))


def shorten(name: str, longest: int = 120) -> str:
    """`name`, cut to `longest` characters."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


__all__ = ["ROWS", "columns", "shorten", "with_form"]
