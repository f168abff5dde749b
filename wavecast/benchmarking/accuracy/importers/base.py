"""The interface of an importer: a file format of measurements, as a table and as cases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from wavecast.benchmarking.accuracy.cases import Case, MeasuredFigure
from wavecast.errors import WavecastError

if TYPE_CHECKING:
    import pandas as pd

Cells = Mapping[str, Any]
"""One row: column to cell."""

Item = TypeVar("Item", Case, MeasuredFigure, Case | MeasuredFigure)

UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, WavecastError)
"""What reading a cell of an unexpected type or value raises."""


@dataclass(frozen=True, slots=True)
class MeasurementTable:
    """The rows of a file, and how many of its rows are not in `frame`, by reason."""

    frame: pd.DataFrame
    rejected: Mapping[str, int] = field(default_factory=dict)


class Importer(ABC):
    """One file format.

    Subclasses register under the entry point group `wavecast.importers` (`docs/validate.md`).
    """

    name: ClassVar[str]
    """Name of the format in reports."""
    columns: ClassVar[tuple[frozenset[str], ...]]
    """Sets of columns; a table that has all columns of one set is of this format."""
    conversions: ClassVar[
        Mapping[frozenset[str], Callable[[pd.DataFrame, Path], MeasurementTable]]
    ] = {}
    """Columns of another project's tables, and the function that converts them to `columns`."""
    readers: ClassVar[Mapping[str, Callable[[Path], MeasurementTable]]] = {}
    """Endings of file names that are not tables (lower case), and the function that reads them."""

    def match(self, columns: Collection[str]) -> int:
        """How many columns identify a table with `columns` as this format; 0: another format."""
        present = set(columns)
        column_sets = (*self.columns, *self.conversions)
        return max(
            (len(column_set) for column_set in column_sets if column_set <= present), default=0
        )

    def convert(self, frame: pd.DataFrame, path: Path) -> MeasurementTable:
        """The table in the columns of this format. Raises ValueError where no row converts."""
        present = {str(column) for column in frame.columns}
        if not any(column_set <= present for column_set in self.columns):
            for column_set, conversion in self.conversions.items():
                if column_set <= present:
                    return conversion(frame, path)
        return MeasurementTable(frame)

    @abstractmethod
    def cases(self, frame: pd.DataFrame) -> Iterator[Case | MeasuredFigure]:
        """Every row of the table, in order; rows may share a case or give several.

        A row that cannot be read gives a case with the reason (`each`); it raises nothing.
        """


def rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Rows without their empty cells, which pandas reads as NaN."""
    for row in frame.to_dict("records"):
        yield {str(name): value for name, value in row.items() if value == value}


def each(every: Iterable[Cells], case: Callable[[Any], Item]) -> Iterator[Item | Case]:
    """`case` of every row; an unreadable row gives a case without op that states the reason."""
    for row in every:
        try:
            yield case(row)
        except UNREADABLE as error:
            yield Case(kind="", op=None, device="", seconds=math.nan, reason=why(error))


def convert_rows(
    every: Iterable[Any], convert: Callable[[Any], Cells]
) -> tuple[list[Cells], Counter[str]]:
    """`convert` of every row, and how many rows it cannot read, by reason.

    Raises ValueError with the first reason where it can read none.
    """
    records: list[Cells] = []
    rejected: Counter[str] = Counter()
    for row in every:
        try:
            records.append(convert(row))
        except UNREADABLE as error:
            rejected[why(error)] += 1
    if rejected and not records:
        raise ValueError(next(iter(rejected)))
    return records, rejected


def why(error: Exception) -> str:
    """The reason a row cannot be read."""
    if isinstance(error, KeyError):
        return f"empty cell: {error.args[0]}"
    return f"unreadable cell: {error}"


def truth(cell: object) -> bool:
    """A cell as a boolean. Raises ValueError for a text other than true and false."""
    if isinstance(cell, str):
        words = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
        if cell.lower() not in words:
            raise ValueError(f"{cell!r} is neither true nor false")
        return words[cell.lower()]
    return bool(cell)


__all__ = [
    "UNREADABLE",
    "Cells",
    "Importer",
    "MeasurementTable",
    "convert_rows",
    "each",
    "rows",
    "truth",
    "why",
]
