"""Of autotuned calls the configuration with the shortest prediction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wavecast.compile.codeobject import Argument
from wavecast.pipeline.explain.choosing import best


@dataclass
class _Thing:
    """Stands for explanations and what they hold: choosing reads few of their fields."""

    fields: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return self.fields[name]


def _explained(
    kernel: str, configuration: str, seconds: float | None, device: str = "mi300x", size: int = 8
) -> Any:
    arguments = (
        Argument("x", "tensor", dtype="float32", shape=(size,), storage=1),
        Argument("EVEN", "constant", value=configuration),
    )
    launch = _Thing({"configuration": configuration, "arguments": arguments})
    prediction = None if seconds is None else _Thing({"seconds": seconds, "limiter": "memory"})
    predicted = _Thing({"prediction": prediction, "why_not": "" if seconds else "a loop"})
    return _Thing(
        {
            "code": _Thing({"kernel": kernel}),
            "device": _Thing({"id": device}),
            "launch": launch,
            "predicted": predicted,
        }
    )


def _kept(explanations: list[Any]) -> list[tuple[str, str]]:
    return [(e.code.kernel, e.launch.configuration) for e in best(explanations).explanations]


def test_the_fastest_of_a_call_is_kept_and_others_are_listed() -> None:
    found = best([_explained("k", "A", 3.0), _explained("k", "B", 1.0), _explained("k", "C", 2.0)])
    assert [e.launch.configuration for e in found.explanations] == ["B"]
    listed = [(c.configuration, c.seconds, c.chosen) for c in found.choices]
    assert listed == [("B", 1.0, True), ("C", 2.0, False), ("A", 3.0, False)]


def test_calls_and_devices_are_told_apart() -> None:
    calls = [
        _explained("k", "A", 3.0),
        _explained("k", "B", 1.0),
        _explained("k", "A", 1.0, size=16),
        _explained("k", "B", 3.0, size=16),
        _explained("k", "A", 1.0, device="mi355x", size=16),
    ]
    assert _kept(calls) == [("k", "B"), ("k", "A"), ("k", "A")]


def test_a_configuration_that_comes_again_is_another_call() -> None:
    calls = [_explained("k", c, s) for c, s in (("A", 2.0), ("B", 1.0), ("A", 1.0), ("B", 2.0))]
    assert _kept(calls) == [("k", "B"), ("k", "A")]


def test_kernels_without_configurations_stay() -> None:
    assert _kept([_explained("k", "", 1.0), _explained("k", "", 2.0)]) == [("k", ""), ("k", "")]


def test_without_predictions_the_first_stays_and_says_why() -> None:
    found = best([_explained("k", "A", None), _explained("k", "B", None)])
    assert [e.launch.configuration for e in found.explanations] == ["A"]
    assert [c.why_not for c in found.choices] == ["a loop", "a loop"]
