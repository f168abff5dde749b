"""Schedules of kernels as terminal text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from wavecast.compile.names import distinct_names, readable
from wavecast.documents.lab import KernelScheduleJson, LabScheduleDocument, LoopScheduleJson
from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit import units
from wavecast.report.kit.terminal import heading, safe
from wavecast.report.lab.alternatives import percent
from wavecast.version import __version__
from wavecast.wording import count

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from wavecast.lab.journal import LabProblem
    from wavecast.lab.schedule.kernel import KernelSchedule
    from wavecast.lab.scheduling import ScheduleRun


def document(run: ScheduleRun) -> LabScheduleDocument:
    """The schedules as a document."""
    return LabScheduleDocument(
        __version__,
        list(run.notes),
        [
            f"{readable(failure.kernel)} for {failure.target}: {failure.message}"
            for failure in run.failures
        ],
        [_kernel(problem, schedule) for problem, schedule in run.results],
    )


def _kernel(problem: LabProblem, schedule: KernelSchedule) -> KernelScheduleJson:
    return KernelScheduleJson.of(
        problem,
        grid=list(problem.grid),
        loops=[LoopScheduleJson.of(loop) for loop in schedule.loops],
        before=schedule.before,
        after=schedule.after,
        saved=schedule.saved,
        cases=list(schedule.execution.cases) if schedule.execution is not None else [],
        wrong=schedule.wrong,
        assembly=schedule.assembly,
        asked=schedule.asked,
    )


def render(run: ScheduleRun, console: Console) -> None:
    """A table of kernels, then one of their loops; orders that are discarded with the reason."""
    for note in run.notes:
        console.print(Text.assemble(("note ", "cyan"), safe(note)))
    for failure in run.failures:
        line = (
            f"{readable(failure.kernel)} for {failure.target} ({failure.stage}): {failure.message}"
        )
        console.print(Text.assemble(("failed ", "bold red"), safe(line)))
    if not run.results:
        return
    for part in _parts(run):
        console.print(part)


def _parts(run: ScheduleRun) -> Iterator[RenderableType]:
    wrong = [(problem, schedule) for problem, schedule in run.results if schedule.wrong]
    title = f"{count(len(run.results), 'kernel')}, {len(wrong)} with wrong results"
    yield heading("the compiler's order and the best one found", title)
    yield Padding(_kernels(run), (0, 0, 0, 2))
    yield heading("loops", "simulated clocks per iteration, in the steady state")
    yield Padding(_loops(run), (0, 0, 0, 2))
    if any(schedule.asked for _, schedule in run.results):
        title = "predicted times of the order that was found and of what the compiler makes of it"
        yield heading("groups of sched_group_barrier", title)
        yield Padding(_asked(run), (0, 0, 0, 2))
        for problem, schedule in run.results:
            if schedule.asked is not None and schedule.asked.why_not:
                line = f"{readable(problem.kernel)} on {problem.device}: {schedule.asked.why_not}"
                yield Text.assemble(("no groups written ", "yellow"), safe(line))
    for problem, schedule in wrong:
        line = f"{readable(problem.kernel)} on {problem.device}: {schedule.wrong}"
        yield Text.assemble(("discarded ", "bold red"), safe(line))


def _kernels(run: ScheduleRun) -> RenderableType:
    table = plain_table(
        ("kernel", False), ("device", False), ("saved", True), ("before", True), ("after", True),
        ("waits", True), ("instructions", True), ("results", False),
    )  # fmt: skip
    names = names_of(run)
    for problem, schedule in run.results:
        before, after = schedule.before, schedule.after
        table.add_row(
            safe(names[problem.kernel]),
            problem.device,
            percent(schedule.saved),
            units.seconds(before.seconds),
            units.seconds(after.seconds) if after is not None else "",
            units.count(after.waits if after is not None else before.waits),
            units.count(after.instructions if after is not None else before.instructions),
            safe(_results(schedule)),
            style="red" if schedule.wrong else "",
        )
    return table


def _asked(run: ScheduleRun) -> RenderableType:
    table = plain_table(
        ("kernel", False), ("device", False), ("before", True), ("order", True),
        ("compiler", True), ("reached", True), ("groups", True), ("variants", True),
        ("with", False),
    )  # fmt: skip
    names = names_of(run)
    for problem, schedule in run.results:
        asked, after = schedule.asked, schedule.after
        if asked is not None and after is not None:
            table.add_row(
                safe(names[problem.kernel]),
                problem.device,
                units.seconds(schedule.before.seconds),
                units.seconds(after.seconds),
                units.seconds(asked.seconds),
                f"{asked.reached:.0%}",
                units.count(asked.groups),
                units.count(asked.variants),
                safe(asked.options),
            )
    return table


def names_of(run: ScheduleRun) -> dict[str, str]:
    """What reports call the kernels of a run, by their symbols."""
    return distinct_names(problem.kernel for problem, _ in run.results)


def _results(schedule: KernelSchedule) -> str:
    if schedule.wrong:
        return "discarded"
    if schedule.after is None or schedule.execution is None:
        return "no order is faster"
    return f"same in {count(len(schedule.execution.cases), 'case')}"


def _loops(run: ScheduleRun) -> RenderableType:
    table = plain_table(
        ("kernel", False), ("device", False), ("loop", False), ("instructions", True),
        ("before", True), ("new waits", True), ("after", True), ("saved", True), ("orders", True),
    )  # fmt: skip
    names = names_of(run)
    for problem, schedule in run.results:
        for loop in schedule.loops:
            table.add_row(
                safe(names[problem.kernel]),
                problem.device,
                safe(loop.line.rpartition("/")[2]),
                units.count(loop.instructions),
                units.count(round(loop.before)),
                units.count(round(loop.remade)),
                units.count(round(loop.after)),
                percent(loop.saved),
                units.count(loop.orders),
            )
    return table


__all__ = ["document", "render"]
