"""Of every autotuned call the configuration with the shortest predicted time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wavecast.pipeline.explain.result import ConfigurationChoice, Explanation


@dataclass(frozen=True, slots=True)
class Chosen:
    """Explanations without the configurations that were not chosen, and all choices there were."""

    explanations: tuple[Explanation, ...]
    choices: tuple[ConfigurationChoice, ...]


def best(explanations: Iterable[Explanation]) -> Chosen:
    """The explanations of the best configurations; kernels that are not autotuned stay.

    Where no configuration of a call is predicted, its first one stays, and its choices say why.
    """
    results: list[Explanation] = []
    choices: list[ConfigurationChoice] = []
    for group in _calls(explanations):
        if not _configuration(group[0]):
            results.extend(group)
            continue
        fastest = min(group, key=_seconds)
        results.append(fastest)
        ordered = sorted(group, key=_seconds)
        choices.extend(_choice(explanation, explanation is fastest) for explanation in ordered)
    return Chosen(tuple(results), tuple(choices))


def _calls(explanations: Iterable[Explanation]) -> list[list[Explanation]]:
    """Explanations by call: configurations with the same arguments, each once."""
    groups: list[list[Explanation]] = []
    for explanation in explanations:
        last = groups[-1] if groups else []
        if last and _same_call(last, explanation):
            last.append(explanation)
        else:
            groups.append([explanation])
    return groups


def _same_call(group: Sequence[Explanation], other: Explanation) -> bool:
    first = group[0]
    return (
        bool(_configuration(other))
        and first.code.kernel == other.code.kernel
        and first.device.id == other.device.id
        and _configuration(other) not in {_configuration(member) for member in group}
        and _arguments(first) == _arguments(other)
    )


def _arguments(explanation: Explanation) -> list[tuple]:
    """What the call passed, but for constants: heuristics make some of the configuration."""
    launch = explanation.launch
    arguments = launch.arguments if launch else ()
    return [
        (item.name, item.kind, item.dtype, item.shape, item.strides, item.storage, item.value)
        for item in arguments
        if item.kind != "constant"
    ]


def _configuration(explanation: Explanation) -> str:
    return explanation.launch.configuration if explanation.launch else ""


def _seconds(explanation: Explanation) -> float:
    prediction = explanation.predicted.prediction
    return prediction.seconds if prediction else float("inf")


def _choice(explanation: Explanation, is_best: bool) -> ConfigurationChoice:
    prediction = explanation.predicted.prediction
    return ConfigurationChoice(
        explanation.code.kernel,
        explanation.device.id,
        _configuration(explanation),
        prediction.seconds if prediction else None,
        prediction.limiter if prediction else "",
        explanation.predicted.why_not,
        is_best,
    )


__all__ = ["Chosen", "best"]
