"""What a report prints to a terminal as an HTML page: its tables sort and filter.

A `RecordingConsole` is a console to those who print: it keeps what they give it, and `page` makes
elements of it. A report needs no second description to be a page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from io import StringIO
from itertools import pairwise
from typing import Any, Final

from markupsafe import Markup, escape
from rich.bar import Bar
from rich.console import Console, Group
from rich.padding import Padding
from rich.rule import Rule
from rich.style import Style
from rich.table import Table
from rich.text import Text

from wavecast.report.kit import pages
from wavecast.version import __version__

WIDTH: Final = 240
"""Columns that a report believes to have: enough for all of its tables' columns."""
_NARROW_COLUMNS: Final = 4
"""Columns that fit next to each other on a narrow screen."""
_COLOURS: Final = ("red", "yellow", "green", "cyan")
_NUMBER: Final = re.compile(r"^[~≥≤<>×±]?\s*([-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)\s*([^\s\d]*)")
_UNITS: Final = {
    "ns": 1e-9,
    "µs": 1e-6,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
}
_PREFIXED: Final = re.compile(r"^([kKMGTP])(?=[A-Z])")


class RecordingConsole(Console):
    """A console that keeps what is printed instead of showing it."""

    def __init__(self) -> None:
        super().__init__(file=StringIO(), width=WIDTH, highlight=False)
        self.printed: list[Any] = []

    def print(self, *objects: Any, **options: Any) -> None:
        """Keep the objects; texts are read as markup unless `markup` is False."""
        for renderable in objects:
            if isinstance(renderable, str):
                markup = options.get("markup")
                renderable = (
                    Text(renderable)
                    if markup is False
                    else self.render_str(renderable, highlight=False)
                )
            self.printed.append(renderable)


def page(title: str, render: Callable[[Console], object]) -> str:
    """The page of what `render` prints."""
    console = RecordingConsole()
    render(console)
    script = pages.asset("theme.js") + pages.asset("tables.js")
    return (
        pages.environment()
        .get_template("recorded.html.j2")
        .render(
            title=title,
            version=__version__,
            body=Markup("\n").join(_elements(console.printed, console)),
            style=Markup(pages.asset("style.css") + pages.asset("recorded.css")),  # our own files
            script=Markup(script),
            script_digest=pages.digest(script),
        )
    )


def fragment(render: Callable[[Console], object]) -> str:
    """A part of a page for notebooks with what `render` prints, without script."""
    console = RecordingConsole()
    render(console)
    style = Markup(pages.asset("fragment.css"))  # our own file
    body = Markup("\n").join(_elements(console.printed, console))
    return Markup('<div class="wavecast">\n<style>{}</style>\n{}\n</div>').format(style, body)


def _elements(objects: Iterable[Any], console: Console) -> Iterable[Markup]:
    for renderable in objects:
        element = _element(renderable, console)
        if element:
            yield element


def _element(renderable: Any, console: Console) -> Markup:
    """A paragraph, heading or table; what has no element of HTML keeps the terminal's columns."""
    match renderable:
        case str():
            return _paragraphs(console.render_str(renderable, highlight=False))
        case Text():
            return _paragraphs(renderable)
        case Padding():
            return _element(renderable.renderable, console)
        case Group():
            return Markup("\n").join(_elements(renderable.renderables, console))
        case Rule():
            title = renderable.title
            return Markup("<h2>{}</h2>").format(title.plain if isinstance(title, Text) else title)
        case Table():
            return Markup('<div class="scroll">{}</div>').format(_table(renderable, console))
    return (
        Markup("<pre>{}</pre>").format(_render(renderable, console))
        if renderable is not None
        else Markup()
    )


def _render(renderable: Any, console: Console) -> str:
    lines = console.render_lines(renderable, pad=False)
    return "\n".join("".join(part.text for part in line).rstrip() for line in lines)


# --- text ----------------------------------------------------------------------------------------


def _paragraphs(text: Text) -> Markup:
    """A text that begins with an empty line and a bold word is a heading."""
    heading = text.plain.startswith("\n") and any(
        span.start <= 1 < span.end and "bold" in str(span.style) for span in text.spans
    )
    lines = [line for line in text.split("\n") if line.plain.strip()]
    tag = "h2" if heading else "p"
    paragraphs = []
    for number, line in enumerate(lines):
        line = _dedent(line)
        kind = tag if number == 0 else "p"
        paragraphs.append(Markup(f"<{kind}>{{}}</{kind}>").format(_inline(line)))
    return Markup("\n").join(paragraphs)


