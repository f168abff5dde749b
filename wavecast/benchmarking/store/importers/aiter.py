"""AITER's tuned CSV files, read by `accuracy.importers.aiter` (aiter/configs of github.com/ROCm;
the columns are those its tuners write). Times are microseconds.

Each row is a problem and its fastest kernel; in a file of all candidate kernels the kernel is part
of the subject. Rows of kernels that failed have no positive time; they are counted and omitted, as
are rows that cannot be read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from wavecast.benchmarking.accuracy.importers import aiter
from wavecast.benchmarking.records import BenchSubject, Scalar
from wavecast.benchmarking.store.importers.source import Imported, ImportedFile, ImportLabels
from wavecast.benchmarking.store.importers.timings import (
    About,
    ImportedTiming,
    group_timings,
    import_timings,
)
from wavecast.errors import MissingTool
from wavecast.extras import install_hint

_AXES: Final = (
    *("M", "N", "K", "batch", "dtype_a", "dtype_b", "dtype_out", "scaling", "b_preshuffled"),
    *("bias", "stage", "dtype", "dtype_w", "quant", "act", "tokens", "model_dim", "inter_dim"),
    *("experts", "topk", "gated", "doweight_stage1"),
)


def recognise(source: ImportedFile) -> bool:
    """A CSV file with the columns of its tuners."""
    return aiter.conversion(source.columns) is not None


def read(source: ImportedFile, labels: ImportLabels) -> Imported:
    """Every row with a time. Raises MissingTool without pandas, ValueError where no row can be
    read."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingTool("AITER's files need pandas", hint=install_hint("validate")) from None
    convert = aiter.conversion(source.columns)
    if convert is None:
        raise ValueError("it lacks the columns of a tuned file")
    table = convert(pd.DataFrame(list(source.table())).map(_number), source.path)
    times, failed = [], 0
    for row in table.frame.to_dict("records"):
        seconds = float(row["time_us"]) * 1e-6
        if math.isfinite(seconds) and seconds > 0:
            times.append((_timing(row), seconds))
        else:
            failed += 1
    notes = [f"{count} rows: {reason}" for reason, count in table.rejected.items()]
    notes += [f"{failed} rows of kernels that failed"] if failed else []
    return import_timings(source, "aiter", group_timings(times), labels, About(notes=tuple(notes)))


def _timing(row: Mapping[Any, Any]) -> ImportedTiming:
    axes: dict[str, Scalar] = {
        name: row[name] for name in _AXES if name in row and row[name] not in ("", None)
    }
    kernel = str(row["kernel"])
    candidate = row.get("kind") == "candidate"
    units = row["cu_count"]
    return ImportedTiming(
        BenchSubject("operator", f"aiter {row['op']}", axes, kernel if candidate else ""),
        target=row["arch"],
        more={"compute_units": int(units)} if units == units else {},
        notes=(f"kernel {kernel}",) if kernel and not candidate else (),
    )


def _number(text: str) -> object:
    """A cell as pandas reads it: a number, a text, or NaN."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text if text else float("nan")


__all__ = ["read", "recognise"]
