"""How far the results of a run are those of hardware: `wavecast run --fidelity`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wavecast.compile.names import distinct_names
from wavecast.documents.fidelity import DecisionJson, KernelFidelityJson, OpenInstructionJson
from wavecast.emulate.trace.fidelity import OpenInstruction, open_instructions
from wavecast.emulate.trace.result import Trace
from wavecast.isa.instruction import Instruction, SourceLocation
from wavecast.report.explain import source
from wavecast.report.kit import units
from wavecast.report.kit.terminal import heading, safe

if TYPE_CHECKING:
    from rich.console import Console

_MOST_LINES = 12
_MOST_DECISIONS = 6


def document(traces: Sequence[Trace]) -> list[KernelFidelityJson]:
    """A kernel of each trace, with the lines of open instructions, the most executed first."""
    names = distinct_names(trace.program.name for trace in traces)
    return [_kernel(trace, names[trace.program.name]) for trace in traces]


def _kernel(trace: Trace, name: str) -> KernelFidelityJson:
    instructions = open_instructions(trace)
    lines: dict[tuple[str, str, str | None, int | None], list[OpenInstruction]] = {}
    for entry in instructions:
        position = _file_line(entry.location)
        lines.setdefault((entry.behaviour.name, _name(entry.instruction), *position), []).append(
            entry
        )
    objects = [_line(group) for group in lines.values()]
    open_executions = sum(entry.executions for entry in instructions)
    return KernelFidelityJson(
        kernel=name,
        symbol=trace.program.name,
        target=trace.target,
        launches=trace.launches,
        instructions=trace.instructions,
        documented=trace.instructions - open_executions,
        open=sorted(objects, key=lambda one: (-one.executions, one.file or "", one.line or 0)),
    )


def _line(group: Sequence[OpenInstruction]) -> OpenInstructionJson:
    first = group[0]
    file, line = _file_line(first.location)
    decisions = {
        (decision.kind, _name(decision.instruction), *_file_line(decision.location)): None
        for entry in group
        for decision in entry.decisions
    }
    return OpenInstructionJson(
        status=first.behaviour.status,
        behaviour=first.behaviour.name,
        mnemonic=_name(first.instruction),
        file=file,
        line=line,
        executions=sum(entry.executions for entry in group),
        decides=[DecisionJson(*decision) for decision in decisions],
    )


def _name(instruction: Instruction) -> str:
    return instruction.mnemonic.removesuffix(f"_{instruction.decoded.encoding}")


def _file_line(location: SourceLocation | None) -> tuple[str | None, int | None]:
    return (location.file, location.line) if location and location.line else (None, None)


def render(traces: Sequence[Trace], console: Console) -> None:
    """The kernels with most instructions first: lines of open instructions, what is open, and what
    their values may decide."""
    kernels = sorted(document(traces), key=lambda kernel: -kernel.instructions)
    for kernel in kernels:
        share = units.percent(kernel.documented, kernel.instructions)
        share = ">99%" if kernel.open and share == "100%" else share
        title = (
            f"{kernel.target}, {units.si(kernel.instructions)} wave-instructions, "
            f"{share} with a documented result"
        )
        console.print(heading(safe(kernel.kernel), title), soft_wrap=True)
        if kernel.open:
            console.print(Padding(_table(kernel), (0, 0, 0, 2)))
        for text in _remarks(kernel):
            console.print(Padding(Text(safe(text)), (0, 0, 0, 2)))


def _table(kernel: KernelFidelityJson) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("executed", justify="right", no_wrap=True)
    table.add_column("result", no_wrap=True)
    table.add_column("instruction", no_wrap=True)
    table.add_column("source line")
    for line in kernel.open[:_MOST_LINES]:
        cell = Text(source.numbered(line.file, line.line), no_wrap=True, overflow="ellipsis")
        table.add_row(units.si(line.executions), line.status, line.mnemonic, cell)
    return table


def _remarks(kernel: KernelFidelityJson) -> Iterator[str]:
    if len(kernel.open) > _MOST_LINES:
        yield f"and {len(kernel.open) - _MOST_LINES} lines with fewer executions"
    for name in dict.fromkeys(line.behaviour for line in kernel.open):
        yield f"open: {name} (docs/hardware.md)"
    decided = {
        (decision.kind, decision.mnemonic, decision.line, line.mnemonic, line.line): line
        for line in kernel.open
        for decision in line.decides
    }
    for (kind, mnemonic, at, *_), line in list(decided.items())[:_MOST_DECISIONS]:
        what = {"lanes": "the lanes that execute", "address": "an address"}.get(kind, f"a {kind}")
        yield (
            f"{line.mnemonic}{f' of line {line.line}' if line.line else ''} may decide {what}: "
            f"{mnemonic}{f', line {at}' if at else ''}"
        )
    if len(decided) > _MOST_DECISIONS:
        yield f"and {len(decided) - _MOST_DECISIONS} other decisions"
    if kernel.open and not decided:
        yield "no such value decides an address, a branch or a barrier of its launch"


__all__ = ["document", "render"]
