"""What a change of a deployed model is worth, end to end: both deployments are predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wavecast.arch.systems import System
from wavecast.errors import WavecastError
from wavecast.systems.answer import Deployment, ModelAnswer, answer
from wavecast.systems.changes import ModelChange, check_names, together
from wavecast.systems.graph import MODULES
from wavecast.systems.huggingface import ModelConfig
from wavecast.systems.serving import Load
from wavecast.systems.speedup import ChangedServing, compare_serving


@dataclass(frozen=True, slots=True)
class ChangedModel:
    """A change and what it does: one entry of `servings` per load. `why_not` says why there are
    none, else it is empty."""

    change: ModelChange
    answer: ModelAnswer | None
    servings: tuple[ChangedServing, ...]
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class ModelWhatIf:
    """A deployed model and changes of it: each by itself, then all `together` if there are
    several."""

    before: ModelAnswer
    changes: tuple[ChangedModel, ...]
    together: ChangedModel | None


def what_if(
    config: ModelConfig,
    system: System,
    deployment: Deployment,
    loads: tuple[Load, ...],
    before: ModelAnswer,
    changes: Sequence[ModelChange],
) -> ModelWhatIf:
    """Predict changes of a deployment whose answer to the loads is `before`.

    Raises UnknownName for a change of a module or kernel that no step has. A change that is
    impossible is a `ChangedModel` with a reason.
    """
    check_names(changes, names(before))

    def predict_change(change: ModelChange) -> ChangedModel:
        return predict(config, system, deployment, loads, before, change)

    every = predict_change(together(changes)) if len(changes) > 1 else None
    return ModelWhatIf(before, tuple(map(predict_change, changes)), every)


def names(model_answer: ModelAnswer) -> tuple[str, ...]:
    """The modules and kernels of the steps of an answer."""
    kernels = (k for s in model_answer.servings for k in (*s.kernels, *s.prefill_kernels))
    return tuple(dict.fromkeys([*MODULES, *(kernel.priced.node.name for kernel in kernels)]))


def predict(
    config: ModelConfig,
    system: System,
    deployment: Deployment,
    loads: tuple[Load, ...],
    before: ModelAnswer,
    change: ModelChange,
) -> ChangedModel:
    """A change of a deployment whose answer to the loads is `before`."""
    try:
        after = answer(config, *change.apply(system, deployment), loads)
    except WavecastError as error:
        return ChangedModel(change, None, (), error.message)
    if after.why_not or before.why_not:
        return ChangedModel(change, after, (), after.why_not or "it does not fit before the change")
    pairs = zip(before.servings, after.servings, strict=True)
    gpus = before.parallel.gpus / after.parallel.gpus
    return ChangedModel(change, after, tuple(compare_serving(old, new, gpus) for old, new in pairs))


__all__ = [
    "ChangedModel",
    "ModelWhatIf",
    "names",
    "predict",
    "what_if",
]
