"""Measured and predicted times on the local GPU as terminal text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit import units
from wavecast.report.kit.terminal import safe

if TYPE_CHECKING:
    from rich.console import Console

_OPTIONS = ("function", "dtype", "causal")


def render(records: Sequence[Mapping[str, Any]], console: Console) -> None:
    """A row per record: op or kernel, measured and predicted time, their ratio or why it lacks."""
    table = plain_table(
        ("what", False), ("measured", True), ("predicted", True), ("interval", True),
        ("ratio", True), ("limited by", False),
    )  # fmt: skip
    for record in records:
        measured = record["time_us"] * 1e-6
        if "predicted_us" not in record:
            why = safe(str(record.get("not_predicted", "")))
            table.add_row(_name(record), units.seconds(measured), units.UNKNOWN, "", "", why)
            continue
        low, high = (units.seconds(record[name] * 1e-6) for name in ("low_us", "high_us"))
        table.add_row(
            _name(record),
            units.seconds(measured),
            units.seconds(record["predicted_us"] * 1e-6),
            f"{low} … {high}",
            f"{record['predicted_us'] / record['time_us']:.2f}",
            safe(str(record["limiter"])),
        )
    console.print(table)


def _name(record: Mapping[str, Any]) -> str:
    parts = [record.get("kernel") or record["op"], record["shape"]]
    return safe(" ".join([*parts, *(str(record[name]) for name in _OPTIONS if name in record)]))
