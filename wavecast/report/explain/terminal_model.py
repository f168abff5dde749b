"""Predicted time by line of a model that `torch.compile` compiled, and what the kernel library
would change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding

from wavecast.report.explain import source
from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit import units
from wavecast.report.kit.terminal import heading, safe

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wavecast.pipeline.explain.result import ModelLineChange, ModelLineTime

_NOT_PREDICTED = "not predicted"


def model_times(rows: Sequence[ModelLineTime]) -> Iterator[RenderableType]:
    """A table per device, in the order of the first launches, what is of no line last."""
    for device in dict.fromkeys(row.device.id for row in rows):
        here = [row for row in rows if row.device.id == device]
        total = sum(row.seconds or 0.0 for row in here)
        table = plain_table(("line", False), ("kernel", False), ("predicted", True),
                            ("share", True))  # fmt: skip
        for row in here:
            table.add_row(
                _lines(row.lines),
                _kernels(row),
                _time(row.seconds),
                units.percent(row.seconds, total) if row.seconds and total else units.UNKNOWN,
            )
        yield heading("Lines of the model", f"compiled for {device}")
        yield Padding(table, (0, 0, 1, 2))


def model_changes(changes: Sequence[ModelLineChange]) -> Iterator[RenderableType]:
    """A table per device, the most time saved first."""
    for device in dict.fromkeys(change.before.device.id for change in changes):
        table = plain_table(("line", False), ("now", False), ("library", False),
                            ("time now", True), ("time after", True),
                            ("difference", True))  # fmt: skip
        for change in changes:
            if change.before.device.id == device:
                table.add_row(
                    _lines(change.lines),
                    _kernels(change.before),
                    _kernels(change.after),
                    _time(change.before.seconds),
                    _time(change.after.seconds),
                    units.UNKNOWN if change.saved is None else _difference(-change.saved),
                )
        yield heading("With the kernel library", f"compiled for {device}")
        yield Padding(table, (0, 0, 1, 2))


def _lines(locations: Sequence[str]) -> str:
    return "\n".join(map(safe, source.model_lines(locations))) or "no line of the model"


def _kernels(row: ModelLineTime) -> str:
    return "\n".join(map(safe, row.kernels))


def _time(seconds: float | None) -> str:
    return _NOT_PREDICTED if seconds is None else units.seconds(seconds)


def _difference(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{units.seconds(abs(seconds))}"


__all__ = ["model_changes", "model_times"]
