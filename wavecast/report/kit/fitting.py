"""Tables that narrow terminals show without breaking words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

_GAP: Final = 2
"""Columns of the terminal between two columns of a table."""
_SEVERAL: Final = 2
"""Rows whose equal values are worth a line."""


class FittingTable(Table):
    """A table whose words stay whole.

    Where cells do not fit on one line, columns become narrower, down to their longest words. Where
    these do not fit either, columns of one value move to a line above the table, the last first;
    then texts move to a line above the numbers of their row, the first column first; and where the
    numbers alone are too wide, rows are lines of heads and values.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        width = options.max_width
        sizes = [_sizes(console, options, column) for column in self.columns]
        if _total([most for _, most in sizes]) <= width:
            yield from super().__rich_console__(console, options)
            return
        moved: list[int] = []
        stay = list(range(len(sizes)))
        equal = self._equal_columns()
        while equal and _total([sizes[number][0] for number in stay]) > width:
            stay.remove(equal.pop())
        if equal := [number for number in range(len(sizes)) if number not in stay]:
            yield self._of_all_rows(equal)
        texts = [number for number in stay if self.columns[number].justify != "right"]
        while texts and _total([sizes[number][0] for number in stay]) > width:
            moved.append(texts.pop(0))
            stay.remove(moved[-1])
        if _total([sizes[number][0] for number in stay]) > width:
            moved, stay = sorted([*moved, *stay]), []
        widths = _fill([sizes[number] for number in stay], width)
        yield from self._narrow(stay, widths, moved)

    def _equal_columns(self) -> list[int]:
        """The columns but the first that have the same value in each of several rows."""
        if len(self.rows) < _SEVERAL:
            return []
        columns = [list(map(_plain, column.cells)) for column in self.columns]
        return [
            number
            for number, cells in enumerate(columns)
            if number and cells[0] and len(set(cells)) == 1
        ]

    def _of_all_rows(self, columns: Sequence[int]) -> Text:
        """A line with columns of one value."""
        parts = [
            f"{self.columns[number].header} {_plain(next(iter(self.columns[number].cells)))}"
            for number in columns
        ]
        return Text(f"all rows: {', '.join(parts)}", style="dim")

    def _narrow(
        self, stay: Sequence[int], widths: Sequence[int], moved: Sequence[int]
    ) -> Iterator[RenderableType]:
        """The rows with some columns in a table, and those that moved on a line above."""
        cells = [list(column.cells) for column in self.columns]
        table = self._part(stay, widths, head=self.show_header)
        before: list[str] = []
        for number, row in enumerate(self.rows):
            texts = [self._labelled(each, cells[each][number]) for each in moved]
            names = [text.plain for text in texts]
            if moved and (names != before or not stay):
                if stay and (table.row_count or not number):
                    yield table
                table = self._part(stay, widths, head=False)
                line = Text("  ").join(text for text in texts if text.plain)
                line.stylize(row.style or "")
                yield Padding(line, (0, 0, 0, 2), expand=False) if not stay else line
                before = names
            values = [cells[each][number] for each in stay]
            if any(value != "" for value in values):
                table.add_row(*values, style=row.style)
        if stay and table.row_count:
            yield table

    def _labelled(self, column: int, cell: RenderableType) -> Text:
        """A cell as a part of a line: with its head, but for the first column."""
        text = cell.copy() if isinstance(cell, Text) else Text.from_markup(str(cell))
        head = str(self.columns[column].header)
        if not column or not head or not text.plain:
            return text
        return Text.assemble((f"{head} ", "dim"), text)

    def _part(self, stay: Sequence[int], widths: Sequence[int], *, head: bool) -> Table:
        """A table with some of the columns, without rows."""
        table = Table(
            box=self.box,
            show_header=head,
            header_style=self.header_style,
            padding=self.padding,
            pad_edge=self.pad_edge,
            show_edge=self.show_edge,
            collapse_padding=self.collapse_padding,
        )
        for number, width in zip(stay, widths, strict=True):
            column = self.columns[number]
            table.add_column(
                column.header, justify=column.justify, overflow=column.overflow, width=width
            )
        return table


def _plain(cell: RenderableType) -> str:
    return cell.plain if isinstance(cell, Text) else Text.from_markup(str(cell)).plain


def _sizes(console: Console, options: ConsoleOptions, column: Column) -> tuple[int, int]:
    """The width of a column whose words are whole (of numbers, whose cells are), and of one whose
    cells are on one line."""
    free = options.update_width(1 << 12)
    head = Measurement.get(console, free, column.header)
    cells = [Measurement.get(console, free, cell) for cell in column.cells]
    whole = column.justify == "right"
    least = max([head.minimum, *(cell.maximum if whole else cell.minimum for cell in cells)])
    return max(1, least), max([1, head.maximum, *(cell.maximum for cell in cells)])


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * max(0, len(widths) - 1)


def _fill(sizes: Sequence[tuple[int, int]], width: int) -> list[int]:
    """Widths of columns between their bounds: what is left goes to those that lack least."""
    widths = [least for least, _ in sizes]
    left = width - _total(widths)
    for number in sorted(range(len(sizes)), key=lambda each: sizes[each][1] - sizes[each][0]):
        more = min(left, sizes[number][1] - sizes[number][0])
        widths[number] += more
        left -= more
    return widths


__all__ = ["FittingTable"]