def _dedent(line: Text) -> Text:
    return line[len(line.plain) - len(line.plain.lstrip()) :]


def _inline(text: Text) -> Markup:
    """The parts of one line, each with the classes of its style."""
    plain, cuts = text.plain, {0, len(text.plain)}
    for span in text.spans:
        cuts |= {max(0, span.start), min(len(plain), span.end)}
    ends = sorted(cuts)
    pieces = []
    for start, stop in pairwise(ends):
        styles = [span.style for span in text.spans if span.start <= start and stop <= span.end]
        names = _classes([text.style, *styles])
        part = escape(plain[start:stop])
        pieces.append(
            Markup('<span class="{}">{}</span>').format(names, part) if names else Markup(part)
        )
    return Markup("").join(pieces)


def _classes(styles: Iterable[str | Style]) -> str:
    """The classes of styles that follow one another; `not bold` takes bold away."""
    names: dict[str, None] = {}
    for style in styles:
        words = str(style).split()
        for before, word in zip(["", *words], words, strict=False):
            if word in ("bold", "dim", *_COLOURS):
                if before == "not":
                    names.pop(word, None)
                else:
                    names[word] = None
    return " ".join(names)


# --- tables --------------------------------------------------------------------------------------


def _table(table: Table, console: Console) -> Markup:
    titles = [_plain(column.header) for column in table.columns]
    headed = table.show_header and any(titles)
    wide = headed and len(titles) > _NARROW_COLUMNS
    labels = titles if wide else [""] * len(titles)
    rows = zip(*(column.cells for column in table.columns), strict=True)
    right = [column.justify == "right" for column in table.columns]
    body = Markup("\n").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(
                _cell(cell, numeric, headed, label, console)
                for cell, numeric, label in zip(row, right, labels, strict=True)
            )
        )
        for row in rows
    )
    head = Markup()
    if headed:
        heads = Markup("").join(
            Markup("<th{}>{}</th>").format(_class(numeric), title)
            for title, numeric in zip(titles, right, strict=True)
        )
        head = Markup("<thead><tr>{}</tr></thead>").format(heads)
    kind = "sortable narrow-cards" if wide else "sortable" if headed else "layout"
    return Markup('<table class="{}">{}<tbody>{}</tbody></table>').format(kind, head, body)


def _cell(cell: Any, numeric: bool, headed: bool, label: str, console: Console) -> Markup:
    """A cell, with the head of its column where rows become cards on a narrow screen."""
    text = console.render_str(cell, highlight=False) if isinstance(cell, str) else cell
    value = Markup()
    if isinstance(text, Text):
        lines = [_inline(_dedent(line)) for line in text.split("\n")]
        inner = Markup("<br>").join(lines)
        if numeric and headed:
            number = value_of(text.plain)
            value = Markup(' data-value="{}"').format("" if number is None else repr(number))
    elif isinstance(text, Bar):
        share = 100 * (text.end - text.begin) / text.size if text.size else 0
        bar = Markup('<i class="bar" style="width:min({}px,{}vw)"></i>')
        inner = bar.format(round(2.4 * share), round(0.4 * share, 1))  # whole on a narrow screen
    elif isinstance(text, Table):
        inner = _table(text, console)
    else:
        inner = _element(text, console)
    data_label = Markup(' data-label="{}"').format(label) if label else Markup()
    return Markup("<td{}{}{}>{}</td>").format(_class(numeric), value, data_label, inner)


def _class(numeric: bool) -> Markup:
    return Markup(' class="n"') if numeric else Markup()


def _plain(header: Any) -> str:
    text = header if isinstance(header, Text) else Text.from_markup(str(header))
    return text.plain.strip()


def value_of(text: str) -> float | None:
    """The number that a cell begins with, in base units; None where there is none."""
    match = _NUMBER.match(text.strip())
    if match is None:
        return None
    number = float(match[1].replace(",", "").replace("−", "-"))
    prefix = _PREFIXED.match(match[2])
    unit = prefix[1] if prefix else match[2]
    return number * _UNITS.get(unit, 1.0)


__all__ = ["RecordingConsole", "fragment", "page", "value_of"]
