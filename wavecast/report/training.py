"""Training of models on systems as text and JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from wavecast.documents import base
from wavecast.documents.system import IntervalJson
from wavecast.documents.training import (
    TrainingDocument,
    TrainingFiguresJson,
    TrainingJson,
    TrainingKernelJson,
    TrainingMemoryJson,
)
from wavecast.report import units
from wavecast.report.terminal_text import safe
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.systems.intervals import Interval
    from wavecast.systems.training.answer import TrainingAnswer, TrainingFigures
    from wavecast.systems.training.step import TrainingKernel

_KERNELS = 8
"""Kernels that the text shows unless asked for all."""
_DAY = 86400.0
_SHOWN = 0.0005
"""Least share of a step that the text shows."""


def training_document(answers: Sequence[TrainingAnswer]) -> dict[str, Any]:
    """The answers as plain dicts, lists, strings and numbers."""
    return base.values(
        TrainingDocument(wavecast=__version__, trainings=[_answer(answer) for answer in answers])
    )


def training_text(answers: Sequence[TrainingAnswer]) -> str:
    """The document as JSON text."""
    return base.dumps(training_document(answers), indent=2)


def render_training(
    answers: Sequence[TrainingAnswer], console: Console, *, detail: str = "normal"
) -> None:
    """Print the answers; `brief` leaves out memory and kernels, `full` shows every kernel."""
    for answer in answers:
        _head(answer, console)
        if answer.why_not:
            console.print(Text(f"  does not fit: {safe(answer.why_not)}", style="red"))
        if detail != "brief" or answer.why_not:
            _memory(answer, console)
        if answer.figures is not None:
            _figures(answer.figures, console)
            if detail != "brief":
                _where(answer.figures, console)
                _kernels(answer.figures, console, full=detail == "full")
        for note in answer.notes:
            console.print(Text.assemble(("note ", "cyan"), safe(note)))
        console.print()


def _head(answer: TrainingAnswer, console: Console) -> None:
    model, setup = answer.architecture, answer.setup
    title = f"Training {safe(model.name)} on {safe(answer.system.name)}"
    console.print(Rule(Text(title, "bold cyan"), align="left"))
    words = [f"{model.parameters / 1e9:,.1f} B parameters", str(setup), setup.dtype]
    words += [
        f"batch {setup.batch:,} x {setup.sequence:,}",
        f"{setup.micro_batches:,} micro-batches of {setup.micro_batch}",
        f"recompute {setup.recompute}",
    ]
    console.print(Text(" · ".join(words), style="dim"))


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for title, side in columns:
        table.add_column(title, justify="right" if side == "right" else "left", no_wrap=True)
    return table


def _memory(answer: TrainingAnswer, console: Console) -> None:
    memory = answer.memory
    table = _table(("  memory of the fullest GPU", "left"), ("size", "right"))
    for name, size in memory.parts.items():
        if size >= 1 << 20:
            table.add_row(f"  {name}", units.size(size))
    table.add_row("  all", units.size(memory.needed))
    table.add_row("  training may take", units.size(memory.available))
    console.print()
    console.print(table)
    if answer.largest:
        console.print(Text(f"  the largest micro-batch that fits is {answer.largest}", "dim"))


def _figures(figures: TrainingFigures, console: Console) -> None:
    table = _table(("  step", "left"), ("", "right"), ("80 % interval", "left"))

    def add(name: str, value: str, low: str, high: str) -> None:
        table.add_row(f"  {name}", Text(value, style="bold"), f"{low} – {high}")

    rate = figures.rate
    add("time", *map(units.seconds, _ends(figures.seconds)))
    add("tokens/s/GPU", *(f"{value:,.0f}" for value in _ends(rate)))
    if figures.mfu is not None:
        add(f"MFU ({figures.peak_dtype})", *map(_percent, _ends(figures.mfu)))
    add("exposed communication", *map(_percent, _ends(figures.exposed)))
    add("pipeline bubble", *map(_percent, _ends(figures.bubble)))
    if figures.training is not None:
        add("time to train", *(f"{value / _DAY:,.2f} d" for value in _ends(figures.training)))
    console.print()
    console.print(table)
    console.print(Text(f"  time: {figures.seconds.basis}", style="dim"))
    console.print(Text(f"  communication, bubble: {figures.exposed.basis}", style="dim"))


def _where(figures: TrainingFigures, console: Console) -> None:
    step = figures.step
    parts = {f"{name} kernels": seconds for name, seconds in step.phases.items()}
    parts |= {f"{name} communication": seconds for name, seconds in step.exposed.items()}
    parts["optimizer"] = step.optimizer
    table = _table(("  where a mean GPU spends it", "left"), ("time", "right"), ("share", "right"))
    for name, seconds in sorted(parts.items(), key=lambda part: -part[1]):
        if seconds:
            share = units.percent(seconds, step.seconds)
            table.add_row(f"  {name.replace('_', ' ')}", units.seconds(seconds), share)
    left = step.seconds - sum(parts.values())
    if left > _SHOWN * step.seconds:
        table.add_row("  waiting", units.seconds(left), units.percent(left, step.seconds))
    console.print()
    console.print(table)
    if step.host_bound:
        console.print(Text("  the CPU launches kernels more slowly than the GPU runs them", "red"))


def _kernels(figures: TrainingFigures, console: Console, *, full: bool) -> None:
    columns = [("  kernel", "left"), ("each", "right"), ("share", "right"), ("bound by", "left"),
               ("assumed", "left")]  # fmt: skip
    table = _table(*columns, *([("operation", "left")] if full else []))
    kernels = sorted(figures.kernels, key=lambda kernel: -kernel.seconds)
    total = sum(kernel.seconds for kernel in kernels)
    for kernel in kernels if full else kernels[:_KERNELS]:
        priced = kernel.priced
        again = " (again)" if kernel.phase == "recompute" else ""
        table.add_row(
            f"  {priced.node.name}{again}",
            units.seconds(priced.seconds),
            units.percent(kernel.seconds, total),
            safe(priced.limiter),
            safe(priced.kernel),
            *([safe(str(priced.node.op))] if full else []),
        )
    rest = kernels[_KERNELS:]
    if rest and not full:
        seconds = sum(kernel.seconds for kernel in rest)
        table.add_row(f"  {len(rest)} others", "", units.percent(seconds, total), "", "")
    console.print()
    console.print(table)
    modules: dict[str, float] = defaultdict(float)
    for kernel in kernels:
        modules[kernel.priced.node.module] += kernel.seconds
    words = (f"{name} {units.percent(seconds, total)}" for name, seconds in modules.items())
    console.print(Text("  " + " · ".join(words), style="dim"))


def _ends(interval: Interval) -> tuple[float, float, float]:
    return interval.value, interval.low, interval.high


def _percent(value: float) -> str:
    return f"{value:.1%}"


# --- JSON -------------------------------------------------------------------------------------


def _answer(answer: TrainingAnswer) -> TrainingJson:
    model, setup = answer.architecture, answer.setup
    return TrainingJson(
        model=model.name,
        parameters=model.parameters,
        active_parameters=model.active_parameters,
        system=answer.system.name,
        device_id=answer.system.device.id,
        gpus=setup.gpus,
        parallelism=str(setup),
        dtype=setup.dtype,
        recompute=setup.recompute,
        batch=setup.batch,
        sequence=setup.sequence,
        micro_batch=setup.micro_batch,
        micro_batches=setup.micro_batches,
        memory=TrainingMemoryJson(
            parts=dict(answer.memory.parts),
            needed=answer.memory.needed,
            available=answer.memory.available,
            fits=answer.memory.fits,
            largest_micro_batch=answer.largest,
        ),
        figures=_figures_json(answer.figures) if answer.figures else None,
        why_not=answer.why_not,
        notes=list(answer.notes),
    )


def _figures_json(figures: TrainingFigures) -> TrainingFiguresJson:
    step = figures.step
    return TrainingFiguresJson(
        seconds=IntervalJson.of(figures.seconds),
        tokens_per_gpu=IntervalJson.of(figures.rate),
        mfu=IntervalJson.of(figures.mfu) if figures.mfu else None,
        peak_dtype=figures.peak_dtype,
        exposed_communication=IntervalJson.of(figures.exposed),
        bubble=IntervalJson.of(figures.bubble),
        training_seconds=IntervalJson.of(figures.training) if figures.training else None,
        phases=dict(step.phases),
        exposed=dict(step.exposed),
        hidden=dict(step.hidden),
        optimizer=step.optimizer,
        host_bound=step.host_bound,
        kernels=[_kernel(kernel) for kernel in figures.kernels],
    )


def _kernel(kernel: TrainingKernel) -> TrainingKernelJson:
    priced = kernel.priced
    return TrainingKernelJson(
        name=priced.node.name,
        module=priced.node.module,
        phase=kernel.phase,
        operation=str(priced.node.op),
        count=kernel.count,
        seconds=priced.seconds,
        limiter=priced.limiter,
        kernel=priced.kernel,
        bounded=priced.bounded,
    )


__all__ = ["render_training", "training_document", "training_text"]
