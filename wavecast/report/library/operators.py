"""Operators of the kernel library: tables in the terminal, JSON, and the pages of docs/ops."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wavecast import json_objects
from wavecast.documents.ops import OperatorCallJson, OperatorKernelJson, OpsDocument
from wavecast.errors import InputError
from wavecast.json_schema import name_of
from wavecast.kernels.operator import Operator, Sizes
from wavecast.pipeline.library.library import KernelFacts, Surveyed
from wavecast.report.kit.terminal import print_fitting
from wavecast.report.kit.units import seconds, size

_SCHEMA = name_of(OpsDocument)


_FIGURES = ("VGPR", "spills", "LDS", "waves", "predicted", "bound by", "of bound")


def render(surveys: Iterable[Surveyed], console: Console) -> None:
    """What calls launch on devices, one line per kernel; in a narrow terminal a table per call,
    with a line for the configuration."""
    surveys = list(surveys)
    wide = _of_figures("call", "device", "kernel", "configuration")
    for survey in surveys:
        call = f"{survey.operator} {_sizes(survey.sizes)}"
        if survey.failure:
            wide.add_row(call, survey.device, survey.failure)
        for number, kernel in enumerate(survey.kernels):
            head = (call, survey.device) if number == 0 else ("", "")
            names = kernel.kernel, kernel.configuration
            wide.add_row(*head, *names, *_cells(kernel), _share(survey, number))
    print_fitting(console, wide, *_by_call(surveys))


def _by_call(surveys: Sequence[Surveyed]) -> Iterator[Table | Text]:
    calls = itertools.groupby(surveys, lambda survey: (survey.operator, _sizes(survey.sizes)))
    for (operator, sizes), devices in calls:
        yield Text(f"{operator} {sizes}", "bold")
        table = _of_figures("  device")
        configurations: list[str] = []
        for survey in devices:
            if survey.failure:
                configurations.append(f"  {survey.device}: {survey.failure}")
            for number, kernel in enumerate(survey.kernels):
                head = f"  {survey.device}" if number == 0 else ""
                table.add_row(head, *_cells(kernel), _share(survey, number))
                text = f"{kernel.kernel} {kernel.configuration}".rstrip()
                configurations.append(f"  {survey.device}: {text}")
        if table.row_count:
            yield table
        yield Text("\n".join(configurations), "dim")


def _of_figures(*names: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for name in _FIGURES:
        table.add_column(name, justify="right")
    return table


def _share(survey: Surveyed, number: int) -> str:
    """The bound over the time of a call, at its first kernel."""
    return f"{survey.share:.0%}" if number == 0 and survey.share else ""


def _cells(kernel: KernelFacts) -> tuple[str, ...]:
    return (
        str(kernel.registers),
        str(kernel.spills),
        size(kernel.lds_bytes),
        f"{kernel.waves:g}",
        seconds(kernel.seconds),
        kernel.limiter or kernel.why_not,
    )


def document(surveys: Iterable[Surveyed]) -> dict[str, Any]:
    """Surveyed calls as JSON-ready values, schema `wavecast.ops/1`."""
    calls = [
        OperatorCallJson.of(
            survey, kernels=[OperatorKernelJson.of(kernel) for kernel in survey.kernels]
        )
        for survey in surveys
    ]
    return json_objects.values(OpsDocument(calls=calls))


def from_document(stored: Mapping[str, Any]) -> tuple[Surveyed, ...]:
    """What `document` was given. Raises InputError for something else."""
    try:
        if stored["schema"] != _SCHEMA:
            raise KeyError(stored["schema"])
        surveys = []
        for call in stored["calls"]:
            rest = {k: v for k, v in call.items() if k not in ("seconds", "share", "kernels")}
            kernels = tuple(KernelFacts(**kernel) for kernel in call["kernels"])
            surveys.append(Surveyed(**rest, kernels=kernels))
    except (KeyError, TypeError) as error:
        raise InputError(f"no survey of operators ({_SCHEMA}): {error!r}") from None
    return tuple(surveys)


def page(operator: Operator, family: str, surveys: Sequence[Surveyed]) -> str:
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
    mine = [survey for survey in surveys if survey.operator == operator.name]
    for sizes in operator.shapes:
        rows = [survey for survey in mine if dict(survey.sizes) == dict(sizes)]
        if rows:
            parts.append(f"## {_sizes(sizes)}\n\n{_table(rows)}")
    return "\n\n".join(part for part in parts if part) + "\n"


def index(operators: Sequence[Operator], families: Sequence[str]) -> str:
    """The page that lists the others."""
    rows = [
        f"| [{operator.name}]({operator.name}.md) | {family} | {operator.summary} |"
        for operator, family in zip(operators, families, strict=True)
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
    for survey in rows:
        if survey.failure:
            lines.append(f"| {survey.device} | {survey.failure} | | | | | | | | |")
        for number, kernel in enumerate(survey.kernels):
            share = f"{survey.share:.0%}" if number == 0 and survey.share else ""
            device = survey.device if number == 0 else ""
            cells = (device, kernel.kernel, kernel.configuration, *_cells(kernel), share)
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _sizes(sizes: Sizes) -> str:
    return " ".join(f"{name}={value}" for name, value in sizes.items())


def _dtypes(operator: Operator) -> list[str]:
    """The values of every size that names a dtype."""
    dtypes: dict[str, None] = {}
    for sizes in (*operator.cases, *operator.thorough):
        for name, value in sizes.items():
            if "dtype" in name and isinstance(value, str):
                dtypes.setdefault(value)
    return list(dtypes)


__all__ = ["document", "from_document", "index", "page", "render"]
