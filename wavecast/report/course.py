"""The course as terminal text: chapters, and goals that are reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text


class ChapterTitle(Protocol):
    """What a list of chapters shows."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def arch(self) -> tuple[str, ...]: ...


class GoalResult(Protocol):
    """A goal and whether it is reached."""

    @property
    def goal(self) -> str: ...
    @property
    def reached(self) -> bool: ...
    @property
    def checked(self) -> bool: ...
    @property
    def detail(self) -> str: ...


def render_list(chapters: Sequence[ChapterTitle], console: Console) -> None:
    """One line for each chapter."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True, style="dim")
    for chapter in chapters:
        table.add_row(
            str(chapter.number),
            Text(chapter.name, style="bold"),
            chapter.title,
            ", ".join(chapter.arch),
        )
    console.print(table)
    console.print("\nwavecast learn start 1")


def render_goal(goal: GoalResult, console: Console) -> None:
    """`✔ no spills on gfx942: 0 registers`; `? ` before a goal that nothing here can check."""
    mark = ("✔ ", "green") if goal.reached else ("✖ ", "bold red")
    if not goal.checked:
        mark = ("? ", "yellow")
    line = Text.assemble(mark, goal.goal)
    if goal.detail:
        line.append(f": {goal.detail}", style="dim")
    console.print(line)
