"""Speedups of fixing findings: the launch simulated without what a rule found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.test_predict import profile
from wavecast import arch
from wavecast.model.predict import predict
from wavecast.model.profile import LevelTraffic
from wavecast.pipeline.speedups import LEAST, SPEEDUPS, with_speedups
from wavecast.rules import RULES
from wavecast.rules.finding import Finding

DEVICE = arch.load("mi300x")


def speedup(rule: str, **fields: object) -> float | None:
    """Of a launch whose waves wait for each other more than for memory."""
    given = replace(profile(1216, resident=1), traffic=LevelTraffic(1e3, 1e3, 1e3))
    finding = Finding(rule, "warning", "", "", "", **fields)  # type: ignore[arg-type]
    (found,) = with_speedups([finding], given, DEVICE, predict(given, DEVICE))
    assert found == replace(finding, time_saved=found.time_saved)
    return found.time_saved


def test_every_entry_is_a_rule() -> None:
    assert set(SPEEDUPS) <= set(RULES)


def test_a_rule_without_a_simulation_keeps_its_finding() -> None:
    assert speedup("no-such-rule") is None


def test_loads_of_whole_lines_have_nothing_to_gain() -> None:
    assert speedup("uncoalesced-global", instruction=0) == 0.0


def test_code_without_scratch_gains_nothing_by_having_none() -> None:
    assert speedup("register-spills") == 0.0


@pytest.mark.parametrize(
    "rule", ["full-wait-in-loop", "division-in-loop", "occupancy-one-step-away"]
)
def test_work_that_goes_saves_a_part_of_the_time(rule: str) -> None:
    found = speedup(rule)
    assert found is not None
    assert LEAST <= found < 1


def test_a_finding_of_one_instruction_saves_less_than_one_of_all() -> None:
    one, everything = speedup("division-in-loop", instruction=2), speedup("division-in-loop")
    assert one is not None
    assert everything is not None
    assert one < everything
