"""Launches far above their floor without a fix: what their time is made of."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.support import assembly_subject
from wavecast.perfmodel.prediction import Prediction, Share
from wavecast.rules.finding import Finding
from wavecast.rules.floor_distance import floor_distance

SHARES = (
    Share("line", "/src/k.py:12", 6e-6),
    Share("line", "/src/k.py:9", 3e-6),
    Share("line", "launch", 1e-6),
    Share("top-down", "waiting: memory", 7e-6),
    Share("top-down", "vector work", 2.9e-6),
    Share("top-down", "idle units", 1e-7),
)


def finding(seconds: float, floor: float | None) -> Finding | None:
    roofline = replace(
        assembly_subject("s_endpgm").roofline,
        floor_seconds=floor,
        sustained_seconds=floor,
        bound="memory",
    )
    prediction = Prediction(
        "mi300x", seconds, seconds, seconds, "memory", "static", {"launch": 1e-6}, lines=SHARES
    )
    return floor_distance(prediction, roofline, None)


def test_the_time_is_told_by_cause_and_by_line_the_largest_first() -> None:
    found = finding(10e-6, 3e-6)
    assert found is not None
    assert (found.rule, found.severity, found.advice) == ("far-from-floor", "note", "")
    assert found.message.startswith("2.5 times its floor")
    assert found.evidence == (
        "10 µs against 3 µs (memory) and a launch; its time: waiting: memory 7 µs and vector "
        "work 2.9 µs; line 12 6 µs and line 9 3 µs"
    )


def test_nothing_is_said_near_the_floor_or_without_one() -> None:
    assert finding(10e-6, 6e-6) is None
    assert finding(10e-6, None) is None
