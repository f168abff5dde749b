"""The prediction of one kernel as terminal text: time, bounds, where it goes, what would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.bar import Bar
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wavecast.report.explain import prediction as shown
from wavecast.report.kit import units
from wavecast.report.kit.terminal import heading, safe

if TYPE_CHECKING:
    from wavecast.compile.codeobject import CodeObject
    from wavecast.perfmodel.prediction import Prediction, Share, WhatIf
    from wavecast.report.explain.words import Words

_MOST = {"top-down": 6, "stall": 5, "line": 8, "ir": 8}
_TITLES = {
    "top-down": "top-down",
    "stall": "time of waves, by cause",
    "line": "source lines",
    "ir": "IR lines",
}
_NORMAL = ("top-down", "line")


def sections(
    prediction: Prediction, code: CodeObject | None, width: int, say: Words, *, full: bool
) -> Iterator[RenderableType]:
    """Everything below the line that names the time; `code` has the text of source lines,
    `say` the terms of the device's vendor."""
    yield heading("Time", _fidelity_text(prediction))
    yield Text("  what each resource needs alone; bounds overlap", style="dim")
    yield Padding(_bounds(prediction, width, say), (0, 0, 0, 2))
    for kind in shown.KINDS if full else _NORMAL:
        parts = shown.shares(prediction, kind)
        if parts:
            yield Text("")
            yield Text(f"  {_TITLES[kind]}", style="dim")
            most = len(parts) if full else _MOST[kind]
            yield Padding(_shares(prediction, code, parts[:most], width, say), (0, 0, 0, 2))
    if prediction.what_if:
        yield Text("")
        yield from what_if(prediction, full=full)


def what_if(prediction: Prediction, *, full: bool) -> Iterator[RenderableType]:
    """The simulated changes that save time, all with `full`; nothing where none was asked for."""
    changes = [change for change in prediction.what_if if full or change.time_saved > 0]
    if changes:
        yield Text("  what if", style="dim")
        yield Padding(_changes(changes), (0, 0, 0, 2))
    elif prediction.what_if:
        total = units.plural(len(prediction.what_if), "simulated change")
        yield Text(f"  what if: none of {total} saves time", style="dim")


def summary(prediction: Prediction, say: Words) -> Text:
    """`24.5 µs (19.8 to 31.0 µs), latency-bound, from code and trip counts at 2.06 GHz`."""
    text = Text(units.seconds(prediction.seconds), style="bold")
    text.append(
        f" ({units.seconds(prediction.low)} to {units.seconds(prediction.high)})", style="not bold"
    )
    text.append(f" · {safe(say.translate(prediction.limiter))}-bound", style="not bold")
    clock = prediction.assumed.get("clock_ghz")
    if isinstance(clock, float):
        text.append(f" · {units.significant(clock)} GHz", style="dim not bold")
    for note in prediction.notes:
        text.append(f"\n{safe(note)}", style="dim not bold")
    if prediction.basis is not None:
        text.append(f"\ninterval: {safe(str(prediction.basis))}", style="dim not bold")
    return text


def _fidelity_text(prediction: Prediction) -> str:
    from wavecast.perfmodel.prediction import FIDELITIES

    return f"predicted from {FIDELITIES[prediction.fidelity]}"


def _bounds(prediction: Prediction, width: int, say: Words) -> Table:
    """One bar per resource: how much of the time it would need alone."""
    table = _grid()
    large = {
        name: value
        for name, value in prediction.bounds.items()
        if value > 0.01 * prediction.seconds
    }
    for name, value in sorted(large.items(), key=lambda item: -item[1]):
        _row(
            table,
            say.translate(name),
            value,
            prediction.seconds,
            width,
            bold=name == prediction.limiter,
        )
    return table


def _shares(
    prediction: Prediction, code: CodeObject | None, parts: Sequence[Share], width: int, say: Words
) -> Table:
    table = _grid()
    for share in parts:
        _row(table, _name(share, code, say), share.seconds, prediction.seconds, width)
    return table


def _name(share: Share, code: CodeObject | None, say: Words) -> str:
    location = shown.source_line(share)
    if location is None or code is None:
        return say.translate(share.name)
    return f"{location[1]:>4} {shown.text(share, code)}"


def _changes(changes: list[WhatIf]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for change in changes:
        style = "green" if change.time_saved > 0 else "red"
        table.add_row(
            Text(f"{-change.time_saved:+.1%}", style=style),
            units.seconds(change.seconds),
            safe(change.change),
        )
    return table


def _grid() -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    return table


def _row(
    table: Table, name: str, value: float, whole: float, width: int, *, bold: bool = False
) -> None:
    bar = max(8, min(30, width - 68))
    label = max(16, width - bar - 26)
    text = Text(safe(name), style="bold" if bold else "")
    text.truncate(label, overflow="ellipsis")
    table.add_row(
        text,
        units.seconds(value),
        units.percent(value, whole),
        Bar(size=whole, begin=0, end=min(value, whole), width=bar, color="cyan"),
    )


__all__ = ["sections", "summary", "what_if"]
