"""Simulated collectives as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from wavecast import json_objects
from wavecast.documents.collectives import (
    CollectiveChangeJson,
    CollectiveJson,
    CollectivesDocument,
    PhaseJson,
    ScheduleJson,
)
from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit import units
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.systems.collectives.search import CollectiveAnswer
    from wavecast.systems.collectives.simulate import ScheduleTime

_SHOWN = 5


def document(answers: Sequence[CollectiveAnswer]) -> dict[str, Any]:
    """The answers as plain dicts, lists, strings and numbers."""
    entries = [_answer(answer) for answer in answers]
    return json_objects.values(CollectivesDocument(wavecast=__version__, collectives=entries))


def render(answers: Sequence[CollectiveAnswer], console: Console, *, full: bool = False) -> None:
    """Print the answers with the fastest five schedules, or with all."""
    for answer in answers:
        library = answer.library
        console.print(Text(f"{_subject(answer)} on {answer.system}", style="bold"))
        cluster = answer.cluster
        if answer.system.nodes > 1:
            console.print(
                f"  uplinks oversubscribed {cluster.oversubscription:g}:1, "
                f"{cluster.leaf} nodes per leaf switch"
            )
        table = plain_table(
            ("schedule", False), ("protocol", True), ("pieces", True), ("time", True),
            ("80% interval", True), ("bound by", True),
        )  # fmt: skip
        times = answer.found if full else answer.found[:_SHOWN]
        for time in times:
            table.add_row(*_row(time, answer, time.schedule.name))
        for change, time in answer.changes.items():
            table.add_row(*_row(time, answer, f"{change}: {time.schedule.name}"))
        console.print(table)
        if len(times) < len(answer.found):
            console.print(f"  {len(answer.found) - len(times)} slower schedules: --detail full")
        seconds = units.seconds(library.seconds)
        who = "kernels by their formula" if answer.topk else "NCCL or RCCL"
        console.print(f"  {who}: {seconds} ({library.assumed['algorithm']})\n")


def _subject(answer: CollectiveAnswer) -> str:
    size = f"{answer.function} of {answer.size:,} bytes"
    return f"{size} a GPU, {answer.topk} experts a token," if answer.topk else size


def _row(time: ScheduleTime, answer: CollectiveAnswer, name: str) -> list[str]:
    low, high = answer.interval(time)
    interval = f"{units.seconds(low)} – {units.seconds(high)}"
    return [
        name,
        time.protocol,
        str(time.pieces),
        units.seconds(time.seconds),
        interval,
        time.limiter,
    ]


def _answer(answer: CollectiveAnswer) -> CollectiveJson:
    return CollectiveJson(
        function=answer.function,
        bytes=answer.size,
        topk=answer.topk,
        system=str(answer.system),
        gpus=answer.system.gpus,
        nodes=answer.system.nodes,
        oversubscription=answer.cluster.oversubscription,
        leaf=answer.cluster.leaf,
        library_seconds=answer.library.seconds,
        schedules=[_schedule(time, answer) for time in answer.found],
        changes=[
            CollectiveChangeJson(change=text, schedule=_schedule(time, answer))
            for text, time in answer.changes.items()
        ],
    )


def _schedule(time: ScheduleTime, answer: CollectiveAnswer) -> ScheduleJson:
    low, high = answer.interval(time)
    phases = [PhaseJson.of(phase) for phase in time.schedule.phases]
    copies = getattr(time.schedule, "copies", "")
    return ScheduleJson.of(time, phases=phases, copies=copies, low=low, high=high)


__all__ = ["document", "render"]
