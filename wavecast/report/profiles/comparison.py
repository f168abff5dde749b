"""Two profiles as text, matched by operator and module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from wavecast.report.kit import units
from wavecast.report.kit.terminal import safe
from wavecast.report.profiles.tables import ROWS, columns, with_form

if TYPE_CHECKING:
    from wavecast.profiles.comparison import ProfileComparison

_NANO: Final = 1e-9


def render(
    comparison: ProfileComparison,
    names: tuple[str, str],
    console: Console,
    *,
    detail: str = "normal",
) -> None:
    """Print two profiles, matched by operator and module. `names` are those of their files."""
    rows = ROWS[detail]
    totals = comparison.totals
    console.print(Rule(Text(safe(f"{names[0]} against {names[1]}"), "bold cyan"), align="left"))
    console.print(
        f"kernels take {units.seconds(totals[0] * _NANO)} and {units.seconds(totals[1] * _NANO)} "
        f"({totals[1] / max(1, totals[0]):.2f} x); {comparison.matched_shares[0]:.1%} and "
        f"{comparison.matched_shares[1]:.1%} are in operators that both have"
    )
    sides = (("  first", "right"), ("second", "right"), ("ratio", "right"))
    table = columns(*sides, ("by category", "left"))
    for name, (first, second) in comparison.by_category().items():
        table.add_row(*_sides(first, second), name)
    console.print()
    console.print(table)
    table = columns(*sides, ("launches", "right"), ("operator and module", "left"))
    for row in comparison.rows[:rows]:
        first, second = row.first.share, row.second.share
        text = f"{row.op or f'({row.category})'} {row.module}"
        table.add_row(
            *_sides(first.nanoseconds, second.nanoseconds),
            f"{first.count:,} / {second.count:,}",
            with_form(text, row.form),
        )
    others = comparison.rows[rows:]
    if others:
        sums = (
            sum(row.first.share.nanoseconds for row in others),
            sum(row.second.share.nanoseconds for row in others),
        )
        table.add_row(*_sides(*sums), "", Text(f"{len(others):,} more", style="dim"))
    console.print()
    console.print(table)


def _sides(first: int, second: int) -> tuple[str, str, str]:
    ratio = f"{second / first:.2f}" if first and second else "–"
    times = [units.seconds(time * _NANO) if time else "–" for time in (first, second)]
    return times[0], times[1], ratio


__all__ = ["render"]
