"""Files of measurements as tables: Parquet, CSV, JSON lines, and formats of other projects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wavecast.bench.accuracy import importers
from wavecast.errors import InputError, MissingTool

if TYPE_CHECKING:
    import pandas as pd


def read(path: Path) -> pd.DataFrame:
    """The rows of a file; what another project wrote, in the columns its adapter reads.

    Raises MissingTool without pandas and pyarrow, InputError for a file that is not there, is
    damaged, is empty or has no known ending.
    """
    _require()
    if not path.is_file():
        raise InputError(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}")
    try:
        frame = _read(path)
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"{path}: cannot be read: {first[0]}") from error
    if frame.empty:
        raise InputError(f"{path}: no rows")
    return frame


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    name = path.name.lower().removesuffix(".gz").removesuffix(".bz2")
    if name.endswith(".parquet"):
        return pd.read_parquet(path)
    if name.endswith(".jsonl"):
        return pd.read_json(path, lines=True)
    if name.endswith(".csv"):
        frame = pd.read_csv(path, low_memory=False)
        if not isinstance(frame.index, pd.RangeIndex):
            raise InputError(f"{path}: rows have more cells than there are columns")
        convert = importers.of_columns(frame.columns)
        return frame if convert is None else convert(frame, path)
    convert = importers.of_name(name)
    if convert is None:
        raise InputError(f"{path}: not a .parquet, .csv, .jsonl, .fdb.txt or .yaml file")
    return convert(path)


def _require() -> None:
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingTool(
            f"reading measurements needs {error.name}", hint="pip install 'wavecast[validate]'"
        ) from None
