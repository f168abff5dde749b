"""`wavecast rules`: the findings wavecast looks for, from the registry."""

from __future__ import annotations

import json

import click

from wavecast import rules as registry
from wavecast.rules import Rule


@click.command("rules")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="Output format.",
)
def command(names: tuple[str, ...], form: str) -> None:
    """List the rules, or explain those named."""
    chosen = tuple(registry.rule(name) for name in names) if names else registry.all_rules()
    if form == "json":
        click.echo(json.dumps([_document(entry) for entry in chosen], indent=2))
    elif form == "markdown":
        click.echo(markdown(chosen), nl=False)
    elif names:
        click.echo("\n\n".join(_explained(entry) for entry in chosen))
    else:
        click.echo(_table(chosen))


def markdown(rules: tuple[Rule, ...]) -> str:
    """The rules as a Markdown page."""
    parts = [
        "# Rules\n\nWhat `wavecast explain` looks for. This page is the output of "
        "`wavecast rules --format markdown`.\n",
        "| rule | severity | title |\n|---|---|---|",
        *(
            f"| [{entry.name}](#{entry.name}) | {entry.severity} | {entry.title} |"
            for entry in rules
        ),
    ]
    for entry in rules:
        parts.append(
            f"\n## {entry.name}\n\n**{entry.title}** ({entry.severity})\n\n{entry.explanation}"
        )
    return "\n".join(parts) + "\n"


def _document(entry: Rule) -> dict[str, str]:
    return {
        "name": entry.name,
        "severity": entry.severity,
        "title": entry.title,
        "explanation": entry.explanation,
    }


def _explained(entry: Rule) -> str:
    return f"{entry.name} ({entry.severity}): {entry.title}\n\n{entry.explanation}"


def _table(rules: tuple[Rule, ...]) -> str:
    width = max(len(entry.name) for entry in rules)
    return "\n".join(
        f"{entry.name:<{width}}  {entry.severity:<7}  {entry.title}" for entry in rules
    )
