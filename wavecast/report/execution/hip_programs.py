"""The launches of a HIP program with their predicted times, as terminal text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wavecast.compile.names import distinct_names
from wavecast.report.kit import units
from wavecast.runtimes.hip_host.launching import LaunchedKernel

if TYPE_CHECKING:
    from rich.console import Console


def render(kernels: Sequence[LaunchedKernel], console: Console) -> None:
    """Print a table with a line per kernel, grid and block, the longest first, and the sum."""
    from rich.table import Table

    if not kernels:
        console.print("no kernel was launched")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("kernel", overflow="fold")
    for head in ("grid", "block", "launches", "predicted each", "predicted all"):
        table.add_column(head, justify="right", no_wrap=True)
    names = distinct_names(kernel.symbol for kernel in kernels if kernel.symbol)
    for kernel in sorted(kernels, key=lambda row: -(row.seconds or 0.0)):
        each = None if kernel.seconds is None else kernel.seconds / kernel.launches
        table.add_row(
            names.get(kernel.symbol, kernel.kernel),
            _sizes(kernel.grid),
            _sizes(kernel.block),
            units.count(kernel.launches),
            units.seconds(each),
            units.seconds(kernel.seconds),
        )
    console.print(table)
    total = sum(kernel.seconds or 0.0 for kernel in kernels)
    launches = sum(kernel.launches for kernel in kernels if not kernel.library)
    console.print(
        f"{units.plural(launches, 'launch', 'launches')}, {units.seconds(total)} predicted"
    )
    for why in dict.fromkeys(kernel.why for kernel in kernels if kernel.why):
        console.print(f"not predicted: {why}", markup=False, soft_wrap=True)


def by_host(kernels: Sequence[LaunchedKernel]) -> str:
    """What was not executed by the emulated GPU, as a line; "" where all was."""
    calls = sum(kernel.launches for kernel in kernels if kernel.library)
    if not calls:
        return ""
    names = ", ".join(sorted({kernel.library for kernel in kernels if kernel.library}))
    verb = "was" if calls == 1 else "were"
    return f"{units.plural(calls, 'call', 'calls')} of {names} {verb} computed by the host"


def _sizes(values: Sequence[int]) -> str:
    """`64×2`: sizes without trailing ones."""
    sizes = list(values)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return "×".join(map(str, sizes))


__all__ = ["by_host", "render"]
