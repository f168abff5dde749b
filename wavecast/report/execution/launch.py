"""A launch that was executed, as terminal text: what it wrote, and whether that was expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wavecast.pipeline.execute.execution import ArrayResult, Comparison, Execution

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 4
"""Elements of an array that are shown."""


def render(execution: Execution, console: Console) -> None:
    """Print the launch in a line, then one for every array."""
    from rich.markup import escape

    where = f"grid {_sizes(execution.grid)}, block {_sizes(execution.block)}"
    console.print(
        f"[bold]{escape(execution.kernel)}[/bold] on {execution.target}, {where}: "
        f"{execution.seconds:.3g} s on this machine",
        soft_wrap=True,
    )
    width = max((len(outcome.name) for outcome in execution.outcomes), default=0)
    for outcome in execution.outcomes:
        line = f"  {outcome.name:<{width}}  {_array(outcome)}"
        console.print(escape(line), soft_wrap=True, highlight=False)
        if outcome.comparison is not None:
            verdict = escape(_verdict(outcome.comparison, outcome.size))
            colour = "red" if outcome.comparison.different else "green"
            console.print(f"  {'':<{width}}  [{colour}]{verdict}[/{colour}]", soft_wrap=True)
        if outcome.saved is not None:
            line = f"  {'':<{width}}  written to {outcome.saved}"
            console.print(escape(line), soft_wrap=True, highlight=False)


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
