"""The kernels of a served model and the operators for them, as text, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wavecast import json_objects
from wavecast.documents.engine import EngineDocument, ServedKernelJson, ServedStepJson
from wavecast.pipeline.models.engine_kernels import EngineReport, ServedKernel, ServedStep
from wavecast.report.kit import units
from wavecast.report.kit.kernel_tables import columns
from wavecast.report.kit.terminal import print_fitting, safe
from wavecast.report.profiles.markdown import table as markdown_table
from wavecast.version import __version__

_TITLES: Final = (
    "kernel", "layer", "dtype", ">launches", "default", ">default time", "operators", ">time",
)  # fmt: skip
"""Columns of both tables; `>` is right-aligned."""
_FIGURES: Final = ("kernel", ">launches", "default", ">default time", ">time")
_NAMES: Final = ("kernel", "layer", "dtype", "operators")
"""The columns of two tables, where the terminal is too narrow for one."""


def render(report: EngineReport, console: Console) -> None:
    """Print a table per step, what the defaults remain for, and notes."""
    console.print(Text(title(report), style="bold"))
    for step in report.steps:
        console.print()
        console.print(Text(_step(step)))
        print_fitting(console, _table(step, _TITLES), _table(step, _FIGURES), _table(step, _NAMES))
        for why, names in _names_by_reason(step).items():
            console.print(Text(f"  {safe(', '.join(names))}: {safe(why)}", style="yellow"))
    for note in report.notes:
        console.print(Text.assemble(("note ", "cyan"), safe(note)))


def _table(step: ServedStep, titles: Sequence[str]) -> Table:
    sides = [(title.lstrip(">"), "right" if title[0] == ">" else "left") for title in titles]
    (first, side), *others = sides
    table = columns((f"  {first}", side), *others)
    shown = [_TITLES.index(title) for title in titles]
    for kernel in step.kernels:
        cells = _cells(kernel)
        first, *rest = (safe(cells[index]) for index in shown)
        table.add_row(f"  {first}", *rest, style="dim" if kernel.why_not else "")
    return table


def markdown(report: EngineReport) -> str:
    """A section with a table per step."""
    lines = [f"### {title(report)}", ""]
    for step in report.steps:
        lines += [_step(step), "", *markdown_table(_TITLES, map(_cells, step.kernels))]
        remaining = [
            f"- {', '.join(names)}: {why}" for why, names in _names_by_reason(step).items()
        ]
        lines += [*remaining, ""] if remaining else []
    lines += [f"- {note}" for note in report.notes]
    return "\n".join(lines).rstrip() + "\n"


def document(report: EngineReport) -> dict[str, Any]:
    """The report as plain dicts, lists, strings and numbers."""
    steps = [_step_document(step) for step in report.steps]
    return json_objects.values(EngineDocument.of(report, wavecast=__version__, steps=steps,
                                         notes=list(report.notes)))  # fmt: skip


def title(found: EngineReport) -> str:
    """The model and its GPUs."""
    gpus = f"{found.gpus} x " if found.gpus > 1 else ""
    formats = ", ".join(f"{role} {name}" for role, name in found.formats.items())
    return f"{found.model} in {found.engine} on {gpus}{found.device}: {formats}"


def _step(step: ServedStep) -> str:
    what = step.step
    rows = (
        f"{units.plural(what.chunks, 'prompt')} of {what.tokens:,} tokens"
        if what.chunks
        else f"{units.plural(what.decode, 'sequence')} with {what.context:,} tokens"
    )
    return (
        f"{step.phase}, {rows}: kernels {units.seconds(step.before)} by default, "
        f"{units.seconds(step.after)} with wavecast.ops ({step.before / step.after:.2f}x), which "
        f"computes {step.covered:.0%}"
    )


def _cells(kernel: ServedKernel) -> tuple[str, ...]:
    default, operators = kernel.default, " + ".join(kernel.operators)
    if kernel.why_not:
        operators = "–"
    elif kernel.part_of:
        operators = f"in {kernel.part_of}"
    return (
        kernel.name, kernel.layer, kernel.dtype, str(kernel.count), default.kernel,
        units.seconds(default.seconds), operators,
        units.seconds(kernel.seconds if kernel.operators and not kernel.why_not else None),
    )  # fmt: skip


def _names_by_reason(step: ServedStep) -> dict[str, list[str]]:
    """Names of kernels by the reason why their default remains."""
    by_reason: dict[str, list[str]] = {}
    for kernel in step.kernels:
        if kernel.why_not and kernel.name not in by_reason.setdefault(kernel.why_not, []):
            by_reason[kernel.why_not].append(kernel.name)
    return by_reason


def _step_document(step: ServedStep) -> ServedStepJson:
    what = step.step
    prefill = what.chunks > 0
    return ServedStepJson.of(
        step,
        sequences=what.sequences,
        tokens=what.tokens if prefill else what.queries,
        context=what.before if prefill else what.context,
        default_seconds=step.before,
        seconds=step.after,
        kernels=list(_kernel_documents(step.kernels)),
    )


def _kernel_documents(kernels: Sequence[ServedKernel]) -> Iterable[ServedKernelJson]:
    for kernel in kernels:
        default = kernel.default
        yield ServedKernelJson.of(
            kernel,
            operation=str(default.node.op),
            default=default.kernel,
            default_seconds=default.seconds,
            default_low=default.low,
            default_high=default.high,
            operators=list(kernel.operators),
            kernels=list(kernel.kernels),
        )


__all__ = ["document", "markdown", "render"]
