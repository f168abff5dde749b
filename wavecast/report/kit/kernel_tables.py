"""Tables of models: plain columns, kernels with their times, memory by use.

Text and HTML of serving, training and modules show the same `KernelRow`s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from wavecast.report.kit import units
from wavecast.report.kit.terminal import print_fitting, safe

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.systems.pricing import Priced

_LEAST_SIZE = 1 << 20
"""Bytes of the smallest use of memory that text shows."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel that runs `count` times, a mean where GPUs differ, in `seconds` together. `group` is
    what its time is added up by: a module of a step, a phase, an operator."""

    name: str
    count: float
    priced: Priced
    seconds: float
    group: str

    @property
    def operation(self) -> str:
        """The operation with its sizes."""
        return str(self.priced.node.op)


def columns(*titles: tuple[str, str]) -> Table:
    """A table without lines; each title has the side its cells are aligned to: `left`, `right`, or
    `wrap` for words that give way to figures in a narrow terminal."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for title, side in titles:
        table.add_column(
            title, justify="right" if side == "right" else "left", no_wrap=side != "wrap"
        )
    return table


def merge_rows(rows: Iterable[KernelRow]) -> list[KernelRow]:
    """Rows of equal kernels as one, the longest together first."""
    by_key: dict[tuple[str, object, str], KernelRow] = {}
    for row in rows:
        key = (row.name, row.priced.node.op, row.group)
        before = by_key.get(key)
        if before is not None:
            count, seconds = row.count + before.count, row.seconds + before.seconds
            row = KernelRow(row.name, count, row.priced, seconds, row.group)
        by_key[key] = row
    return sorted(by_key.values(), key=lambda row: -row.seconds)


def print_kernels(
    rows: Sequence[KernelRow],
    total: float,
    console: Console,
    *,
    most: int | None,
    with_counts: bool = True,
    assumed: bool = True,
    operation: bool = False,
) -> None:
    """Print the first `most` rows (None: all) with their share of `total` seconds, and one row for
    the others. `with_counts` adds how often each runs and its time together, `assumed` the library,
    `operation` the sizes: a column, or lines after the table where the terminal is too narrow."""
    shown = rows[:most]
    others = [] if most is None else rows[most:]

    def table(*, operation: bool) -> Table:
        return _table(
            shown, others, total, with_counts=with_counts, assumed=assumed, operation=operation
        )

    if operation:
        print_fitting(console, table(operation=True), table(operation=False), _operations(shown))
    else:
        console.print(table(operation=False))


def _operations(rows: Sequence[KernelRow]) -> Table:
    """The operation of every kernel, each once."""
    table = columns(("  kernel", "wrap"), ("operation", "wrap"))
    for name, text in dict.fromkeys((row.name, row.operation) for row in rows):
        table.add_row(Text(f"  {safe(name)}"), Text(safe(text), overflow="fold"))
    return table


def _table(
    rows: Sequence[KernelRow],
    others: Sequence[KernelRow],
    total: float,
    *,
    with_counts: bool,
    assumed: bool,
    operation: bool,
) -> Table:
    titles = [("  kernel", "left" if assumed else "wrap")]
    titles += (
        [("times", "right")] * with_counts + [("each", "right")] + [("all", "right")] * with_counts
    )
    titles += [("share", "right"), ("bound by", "wrap")]
    titles += [("assumed", "wrap")] * assumed + [("operation", "wrap")] * operation
    table = columns(*titles)
    for row in rows:
        table.add_row(
            f"  {safe(row.name)}",
            *([f"{round(row.count):,}"] * with_counts),
            units.seconds(row.priced.seconds),
            *([units.seconds(row.seconds)] * with_counts),
            units.percent(row.seconds, total),
            safe(row.priced.limiter),
            *([safe(row.priced.kernel)] * assumed),
            *([safe(row.operation)] * operation),
        )
    if others:
        seconds = sum(row.seconds for row in others)
        cells = ["", "", units.seconds(seconds)] if with_counts else [""]
        table.add_row(f"  {len(others)} others", *cells, units.percent(seconds, total))
    return table


def memory(title: str, parts: Mapping[str, float], totals: Mapping[str, float]) -> Table:
    """Bytes by use, then `totals` of them."""
    table = columns((f"  {title}", "left"), ("size", "right"))
    large = {name: size for name, size in parts.items() if size >= _LEAST_SIZE}
    for name, size in (large | dict(totals)).items():
        table.add_row(f"  {name}", units.size(size))
    return table


__all__ = ["KernelRow", "columns", "memory", "merge_rows", "print_kernels"]
