"""Code generators side by side as terminal text and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from wavecast.documents.lab import CompilerComparisonJson, CompilerRowJson, LabCompilersDocument
from wavecast.report import units
from wavecast.report.lab import figures_document
from wavecast.report.terminal_tables import plain_table
from wavecast.report.terminal_text import heading, safe
from wavecast.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, RenderableType

    from wavecast.lab.compilers import CompilerComparison, CompilerRow


def document(found: Sequence[CompilerComparison], notes: Sequence[str]) -> LabCompilersDocument:
    """The comparisons as a document."""
    return LabCompilersDocument(
        __version__,
        list(notes),
        [CompilerComparisonJson.of(one, rows=[_row(row) for row in one.rows]) for one in found],
    )


def _row(row: CompilerRow) -> CompilerRowJson:
    figures = figures_document(row.figures) if row.figures is not None else None
    return CompilerRowJson.of(row, figures=figures)


def render(found: Sequence[CompilerComparison], notes: Sequence[str], console: Console) -> None:
    """A table per kernel and device."""
    for note in notes:
        console.print(Text.assemble(("note ", "cyan"), safe(note)))
    for one in found:
        console.print(heading(f"{safe(one.kernel)} on {one.device}", "one LLVM IR"))
        console.print(Padding(_table(one), (0, 0, 0, 2)))


def _table(comparison: CompilerComparison) -> RenderableType:
    table = plain_table(
        ("code generator", False), ("predicted", True), ("instructions", True), ("VGPRs", True),
        ("AGPRs", True), ("spills", True), ("waves/SIMD", True), ("waits", True),
        ("loop cycles", True), ("faults", False),
    )  # fmt: skip
    for row in comparison.rows:
        figures = row.figures
        if figures is None:
            table.add_row(safe(row.name), *[""] * 8, safe(row.refused))
            continue
        table.add_row(
            safe(row.name),
            units.seconds(figures.seconds),
            units.count(figures.instructions),
            units.count(figures.vgprs),
            units.count(figures.agprs),
            units.count(figures.spills),
            units.count(figures.waves),
            units.count(figures.waits),
            units.count(figures.loop_cycles),
            safe("; ".join(figures.faults[:2])),
        )
    return table


__all__ = ["document", "render"]
