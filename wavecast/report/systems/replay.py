"""Simulated execution traces as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wavecast import json_objects
from wavecast.documents.chakra import ChakraDocument, ReplayJson
from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit import units
from wavecast.systems.chakra.plan import SOURCES
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.systems.chakra.replay import RankTime, ReplayAnswer, UsedCollective

_SHOWN: Final = 8


def document(answers: Sequence[ReplayAnswer]) -> dict[str, Any]:
    """The answers as plain dicts, lists, strings and numbers."""
    runs = [
        ReplayJson.of(
            answer,
            system=str(answer.system),
            collective_times=answer.method,
            sources={**answer.sources},
            critical={**answer.critical},
            ranks=[*answer.ranks],
            collectives=[*answer.collectives],
        )
        for answer in answers
    ]
    return json_objects.values(ChakraDocument(wavecast=__version__, runs=runs))


def render(answers: Sequence[ReplayAnswer], console: Console, *, full: bool = False) -> None:
    """Print the answers, with all ranks and collectives or with the first eight."""
    for answer in answers:
        head = f"{answer.name}: {units.amount(len(answer.ranks), 'ranks')} on {answer.system}"
        console.print(Text(head, style="bold"))
        for line in _lines(answer):
            console.print(Padding(Text(line), (0, 0, 0, 2)))
        rows = _rank_rows(answer.ranks)
        shown = len(rows) + len(answer.collectives) if full else _SHOWN
        console.print(_rank_table(rows[:shown]))
        if answer.collectives:
            console.print(_collective_table(answer.collectives[:shown]))
        left = max(0, len(rows) - shown) + max(0, len(answer.collectives) - shown)
        if left:
            console.print(f"  {units.amount(left, 'rows')} more: --detail full")
        console.print()


def _lines(answer: ReplayAnswer) -> list[str]:
    path = ", ".join(
        f"{name} {units.seconds(seconds)}" for name, seconds in answer.critical.items() if seconds
    )
    lines = [
        f"makespan {units.seconds(answer.seconds)} ({units.seconds(answer.low)} – "
        f"{units.seconds(answer.high)} with the 80% intervals of collectives)",
        f"critical path: {path or 'nothing takes time'}",
        f"exposed communication: {units.seconds(answer.exposed)} at most of a rank",
        "times of nodes: "
        + ", ".join(f"{count:,} {SOURCES[name]}" for name, count in answer.sources.items()),
    ]
    if answer.slowed:
        lines.append(
            f"{answer.slowed:,} collectives and messages share links at the same time, and take "
            f"{units.seconds(answer.slowed_by)} longer than alone"
        )
    if answer.unresolved:
        lines.append(
            f"{answer.unresolved:,} control dependencies are on nodes that the traces do not have"
        )
    return lines


def _rank_table(rows: Sequence[tuple[str, RankTime]]) -> Table:
    heads = ("compute", "communication", "exposed", "host", "idle", "end")
    table = _table(("rank", *heads))
    for name, rank in rows:
        table.add_row(name, *(units.seconds(getattr(rank, head)) for head in heads))
    return table


def _rank_rows(ranks: Sequence[RankTime]) -> list[tuple[str, RankTime]]:
    """The ranks; neighbours with the same times are one row."""
    runs: list[list[RankTime]] = []
    for rank in ranks:
        if runs and msgspec.structs.replace(runs[-1][0], rank=rank.rank) == rank:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return [
        (str(run[0].rank) if len(run) == 1 else f"{run[0].rank}–{run[-1].rank}", run[0])
        for run in runs
    ]


def _collective_table(collectives: Sequence[UsedCollective]) -> Table:
    table = _table(("collective", "bytes", "GPUs", "calls", "time", "80% interval", "algorithm"))
    for used in collectives:
        algorithm = used.algorithm
        if used.method == "schedules":
            algorithm += " (simulated)"
        table.add_row(
            used.function,
            units.size(used.bytes),
            str(used.gpus) if used.nodes == 1 else f"{used.nodes}x{used.gpus // used.nodes}",
            str(used.calls),
            units.seconds(used.seconds),
            f"{units.seconds(used.low)} – {units.seconds(used.high)}",
            algorithm,
        )
    return table


def _table(heads: Sequence[str]) -> Table:
    return plain_table(*((head, head not in ("rank", "collective", "algorithm")) for head in heads))


__all__ = ["document", "render"]
