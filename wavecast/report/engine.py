"""The kernels of a served model and the operators for them, as text, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from wavecast.documents import base
from wavecast.documents.engine import EngineDocument, ServedKernelJson, ServedStepJson
from wavecast.pipeline.engine_kernels import EngineReport, ServedKernel, ServedStep
from wavecast.report import units
from wavecast.report.kernel_tables import columns
from wavecast.report.profiles_markdown import table as markdown_table
from wavecast.report.terminal_text import safe
from wavecast.version import __version__

_TITLES: Final = (
    "kernel", "layer", "dtype", ">launches", "default", ">default time", "operators", ">time",
)  # fmt: skip
"""Columns of both tables; `>` is right-aligned."""


def render(found: EngineReport, console: Console) -> None:
    """Print a table per step, what the defaults remain for, and notes."""
    console.print(Text(title(found), style="bold"))
    for step in found.steps:
        console.print()
        console.print(Text(_step(step)))
        sides = [(title.lstrip(">"), "right" if title[0] == ">" else "left") for title in _TITLES]
        table = columns(*((f"  {title}" if not n else title, side)
                          for n, (title, side) in enumerate(sides)))  # fmt: skip
        for one in step.kernels:
            first, *others = map(safe, _cells(one))
            table.add_row(f"  {first}", *others, style="dim" if one.why_not else "")
        console.print(table)
        for why, names in _left(step).items():
            console.print(Text(f"  {safe(', '.join(names))}: {safe(why)}", style="yellow"))
    for note in found.notes:
        console.print(Text.assemble(("note ", "cyan"), safe(note)))


def markdown(found: EngineReport) -> str:
    """A section with a table per step."""
    lines = [f"### {title(found)}", ""]
    for step in found.steps:
        lines += [_step(step), "", *markdown_table(_TITLES, map(_cells, step.kernels))]
        left = [f"- {', '.join(names)}: {why}" for why, names in _left(step).items()]
        lines += [*left, ""] if left else []
    lines += [f"- {note}" for note in found.notes]
    return "\n".join(lines).rstrip() + "\n"


def document(found: EngineReport) -> dict[str, Any]:
    """The report as plain dicts, lists, strings and numbers."""
    steps = [_step_document(step) for step in found.steps]
    return base.values(EngineDocument.of(found, wavecast=__version__, steps=steps,
                                         notes=list(found.notes)))  # fmt: skip


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


def _cells(one: ServedKernel) -> tuple[str, ...]:
    default, operators = one.default, " + ".join(one.operators)
    if one.why_not:
        operators = "–"
    elif one.part_of:
        operators = f"in {one.part_of}"
    return (
        one.name, one.layer, one.dtype, str(one.count), default.kernel,
        units.seconds(default.seconds), operators,
        units.seconds(one.seconds if one.operators and not one.why_not else None),
    )  # fmt: skip


def _left(step: ServedStep) -> dict[str, list[str]]:
    """Names of kernels by the reason why their default remains."""
    found: dict[str, list[str]] = {}
    for one in step.kernels:
        if one.why_not and one.name not in found.setdefault(one.why_not, []):
            found[one.why_not].append(one.name)
    return found


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
    for one in kernels:
        default = one.default
        yield ServedKernelJson.of(
            one,
            operation=str(default.node.op),
            default=default.kernel,
            default_seconds=default.seconds,
            default_low=default.low,
            default_high=default.high,
            operators=list(one.operators),
            kernels=list(one.kernels),
        )


__all__ = ["document", "markdown", "render"]
