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
    known = store.get(entry)
    if isinstance(known, tuple):
        return tuple(OperatorLine(*line) for line in known)
    from wavecast.kernels import registry

    found = tuple(
        OperatorLine(one.name, registry.family(one.name), one.summary, bool(one.gradient))
        for one in registry.own().values()
    )
    store.put(entry, [astuple(line) for line in found])
    return found


def _versions() -> list[str]:
    """Of what operators import; "" where it is not installed, which the registry refuses."""
    found = []
    for name in ("torch", "triton"):
        try:
            found.append(version(name))
        except PackageNotFoundError:
            found.append("")
    return found


def _sources() -> list[tuple[str, bytes]]:
    root = Path(__file__).parent
    return [(str(file.relative_to(root)), file.read_bytes()) for file in sorted(root.rglob("*.py"))]


__all__ = ["OperatorLine", "lines"]
