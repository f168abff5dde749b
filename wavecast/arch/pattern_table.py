"""Facts by name of a target or generation, in TOML: one table per fact.

`meaning`, `status` (`quantity.STATUSES`) and `source` (keys of `sources.toml`) describe a fact;
`values` has it by pattern (`gfx94*`), `default` is for names that no pattern matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from wavecast.arch.quantity import STATUSES
from wavecast.arch.reader import citations

Rows = Mapping[str, Mapping[str, Any]]

_COLUMNS = {"meaning", "status", "source", "default", "values"}


def read(path: Path, names: Iterable[str]) -> Rows:
    """The rows of a table by fact. Raises ValueError for facts other than `names`, and for a row
    that is incomplete or has an unknown status or source."""
    import tomllib

    rows = tomllib.loads(path.read_text(encoding="utf-8"))
    facts = set(names)
    if set(rows) != facts:
        raise ValueError(f"{path.name}: missing or unknown facts {sorted(set(rows) ^ facts)}")
    for name, row in rows.items():
        if set(row) != _COLUMNS:
            raise ValueError(f"{path.name}, {name}: expected {', '.join(sorted(_COLUMNS))}")
        check(f"{path.name}, {name}", row)
    return rows


def check(where: str, row: Mapping[str, Any]) -> None:
    """Raises ValueError, whose message begins with `where`, for an unknown status or source."""
    cited = [row["source"]] if isinstance(row["source"], str) else row["source"]
    unknown = [key for key in cited if key not in citations()]
    if unknown or row["status"] not in STATUSES:
        raise ValueError(f"{where}: unknown source or status {unknown}")


def value(row: Mapping[str, Any], name: str) -> Any:
    """The value of the longest pattern that matches `name`; lists become tuples."""
    matching = [pattern for pattern in row["values"] if fnmatchcase(name, pattern)]
    best = max(matching, key=lambda pattern: len(pattern.replace("*", "")), default=None)
    cell = row["default"] if best is None else row["values"][best]
    return tuple(cell) if isinstance(cell, list) else cell


__all__ = ["Rows", "check", "read", "value"]
