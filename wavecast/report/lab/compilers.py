"""Code generators side by side as terminal text and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.padding import Padding
from rich.text import Text

from wavecast.compile.names import distinct_names, readable
from wavecast.documents.lab import (
    BisectionJson,
    CompilerComparisonJson,
    LabCompilersDocument,
)
from wavecast.lab.compiler_ranks import rank, rank_common
from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit import units
from wavecast.report.kit.terminal import heading, safe
from wavecast.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, RenderableType

    from wavecast.lab.bisect import Bisection
    from wavecast.lab.compiler_ranks import ComparedKernel, CompilerRank
    from wavecast.lab.compilers import CompilerComparison, CompilerRow


def document(
    comparisons: Sequence[CompilerComparison], notes: Sequence[str]
) -> LabCompilersDocument:
    """The comparisons as a document."""
    return LabCompilersDocument(
        __version__,
        list(notes),
        [_comparison(comparison) for comparison in comparisons],
        [*rank(comparisons)],
    )


def _comparison(comparison: CompilerComparison) -> CompilerComparisonJson:
    return CompilerComparisonJson.of(
        comparison,
        rows=list(comparison.rows),
        bisections=[_bisection(each) for each in comparison.bisections],
    )


def _bisection(bisection: Bisection) -> BisectionJson:
    return BisectionJson(
        figure=bisection.figure,
        first=bisection.first.compiler,
        second=bisection.second.compiler,
        values=[bisection.first.values[-1], bisection.second.values[-1]],
        most=bisection.most.name if bisection.most is not None else "",
        passes=[bisection.always, *bisection.passes],
    )


def render(
    comparisons: Sequence[CompilerComparison], notes: Sequence[str], console: Console
) -> None:
    """A table per kernel and device."""
    for note in notes:
        console.print(Text.assemble(("note ", "cyan"), safe(note)))
    names = distinct_names(comparison.kernel for comparison in comparisons)
    for comparison in comparisons:
        name = safe(names[comparison.kernel])
        console.print(heading(f"{name} on {comparison.device}", "one LLVM IR"))
        console.print(Padding(_table(comparison), (0, 0, 0, 2)))
        for row in comparison.rows:
            if row.figures is None:
                console.print(Padding(_refusal(row), (0, 0, 0, 2)))
        for bisection in comparison.bisections:
            _render_bisection(bisection, console)
    if len(comparisons) > 1:
        console.print(heading("all kernels", "times over those of the program's code"))
        console.print(Padding(_ranking(rank(comparisons)), (0, 0, 0, 2)))


def _refusal(row: CompilerRow) -> Text:
    """Why a code generator has no row."""
    message = row.refused.removeprefix(f"{row.name}: ")
    return Text.assemble(("refused by ", "dim"), safe(row.name), f": {safe(message)}")


def _ranking(ranks: Sequence[CompilerRank]) -> RenderableType:
    table = plain_table(*((head, head not in _RANKING_TEXTS) for head in _RANKING))
    for each in ranks:
        table.add_row(*(safe(cell) for cell in _rank_cells(each)))
    return table


_RANKING: Final = (
    *("target", "code generator", "time", "kernels", "refused", "faster", "slower"),
    *("best", "worst", "instructions", "spills", "faults"),
)

_RANKING_TEXTS: Final = ("target", "code generator", "best", "worst")


def _rank_cells(each: CompilerRank) -> list[str]:
    """The cells of `_RANKING`."""
    counts = (each.kernels, each.refused, each.faster, each.slower)
    return [
        each.target,
        each.name,
        _ratio(each.time),
        *map(units.count, counts),
        f"{_ratio(each.best_time)} {readable(each.best)}".strip(),
        f"{_ratio(each.worst_time)} {readable(each.worst)}".strip(),
        _ratio(each.instructions),
        units.count(each.spills),
        units.count(each.faults),
    ]


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def markdown(comparisons: Sequence[ComparedKernel]) -> str:
    """The ranking over all targets and for each, and the time of every kernel by every code
    generator that compiles any, as Markdown; `!` marks code with faults."""
    lines = [*_markdown_row(_RANKING), *_markdown_row(["---"] * 2 + ["--:"] * (len(_RANKING) - 2))]
    for each in (*rank_common(comparisons), *rank(comparisons)):
        lines += _markdown_row(_rank_cells(each))
    names = [*dict.fromkeys(row.name for each in comparisons for row in each.rows if row.figures)]
    lines += ["", *_markdown_row(["kernel", "target", *names])]
    lines += _markdown_row(["---"] * 2 + ["--:"] * len(names))
    for comparison in comparisons:
        cells = {row.name: _time_cell(row) for row in comparison.rows}
        figures = [cells.get(name, "") for name in names]
        lines += _markdown_row([readable(comparison.kernel), comparison.target, *figures])
    return "\n".join(lines) + "\n"


def _time_cell(row: CompilerRow) -> str:
    if row.figures is None:
        return "refused"
    faults = " !" if row.figures.faults else ""
    return units.seconds(row.figures.seconds) + faults


def _markdown_row(cells: Sequence[str]) -> list[str]:
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"]


def _render_bisection(search: Bisection, console: Console) -> None:
    """The passes that change the figure differently, and the one that does so most."""
    most = f"most by {search.most.name}" if search.most is not None else "the same"
    title = f"{search.figure} of {search.first.compiler} and {search.second.compiler}"
    console.print(heading(safe(title), safe(most)))
    table = plain_table(
        ("pass", False), (safe(search.first.compiler), True), (safe(search.second.compiler), True),
        ("excess change", True),
    )  # fmt: skip
    write = units.seconds if search.figure == "seconds" else _figure
    for each in (search.always, *search.passes):
        signs = each is not search.always
        row = (_signed_text(value, write, signs=signs) for value in (each.first, each.second))
        table.add_row(safe(each.name), *row, _signed_text(each.apart, write))
    ends = (search.first.values[-1], search.second.values[-1])
    table.add_row("(all passes)", *(_signed_text(value, write, signs=False) for value in ends), "")
    console.print(Padding(table, (0, 0, 0, 2)))


def _figure(value: float) -> str:
    return f"{value:,.4g}" if value % 1 else units.count(value)


def _signed_text(value: float | None, write: Callable[[float], str], *, signs: bool = True) -> str:
    if value is None:
        return "–"
    if not signs:
        return write(value)
    return write(0) if not value else f"{'+' if value > 0 else '-'}{write(abs(value))}"


def _table(comparison: CompilerComparison) -> RenderableType:
    table = plain_table(
        ("code generator", False), ("predicted", True), ("instructions", True), ("VGPRs", True),
        ("AGPRs", True), ("spills", True), ("waves/SIMD", True), ("waits", True),
        ("loop cycles", True), ("faults", False),
    )  # fmt: skip
    for row in comparison.rows:
        figures = row.figures
        if figures is None:
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


__all__ = ["document", "markdown", "render"]
