"""The list of operators of the kernel library in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from wavecast.kernels.registry import OperatorLine


def listing(operators: Sequence[OperatorLine], console: Console) -> None:
    """Every operator in a line."""
    table = Table(box=None, pad_edge=False)
    for name in ("operator", "family", "what it computes", "gradient"):
        table.add_column(name)
    for operator in operators:
        gradient = "yes" if operator.gradient else ""
        table.add_row(operator.name, operator.family, operator.summary, gradient)
    console.print(table)


__all__ = ["listing"]
