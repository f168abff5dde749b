"""What-ifs of models on systems as text and JSON: figures before and after each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wavecast.documents.system_changes import (
    ChangedServingJson,
    ModelChangeJson,
    ModelWhatIfJson,
)
from wavecast.report.kit import units
from wavecast.report.kit.kernel_tables import columns
from wavecast.report.kit.terminal import safe
from wavecast.report.systems import serving_words

if TYPE_CHECKING:
    from wavecast.systems.speedup import ChangedServing, Speedup
    from wavecast.systems.whatif import ChangedModel, ModelWhatIf

_LONGEST = 28
"""Characters of a change in the table."""


def render(what_if: ModelWhatIf, console: Console, *, detail: str = "normal") -> None:
    """Print a table of before and after, for the last load or with `full` for each."""
    numbers = range(len(what_if.before.servings))
    for number in numbers if detail == "full" else numbers[-1:]:
        console.print(_table(what_if, number))
    for changed in _rows(what_if):
        if changed.why_not:
            console.print(Text(f"  {safe(changed.change.text)}: {safe(changed.why_not)}", "red"))
    if what_if.before.servings:
        note = "  before / after; 80% intervals: kernels that did not change err equally in both"
        console.print(Text(note, style="dim"))
    console.print()


def _table(what_if: ModelWhatIf, number: int) -> Table:
    before = what_if.before.servings[number]
    figures = ("TTFT", "TPOT", "speedup", "80%", "tok/s/GPU", "speedup")
    table = columns(
        (f"  what if, {serving_words.load(before.load)}", "left"),
        *((title, "right") for title in figures),
    )
    table.add_row(
        "  before",
        units.seconds(before.ttft.value),
        units.seconds(before.tpot.value),
        "",
        "",
        serving_words.rate(before.output_rate.value / what_if.before.parallel.gpus),
        "",
    )
    for changed in _rows(what_if):
        if changed.servings and changed.answer is not None:
            table.add_row(*_cells(what_if, changed, changed.servings[number]))
    return table


def _cells(
    what_if: ModelWhatIf, changed: ChangedModel, serving: ChangedServing
) -> tuple[str | Text, ...]:
    assert changed.answer is not None
    name = "all together" if changed is what_if.together else safe(changed.change.text)
    per_gpu = serving.after.output_rate.value / changed.answer.parallel.gpus
    return (
        f"  {name if len(name) <= _LONGEST else name[: _LONGEST - 3] + '...'}",
        units.seconds(serving.after.ttft.value),
        units.seconds(serving.after.tpot.value),
        times(serving.tpot),
        f"{serving.tpot.low:.2f}–{serving.tpot.high:.2f}",
        serving_words.rate(per_gpu),
        times(serving.rate_per_gpu),
    )


def times(speedup: Speedup) -> Text:
    """`1.04x`, green where it is a speedup, red where everything is slower."""
    style = "green" if speedup.low > 1 else "red" if speedup.high < 1 else ""
    return Text(f"{speedup.value:.2f}x", style=style)


def _rows(what_if: ModelWhatIf) -> tuple[ChangedModel, ...]:
    return (*what_if.changes, *([what_if.together] if what_if.together else []))


def entry(what_if: ModelWhatIf) -> ModelWhatIfJson:
    """The part of the document."""
    return ModelWhatIfJson(
        system=what_if.before.system.name,
        parallelism=str(what_if.before.parallel),
        changes=[change_entry(changed) for changed in what_if.changes],
        together=None if what_if.together is None else change_entry(what_if.together),
    )


def change_entry(changed: ChangedModel) -> ModelChangeJson:
    """A change of the document."""
    after = changed.answer
    return ModelChangeJson(
        change=changed.change.text,
        why_not=changed.why_not,
        parallelism="" if after is None else str(after.parallel),
        servings=[_serving(serving) for serving in changed.servings],
    )


def _serving(serving: ChangedServing) -> ChangedServingJson:
    return ChangedServingJson(
        concurrency=serving.after.load.concurrency,
        rate=serving.after.load.rate,
        ttft_before=serving.before.ttft.value,
        ttft_after=serving.after.ttft.value,
        ttft_speedup=serving.ttft,
        tpot_before=serving.before.tpot.value,
        tpot_after=serving.after.tpot.value,
        tpot_speedup=serving.tpot,
        output_rate_before=serving.before.output_rate.value,
        output_rate_after=serving.after.output_rate.value,
        rate_per_gpu_speedup=serving.rate_per_gpu,
    )


__all__ = ["change_entry", "entry", "render", "times"]
