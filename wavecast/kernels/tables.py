"""Configurations found by tuning for the named targets, shipped with the package.

`tables/<device id>.json` holds, per kernel text and class of problems, the best configuration and
its predicted time. `python -m wavecast.cli ops tune` writes them; an entry of another kernel text
than the one here does not count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from wavecast.arch import Device
from wavecast.kernels.configuration import Configuration
from wavecast.kernels.space import Problem, Space

SCHEMA = "wavecast.kernels/1"


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: `source` names the kernel's text, `problem` the class (`Space.key`), `seconds` the
    predicted time by `fidelity`."""

    kernel: str
    source: str
    problem: Mapping[str, Any]
    configuration: Configuration
    seconds: float
    fidelity: str


def find(kernel: Any, space: Space, problem: Problem, device: Device) -> Configuration | None:
    """The table's configuration for a problem, None where it has none for this kernel text."""
    rows = table(device.id)
    if not rows:
        return None
    entry = rows.get((space.kernel, _frozen(dict(space.key(problem)))))
    if entry is None or entry.source != source(kernel):
        return None
    return entry.configuration


@cache
def table(device: str) -> Mapping[tuple, Entry]:
    """The shipped table of a device, empty where there is none."""
    path = resources.files("wavecast.kernels") / "tables" / f"{device}.json"
    if not path.is_file():
        return {}
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["schema"] == SCHEMA, f"{path}: schema {document['schema']}"
    found = {}
    for row in document["entries"]:
        entry = Entry(
            row["kernel"],
            row["source"],
            row["problem"],
            Configuration.of(row["configuration"]),
            row["seconds"],
            row["fidelity"],
        )
        found[entry.kernel, _frozen(entry.problem)] = entry
    return found


def source(kernel: Any) -> str:
    """What names the text of a `triton.jit` function and of all it calls."""
    return str(kernel.cache_key)[:16]


def _frozen(problem: Mapping[str, Any]) -> str:
    return json.dumps(problem, sort_keys=True)


__all__ = ["SCHEMA", "Entry", "find", "source", "table"]
