"""Rules: a list, explanations, the page of the docs, JSON."""

from __future__ import annotations

from collections.abc import Sequence

from wavecast.rules import Rule


def markdown(rules: Sequence[Rule]) -> str:
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


def document(entry: Rule) -> dict[str, str]:
    """A rule as JSON-ready values."""
    return {
        "name": entry.name,
        "severity": entry.severity,
        "title": entry.title,
        "explanation": entry.explanation,
    }


def explanation(entry: Rule) -> str:
    """A rule with its explanation."""
    return f"{entry.name} ({entry.severity}): {entry.title}\n\n{entry.explanation}"


def table(rules: Sequence[Rule]) -> str:
    """A line per rule."""
    width = max(len(entry.name) for entry in rules)
    return "\n".join(
        f"{entry.name:<{width}}  {entry.severity:<7}  {entry.title}" for entry in rules
    )


__all__ = ["document", "explanation", "markdown", "table"]
