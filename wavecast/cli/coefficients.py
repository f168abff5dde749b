"""`wavecast coefficients`: every fitted, measured or assumed number of the model."""

from __future__ import annotations

import json

import click

from wavecast.perfmodel import coefficients as table
from wavecast.perfmodel.coefficients import Coefficient


@click.command("coefficients")
@click.argument("families", nargs=-1, metavar="[FAMILY]...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="Output format.",
)
def command(families: tuple[str, ...], form: str) -> None:
    """List the model's coefficients with their values by chip, unit, status and source."""
    chosen = {name: tuple(table.family(name).values()) for name in families or table.families()}
    if form == "json":
        rows = [_document(row) for family in chosen.values() for row in family]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif form == "markdown":
        click.echo(markdown(chosen), nl=False)
    else:
        for name, family in chosen.items():
            click.echo(name)
            for row in family:
                unit = "" if row.unit == "1" else f" {row.unit}"
                click.echo(f"  {row.name} = {_values(row)}{unit} ({_statuses(row)}): {row.meaning}")


def markdown(chosen: dict[str, tuple[Coefficient, ...]]) -> str:
    """The table as a Markdown page."""
    count = sum(len(family) for family in chosen.values())
    parts = [
        f"# Coefficients\n\nThe {count} numbers of the model that are not facts of a chip. This "
        "page is the output of `wavecast coefficients --format markdown`. A value belongs to a "
        "device, a target, a generation, to chips with a memory-side cache (`mall`), to a vendor "
        "or to all (`default`); `calibration/` refits what is fitted.\n"
    ]
    for name, family in chosen.items():
        parts.append(f"\n## {name}\n\n| name | value | unit | meaning | status | source |")
        parts.append("|---|---|---|---|---|---|")
        for row in family:
            cells = (row.name, _values(row), row.unit, row.meaning, _statuses(row), row.source)
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(parts) + "\n"


def _values(row: Coefficient) -> str:
    return ", ".join(
        f"{value:.4g}" if scope == "default" else f"{scope} {value:.4g}"
        for scope, value in row.values.items()
    )


def _statuses(row: Coefficient) -> str:
    return ", ".join([row.status, *(f"{scope} {own}" for scope, own in row.statuses.items())])


def _document(row: Coefficient) -> dict[str, object]:
    return {
        "family": row.family,
        "name": row.name,
        "values": dict(row.values),
        "unit": row.unit,
        "meaning": row.meaning,
        "status": row.status,
        "statuses": dict(row.statuses),
        "source": row.source,
    }
