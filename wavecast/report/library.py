"""Operators of the kernel library: tables in the terminal, JSON, and the pages of docs/ops."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from wavecast.documents import base
from wavecast.documents.ops import OperatorCallJson, OperatorKernelJson, OpsDocument
from wavecast.documents.schema import name_of
from wavecast.errors import InputError
from wavecast.kernels.operator import Operator, Sizes
from wavecast.pipeline.library import KernelFacts, Surveyed
from wavecast.report.units import seconds, size

_SCHEMA = name_of(OpsDocument)


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
    for name in ("call", "device", "kernel", "configuration"):
        table.add_column(name, overflow="fold")
    for name in ("VGPR", "spills", "LDS", "waves", "predicted", "bound by", "of bound"):
        table.add_column(name, justify="right")
    for one in found:
        call = f"{one.operator} {_sizes(one.sizes)}"
        if one.failure:
            table.add_row(call, one.device, one.failure)
        for number, kernel in enumerate(one.kernels):
            head = (call, one.device) if number == 0 else ("", "")
            share = f"{one.share:.0%}" if number == 0 and one.share else ""
            table.add_row(*head, kernel.kernel, kernel.configuration, *_cells(kernel), share)
    console.print(table)


def _cells(kernel: KernelFacts) -> tuple[str, ...]:
    return (
        str(kernel.registers),
        str(kernel.spills),
        size(kernel.lds_bytes),
        f"{kernel.waves:g}",
        seconds(kernel.seconds),
        kernel.limiter or kernel.why_not,
    )


def document(found: Iterable[Surveyed]) -> dict[str, Any]:
    """Surveyed calls as JSON-ready values, schema `wavecast.ops/1`."""
    calls = [
        OperatorCallJson.of(one, kernels=[OperatorKernelJson.of(kernel) for kernel in one.kernels])
        for one in found
    ]
    return base.values(OpsDocument(calls=calls))


def surveyed(stored: Mapping[str, Any]) -> tuple[Surveyed, ...]:
    """What `document` was given. Raises InputError for something else."""
    try:
        if stored["schema"] != _SCHEMA:
            raise KeyError(stored["schema"])
        found = []
        for call in stored["calls"]:
            rest = {k: v for k, v in call.items() if k not in ("seconds", "share", "kernels")}
            kernels = tuple(KernelFacts(**kernel) for kernel in call["kernels"])
            found.append(Surveyed(**rest, kernels=kernels))
    except (KeyError, TypeError) as error:
        raise InputError(f"no survey of operators ({_SCHEMA}): {error!r}") from None
    return tuple(found)


def page(operator: Operator, family: str, found: Sequence[Surveyed]) -> str:
    """The page of one operator, in Markdown."""
    signature = str(inspect.signature(operator.call)).replace("torch.", "").replace("'", "")
    parts = [
        f"# {operator.name}",
        f"*{family}*: {operator.summary}.",
        f"```python\nwavecast.ops.{operator.name}{signature}\n```",
        inspect.cleandoc(operator.call.__doc__ or ""),
    ]
    if operator.tensors is not None:
        lines = ["| tensor | shape | dtype |", "|---|---|---|"]
        lines += [
            f"| `{name}` | {shape} | {dtype} |" for name, shape, dtype in operator.tensors.rows()
        ]
        parts.append("\n".join(lines))
    if operator.notes:
        parts.append(operator.notes)
    facts = [f"- gradient: {'yes' if operator.gradient else 'no'}"]
    if operator.mutates:
        facts.append(f"- written in place: {', '.join(operator.mutates)}")
    tolerance = operator.tolerance
    facts.append(
        "- tolerance: its own comparison"
        if operator.compare
        else f"- tolerance against float64: ({tolerance.ulps:g} ulp of the result's dtype + "
        f"{tolerance.accumulated:g}) · (|expected| + rms)"
    )
    dtypes = _dtypes(operator)
    if dtypes:
        facts.append(f"- dtypes tested: {', '.join(dtypes)}")
    if operator.targets:
        facts.append(f"- targets: {', '.join(operator.targets)}")
    parts.append("\n".join(facts))
    mine = [one for one in found if one.operator == operator.name]
    for sizes in operator.shapes:
        rows = [one for one in mine if dict(one.sizes) == dict(sizes)]
        if rows:
            parts.append(f"## {_sizes(sizes)}\n\n{_table(rows)}")
    return "\n\n".join(part for part in parts if part) + "\n"


def index(operators: Sequence[Operator], families: Sequence[str]) -> str:
    """The page that lists the others."""
    rows = [
        f"| [{one.name}]({one.name}.md) | {family} | {one.summary} |"
        for one, family in zip(operators, families, strict=True)
    ]
    head = (
        "# Operators\n\nOne page per operator of `wavecast.ops`, generated by `wavecast ops "
        "--pages docs/ops` from their descriptions and a survey of the compiled code "
        "(`results/ops.json`). Times are predictions; `of bound` is the time the useful work needs "
        "at sustained rates as a share of the predicted one.\n\n"
        "| operator | family | |\n|---|---|---|\n"
    )
    return head + "\n".join(rows) + "\n"


def _table(rows: Sequence[Surveyed]) -> str:
    lines = [
        "| GPU | kernel | configuration | VGPR | spills | LDS | waves/SIMD | predicted | bound by "
        "| of bound |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        if one.failure:
            lines.append(f"| {one.device} | {one.failure} | | | | | | | | |")
        for number, kernel in enumerate(one.kernels):
            share = f"{one.share:.0%}" if number == 0 and one.share else ""
            device = one.device if number == 0 else ""
            cells = (device, kernel.kernel, kernel.configuration, *_cells(kernel), share)
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _sizes(sizes: Sizes) -> str:
    return " ".join(f"{name}={value}" for name, value in sizes.items())


def _dtypes(operator: Operator) -> list[str]:
    """The values of every size that names a dtype."""
    found: dict[str, None] = {}
    for sizes in (*operator.cases, *operator.thorough):
        for name, value in sizes.items():
            if "dtype" in name and isinstance(value, str):
                found.setdefault(value)
    return list(found)


__all__ = ["document", "index", "listing", "page", "render", "surveyed"]
