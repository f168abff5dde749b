"""A validation as JSON, schema `wavecast.validate/1`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.bench.accuracy.outcome import ScoredProblem
    from wavecast.bench.accuracy.result import FigureScore, Validation
    from wavecast.bench.accuracy.scores import ErrorScore, ScoreRow

SCHEMA = "wavecast.validate/1"


def document(validation: Validation, *, cases: bool = False) -> dict[str, Any]:
    """The scores, and with `cases` every problem too; unknown figures are null."""
    found = {
        "schema": SCHEMA,
        "wavecast": __version__,
        "files": [{**asdict(file), "path": str(file.path)} for file in validation.files],
        "scores": [_score(row) for row in validation.scores],
        "rankings": [asdict(row) for row in validation.rankings],
        "choices": [asdict(row) for row in validation.choices],
        "coverage": [asdict(row) for row in validation.coverage],
        "figures": [_figure(row) for row in validation.figure_scores],
        "worst": {op: [_case(o) for o in outcomes] for op, outcomes in validation.worst.items()},
    }
    if cases:
        found["cases"] = [_case(outcome) for outcome in validation.outcomes]
    return _finite(found)


def dumps(validation: Validation, *, cases: bool = False) -> str:
    """The document as JSON text."""
    text = document(validation, cases=cases)
    return json.dumps(text, indent=None if cases else 2, ensure_ascii=False, allow_nan=False) + "\n"


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of documents."""
    path = resources.files("wavecast.report") / "schema" / "validate-1.json"
    return json.loads(path.read_text(encoding="utf-8"))


def _score(row: ScoreRow) -> dict[str, Any]:
    return {
        "op": row.op,
        "by": row.by,
        "value": row.value,
        **_error(row.score.error),
        "coverage": row.score.coverage,
        "baselines": {name: _error(error) for name, error in row.score.baselines.items()},
    }


def _figure(row: FigureScore) -> dict[str, Any]:
    return {**asdict(row), "error": None if row.error is None else _error(row.error)}


def _error(error: ErrorScore) -> dict[str, Any]:
    found = asdict(error)
    found["spread"] = found.pop("log2_sigma")
    return found


def _case(outcome: ScoredProblem) -> dict[str, Any]:
    prediction, case = outcome.prediction, outcome.case
    return {
        "dataset": outcome.dataset,
        "op": outcome.op_class,
        "problem": str(case.op),
        "device": case.device,
        "labels": dict(outcome.labels),
        "group": case.group,
        "source": case.source,
        "repeats": outcome.repeats,
        "measured": outcome.measured,
        "predicted": prediction.seconds,
        "low": prediction.low,
        "high": prediction.high,
        "limiter": prediction.limiter,
        "fidelity": prediction.fidelity,
        "bounds": dict(prediction.bounds),
        "assumed": {name: _plain(value) for name, value in prediction.assumed.items()},
        "notes": list(prediction.notes),
        "baselines": dict(outcome.baselines),
    }


def _plain(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def _finite(value: Any) -> Any:
    """`value` with null for numbers JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_finite(item) for item in value]
    return value
