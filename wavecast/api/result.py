"""Results of verbs show themselves: as text, JSON, a page, and a view in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from rich.console import Console


class ShownResult(ABC):
    """A result that programs store and notebooks show.

    Text, page and view are made from what `render` prints, unless a class has its own. The formats
    of a command line are methods: `json`, `html`, `markdown` …; what `render` takes in addition are
    the options of its view.
    """

    __slots__ = ()
    WIDTH: ClassVar[int] = 100
    """Columns of the text where no terminal shows it."""

    @abstractmethod
    def render(self, console: Console) -> object:
        """Print the result as its command does."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any] | list[Any]:
        """The result as JSON-ready values."""

    @abstractmethod
    def subject(self) -> str:
        """What the result is about, in a few words."""

    def json(self) -> str:
        """`to_dict` as JSON text."""
        from wavecast import json_objects

        return json_objects.dumps(self.to_dict(), indent=2)

    def html(self) -> str:
        """The result as one page that needs no network."""
        from wavecast.report.kit import recorded_html

        return recorded_html.page(self.subject(), self.render)

    def why_nothing(self) -> str:
        """Why there is nothing to see in the result, else ""."""
        return ""

    def messages(self) -> list[str]:
        """Lines that the command prints next to the result, on standard error."""
        return []

    def remarks(self) -> list[str]:
        """Lines of the text that the other formats lack: the command prints them next to those, on
        standard error."""
        return []

    def exit_code(self) -> int:
        """What the command ends with: 1 where something is worse or wrong."""
        return 0

    def _repr_html_(self) -> str:
        from wavecast.report.kit import recorded_html

        return recorded_html.fragment(self.render)

    def __str__(self) -> str:
        """What the command prints, without colours."""
        from wavecast.report.kit.terminal import plain

        return plain(self.render, self.WIDTH)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.subject()}>"


@contextmanager
def partial(result: Callable[[BaseException], ShownResult]) -> Iterator[None]:
    """What breaks off the block has the result until then, which `result` makes of it, as its
    attribute `partial`."""
    try:
        yield
    except BaseException as error:
        error.__dict__["partial"] = result(error)
        raise


def few(names: list[str], most: int = 3) -> str:
    """The first of some different names, and how many follow: `a, b, c and 4 more`."""
    distinct = list(dict.fromkeys(names))
    rest = f" and {len(distinct) - most} more" if len(distinct) > most else ""
    return ", ".join(distinct[:most]) + rest


__all__ = ["ShownResult", "few", "partial"]
