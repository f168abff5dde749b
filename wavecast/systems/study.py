"""Everything that is asked about a model on systems, in one result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wavecast.arch.systems import System
from wavecast.systems.answer import Deployment, ModelAnswer, answer
from wavecast.systems.changes import ModelChange
from wavecast.systems.comparison import ComparedSystem, compare_systems
from wavecast.systems.economy import Economy, TokenCost, token_cost
from wavecast.systems.findings import ModelFindings, findings
from wavecast.systems.huggingface import ModelConfig
from wavecast.systems.serving import Load
from wavecast.systems.whatif import ModelWhatIf, what_if


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyQuestions:
    """What is asked in addition to the answers: `changes` to predict, whether to `compare` the
    systems and to look for `findings`, and the `economy` of tokens."""

    changes: tuple[ModelChange, ...] = ()
    compare: bool = False
    findings: bool = False
    economy: Economy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStudy:
    """`answers`, one per system. `what_ifs`, `compared`, `findings` and `costs` (per system, one
    per load) have an entry per system where they were asked for, else none."""

    answers: tuple[ModelAnswer, ...]
    what_ifs: tuple[ModelWhatIf, ...] = ()
    compared: tuple[ComparedSystem, ...] = ()
    findings: tuple[ModelFindings, ...] = ()
    costs: tuple[tuple[TokenCost, ...], ...] = ()


def study(
    config: ModelConfig,
    deployments: Sequence[tuple[System, Deployment]],
    loads: tuple[Load, ...],
    questions: StudyQuestions,
) -> ModelStudy:
    """A model on every system under every load. Raises as `answer` and `what_if`."""
    answers: list[ModelAnswer] = []
    what_ifs: list[ModelWhatIf] = []
    model_findings: list[ModelFindings] = []
    for system, deployment in deployments:
        before = answer(config, system, deployment, loads)
        answers.append(before)
        if questions.changes:
            changes = questions.changes
            what_ifs.append(what_if(config, system, deployment, loads, before, changes))
        if questions.findings:
            model_findings.append(findings(config, system, deployment, loads, before))
    economy = questions.economy
    return ModelStudy(
        answers=tuple(answers),
        what_ifs=tuple(what_ifs),
        compared=compare_systems(answers) if questions.compare else (),
        findings=tuple(model_findings),
        costs=()
        if economy is None
        else tuple(tuple(token_cost(a, s, economy) for s in a.servings) for a in answers),
    )


__all__ = ["ModelStudy", "StudyQuestions", "study"]
