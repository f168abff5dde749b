"""Thread traces as text and JSON: measured cycles by instruction, next to the simulated ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wavecast.compile.names import readable
from wavecast.documents.profile import ThreadTraceJson, TracedInstructionJson
from wavecast.report.kit import units
from wavecast.report.kit.terminal import safe

if TYPE_CHECKING:
    from wavecast.profiles.thread_trace import InstructionCycles, TracedKernel


def headline(kernel: TracedKernel) -> str:
    """How many waves were traced, and what they take."""
    trace = kernel.trace
    text = units.plural(trace.waves, "traced wave")
    if trace.wave_cycles:
        text += f" of {trace.wave_cycles:,.0f} cycles"
    if trace.clock:
        seconds = trace.wave_cycles / trace.clock * 1e-9
        text += f" at {units.significant(trace.clock)} GHz ({units.seconds(seconds)})"
    return text + (f"; no simulated cycles: {kernel.why_not}" if kernel.why_not else "")


def sections(kernel: TracedKernel, rows: int) -> Iterator[RenderableType]:
    """The trace as terminal text: the instructions with the most cycles."""
    yield Text("")
    yield Text.assemble(
        (f"  thread trace of {safe(readable(kernel.trace.kernel))}  ", "bold"),
        (safe(headline(kernel)), "dim"),
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    heads = ("share", "cycles", *(() if kernel.why_not else ("simulated",)), "executions")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("instruction", overflow="fold")
    for instruction in kernel.longest[:rows]:
        table.add_row(*_cells(kernel, instruction), _instruction_text(instruction))
    yield Padding(table, (0, 0, 0, 2))


def _cells(kernel: TracedKernel, instruction: InstructionCycles) -> tuple[str, ...]:
    measured = (f"{share(kernel, instruction):.1%}", units.significant(instruction.traced.cycles))
    simulated = () if kernel.why_not else (simulated_text(instruction),)
    return *measured, *simulated, f"{instruction.traced.executions:,}"


def _instruction_text(instruction: InstructionCycles) -> Text:
    source = instruction.traced.source.rpartition("/")[2]
    return Text(safe(instruction.traced.text)).append(f"  {safe(source)}" if source else "", "dim")


def share(kernel: TracedKernel, instruction: InstructionCycles) -> float:
    """Cycles of an instruction over those of all."""
    return instruction.traced.spent / max(1, kernel.cycles)


def simulated_text(instruction: InstructionCycles) -> str:
    """Simulated cycles of an execution; a dash without."""
    return (
        units.UNKNOWN if instruction.simulated is None else units.significant(instruction.simulated)
    )


def entry(kernel: TracedKernel) -> ThreadTraceJson:
    """The trace in the JSON document."""
    return ThreadTraceJson(
        kernel=kernel.trace.kernel,
        waves=kernel.trace.waves,
        wave_cycles=kernel.trace.wave_cycles,
        clock_ghz=kernel.trace.clock,
        why_not=kernel.why_not,
        instructions=[
            TracedInstructionJson.of(instruction.traced, simulated=instruction.simulated)
            for instruction in kernel.instructions
        ],
    )


__all__ = ["entry", "headline", "sections", "share", "simulated_text"]
