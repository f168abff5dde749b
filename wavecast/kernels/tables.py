"""Configurations found by tuning for the named targets, shipped with the package.

`tables/<device id>.json` holds, per kernel text and class of problems, the best configuration and
the predicted time of the operator it was found in. `wavecast ops --tune` writes them; an entry of
another kernel text than the one here does not count.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

from wavecast import arch, files
from wavecast.arch import Device
from wavecast.compile.configuration import Configuration
from wavecast.kernels.spec import KernelSpec, Problem

SCHEMA = "wavecast.kernels/1"


@dataclass(frozen=True, slots=True)
class TunedEntry:
    """One row: `source` names the kernel's text, `problem` the tuning key (`KernelSpec.key`).
    `seconds` are predicted for the operator in this configuration, `formula_seconds` in the one
    that the formula ranks first (None where that has no time)."""

    kernel: str
    source: str
    problem: Mapping[str, Any]
    configuration: Configuration
    seconds: float
    formula_seconds: float | None

    @property
    def key(self) -> tuple[str, str]:
        """What the entry is looked up by."""
        return self.kernel, _frozen(self.problem)


def shipped_folder() -> Path:
    """The folder of the tables that come with the package."""
    return Path(str(resources.files("wavecast.kernels"))) / "tables"


def find(kernel: Any, spec: KernelSpec, problem: Problem, device: Device) -> Configuration | None:
    """The table's configuration for a problem, None where it has none for this kernel text.

    A device without a table takes that of the usual device of its target, where both have as many
    compute units: what then differs is memory and clock.
    """
    rows = table(device.id)
    if not rows:
        usual = arch.load(device.target)
        if usual.compute_units == device.compute_units:
            rows = table(usual.id)
    if not rows:
        return None
    entry = rows.get((spec.name, _frozen(dict(spec.key(problem)))))
    if entry is None or entry.source != source(kernel):
        return None
    return entry.configuration


@cache
def table(device: str) -> Mapping[tuple[str, str], TunedEntry]:
    """The shipped table of a device, empty where there is none."""
    return _read(shipped_folder() / f"{device}.json")


def _read(path: Path) -> Mapping[tuple[str, str], TunedEntry]:
    if not path.is_file():
        return {}
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["schema"] == SCHEMA, f"{path}: schema {document['schema']}"
    entries = {}
    for row in document["entries"]:
        entry = TunedEntry(**{**row, "configuration": Configuration.of(row["configuration"])})
        entries[entry.key] = entry
    return entries


def store(device: str, entries: Iterable[TunedEntry], folder: Path | None = None) -> Path:
    """Write a table: the given entries, and those of the folder and of the package for other
    kernels and problems whose kernel text is that of one given or was not tuned now."""
    folder = folder or shipped_folder()
    folder.mkdir(exist_ok=True)
    path = folder / f"{device}.json"
    updates = {entry.key: entry for entry in entries}
    texts = {entry.kernel: entry.source for entry in updates.values()}
    others = {
        key: entry
        for key, entry in {**table(device), **_read(path)}.items()
        if texts.get(entry.kernel, entry.source) == entry.source
    }
    rows = [
        json.dumps({**asdict(entry), "configuration": entry.configuration.settings})
        for _, entry in sorted({**others, **updates}.items())
    ]
    head = f'{{"schema": "{SCHEMA}", "device": "{device}", "entries": [\n'
    files.write_atomic(path, head + ",\n".join(rows) + "\n]}\n", durable=True)
    table.cache_clear()
    return path


def source(kernel: Any) -> str:
    """A hash of the text of a `triton.jit` function, of the functions it calls and of the constants
    they use. It does not depend on modules and line numbers, as Triton's own key does."""
    texts: set[str] = set()
    functions = [kernel]
    for function in functions:
        name = function.fn.__qualname__
        texts.add(f"{name}\n{function.src}")
        for global_name, value in _referenced_globals(function.fn):
            if hasattr(value, "src") and hasattr(value, "fn"):
                if not any(value is other for other in functions):
                    functions.append(value)
            elif hasattr(value, "value") or isinstance(value, (int, float, str)):
                texts.add(f"{name} {global_name}\n{getattr(value, 'value', value)!r}")
    return sha256("\n".join(sorted(texts)).encode()).hexdigest()[:16]


def _referenced_globals(function: Any) -> Iterator[tuple[str, Any]]:
    """The globals a function names, and what it names of modules of this package."""
    names = function.__code__.co_names
    for name in names:
        value = function.__globals__.get(name)
        yield name, value
        if isinstance(value, ModuleType) and value.__name__.startswith("wavecast."):
            yield from ((attribute, getattr(value, attribute, None)) for attribute in names)


def _frozen(problem: Mapping[str, Any]) -> str:
    return json.dumps(problem, sort_keys=True)
