"""The plan of an instruction, by its format: vector, matrix, pair, scalar or memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from wavecast.isa.encoding.formats import Format
from wavecast.isa.encoding.matrix_plans import MfmaPlanBuilder, WmmaPlanBuilder
from wavecast.isa.encoding.memory_plans import ScalarMemoryPlanBuilder, VectorMemoryPlanBuilder
from wavecast.isa.encoding.opcodes import EncodedRow
from wavecast.isa.encoding.pair_plans import PairPlanBuilder
from wavecast.isa.encoding.plan_builder import PlanBuilder
from wavecast.isa.encoding.scalar_plans import ScalarPlanBuilder
from wavecast.isa.encoding.text_plan import TextPlan
from wavecast.isa.encoding.vector_plans import VectorPlanBuilder

_BY_FORM: Final[Mapping[str, type[PlanBuilder]]] = {
    "MFMA": MfmaPlanBuilder,
    "WMMA": WmmaPlanBuilder,
}
"""Builders of rows whose form decides more than their format."""
_BY_FORMAT: Final[Mapping[str, type[PlanBuilder]]] = {
    **dict.fromkeys(("VOP1", "VOP2", "VOPC", "VOP3", "VOP3P"), VectorPlanBuilder),
    **dict.fromkeys(("SOP1", "SOP2", "SOPC", "SOPK", "SOPP"), ScalarPlanBuilder),
    **dict.fromkeys(("DS", "FLAT", "GLOBAL", "SCRATCH"), VectorMemoryPlanBuilder),
    **dict.fromkeys(("MUBUF", "VIMAGE"), VectorMemoryPlanBuilder),
    "SMEM": ScalarMemoryPlanBuilder,
}


@cache
def plan(
    target: str, wave_lanes: int, shape: Format, encoded: EncodedRow, following: str
) -> TextPlan:
    """The plan of a row in a format, with the word `following` it (`DPP`, `DPP8`, `DPP8_FI`,
    `SDWA` or "")."""
    builder = _BY_FORM.get(encoded.row.form) or _BY_FORMAT[shape.name]
    return builder(target, wave_lanes, shape, encoded, following).build()


@cache
def pair_plan(
    target: str, wave_lanes: int, shape: Format, encoded: EncodedRow, half: str
) -> TextPlan:
    """The plan of one half (`x` or `y`) of a pair."""
    return PairPlanBuilder(target, wave_lanes, shape, encoded, half).build()
