"""What operators are called and compute, without importing them.

Operators are Python objects in files that import PyTorch and Triton. A list of them needs neither:
it is in the cache, under the content of those files.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from wavecast.compile.cache import DiskCache
from wavecast.compile.digest import key


@dataclass(frozen=True, slots=True)
class OperatorLine:
    """An operator of the package: its name, the folder it is in, its summary in a line, and whether
    it has a gradient."""

    name: str
    family: str
    summary: str
    gradient: bool


def lines() -> tuple[OperatorLine, ...]:
    """The operators of the package in alphabetical order. Raises MissingTool without PyTorch or
    Triton."""
    store = DiskCache()
    entry = key("operators", _versions(), _sources())
    rows = store.get(entry)
    if isinstance(rows, tuple):
        return tuple(OperatorLine(*line) for line in rows)
    from wavecast.kernels import registry

    catalogue = tuple(
        OperatorLine(
            operator.name, registry.family(operator.name), operator.summary, bool(operator.gradient)
        )
        for operator in registry.built_in_operators().values()
    )
    store.put(entry, [astuple(line) for line in catalogue])
    return catalogue


def _versions() -> list[str]:
    """Of what operators import; "" where it is not installed, which the registry refuses."""
    versions = []
    for name in ("torch", "triton"):
        try:
            versions.append(version(name))
        except PackageNotFoundError:
            versions.append("")
    return versions


def _sources() -> list[tuple[str, bytes]]:
    root = Path(__file__).parent
    return [(str(file.relative_to(root)), file.read_bytes()) for file in sorted(root.rglob("*.py"))]


__all__ = ["OperatorLine", "lines"]
