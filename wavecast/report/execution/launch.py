"""A launch that was executed, as terminal text: what it wrote, and whether that was expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wavecast.pipeline.execute.execution import ArrayResult, Comparison, Execution
from wavecast.report.kit.terminal import safe

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 4
"""Elements of an array that are shown."""


def render(execution: Execution, console: Console) -> None:
    """Print the launch in a line, then what every array has."""
    where = f"grid {_sizes(execution.grid)}, block {_sizes(execution.block)}"
    rest = f" on {execution.target}, {where}: {execution.seconds:.3g} s on this machine"
    console.print(Text.assemble((safe(execution.kernel), "bold"), rest))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for outcome in execution.outcomes:
        table.add_row(safe(outcome.name), Text(safe(_array(outcome))))
        if outcome.comparison is not None:
            colour = "red" if outcome.comparison.different else "green"
            verdict = _verdict(outcome.comparison, outcome.size)
            table.add_row("", Text(safe(verdict), style=colour))
        if outcome.saved is not None:
            table.add_row("", Text(safe(f"written to {outcome.saved}")))
    if execution.outcomes:
        console.print(Padding(table, (0, 0, 0, 2)), highlight=False)


def _array(outcome: ArrayResult) -> str:
    head = f"{outcome.dtype}[{'x'.join(map(str, outcome.shape))}]"
    if not outcome.changed:
        return f"{head}  unchanged"
    first = ", ".join(_number(value) for value in next(outcome.blocks())[:_SHOWN])
    more = ", …" if outcome.size > _SHOWN else ""
    changed = f"{outcome.changed:,} of {outcome.size:,} changed"
    return f"{head}  {changed}: {first}{more}{_range(outcome)}"


def _range(outcome: ArrayResult) -> str:
    """Smallest, largest and mean of the finite elements, and how many are not."""
    if next(outcome.blocks()).dtype.kind not in "iuf" or outcome.size <= _SHOWN:
        return ""
    parts, count = [], 0
    for block in outcome.blocks():
        finite = block[np.isfinite(block)]
        count += finite.size
        if finite.size:
            parts.append((finite.min(), finite.max(), float(finite.sum(dtype=np.float64))))
    text = ""
    if parts:
        low, high = min(part[0] for part in parts), max(part[1] for part in parts)
        mean = sum(part[2] for part in parts) / count
        text = f"; {_number(low)} to {_number(high)}, mean {_number(mean)}"
    lost = outcome.size - count
    return text + (f"; {lost:,} not finite" if lost else "")


def _verdict(comparison: Comparison, size: int) -> str:
    limit = f"rtol {comparison.rtol:g}, atol {comparison.atol:g}"
    if not comparison.different:
        return f"as expected: largest difference {_number(comparison.largest)} ({limit})"
    first = ", ".join(map(str, comparison.first))
    return (
        f"not as expected: {comparison.different:,} of {size:,} elements differ, by up to "
        f"{_number(comparison.largest)} ({limit}); first [{first}]: "
        f"{_number(comparison.actual)}, expected {_number(comparison.expected)}"
    )


def _number(value: float | np.generic) -> str:
    return f"{value:.9g}" if isinstance(value, (float, np.floating)) else str(value)


def _sizes(sizes: tuple[int, int, int]) -> str:
    """`64`, `64,4`: without the ones at the end."""
    texts = [str(size) for size in sizes]
    while len(texts) > 1 and texts[-1] == "1":
        texts.pop()
    return ",".join(texts)
