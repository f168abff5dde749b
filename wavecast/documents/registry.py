"""Every document with a schema, by the schema's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from wavecast.json_objects import JsonObject

_CLASSES: Final = {
    "wavecast.explain/1": "documents.explain.ExplainDocument",
    "wavecast.operation/1": "documents.operation.OperationDocument",
    "wavecast.system/1": "documents.system.SystemDocument",
    "wavecast.system-search/1": "documents.system_search.ModelSearchDocument",
    "wavecast.training/1": "documents.training.TrainingDocument",
    "wavecast.collectives/1": "documents.collectives.CollectivesDocument",
    "wavecast.chakra/1": "documents.chakra.ChakraDocument",
    "wavecast.graph/1": "documents.graph.GraphDocument",
    "wavecast.run/1": "documents.run.RunDocument",
    "wavecast.check/1": "documents.check.CheckDocument",
    "wavecast.trace/1": "documents.trace.TraceDocument",
    "wavecast.validate/1": "documents.validate.ValidateDocument",
    "wavecast.profile/1": "documents.profile.ProfileDocument",
    "wavecast.compare/1": "documents.compare.CompareDocument",
    "wavecast.history/1": "documents.history.HistoryDocument",
    "wavecast.gate/1": "documents.gate.GateDocument",
    "wavecast.baseline/1": "benchmarking.gate.baseline.BaselineDocument",
    "wavecast.diff/1": "documents.diff.DiffDocument",
    "wavecast.bisect/1": "documents.diff.BisectDocument",
    "wavecast.ops/1": "documents.ops.OpsDocument",
    "wavecast.engine/1": "documents.engine.EngineDocument",
    "wavecast.tune/1": "tuning.document.TuneDocument",
    "wavecast.lab.passes/1": "documents.lab.LabPassesDocument",
    "wavecast.lab.compilers/1": "documents.lab.LabCompilersDocument",
    "wavecast.lab.schedule/1": "documents.lab.LabScheduleDocument",
    "wavecast.lab.tune/1": "documents.lab.LabTuneDocument",
    "wavecast.lab.settings/1": "lab.saved.LabSettingsDocument",
    "wavecast.export/1": "documents.export.ExportDocument",
    "wavecast.arch/1": "documents.arch.ArchDocument",
    "wavecast.inventory/1": "documents.inventory.InventoryDocument",
}
"""The class of each document below `wavecast`: it is imported with the results that it holds when
it is used."""


class Documents(Mapping[str, type[JsonObject]]):
    """Documents by the name of their schema, `wavecast.explain/1`."""

    def __getitem__(self, name: str) -> type[JsonObject]:
        module, _, kind = _CLASSES[name].rpartition(".")
        return getattr(import_module(f"wavecast.{module}"), kind)

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


def documents() -> Documents:
    """All documents, in the order of docs/json.md."""
    return Documents()


__all__ = ["Documents", "documents"]
