"""The general format: any op, one row per measurement (docs/validate.md).

`op` and `shape` are those of `wavecast explain OP --shape SHAPE`. Columns that are not
listed here are options of the op (`dtype`, `causal` …); empty cells are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.benchmarking.accuracy.cases import Case, device_of
from wavecast.benchmarking.accuracy.importers.base import Importer, each
from wavecast.errors import WavecastError
from wavecast.perfmodel import ops

if TYPE_CHECKING:
    import pandas as pd

OWN = {
    "op": "kind of operation, as in `wavecast explain`",
    "shape": "sizes, as in `--shape`",
    "time_us": "measured time in microseconds (or `seconds`)",
    "seconds": "measured time in seconds",
    "device": "name of the GPU (`mi300x`)",
    "arch": "its compiler target, for rows that do not name the GPU",
    "cu_count": "its compute units, for rows with `arch`",
    "kernel": "what ran; not used",
    "problem": "rows of one problem are alternatives and are ranked; empty: not ranked",
    "group": "model or file, left out together",
    "source": "where the row is from",
    "launches": "how many launches the time is the median of",
    "measured_with": "versions of what measured it",
    "wavecast": "version that predicted it then",
    "predicted_us": "predicted then, as are the next four",
    "low_us": "low end of the interval",
    "high_us": "high end of the interval",
    "limiter": "what limited that prediction",
    "fidelity": "fidelity of that prediction",
    "not_predicted": "why nothing was predicted",
}
"""Columns of the format itself, with their meaning; the last nine are those of `--measure`."""


class General(Importer):
    """Rows with op, shape, time (two spellings) and device (two spellings)."""

    name: ClassVar[str] = "general"
    columns: ClassVar[tuple[frozenset[str], ...]] = tuple(
        frozenset({"op", "shape", time, device})
        for time in ("time_us", "seconds")
        for device in ("device", "arch")
    )

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """One case per row."""
        yield from each(map(_drop_missing, frame.to_dict("records")), _case)


def _drop_missing(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in row.items() if _present(value)}


def _case(row: Mapping[str, Any]) -> Case:
    device, unsure = device_of(
        str(row.get("arch", "")), row.get("cu_count"), str(row.get("device", ""))
    )
    options = {name: _text(value) for name, value in row.items() if name not in OWN}
    reason, op = "" if device else unsure, None
    try:
        op = ops.op(str(row.get("op", ""))).parse(str(row.get("shape", "")), options)
    except WavecastError as error:
        reason = str(error)
    return Case(
        kind=str(row.get("op", "")),
        op=op,
        device=device,
        seconds=_seconds(row),
        problem=str(row.get("problem", "")),
        group=str(row.get("group", "")),
        labels={"dtype": options.get("dtype", "")},
        source=str(row.get("source", "")),
        reason=reason,
    )


def _seconds(row: Mapping[str, Any]) -> float:
    """The measured time; NaN if it is missing or not a number."""
    try:
        return float(row["seconds"]) if "seconds" in row else float(row["time_us"]) * 1e-6
    except (KeyError, TypeError, ValueError):
        return math.nan


def _present(value: Any) -> bool:
    """A cell that holds something; pandas gives NaN for those that do not."""
    return value is not None and value == value and value != ""


def _text(value: Any) -> str:
    """An option as it would be typed; whole numbers lose the `.0` pandas gives them."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
