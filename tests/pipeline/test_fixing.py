"""Fixes of findings: what they save, and what becomes of those that save nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.analyze.support import descriptor
from tests.perfmodel.test_predict import profile
from tests.rules.support import assembly_subject, memory, with_memory
from wavecast import arch
from wavecast.arch.facts import Facts
from wavecast.compile.codeobject import Launch
from wavecast.errors import Unpredictable
from wavecast.isa.program import Kernel
from wavecast.perfmodel.launches import LaunchChanges
from wavecast.perfmodel.predict import predict
from wavecast.perfmodel.profile import LevelTraffic
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.pipeline.explain import fixing, recompiled_times
from wavecast.pipeline.explain.fixing import LEAST, Fixing, with_outcomes
from wavecast.pipeline.explain.prediction import Predicted
from wavecast.pipeline.explain.reading import ReadLaunch
from wavecast.pipeline.explain.recompiled_times import recompiled_time
from wavecast.rules.finding import Finding
from wavecast.rules.fix import Fix, Recompiled, Simulated
from wavecast.runtimes.triton import installation

DEVICE = arch.load("mi300x")


def _free(changes: LaunchChanges, chosen: Any) -> LaunchTiming:
    return changes.free(chosen)


def _as_now(changes: LaunchChanges, chosen: Any) -> LaunchTiming:
    del chosen
    return changes.simulation.run()


def _fewer(changes: LaunchChanges, chosen: Any) -> LaunchTiming:
    del chosen
    return changes.at(changes.simulation.chip.clock / 2)


def fixed(*fixes: Fix, severity: str = "warning", rule: str = "register-spills") -> list[Finding]:
    """A finding with fixes, of a launch whose waves wait for each other more than for memory."""
    given = replace(profile(1216, resident=1), traffic=LevelTraffic(1e3, 1e3, 1e3))
    subject = assembly_subject("s_endpgm", grid=(1, 1, 1))
    launch = subject.launch
    assert isinstance(launch, Launch)
    kernel = Kernel("k", subject.program, descriptor())
    read = ReadLaunch(launch, kernel, subject.analysis)
    found = Fixing(read, DEVICE, given, predict(given, DEVICE))
    finding = Finding(rule, severity, "", "", "as found", fixes=fixes)  # type: ignore[arg-type]
    return list(with_outcomes([finding], found))


def test_a_finding_without_fixes_stays() -> None:
    (found,) = fixed()
    assert (found.advice, found.time_saved, found.outcome) == ("as found", None, None)


def test_work_that_is_gone_saves_a_part_of_the_time() -> None:
    (found,) = fixed(Fix("Do less.", Simulated(frozenset(range(4)), _free)))
    assert found.outcome is not None
    assert found.time_saved is not None
    assert LEAST <= found.time_saved < 1
    assert found.advice == "Do less."
    assert found.outcome.method == "simulated"


def test_less_work_is_saved_by_one_instruction_than_by_all() -> None:
    (one,) = fixed(Fix("", Simulated(frozenset({2}), _free)))
    (every,) = fixed(Fix("", Simulated(frozenset(range(4)), _free)))
    assert one.time_saved is not None
    assert every.time_saved is not None
    assert one.time_saved < every.time_saved


def test_advice_that_saves_nothing_is_not_given() -> None:
    nothing = Fix("Change it.", Simulated(frozenset(), _as_now))
    (found,) = fixed(nothing)
    assert (found.severity, found.advice, found.time_saved) == ("note", "", 0.0)
    assert fixed(nothing, severity="note") == []


def test_of_two_fixes_the_better_one_is_advised_with_a_warning_of_the_worse() -> None:
    slow = Fix("Pad.", Simulated(frozenset(), _fewer), "padding")
    fast = Fix("Swizzle.", Simulated(frozenset(range(4)), _free), "swizzling")
    (found,) = fixed(slow, fast)
    assert found.advice.startswith("Swizzle. Not padding, which takes ")


def test_of_equal_fixes_the_first_is_advised() -> None:
    change = Simulated(frozenset(range(4)), _free)
    (found,) = fixed(Fix("First.", change), Fix("Second.", change))
    assert found.advice == "First."


def test_an_outcome_has_the_interval_of_the_prediction() -> None:
    (found,) = fixed(Fix("Do less.", Simulated(frozenset(range(4)), _free)))
    assert found.outcome is not None
    given = replace(profile(1216, resident=1), traffic=LevelTraffic(1e3, 1e3, 1e3))
    now = predict(given, DEVICE)
    outcome = found.outcome
    assert outcome.low / outcome.seconds == pytest.approx(now.low / now.seconds)
    assert outcome.high / outcome.seconds == pytest.approx(now.high / now.seconds)


def test_what_is_gone_at_best_is_promised_only_where_no_other_fix_is_predicted() -> None:
    """A kernel that is compiled with the fix says what it reaches, if that is nothing."""
    gone = Fix("Do less.", Simulated(frozenset(range(4)), _free), at_best=True)
    (alone,) = fixed(gone)
    assert alone.outcome is not None
    assert alone.outcome.at_best
    (both,) = fixed(Fix("Change it.", Simulated(frozenset(), _as_now)), gone)
    assert (both.advice, both.time_saved, both.outcome) == ("", 0.0, None)


def test_a_cost_that_is_paid_once_has_a_break_even() -> None:
    change = Simulated(frozenset(range(4)), _free)
    (found,) = fixed(Fix("Copy.", change, once_seconds=1.0))
    assert found.outcome is not None
    assert found.time_saved is not None
    assert found.outcome.break_even is not None
    saved = found.outcome.seconds * found.time_saved / (1 - found.time_saved)
    assert found.outcome.break_even == pytest.approx(1.0 / saved, rel=0.01)


def test_fixes_that_cannot_be_predicted_leave_the_finding_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: Any) -> Any:
        raise Unpredictable("nobody knows")

    monkeypatch.setattr(fixing, "recompile", refused)
    (found,) = fixed(Fix("", Simulated(frozenset(), refused)), Fix("", Recompiled("")))
    assert (found.advice, found.time_saved, found.outcome) == ("as found", None, None)


def test_a_kernel_whose_time_is_unknown_after_the_fix_has_no_outcome(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    subject = assembly_subject("s_endpgm", grid=(8, 1, 1))
    assert subject.launch is not None
    read = ReadLaunch(subject.launch, Kernel("k", subject.program, descriptor()), subject.analysis)
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(fixing, "recompile", lambda *_: read.launch)
    monkeypatch.setattr(recompiled_times, "read_launch", lambda *_: read)
    monkeypatch.setattr(recompiled_times, "predict_launch", lambda *_, **__: Predicted(None))
    found = Fixing(read, DEVICE, profile(1216), predict(profile(1216), DEVICE))
    assert found.outcome(Fix("", Recompiled(""))) is None


def test_a_recompiled_kernel_is_predicted_once_per_launch_and_device(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its time is in the cache, and another launch, device, or share of memory in caches is new."""
    subject = assembly_subject("s_endpgm", grid=(8, 1, 1))
    assert subject.launch is not None
    read = ReadLaunch(subject.launch, Kernel("k", subject.program, descriptor()), subject.analysis)
    predicted: list[Launch] = []

    def predict_once(launch: Launch, *_: Any, **__: Any) -> Predicted:
        predicted.append(launch)
        return Predicted(predict(profile(1216), DEVICE))

    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(
        recompiled_times, "read_launch", lambda launch, _: replace(read, launch=launch)
    )
    monkeypatch.setattr(recompiled_times, "predict_launch", predict_once)
    first, again = (recompiled_time(subject.launch, DEVICE, {}) for _ in range(2))
    assert first == again
    assert first is not None
    assert first.seconds == predict(profile(1216), DEVICE).seconds
    assert predicted == [subject.launch]
    other = replace(subject.launch, grid=(9, 1, 1))
    recompiled_time(other, DEVICE, {})
    recompiled_time(other, DEVICE, {"x": 0.5})
    clock = replace(DEVICE.facts.mapping["peak_clock"], value=1000)
    facts = Facts("slow", {**DEVICE.facts.mapping, "peak_clock": clock})
    recompiled_time(other, replace(DEVICE, facts=facts), {})
    monkeypatch.setattr(installation, "identity", lambda _: "other sources")
    recompiled_time(other, DEVICE, {})
    assert predicted == [subject.launch, *(other,) * 4]


@pytest.mark.parametrize(("workgroups", "counts"), [(8, True), (9, True), (16, False)])
def test_other_tiles_count_only_where_the_kernel_stores_as_much(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workgroups: int, counts: bool
) -> None:
    """Tiles at the edges add a little; twice as much is another kernel."""
    subject = with_memory(
        assembly_subject("s_endpgm", grid=(8, 1, 1)), memory(kind="store", lanes=64)
    )
    assert subject.launch is not None
    kernel = Kernel("k", subject.program, descriptor())
    read = ReadLaunch(subject.launch, kernel, subject.analysis)
    again = replace(read, launch=replace(subject.launch, grid=(workgroups, 1, 1)))
    prediction = predict(profile(1216), DEVICE)
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(fixing, "recompile", lambda *_: again.launch)
    monkeypatch.setattr(recompiled_times, "read_launch", lambda *_: again)
    monkeypatch.setattr(recompiled_times, "predict_launch", lambda *_, **__: Predicted(prediction))
    found = Fixing(read, DEVICE, profile(1216), predict(profile(1216), DEVICE))
    outcome = found.outcome(Fix("", Recompiled("", same_work=True)))
    assert (outcome is not None) == counts
    assert found.outcome(Fix("", Recompiled("other"))) is not None
