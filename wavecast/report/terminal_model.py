"""Predicted time by line of a model that `torch.compile` made the launches of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.padding import Padding

from wavecast.report import source, units
from wavecast.report.terminal_tables import plain_table
from wavecast.report.terminal_text import heading, safe

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wavecast.pipeline.result import Explanation


@dataclass(slots=True)
class LineTime:
    """The kernels of some lines of a model, and their predicted seconds; None where one of them is
    not predicted."""

    lines: list[str]
    kernels: list[str] = field(default_factory=list)
    seconds: float | None = 0.0


def line_times(explanations: Sequence[Explanation]) -> list[LineTime]:
    """The launches of one device by their lines, in the order of the lines' first launches. A fused
    kernel is of all its lines together. Launches of no line come last, as one."""
    found: dict[tuple[str, ...], LineTime] = {}
    for one in explanations:
        launch = one.launch
        if launch is None:
            continue
        row = found.setdefault(launch.model_lines, LineTime(source.model_lines(launch)))
        if one.code.kernel not in row.kernels:
            row.kernels.append(one.code.kernel)
        predicted = one.predicted.prediction
        if predicted is None or row.seconds is None:
            row.seconds = None
        else:
            row.seconds += predicted.seconds * launch.count
    rest = found.pop((), None)
    return [*found.values(), *([rest] if rest else [])]


def model_times(explanations: Sequence[Explanation]) -> Iterator[RenderableType]:
    """A table per device; nothing where no launch has lines of a model."""
    devices = dict.fromkeys(one.device.id for one in explanations)
    for device in devices:
        here = [one for one in explanations if one.device.id == device]
        if not any(one.launch is not None and one.launch.model_lines for one in here):
            continue
        rows = line_times(here)
        total = sum(row.seconds or 0.0 for row in rows)
        table = plain_table(("line", False), ("kernel", False), ("predicted", True),
                            ("share", True))  # fmt: skip
        for row in rows:
            known = row.seconds
            table.add_row(
                safe("\n".join(row.lines)) or "no line of the model",
                safe("\n".join(row.kernels)),
                "not predicted" if known is None else units.seconds(known),
                units.percent(known, total) if known and total else units.UNKNOWN,
            )
        yield heading("Lines of the model", f"compiled for {device}")
        yield Padding(table, (0, 0, 1, 2))


__all__ = ["LineTime", "line_times", "model_times"]
