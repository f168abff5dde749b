"""Verdicts with their reasons."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("scipy", reason="needs SciPy")

from wavecast.benchmarking.compare.compare import REASONS, Criteria, compare
from wavecast.benchmarking.compare.verdict import Compared, FigureVerdict, RunComparison
from wavecast.benchmarking.records import BenchRecord, BenchSubject, Conditions, Environment, Figure
from wavecast.errors import NothingAnalysed

HERE = Environment("mi300x", "gfx942", emulated=False, triton="3.9.0")
COLD = Conditions(cache="cold", timing="events", inputs="random")


def record(
    name: str = "matmul",
    seconds: float = 1e-4,
    *,
    seed: int = 0,
    exact: dict[str, float] | None = None,
    **more: object,
) -> BenchRecord:
    random = np.random.default_rng(seed)
    samples = tuple(seconds * np.exp(random.normal(0, 0.02, 40)))
    figures = {"measured_seconds": Figure(float(np.median(samples)), "measured", samples=samples)}
    figures |= {kpi: Figure(value, "static") for kpi, value in (exact or {}).items()}
    subject = more.pop("subject", BenchSubject("operator", name, {"m": 64, "dtype": "bfloat16"}))
    return replace(BenchRecord(subject, HERE, COLD, figures, digest="a"), **more)  # type: ignore[arg-type]


def times(found: RunComparison) -> Compared:
    return next(one for one in found.compared if one.kpi == "measured_seconds")


def reasons(one: Compared) -> set[str]:
    return {reason.split(":")[0] for reason in one.reasons}


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [(1.1e-4, FigureVerdict.SLOWER), (0.9e-4, FigureVerdict.FASTER), (1e-4, FigureVerdict.SAME)],
)
def test_times(seconds: float, verdict: FigureVerdict) -> None:
    found = times(compare({"a": [record()]}, {"b": [record(seconds=seconds, seed=1)]}))
    assert found.verdict is verdict
    assert found.low is not None
    assert found.high is not None
    assert (found.low <= 1 <= found.high) == (verdict is FigureVerdict.SAME)
    assert found.ratio == pytest.approx(seconds / 1e-4, rel=0.01)
    assert all(reason.split(":")[0] in REASONS for reason in found.reasons)


def test_three_runs_a_side() -> None:
    before = {f"a{n}": [record(seed=n)] for n in range(3)}
    after = {f"b{n}": [record(seconds=1.05e-4, seed=10 + n)] for n in range(3)}
    found = times(compare(before, after))
    assert found.verdict is FigureVerdict.SLOWER
    assert found.adjusted is not None
    assert found.adjusted < 0.01


def test_few_noisy_samples_are_ambiguous() -> None:
    one = replace(
        record().figures["measured_seconds"], samples=(1e-4, 1.3e-4, 0.8e-4, 1.2e-4, 1e-4)
    )
    after = replace(record(), figures={"measured_seconds": one})
    found = times(compare({"a": [record()]}, {"b": [after]}))
    assert found.verdict is FigureVerdict.AMBIGUOUS
    assert "wide-interval" in reasons(found)


@pytest.mark.parametrize(
    ("kpi", "before", "after", "verdict"),
    [
        ("spills", 0, 4, FigureVerdict.WORSE),
        ("spills", 4, 0, FigureVerdict.BETTER),
        ("waves", 4, 2, FigureVerdict.WORSE),
        ("vgprs", 100, 100.5, FigureVerdict.SAME),
        ("predicted_seconds", 1e-4, 1.2e-4, FigureVerdict.SLOWER),
    ],
)
def test_exact_figures(kpi: str, before: float, after: float, verdict: FigureVerdict) -> None:
    old, new = record(exact={kpi: before}), record(exact={kpi: after})
    found = compare({"a": [old]}, {"b": [new]}, Criteria(kpis=(kpi,)))
    assert [one.verdict for one in found.compared] == [verdict]
    assert "exact" in reasons(found.compared[0])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"conditions": replace(COLD, cache="warm")}, "conditions"),
        ({"conditions": replace(COLD, clocks="locked 2100 MHz")}, "conditions"),
        ({"environment": replace(HERE, emulated=True)}, "origin"),
        ({"refused": "faster than memory"}, "physics"),
        ({"subject": BenchSubject("operator", "matmul", {"m": 128, "dtype": "bfloat16"})}, "axes"),
        ({"subject": BenchSubject("operator", "matmul", {"m": 64, "dtype": "float16"})}, "axes"),
    ],
)
def test_what_cannot_be_compared(change: dict, reason: str) -> None:
    found = compare({"a": [record()]}, {"b": [record(**change)]})
    assert {one.verdict for one in found.compared} == {FigureVerdict.REFUSED}
    assert all(reason in reasons(one) for one in found.compared)


def test_kernels_that_came_and_went() -> None:
    found = compare({"a": [record(), record("old")]}, {"b": [record(), record("new")]})
    verdicts = {one.subject.name: one.verdict for one in found.compared}
    assert verdicts == {
        "matmul": FigureVerdict.SAME,
        "old": FigureVerdict.GONE,
        "new": FigureVerdict.NEW,
    }


def test_across_chips_shares_of_the_bound_are_compared() -> None:
    other = replace(HERE, device="mi355x", target="gfx950")
    old = record(seconds=1e-4, floor_seconds=0.8e-4)
    new = record(seconds=0.6e-4, floor_seconds=0.3e-4, environment=other)
    found = compare({"a": [old]}, {"b": [new]})
    assert found.across
    assert any("shares" in note for note in found.notes)
    one = times(found)
    assert one.verdict is FigureVerdict.WORSE  # less of its bound, though it is faster
    assert one.ratio == pytest.approx(0.5 / 0.8, rel=0.02)
    unknown = compare({"a": [replace(old, floor_seconds=None)]}, {"b": [new]})
    assert "no-floor" in reasons(unknown.compared[0])


def test_compiler_upgrades_are_noted() -> None:
    newer = record(environment=replace(HERE, triton="3.10.0", dirty=True, commit="abc"))
    found = compare({"a": [record()]}, {"b": [newer]})
    assert "triton: 3.9.0 → 3.10.0" in found.notes
    assert any("uncommitted" in note for note in found.notes)


def test_nothing_measured() -> None:
    with pytest.raises(NothingAnalysed, match="nothing was measured before"):
        compare({}, {"b": [record()]})
