"""Every document with a schema, by the schema's name."""

from __future__ import annotations

from wavecast.bench.gate.baseline import BaselineDocument
from wavecast.documents.arch import ArchDocument
from wavecast.documents.base import JsonObject
from wavecast.documents.check import CheckDocument
from wavecast.documents.collectives import CollectivesDocument
from wavecast.documents.compare import CompareDocument
from wavecast.documents.diff import BisectDocument, DiffDocument
from wavecast.documents.engine import EngineDocument
from wavecast.documents.explain import ExplainDocument
from wavecast.documents.export import ExportDocument
from wavecast.documents.gate import GateDocument
from wavecast.documents.graph import GraphDocument
from wavecast.documents.history import HistoryDocument
from wavecast.documents.inventory import InventoryDocument
from wavecast.documents.lab import (
    LabCompilersDocument,
    LabPassesDocument,
    LabScheduleDocument,
    LabTuneDocument,
)
from wavecast.documents.operation import OperationDocument
from wavecast.documents.ops import OpsDocument
from wavecast.documents.profile import ProfileDocument
from wavecast.documents.schema import name_of
from wavecast.documents.system import SystemDocument
from wavecast.documents.system_search import ModelSearchDocument
from wavecast.documents.trace import TraceDocument
from wavecast.documents.training import TrainingDocument
from wavecast.documents.validate import ValidateDocument
from wavecast.lab.saved import LabSettingsDocument
from wavecast.tune.document import TuneDocument


def documents() -> dict[str, type[JsonObject]]:
    """Documents by the name of their schema, `wavecast.explain/1`."""
    known: tuple[type[JsonObject], ...] = (
        ExplainDocument,
        OperationDocument,
        SystemDocument,
        ModelSearchDocument,
        TrainingDocument,
        CollectivesDocument,
        GraphDocument,
        CheckDocument,
        TraceDocument,
        ValidateDocument,
        ProfileDocument,
        CompareDocument,
        HistoryDocument,
        GateDocument,
        BaselineDocument,
        DiffDocument,
        BisectDocument,
        OpsDocument,
        EngineDocument,
        TuneDocument,
        LabPassesDocument,
        LabCompilersDocument,
        LabScheduleDocument,
        LabTuneDocument,
        LabSettingsDocument,
        ExportDocument,
        ArchDocument,
        InventoryDocument,
    )
    return {name_of(document): document for document in known}


__all__ = ["documents"]
