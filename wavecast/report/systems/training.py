"""Training of models on systems as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from wavecast import json_objects
from wavecast.documents.training import (
    TrainingDocument,
    TrainingFiguresJson,
    TrainingJson,
    TrainingKernelJson,
    TrainingMemoryJson,
)
from wavecast.report.kit import kernel_tables, units
from wavecast.report.kit.terminal import safe
from wavecast.report.systems import training_words
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.systems.training.answer import TrainingAnswer, TrainingFigures
    from wavecast.systems.training.step import TrainingKernel

_KERNELS = 8
"""Kernels that the text shows unless asked for all."""


def document(answers: Sequence[TrainingAnswer]) -> dict[str, Any]:
    """The answers as plain dicts, lists, strings and numbers."""
    return json_objects.values(
        TrainingDocument(wavecast=__version__, trainings=[_answer(answer) for answer in answers])
    )


def render(answers: Sequence[TrainingAnswer], console: Console, *, detail: str = "normal") -> None:
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
    title = f"Training {safe(answer.architecture.name)} on {safe(answer.system.name)}"
    console.print(Rule(Text(title, "bold cyan"), align="left"))
    console.print(Text(training_words.description(answer), style="dim"))


def _memory(answer: TrainingAnswer, console: Console) -> None:
    memory = answer.memory
    totals = {"all": memory.needed, "training may take": memory.available}
    console.print()
    console.print(kernel_tables.memory("memory of the fullest GPU", memory.parts, totals))
    if answer.largest:
        console.print(Text(f"  the largest micro-batch that fits is {answer.largest}", "dim"))


def _figures(figures: TrainingFigures, console: Console) -> None:
    table = kernel_tables.columns(("  step", "left"), ("", "right"), ("80% interval", "left"))
    for name, value, ends in training_words.figures(figures):
        table.add_row(f"  {name}", Text(value, style="bold"), ends)
    console.print()
    console.print(table)
    console.print(Text(f"  time: {figures.seconds.basis}", style="dim"))
    console.print(Text(f"  communication, bubble: {figures.exposed.basis}", style="dim"))


def _where(figures: TrainingFigures, console: Console) -> None:
    step = figures.step
    titles = (("  where a mean GPU spends it", "left"), ("time", "right"), ("share", "right"))
    table = kernel_tables.columns(*titles)
    for name, seconds in training_words.parts(step).items():
        table.add_row(f"  {name}", units.seconds(seconds), units.percent(seconds, step.seconds))
    console.print()
    console.print(table)
    if step.host_bound:
        console.print(Text("  the CPU launches kernels more slowly than the GPU runs them", "red"))


def _kernels(figures: TrainingFigures, console: Console, *, full: bool) -> None:
    rows = training_words.rows(figures)
    total = sum(row.seconds for row in rows)
    most = None if full else _KERNELS
    console.print()
    kernel_tables.print_kernels(rows, total, console, most=most, with_counts=False, operation=full)
    modules = training_words.modules(figures)
    words = (f"{name} {units.percent(seconds, total)}" for name, seconds in modules.items())
    console.print(Text("  " + " · ".join(words), style="dim"))


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
        seconds=figures.seconds,
        tokens_per_gpu=figures.rate,
        mfu=figures.mfu,
        peak_dtype=figures.peak_dtype,
        exposed_communication=figures.exposed,
        bubble=figures.bubble,
        training_seconds=figures.training,
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


__all__ = ["document", "render"]
