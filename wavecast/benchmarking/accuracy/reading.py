"""Files of measurements as tables: Parquet, CSV, JSON lines, and what importers read themselves."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast import files
from wavecast.benchmarking.accuracy import importers
from wavecast.benchmarking.accuracy.cases import Case, MeasuredFigure
from wavecast.benchmarking.accuracy.importers import Importer
from wavecast.benchmarking.accuracy.importers.base import MeasurementTable, why
from wavecast.errors import InputError, MissingTool
from wavecast.extras import install_hint

if TYPE_CHECKING:
    import pandas as pd

_TABLES = (".parquet", ".csv", ".jsonl")
_UNREADABLE = (
    ArithmeticError,
    EOFError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


def read(path: Path, candidates: Sequence[Importer]) -> tuple[MeasurementTable, Importer]:
    """The table of a file in the columns of its importer, and that importer, one of `candidates`.

    Rows that cannot be read are counted in the table. Raises MissingTool without pandas and
    pyarrow; InputError for a file that is absent, damaged or empty, whose rows are all unreadable,
    or that no importer reads.
    """
    _require()
    files.check_regular(path)
    try:
        table, importer = _read(path, candidates)
    except _UNREADABLE as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"{path}: cannot be read: {first[0]}") from error
    if table.frame.empty:
        raise InputError(f"{path}: no rows")
    return table, importer


def items(importer: Importer, frame: pd.DataFrame) -> Iterator[Case | MeasuredFigure]:
    """What an importer makes of a table. A row that it fails on is a case with the reason.

    Where an importer raises, which it should not, it reads the halves of the table, down to the
    row; of a problem with several rows each part is then a problem.
    """
    try:
        cases = list(importer.cases(frame))
    except Exception as error:  # an importer may be anyone's, and a row must not end the run
        if len(frame) > 1:
            half = len(frame) // 2
            yield from items(importer, frame.iloc[:half])
            yield from items(importer, frame.iloc[half:])
            return
        cases = [Case(kind="", op=None, device="", seconds=math.nan, reason=why(error))]
    yield from cases


def _read(path: Path, candidates: Sequence[Importer]) -> tuple[MeasurementTable, Importer]:
    name = path.name.lower().removesuffix(".gz").removesuffix(".bz2")
    for importer in candidates:
        for ending, reader in importer.readers.items():
            if name.endswith(ending):
                return reader(path), importer
    if not name.endswith(_TABLES):
        others = sorted({ending for importer in candidates for ending in importer.readers})
        raise InputError(f"{path}: not a {', '.join((*_TABLES, *others))} file")
    table = _table(path, name)
    if table.frame.empty:
        raise InputError(f"{path}: no rows")
    importer = importers.by_columns(
        candidates, [str(column) for column in table.frame.columns], path
    )
    converted = importer.convert(table.frame, path)
    rejected = Counter(table.rejected) + Counter(converted.rejected)
    return replace(converted, rejected=rejected), importer


def _table(path: Path, name: str) -> MeasurementTable:
    import pandas as pd

    if name.endswith(".parquet"):
        return MeasurementTable(pd.read_parquet(path))
    if name.endswith(".jsonl"):
        lines = list(filter(str.strip, _text(path).split("\n")))
        if not all(line.lstrip().startswith("{") for line in lines):
            return _good_documents(lines)
        try:
            return MeasurementTable(pd.read_json(path, lines=True))
        except (AttributeError, TypeError, ValueError):
            return _good_documents(lines)
    try:
        frame = pd.read_csv(path, low_memory=False)
    except (pd.errors.ParserError, UnicodeDecodeError):
        return _good_lines(path)
    # a first row with too many cells makes pandas take the first column as the index
    return MeasurementTable(frame) if isinstance(frame.index, pd.RangeIndex) else _good_lines(path)


def _good_lines(path: Path) -> MeasurementTable:
    """A CSV file without the lines that have more cells than there are columns.

    Raises InputError where no line is left.
    """
    import pandas as pd

    lines = files.csv_rows(io.StringIO(_text(path), newline=""))
    head = next(lines)
    good, rejected = io.StringIO(newline=""), Counter[str]()
    writer = csv.writer(good)
    writer.writerow(head)
    count = 0
    for cells in lines:
        if len(cells) > len(head):
            rejected[f"{len(cells)} cells in {len(head)} columns"] += 1
        elif cells:
            writer.writerow(cells)
            count += 1
    if not count:
        raise InputError(f"{path}: every row has more cells than there are columns")
    good.seek(0)
    return MeasurementTable(pd.read_csv(good, low_memory=False), rejected)


def _good_documents(lines: Sequence[str]) -> MeasurementTable:
    """JSON lines without those that are not JSON objects.

    Raises ValueError where no line is left.
    """
    import pandas as pd

    good, rejected = [], Counter[str]()
    for line in lines:
        if isinstance(_document(line), dict):
            good.append(line)
        else:
            rejected["not a JSON object"] += 1
    if not good:
        raise ValueError("no line is a JSON object")
    return MeasurementTable(pd.read_json(io.StringIO("\n".join(good)), lines=True), rejected)


def _document(line: str) -> Any:
    """The JSON value of a line, None where it has none."""
    try:
        return files.parse_json(line)
    except ValueError:
        return None


def _text(path: Path) -> str:
    """The text of a file that may be compressed; bytes that are not UTF-8 become U+FFFD."""
    return files.read_packed(path).decode("utf-8-sig", errors="replace")


def _require() -> None:
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingTool(
            f"reading measurements needs {error.name}", hint=install_hint("validate")
        ) from None
