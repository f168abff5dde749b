"""Verdicts on records that are written down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wavecast.benchmarking.gate.baseline import Baseline, BaselineEntry
from wavecast.benchmarking.gate.guards import Guard
from wavecast.benchmarking.gate.judge import everything, judge, scope_of, update_baseline
from wavecast.benchmarking.gate.measuring import Taken
from wavecast.benchmarking.gate.stored import taken_from
from wavecast.benchmarking.gate.thresholds import Threshold, Thresholds, parse
from wavecast.benchmarking.gate.verdict import GateVerdict, Status
from wavecast.benchmarking.kpis import kpi
from wavecast.benchmarking.records import BenchRecord, BenchSubject, Conditions, Environment, Figure
from wavecast.errors import UnknownName, UsageError
from wavecast.report.bench import gate, gate_files
from wavecast.report.kit.terminal import plain

HERE = Environment("mi300x", "gfx942", emulated=True, triton="3.9.0")
KEY = ("operator rms_norm rows=4", "mi300x")
FIGURES = {"vgprs": 20.0, "spills": 0.0, "waves": 8.0, "predicted_seconds": 1e-5}


USUAL = Thresholds()


def taken(
    figures: dict[str, float] | None = None,
    *,
    name: str = "rms_norm",
    thresholds: Thresholds = USUAL,
    code: str = "a",
    **more: object,
) -> Taken:
    guard = Guard("operator", name, ("mi300x",), {"rows": 4}, thresholds=thresholds)
    record = BenchRecord(
        BenchSubject("operator", name, {"rows": 4}),
        HERE,
        Conditions(timing="predicted"),
        {kpi: Figure(value, "static") for kpi, value in (figures or FIGURES).items()},
    )
    record = replace(record, **more)  # type: ignore[arg-type]
    return Taken(guard, "mi300x", (record,), codes={record.subject.key: code})


BASE = update_baseline(Baseline(), [taken()])


def statuses(verdict: GateVerdict) -> dict[str, Status]:
    return {one.kpi: one.status for one in verdict.judged}


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("vgprs", 22, Status.SAME),
        ("vgprs", 23, Status.WORSE),
        ("vgprs", 16, Status.BETTER),
        ("spills", 1, Status.WORSE),
        ("waves", 7, Status.WORSE),
        ("waves", 9, Status.BETTER),
        ("predicted_seconds", 1.02e-5, Status.SAME),
        ("predicted_seconds", 1.04e-5, Status.WORSE),
        ("predicted_seconds", 1.0000001e-5, Status.SAME),
    ],
)
def test_usual_thresholds(name: str, value: float, status: Status) -> None:
    verdict = judge(BASE, [taken({**FIGURES, name: value})])
    assert statuses(verdict)[name] is status
    assert bool(verdict.broken) is (status is Status.WORSE)


@pytest.mark.parametrize(
    ("given", "before", "allowed"),
    [
        (4, 20, 24),
        ("10%", 20, 22),
        ({"limit": 32}, 20, 32),
        ({"limit": 16}, 20, 16),
        ({"change": "50%", "limit": 24}, 20, 24),
        ({"limit": 32}, None, 32),
        (4, None, None),
    ],
)
def test_thresholds(given: object, before: float | None, allowed: float | None) -> None:
    found = parse({"vgprs": given}, "here", Thresholds()).of("vgprs")
    assert found is not None
    assert found.worst_allowed(kpi("vgprs"), before) == allowed


def test_more_is_better_of_waves() -> None:
    assert Threshold(0.25, relative=True).worst_allowed(kpi("waves"), 8) == 6
    assert Threshold(None, limit=4).worst_allowed(kpi("waves"), 8) == 4


def test_others_and_false() -> None:
    found = parse({"spills": 0, "sgprs": False, "others": False}, "here", Thresholds())
    assert found.of("spills") == Threshold(0.0)
    assert found.of("sgprs") is None
    assert found.of("vgprs") is None


@pytest.mark.parametrize("given", ["a lot", -1, "-3%", True, {}, [1]])
def test_wrong_thresholds(given: object) -> None:
    with pytest.raises(UsageError):
        parse({"vgprs": given}, "here", Thresholds())


def test_an_unknown_kpi() -> None:
    with pytest.raises(UnknownName, match="vgprs"):
        parse({"vgpr": 1}, "here", Thresholds())


FASTER = {**FIGURES, "predicted_seconds": 9e-6}


@pytest.mark.parametrize(
    ("figures", "broken"),
    [
        ({**FASTER, "vgprs": 40.0, "waves": 4.0}, {}),
        ({**FASTER, "spills": 1.0}, {"spills": Status.WORSE}),
        ({**FIGURES, "vgprs": 40.0}, {"vgprs": Status.WORSE}),
    ],
)
def test_a_better_time_outweighs_what_explains_it(
    figures: dict[str, float], broken: dict[str, Status]
) -> None:
    verdict = judge(BASE, [taken(figures)])
    assert {one.kpi: one.status for one in verdict.broken} == broken
    warned = {one.kpi for one in verdict.of(Status.WARN)}
    assert warned == ({"vgprs", "waves"} if not broken else set())
    levels = [result["level"] for result in gate_files.sarif_log(verdict)["runs"][0]["results"]]
    assert levels == ["error"] * len(broken) + ["warning"] * len(warned)
    commands = gate_files.workflow_commands(verdict)
    assert [text.split()[0] for text in commands] == [f"::{level}" for level in levels]
    assert gate_files.junit(verdict).count("<failure") == len(broken)
    assert ("2 warnings" in gate.headline(verdict)) == bool(warned)
    assert ("Warnings: 2" in gate.markdown(verdict)) == bool(warned)


def test_a_limit_is_no_warning() -> None:
    limits = Thresholds({"vgprs": Threshold(None, limit=32)})
    verdict = judge(BASE, [taken({**FASTER, "vgprs": 40}, thresholds=limits)])
    assert statuses(verdict)["vgprs"] is Status.WORSE


@pytest.mark.parametrize(
    ("samples", "status"),
    [((9e-6,) * 9, Status.WARN), (tuple(6e-6 + n * 1e-6 for n in range(7)), Status.WORSE)],
)
def test_a_measured_time_is_better_beyond_its_noise(
    samples: tuple[float, ...], status: Status
) -> None:
    def measured(value: float, vgprs: int, samples: tuple[float, ...] = ()) -> Taken:
        found = taken()
        (record,) = found.records
        figures = {
            "measured_seconds": Figure(value, "measured", samples=samples),
            "vgprs": Figure(vgprs, "static"),
        }
        return replace(found, records=(replace(record, figures=figures),))

    base = update_baseline(Baseline(), [measured(1e-5, 20)])
    assert statuses(judge(base, [measured(9e-6, 40, samples)]))["vgprs"] is status


def test_new_is_told_and_breaks_where_it_is_strict() -> None:
    other = taken(name="layer_norm", code="b")
    assert not judge(BASE, [taken(), other]).broken
    assert [one.status for one in judge(BASE, [taken(), other], strict=True).broken] == ["NEW"]


def test_a_limit_holds_for_what_is_new() -> None:
    limits = Thresholds({"vgprs": Threshold(None, limit=16)})
    verdict = judge(Baseline(), [taken(thresholds=limits)])
    assert [(one.kpi, one.status) for one in verdict.broken] == [("vgprs", Status.WORSE)]


def test_gone() -> None:
    (gone,) = judge(BASE, []).broken
    assert gone.status is Status.GONE
    assert not update_baseline(BASE, []).entries


def test_what_was_not_asked_for_is_not_gone() -> None:
    other = taken(name="layer_norm")
    scope = scope_of([other.guard])
    assert not judge(BASE, [other], scope).broken
    assert KEY in update_baseline(BASE, [other], scope).entries


@pytest.mark.parametrize(("code", "said"), [("a", "same machine code"), ("b", "same figures")])
def test_renamed(code: str, said: str) -> None:
    verdict = judge(BASE, [taken(name="layer_norm", code=code)])
    (gone,) = verdict.broken
    assert said in gone.reason
    assert "layer_norm" in gone.reason


def test_a_figure_that_is_no_longer_had() -> None:
    figures = {name: value for name, value in FIGURES.items() if name != "predicted_seconds"}
    (lost,) = judge(BASE, [taken(figures, notes=("it depends on data",))]).broken
    assert (lost.status, lost.kpi) == (Status.LOST, "predicted_seconds")
    assert "it depends on data" in lost.reason


def test_what_is_refused_is_wrong_and_stays_as_it_was() -> None:
    bad = taken({**FIGURES, "vgprs": 8}, refused="wrong result: 3 differ")
    (wrong,) = judge(BASE, [bad]).broken
    assert (wrong.status, wrong.reason) == (Status.WRONG, "wrong result: 3 differ")
    assert update_baseline(BASE, [bad]) == BASE


def test_what_failed_is_not_gone_and_stays_as_it_was() -> None:
    bad = Taken(taken().guard, "mi300x", failed="no")
    assert [one.status for one in judge(BASE, [bad]).broken] == [Status.FAILED]
    assert update_baseline(BASE, [bad]) == BASE


def test_times_had_in_another_way_are_not_compared() -> None:
    entries = {KEY: replace(BASE.entries[KEY], timing="events")}
    verdict = judge(Baseline(entries), [taken({**FIGURES, "predicted_seconds": 1.0})])
    (wrong,) = verdict.broken
    assert "times are predicted, the baseline's events" in wrong.reason


def test_another_compiler_is_told() -> None:
    entries = {KEY: replace(BASE.entries[KEY], compiler="Triton 3.8.0")}
    verdict = judge(Baseline(entries), [taken({**FIGURES, "vgprs": 64}, code="b")], everything)
    assert "the baseline with Triton 3.8.0" in verdict.broken[0].reason
    assert any("Triton 3.8.0" in note for note in verdict.notes)


def test_the_model_changed_not_the_code() -> None:
    verdict = judge(BASE, [taken({**FIGURES, "predicted_seconds": 2e-5})])
    assert "the machine code is that of the baseline" in verdict.broken[0].reason


def test_an_entry_keeps_seven_digits() -> None:
    record = taken({"predicted_seconds": 1.23456789e-5, "instructions": 123456789}).records[0]
    figures = BaselineEntry.of(record, "").figures
    assert figures == {"predicted_seconds": 1.234568e-5, "instructions": 123456789}


@pytest.mark.parametrize(("spread", "broken"), [(0.001, True), (0.2, False)])
def test_noise_alone_does_not_break(spread: float, broken: bool) -> None:
    times = tuple(1.05e-5 * (1 + spread * (place - 10) / 10) for place in range(21))
    figures = {"measured_seconds": Figure(1.05e-5, "measured", samples=times)}
    base = update_baseline(Baseline(), [taken({"measured_seconds": 1e-5})])
    record = replace(taken().records[0], figures=figures)
    assert bool(judge(base, [replace(taken(), records=(record,))]).broken) is broken


def test_a_run_of_a_store() -> None:
    guard = taken().guard
    (found,) = taken_from([guard], [taken({"vgprs": 1}).records[0], taken().records[0]])
    assert [figure.value for figure in found.records[0].figures.values()] == [*FIGURES.values()]
    (none,) = taken_from([replace(guard, axes={"rows": 5})], taken().records)
    assert none.failed


def test_names_are_whole_on_a_narrow_terminal() -> None:
    name = "attention_of_a_paged_cache_with_grouped_queries_and_a_sliding_window"
    verdict = judge(BASE, [taken(name=name, figures={**FIGURES, "vgprs": 64.0})])
    subject = f"operator {name} rows=4"
    for width in (80, 100, 240):
        text = plain(lambda console: gate.render(verdict, console), width)
        assert f"{subject} " in text
    assert "subject" in text.splitlines()[0]
