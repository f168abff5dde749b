"""What tests of calibration's importers share."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from calibration import datasets
from wavecast.benchmarking.accuracy import importers
from wavecast.benchmarking.accuracy.importers import Importer


def importer(columns: Collection[str], sources: Path | None = None) -> Importer:
    """The importer, of calibration or of the package, that reads these columns."""
    known = (*datasets.importers(sources), *importers.all_importers())
    return importers.by_columns(known, columns, Path("rows.parquet"))
