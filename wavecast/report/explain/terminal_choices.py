"""Configurations of autotuned kernels that were compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit import units
from wavecast.report.kit.terminal import heading, safe

if TYPE_CHECKING:
    from rich.console import RenderableType

    from wavecast.pipeline.explain.result import ConfigurationChoice


def choices(candidates: Sequence[ConfigurationChoice]) -> Iterator[RenderableType]:
    """A table of all configurations with their times; nothing where none were compared."""
    if not candidates:
        return
    table = plain_table(
        ("kernel", False), ("device", False), ("predicted", True), ("bound by", False),
        ("configuration", False),
    )  # fmt: skip
    for choice in candidates:
        style = "bold" if choice.chosen else ""
        table.add_row(
            safe(choice.kernel),
            choice.device,
            Text(units.seconds(choice.seconds), style=style),
            safe(choice.limiter or choice.why_not),
            Text(safe(choice.configuration) + (" ← explained" if choice.chosen else ""), style),
        )
    yield heading("Configurations", "predicted for the autotuner's own list")
    yield Padding(table, (0, 0, 1, 2))


__all__ = ["choices"]
