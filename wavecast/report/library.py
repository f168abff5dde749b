"""Operators of the kernel library as tables in the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from wavecast.kernels.operator import Operator
from wavecast.pipeline.library import Surveyed
from wavecast.report.units import seconds, size

SCHEMA = "wavecast.ops/1"


def listing(operators: Sequence[Operator], families: Sequence[str], console: Console) -> None:
    """Every operator in a line."""
    table = Table(box=None, pad_edge=False)
    for name in ("operator", "family", "what it computes", "gradient"):
        table.add_column(name)
    for operator, family in zip(operators, families, strict=True):
        gradient = "yes" if operator.gradient else ""
        table.add_row(operator.name, family, operator.summary, gradient)
    console.print(table)


def render(found: Iterable[Surveyed], console: Console) -> None:
    """What calls launch on devices, one line per kernel."""
    table = Table(box=None, pad_edge=False)
    left = ("call", "device", "kernel", "configuration")
    right = ("VGPR", "spills", "LDS", "waves", "predicted", "bound by", "of bound")
    for name in left:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right")
    for one in found:
        sizes = " ".join(f"{name}={value}" for name, value in one.sizes.items())
        if one.failure:
            table.add_row(f"{one.operator} {sizes}", one.device.id, one.failure)
        for number, kernel in enumerate(one.kernels):
            first = number == 0
            table.add_row(
                f"{one.operator} {sizes}" if first else "",
                one.device.id if first else "",
                kernel.kernel,
                kernel.configuration,
                str(kernel.registers),
                str(kernel.spills),
                size(kernel.lds_bytes),
                f"{kernel.waves:g}",
                seconds(kernel.seconds),
                kernel.limiter or kernel.why_not,
                f"{one.share:.0%}" if first and one.share else "",
            )
    console.print(table)


def document(found: Iterable[Surveyed]) -> dict[str, Any]:
    """The same as JSON-ready values."""
    return {
        "schema": SCHEMA,
        "calls": [
            {
                "operator": one.operator,
                "sizes": dict(one.sizes),
                "device": one.device.id,
                "seconds": one.seconds,
                "floor_seconds": one.floor,
                "failure": one.failure,
                "kernels": [
                    {name: getattr(kernel, name) for name in type(kernel).__dataclass_fields__}
                    for kernel in one.kernels
                ],
            }
            for one in found
        ],
    }


__all__ = ["SCHEMA", "document", "listing", "render"]
