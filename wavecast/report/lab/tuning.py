"""A tuning as terminal text: the best configurations of every problem."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit import units
from wavecast.report.kit.terminal import fits, heading, safe

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from wavecast.runtimes.triton import CaptureFailure
    from wavecast.tuning.records import Result
    from wavecast.tuning.run import TuneResult
    from wavecast.tuning.table import TableEntry

_MOST_REASONS = 6
_SAMPLED = (
    "  sample: predicted from executed workgroups, as by `explain --sample`; `explain` alone "
    "predicts from the code"
)


def render(tuned: TuneResult, console: Console, *, top: int = 10) -> None:
    """The `top` configurations per kernel, arguments and device, and why others were refused."""
    for note in tuned.notes:
        console.print(Text.assemble(("note ", "cyan"), safe(note)))
    for failure in tuned.failures:
        console.print(_failure(failure))
    for entry in tuned.table.entries:
        for part in _entry(entry, top, console):
            console.print(part)


def _failure(failure: CaptureFailure) -> Text:
    line = Text.assemble(
        ("failed ", "bold red"), (f"{failure.kernel} for {failure.target}", "bold")
    )
    return line.append(safe(f" ({failure.stage}): {failure.message}"))


def _entry(entry: TableEntry, top: int, console: Console) -> Iterator[RenderableType]:
    problem = entry.problem
    key = ", ".join(f"{name}={value}" for name, value in problem.key.items())
    dtypes = {text.partition(":")[0] for text in problem.arguments.values()}
    tensors = sorted(dtype for dtype in dtypes if re.search(r"(float|int)\d", dtype))
    ones = " ".join(f"{n}=1" for n, text in problem.arguments.items() if text == "int:1")
    about = "  ".join(part for part in (key, " ".join(tensors), ones) if part)
    yield heading(f"{safe(problem.kernel)} on {problem.device}", safe(about))
    count = len(entry.results) + len(entry.refused)
    total = f"  {units.plural(count, 'configuration')} tried"
    yield Text(f"{total}, {len(entry.refused)} of them refused", style="dim")
    if entry.results:
        wide = Padding(_table(entry.results[:top], configurations=True), (0, 0, 0, 2))
        if fits(console, wide):
            yield wide
        else:
            yield Padding(_table(entry.results[:top], configurations=False), (0, 0, 0, 2))
            for rank, result in enumerate(entry.results[:top], 1):
                yield Padding(Text(safe(f"{rank:>2}  {result.configuration}")), (0, 0, 0, 2))
        if any(_is_sampled(result) for result in entry.results[:top]):
            yield Text(_SAMPLED, style="dim")
    reasons = Counter(_kind(result.reason) for result in entry.refused)
    for reason, number in reasons.most_common(_MOST_REASONS):
        yield Text(f"  {number} refused: {safe(reason)}", style="dim")
    if len(reasons) > _MOST_REASONS:
        yield Text(f"  and {len(reasons) - _MOST_REASONS} more reasons", style="dim")


def _table(results: Sequence[Result], *, configurations: bool) -> RenderableType:
    table = plain_table(
        ("", True), ("predicted", True), ("interval", True), ("from", False), ("bound by", False),
        ("registers", True), ("spills", True), ("LDS", True), ("waves/SIMD", True),
        *([("configuration", False)] * configurations),
    )  # fmt: skip
    for rank, result in enumerate(results, 1):
        table.add_row(
            str(rank),
            Text(units.seconds(result.seconds), style="bold" if rank == 1 else ""),
            f"{units.seconds(result.low)} … {units.seconds(result.high)}",
            "sample" if _is_sampled(result) else "code",
            safe(result.limiter),
            units.count(result.registers),
            units.count(result.spills),
            units.size(result.lds_bytes),
            units.count(result.waves),
            *([safe(str(result.configuration))] * configurations),
        )
    return table


def _is_sampled(result: Result) -> bool:
    return result.fidelity == "executed"


def _kind(reason: str) -> str:
    """A reason without its numbers, so that alike ones count together."""
    return re.sub(r"\d[\d,]*", "…", reason)


__all__ = ["render"]
