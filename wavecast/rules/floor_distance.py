"""Time above the roofline that no other finding explains: what it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from wavecast.isa.instruction import SourceLocation
from wavecast.perfmodel.prediction import Prediction, Share
from wavecast.perfmodel.roofline import Roofline
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.wording import join_names

NAME = "far-from-floor"

FACTOR: Final = 1.5
"""Predicted time over the floor from which on the rule speaks."""
NAMED: Final = 4
"""Causes and lines that are named."""
LEAST: Final = 0.03
"""Share of the time from which on a cause or a line is named."""


def floor_distance(
    prediction: Prediction, roofline: Roofline, location: SourceLocation | None
) -> Finding | None:
    """The account of a launch far above its floor: causes, then source lines, each adding up to its
    time. None for one near its floor, or whose floor is not known."""
    work = roofline.sustained_seconds or roofline.floor_seconds
    if not work:
        return None
    floor = work + prediction.bounds.get("launch", 0.0)
    if prediction.seconds < FACTOR * floor:
        return None
    causes = _named(prediction, "top-down")
    if not causes:
        return None
    lines = [
        (f"line {name.rpartition(':')[2]}", seconds)
        for name, seconds in _named(prediction, "line")
        if name.rpartition(":")[2].isdigit()
    ]
    limit = roofline.bound or "roofline"
    return Finding(
        rule=NAME,
        severity="note",
        message=f"{prediction.seconds / floor:.1f} times its floor, and no rule has a fix for it",
        evidence=f"{_text(prediction.seconds)} against {_text(work)} ({limit}) and a launch; "
        f"its time: {_listed(causes)}" + (f"; {_listed(lines)}" if lines else ""),
        advice="",
        location=location,
    )


def _named(prediction: Prediction, kind: str) -> list[tuple[str, float]]:
    shares: Sequence[Share] = sorted(
        (share for share in prediction.lines if share.kind == kind),
        key=lambda share: -share.seconds,
    )
    return [
        (share.name, share.seconds)
        for share in shares[:NAMED]
        if share.seconds >= LEAST * prediction.seconds
    ]


def _listed(parts: Sequence[tuple[str, float]]) -> str:
    return join_names(f"{name} {_text(seconds)}" for name, seconds in parts)


def _text(seconds: float) -> str:
    return f"{1e6 * seconds:.3g} µs"


def _of_code(subject: RuleInput) -> Iterator[Finding]:
    """Nothing: it takes a prediction, and that no other rule has advice."""
    del subject
    return iter(())


RULE = Rule(
    name=NAME,
    severity="note",
    title="Far from the floor without a fix",
    explanation=f"""\
The floor is the time of the bytes and FLOPs at sustained rates, and a launch. Between it and the
predicted time lie waits, instructions and units without work.

Fires for a launch that is predicted to take at least {FACTOR:g} times its floor when no fix of
another finding saves time. It says what the time is made of: by cause and by source line, each
adding up to the whole.""",
    check=_of_code,
)

__all__ = ["NAME", "RULE", "floor_distance"]
