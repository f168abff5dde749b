"""Importers of files of measurements, by name; modules are imported when used.

Another distribution adds an importer with an entry point in the group `wavecast.importers`:

    [project.entry-points."wavecast.importers"]
    mine = "mine.wavecast:MyImporter"
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from wavecast import plugins
from wavecast.benchmarking.accuracy.importers.base import Importer
from wavecast.errors import InputError

GROUP: Final = "wavecast.importers"

BUILT_IN: Final[dict[str, str]] = {
    name: f"wavecast.benchmarking.accuracy.importers.{name}:{attribute}"
    for name, attribute in (
        ("conv_miopen", "ConvMiopen"),
        ("gemm_tensile", "GemmTensile"),
        ("gemm_tuned", "GemmTuned"),
        ("moe_tuned", "MoeTuned"),
        ("serving", "Serving"),
        ("training", "TrainingRuns"),
        ("general", "General"),
    )
}
"""Importers of this package."""


def all_importers() -> tuple[Importer, ...]:
    """All importers, those of the package first.

    Raises InputError for a plug-in that cannot be imported or is not an importer.
    """
    return tuple(importer(name) for name in plugins.names(GROUP, BUILT_IN))


def importer(name: str) -> Importer:
    """The importer with this name. Raises InputError as `registered`, KeyError for other names."""
    plugin = plugins.load(GROUP, BUILT_IN, name)
    if not (isinstance(plugin, type) and issubclass(plugin, Importer)):
        raise InputError(f"the plug-in {name} is not a subclass of {Importer.__qualname__}")
    return plugin()


def by_columns(importers: Sequence[Importer], columns: Collection[str], path: Path) -> Importer:
    """The importer that most of the columns identify; the first of equals.

    Raises InputError where no importer matches.
    """
    best = max(importers, key=lambda candidate: candidate.match(columns))
    if best.match(columns):
        return best
    raise InputError(
        f"{path}: no importer reads the columns {', '.join(sorted(columns)[:12])}",
        hint="docs/validate.md lists the columns of the general format",
    )


__all__ = ["BUILT_IN", "GROUP", "Importer", "all_importers", "by_columns", "importer"]
