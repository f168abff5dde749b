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
from wavecast.report import units
from wavecast.report.terminal_text import safe

if TYPE_CHECKING:
    from wavecast.bench.profiles.thread_trace import InstructionCycles, TracedKernel


def headline(found: TracedKernel) -> str:
    """How many waves were traced, and what they take."""
    trace = found.trace
    text = units.plural(trace.waves, "traced wave")
    if trace.wave_cycles:
        text += f" of {trace.wave_cycles:,.0f} cycles"
    if trace.clock:
        seconds = trace.wave_cycles / trace.clock * 1e-9
        text += f" at {units.significant(trace.clock)} GHz ({units.seconds(seconds)})"
    return text + (f"; no simulated cycles: {found.why_not}" if found.why_not else "")


def sections(found: TracedKernel, rows: int) -> Iterator[RenderableType]:
    """The trace as terminal text: the instructions with the most cycles."""
    yield Text("")
    yield Text.assemble(
        (f"  thread trace of {safe(readable(found.trace.kernel))}  ", "bold"),
        (safe(headline(found)), "dim"),
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    heads = ("share", "cycles", *(() if found.why_not else ("simulated",)), "executions")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("instruction", overflow="fold")
    for one in found.longest[:rows]:
        table.add_row(*_cells(found, one), _named(one))
    yield Padding(table, (0, 0, 0, 2))


def _cells(found: TracedKernel, one: InstructionCycles) -> tuple[str, ...]:
    measured = (f"{share(found, one):.1%}", units.significant(one.traced.cycles))
    simulated = () if found.why_not else (simulated_text(one),)
    return *measured, *simulated, f"{one.traced.executions:,}"


def _named(one: InstructionCycles) -> Text:
    source = one.traced.source.rpartition("/")[2]
    return Text(safe(one.traced.text)).append(f"  {safe(source)}" if source else "", "dim")


def share(found: TracedKernel, one: InstructionCycles) -> float:
    """Cycles of an instruction over those of all."""
    return one.traced.spent / max(1, found.cycles)


def simulated_text(one: InstructionCycles) -> str:
    """Simulated cycles of an execution; a dash without."""
    return units.UNKNOWN if one.simulated is None else units.significant(one.simulated)


def entry(found: TracedKernel) -> ThreadTraceJson:
    """The trace in the JSON document."""
    return ThreadTraceJson(
        kernel=found.trace.kernel,
        waves=found.trace.waves,
        wave_cycles=found.trace.wave_cycles,
        clock_ghz=found.trace.clock,
        why_not=found.why_not,
        instructions=[
            TracedInstructionJson.of(one.traced, simulated=one.simulated)
            for one in found.instructions
        ],
    )


__all__ = ["entry", "headline", "sections", "share", "simulated_text"]
