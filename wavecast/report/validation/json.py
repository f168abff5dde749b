"""A validation as JSON, schema `wavecast.validate/1` (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from wavecast import json_objects
from wavecast.documents.validate import (
    CaseJson,
    CoverageJson,
    DatasetFileJson,
    PropertyChoiceJson,
    RankingJson,
    ScoreJson,
    ValidateDocument,
)
from wavecast.json_schema import json_schema
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.benchmarking.accuracy.outcome import ScoredProblem
    from wavecast.benchmarking.accuracy.result import Validation
    from wavecast.benchmarking.accuracy.scores import ScoreRow


def document(validation: Validation, *, cases: bool = False) -> dict[str, Any]:
    """The scores, and with `cases` every problem too; unknown figures are null."""
    return json_objects.values(
        ValidateDocument(
            wavecast=__version__,
            files=[DatasetFileJson.of(file, path=str(file.path)) for file in validation.files],
            scores=[_score(row) for row in validation.scores],
            rankings=[RankingJson.of(row) for row in validation.rankings],
            choices=[PropertyChoiceJson.of(row) for row in validation.choices],
            coverage=[CoverageJson.of(row) for row in validation.coverage],
            figures=[*validation.figure_scores],
            worst={op: [_case(o) for o in outcomes] for op, outcomes in validation.worst.items()},
            cases=[_case(outcome) for outcome in validation.outcomes] if cases else UNSET,
        )
    )


def dumps(validation: Validation, *, cases: bool = False) -> str:
    """The document as JSON text."""
    indent = None if cases else 2
    return json_objects.dumps(document(validation, cases=cases), indent=indent) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of documents."""
    return json_schema(ValidateDocument)


def _score(row: ScoreRow) -> ScoreJson:
    score = row.score
    return ScoreJson.of(
        score.error,
        op=row.op,
        by=row.by,
        value=row.value,
        coverage=score.coverage,
        baselines={**score.baselines},
    )


def _case(outcome: ScoredProblem) -> CaseJson:
    prediction, case = outcome.prediction, outcome.case
    return CaseJson.of(
        prediction,
        dataset=outcome.dataset,
        op=outcome.op_class,
        problem=str(case.op),
        device=case.device,
        labels=outcome.labels,
        group=case.group,
        source=case.source,
        repeats=outcome.repeats,
        measured=outcome.measured,
        predicted=prediction.seconds,
        assumed={name: _scalar(value) for name, value in prediction.assumed.items()},
        baselines=outcome.baselines,
    )


def _scalar(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


__all__ = ["document", "dumps", "schema"]
