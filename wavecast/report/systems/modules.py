"""Modules on GPUs as text and JSON: how long a run is, and what takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from wavecast import json_objects
from wavecast.documents.graph import GraphDocument, GraphKernelJson, GraphMemoryJson, ModuleJson
from wavecast.report.kit import kernel_tables, units
from wavecast.report.kit.terminal import safe
from wavecast.report.systems import module_words
from wavecast.report.systems.serving_words import times
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.pipeline.models.replacing import ReplacedModule
    from wavecast.report.systems.module_words import EqualCalls
    from wavecast.systems.sources.answer import ModuleAnswer

_ROWS = 10
"""Lines of a table that the text shows unless asked for all."""


def document(answers: Sequence[ModuleAnswer]) -> dict[str, Any]:
    """The answers as plain dicts, lists, strings and numbers."""
    return json_objects.values(
        GraphDocument(wavecast=__version__, models=[_module(answer) for answer in answers])
    )


def render(answers: Sequence[ModuleAnswer], console: Console, *, detail: str = "normal") -> None:
    """Print the answers; `brief` stops after the total, `full` shows every kernel."""
    for answer in answers:
        _head(answer, console)
        if detail != "brief":
            _phases(answer, console)
            _kernels(answer, console, full=detail == "full")
            _modules(answer, console, full=detail == "full")
            _memory(answer, console)
        for note in answer.notes:
            console.print(Text.assemble(("note ", "cyan"), safe(note)))
        console.print()


def render_changes(change: ReplacedModule, console: Console) -> None:
    """Print what the kernel library changes, by module."""
    titles = [("  module", "left"), ("class", "left"), ("PyTorch", "right"),
              ("wavecast.ops", "right"), ("speedup", "right"), ("operators", "left")]  # fmt: skip
    table = kernel_tables.columns(*titles)
    for module_change in change.changes:
        table.add_row(
            f"  {safe(module_change.module)}",
            safe(module_change.kind),
            units.seconds(module_change.before),
            units.seconds(module_change.after),
            f"{module_change.speedup:.2f}",
            ", ".join(module_change.operators) or safe("; ".join(module_change.left)),
        )
    before, after = change.before.total.value, change.after.total.value
    console.print(table)
    console.print(
        f"  {safe(change.before.graph.name)} on {safe(change.before.device.name)}: "
        f"{units.seconds(before)} as PyTorch runs it, {units.seconds(after)} with wavecast.ops"
    )


def _head(answer: ModuleAnswer, console: Console) -> None:
    title = f"{safe(answer.graph.name)} on {safe(answer.device.name)}"
    console.print(Rule(Text(title, "bold cyan"), align="left"))
    console.print(Text(module_words.description(answer), style="dim"))
    console.print(
        Text.assemble(
            "  a run takes ",
            (units.seconds(answer.total.value), "bold"),
            f"  (80% interval {times(answer.total)})",
        )
    )
    waits = answer.time
    text = f"  kernels {units.seconds(waits.device)}, host {units.seconds(waits.host)}"
    if waits.host_bound:
        text += f"; the GPU waits {units.seconds(waits.idle)} for the host"
    console.print(Text(text, style="yellow" if waits.host_bound else "dim"))
    console.print(Text(f"  interval from {answer.total.basis}", style="dim"))


def _phases(answer: ModuleAnswer, console: Console) -> None:
    if len(answer.by_phase) < 2:
        return
    titles = (("  phase", "left"), ("kernels", "right"), ("share", "right"))
    table = kernel_tables.columns(*titles)
    for phase, seconds in answer.by_phase.items():
        share = units.percent(seconds, answer.time.device)
        table.add_row(f"  {phase}", units.seconds(seconds), share)
    console.print()
    console.print(table)


def _kernels(answer: ModuleAnswer, console: Console, *, full: bool) -> None:
    ordered = full and answer.framework.compiled
    rows = module_words.in_order(answer) if ordered else module_words.rows(answer)
    most = None if full else _ROWS
    console.print()
    kernel_tables.print_kernels(
        rows, answer.time.device, console, most=most, assumed=False, operation=True
    )


def _modules(answer: ModuleAnswer, console: Console, *, full: bool) -> None:
    rows = [(path, seconds) for path, seconds in answer.by_module.items() if path]
    if len(rows) < 2:
        return
    titles = [("  module", "left"), ("class", "left"), ("kernels", "right"), ("share", "right")]
    table = kernel_tables.columns(*titles)
    for path, seconds in rows if full else rows[:_ROWS]:
        share = units.percent(seconds, answer.time.device)
        kind = answer.graph.classes.get(path, "")
        table.add_row(f"  {safe(path)}", safe(kind), units.seconds(seconds), share)
    console.print()
    console.print(table)


def _memory(answer: ModuleAnswer, console: Console) -> None:
    memory = answer.memory
    if not memory.parts:
        return
    parts = ", ".join(f"{name} {units.size(size)}" for name, size in memory.parts.items())
    console.print()
    console.print(Text(f"  memory {units.size(memory.total)}: {parts}", style="dim"))
    if not memory.fits:
        available = units.size(memory.available)
        console.print(Text(f"  does not fit: the GPU has {available}", style="red"))


def _module(answer: ModuleAnswer) -> ModuleJson:
    memory, time = answer.memory, answer.time
    return ModuleJson(
        name=answer.graph.name,
        device_id=answer.device.id,
        engine=answer.framework.name,
        parameters=answer.graph.parameters,
        total=answer.total,
        device=time.device,
        host=time.host,
        idle=time.idle,
        calls=len(answer.graph.calls),
        launches=len(answer.times),
        by_phase=dict(answer.by_phase),
        by_operator=dict(answer.by_operator),
        by_module=dict(answer.by_module),
        memory=GraphMemoryJson.of(memory, parts=dict(memory.parts)),
        kernels=[_kernel(group) for group in module_words.equal(answer)],
        notes=list(answer.notes),
    )


def _kernel(group: EqualCalls) -> GraphKernelJson:
    kernel, priced = group.first.kernel, group.first.priced
    return GraphKernelJson.of(
        priced,
        operator=kernel.operator,
        name=kernel.part.name,
        operation=str(priced.node.op),
        phase=kernel.phase,
        count=group.count,
        modules=list(group.modules),
    )


__all__ = ["document", "render", "render_changes"]
