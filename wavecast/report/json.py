"""A report as JSON, schema `wavecast.explain/1`.

The document is deterministic: keys stand in one order, there is no time stamp, and a figure that is
unknown, infinite or not a number is null. `schema()` is the JSON Schema it follows.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from wavecast.report import summary
from wavecast.report.entry import kernel_entry
from wavecast.report.entry_values import number
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.pipeline.result import Explanation, Report

SCHEMA = "wavecast.explain/1"


def document(report: Report) -> dict[str, Any]:
    """The report as plain dicts, lists, strings and numbers."""
    groups = summary.groups(report)
    labels = {id(e): group.label for group in groups for e in group.explanations}
    return {
        "schema": SCHEMA,
        "wavecast": __version__,
        "inputs": list(report.inputs),
        "notes": list(report.notes),
        "failures": [
            {
                "kernel": failure.kernel,
                "arch": failure.target,
                "stage": failure.stage,
                "message": failure.message,
                "hint": failure.hint,
            }
            for failure in report.failures
        ],
        "choices": [
            {**asdict(choice), "seconds": number(choice.seconds)} for choice in report.choices
        ],
        "comparison": [
            {
                "label": group.label,
                "kernel": group.kernel,
                "entries": [_comparison_entry(e) for e in group.explanations],
            }
            for group in groups
        ],
        "kernels": [kernel_entry(e, labels[id(e)]) for e in report.explanations],
    }


def dumps(report: Report, *, indent: int | None = 2) -> str:
    """The document as JSON text, without NaN or Infinity."""
    return json.dumps(document(report), indent=indent, ensure_ascii=False, allow_nan=False)


@cache
def _schema_text() -> str:
    return (resources.files("wavecast.report") / "schema" / "explain-1.json").read_text(
        encoding="utf-8"
    )


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of `document`, a fresh copy."""
    return json.loads(_schema_text())


def _comparison_entry(explanation: Explanation) -> dict[str, Any]:
    analysis, roofline = explanation.analysis, explanation.roofline
    registers, occupancy = analysis.registers, analysis.occupancy
    loop = summary.main_loop(analysis)
    found = explanation.predicted.prediction
    return {
        "arch": explanation.device.target,
        "device": explanation.device.name,
        "vgpr": registers.vgpr,
        "agpr": registers.agpr,
        "sgpr": registers.sgpr,
        "spilled": registers.spilled,
        "lds_bytes": analysis.lds_bytes,
        "waves_per_simd": occupancy.waves_per_simd,
        "occupancy_limiter": occupancy.limiter,
        "main_loop": None
        if loop is None
        else {
            "line": summary.line_of(loop.location),
            "limiter": loop.limiter,
            "cycles": number(max(loop.cycles.values(), default=None)),
        },
        "bound": roofline.bound,
        "floor_seconds": number(roofline.floor_seconds),
        "sustained_seconds": number(roofline.sustained_seconds),
        "predicted_seconds": number(found.seconds if found else None),
        "predicted_low": number(found.low if found else None),
        "predicted_high": number(found.high if found else None),
        "limiter": found.limiter if found else "",
        "findings": summary.severity_counts(explanation.findings),
    }
