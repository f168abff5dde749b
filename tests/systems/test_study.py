"""Comparisons, findings and costs."""

from __future__ import annotations

import math

import pytest

import wavecast
from wavecast.arch.systems import system
from wavecast.errors import UsageError
from wavecast.systems.answer import Deployment, answer, loads
from wavecast.systems.comparison import bound, ratio
from wavecast.systems.economy import Economy
from wavecast.systems.findings import LEAST, findings
from wavecast.systems.huggingface import load
from wavecast.systems.intervals import Interval, RatioErrors


@pytest.fixture(scope="module")
def report():
    return wavecast.model(
        "Llama-3.1-8B", "2xMI300X,2xMI355X", prompt=256, output=64, concurrency=(4, 32),
        requests=40, findings=True, power=750, price=2.0,
    )  # fmt: skip


def test_errors_that_both_systems_share_cancel() -> None:
    top, bottom = Interval(2.0, 1.0, 4.0, ""), Interval(1.0, 0.5, 2.0, "")
    assert ratio(top, bottom, RatioErrors(1.0)).high == pytest.approx(2.0)
    independent = ratio(top, bottom, RatioErrors())
    assert math.log(independent.high / 2.0) == pytest.approx(math.sqrt(2) * math.log(2))
    half = ratio(top, bottom, RatioErrors(0.5))
    assert 2.0 < half.high < independent.high
    assert independent.low < half.low < 2.0
    measured = ratio(top, bottom, RatioErrors(0.5, math.log(1.25)))
    assert (measured.low, measured.high) == (pytest.approx(1.6), pytest.approx(2.5))


def test_systems_are_compared_with_the_first(report) -> None:
    first, second = report.compared
    assert all(one.rate_per_gpu.value == 1 for one in first.servings)
    for one, before in zip(second.servings, first.servings, strict=True):
        rates = (one.serving.output_rate.value, before.serving.output_rate.value)
        assert one.rate_per_gpu.value == pytest.approx(rates[0] / rates[1])
        alone = ratio(one.serving.output_rate, before.serving.output_rate, RatioErrors())
        # Equal where no pair of runs tells what the errors have in common.
        assert alone.low <= one.rate_per_gpu.low < one.rate_per_gpu.high <= alone.high
        assert one.tpot.value == pytest.approx(one.serving.tpot.value / before.serving.tpot.value)


def test_a_system_that_does_not_fit_has_no_ratio() -> None:
    report = wavecast.model(
        "Llama-3.3-70B", "mi250x,mi355x,mi300x", dtype="fp8", prompt=64, output=16, concurrency=1
    )
    assert [len(one.servings) for one in report.compared] == [0, 1, 1]
    assert report.compared[1].servings[0].tpot.value == 1
    assert "does not fit" in str(report)


def test_a_step_that_waits_for_the_host_says_so() -> None:
    slow = wavecast.model("Llama-3.1-8B", "mi300x", concurrency=1, output=16, what_if="host*100")
    slower = slow.what_ifs[0].changes[0].answer
    assert slower is not None
    assert bound(slower.servings[0]).cause == "host"
    assert bound(slow.servings[0]).cause != "host"


def test_findings_are_worth_something_and_ordered(report) -> None:
    assert len(report.findings) == len(report.answers) == 2
    for found in report.findings:
        speedups = [one.speedup for one in found.changes]
        assert speedups == sorted(speedups, reverse=True)
        assert all(speedup >= LEAST for speedup in speedups)
        assert any("quantise" in one.advice for one in found.changes)
        modules = [one.changed.servings[0].tpot.value for one in found.modules]
        assert modules == sorted(modules, reverse=True)
        assert sum(one.share for one in found.modules) < 1.0001


def test_graphs_are_advised_where_steps_are_not_captured() -> None:
    deployment = Deployment(dtype="fp8", engine_fields=(("graphs", False),))
    machine, asked = system("mi300x"), loads(64, 32, concurrency=(1,))
    before = answer(load("Llama-3.1-8B"), machine, deployment, asked)
    found = findings(load("Llama-3.1-8B"), machine, deployment, asked, before)
    assert "capture graphs of up to 512 sequences" in [one.advice for one in found.changes]


def test_tokens_cost_gpu_time(report) -> None:
    for one, costs in zip(report.answers, report.costs, strict=True):
        for serving, cost in zip(one.servings, costs, strict=True):
            hours = 1e6 / serving.output_rate.value / 3600
            assert cost.price.value == pytest.approx(hours * 2 * 2.0)
            assert cost.energy.value == pytest.approx(hours * 2 * 0.75)
            fastest = 1e6 / serving.output_rate.high / 3600
            assert cost.price.low == pytest.approx(fastest * 2 * 2.0)
    assert "a million output tokens" in str(report)
    with pytest.raises(UsageError, match="the power of a GPU"):
        Economy(power=-1)
