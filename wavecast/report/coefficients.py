"""Coefficients of the model: a list, the page of the docs, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wavecast.perfmodel.coefficients import Coefficient


def lines(chosen: Mapping[str, Sequence[Coefficient]]) -> Iterator[str]:
    """Every family, and a line per coefficient."""
    for name, family in chosen.items():
        yield name
        for row in family:
            unit = "" if row.unit == "1" else f" {row.unit}"
            yield f"  {row.name} = {_values(row)}{unit} ({_statuses(row)}): {row.meaning}"


def markdown(chosen: Mapping[str, Sequence[Coefficient]]) -> str:
    """The table as a Markdown page."""
    count = sum(len(family) for family in chosen.values())
    parts = [
        f"# Coefficients\n\nThe {count} numbers of the model that are not facts of a chip. This "
        "page is the output of `wavecast coefficients --format markdown`. A value belongs to a "
        "device, a target, a generation, to RDNA (`rdna`), to chips with a memory-side cache "
        "(`mall`), to a vendor or to all (`default`); `calibration/` refits what is fitted.\n"
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


def document(row: Coefficient) -> dict[str, object]:
    """A coefficient as JSON-ready values."""
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


__all__ = ["document", "lines", "markdown"]
