"""Results of the Python API show themselves: as text, JSON, a page, and a view in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from rich.console import Console

from wavecast.documents import base
from wavecast.report import recorded_html
from wavecast.report.terminal_text import plain


class ShownResult(ABC):
    """A result that programs store and notebooks show.

    Text, page and view are made from what `render` prints, unless a class has its own.
    """

    __slots__ = ()

    @abstractmethod
    def render(self, console: Console) -> object:
        """Print the result as its command does."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The result as JSON-ready values."""

    @abstractmethod
    def subject(self) -> str:
        """What the result is about, in a few words."""

    def json(self) -> str:
        """`to_dict` as JSON text."""
        return base.dumps(self.to_dict(), indent=2)

    def html(self) -> str:
        """The result as one page that needs no network."""
        return recorded_html.page(self.subject(), self.render)

    def _repr_html_(self) -> str:
        return recorded_html.fragment(self.render)

    def __str__(self) -> str:
        """What the command prints, without colours."""
        return plain(self.render)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.subject()}>"


def few(names: list[str], most: int = 3) -> str:
    """The first of some different names, and how many follow: `a, b, c and 4 more`."""
    distinct = list(dict.fromkeys(names))
    rest = f" and {len(distinct) - most} more" if len(distinct) > most else ""
    return ", ".join(distinct[:most]) + rest


__all__ = ["ShownResult", "few"]
