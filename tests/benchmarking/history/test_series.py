"""Series over commits: their order, what a point is, where a figure changed and what with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarking.history.sample import SLOW, checkout, nightly
from wavecast.benchmarking.history.order import commits_between, sort_by_commit
from wavecast.benchmarking.history.series import History, SeriesFilter, history
from wavecast.benchmarking.records import BenchRecord, BenchRun, Conditions, Figure
from wavecast.errors import UsageError

ALL = SeriesFilter()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkout")


@pytest.fixture(scope="module")
def commits(folder: Path) -> list[str]:
    return checkout(folder)


def told(
    runs: Sequence[tuple[BenchRun, Sequence[BenchRecord]]], folder: Path, wanted: SeriesFilter = ALL
) -> History:
    return history(
        {run.id: records for run, records in runs}, [run for run, _ in runs], wanted, folder
    )


def test_runs_stand_in_the_order_of_their_commits(folder: Path, commits: list[str]) -> None:
    runs = [run for run, _ in nightly(commits, newest_first=True)]
    found, strangers = sort_by_commit(runs, folder)
    assert [run.commit for run in found] == commits
    assert strangers == 0
    assert commits_between(commits[2], commits[6], folder) == 4
    assert commits_between(commits[2], "f" * 40, folder) is None


def test_changed_checkouts_stand_behind_their_commit(folder: Path, commits: list[str]) -> None:
    runs = [
        BenchRun("late", "2026-02-03", commit=commits[0]),
        BenchRun("next", "2026-02-01", commit=commits[1][:12]),
        BenchRun("dirty", "2026-02-02", commit=commits[0], dirty=True),
    ]
    assert [run.id for run in sort_by_commit(runs, folder)[0]] == ["late", "dirty", "next"]


def test_commits_that_are_not_there(folder: Path, commits: list[str], tmp_path: Path) -> None:
    runs = [
        BenchRun("b", "2026-02-02", commit=commits[1]),
        BenchRun("stranger", "2026-02-03", commit="0" * 40),
        BenchRun("none", "2026-01-01"),
        BenchRun("a", "2026-02-01", commit=commits[0]),
        BenchRun("c", "2026-02-04", commit=commits[2]),
    ]
    found, strangers = sort_by_commit(runs, folder)
    assert [run.id for run in found] == ["none", "a", "b", "stranger", "c"]
    assert strangers == 2
    outside, _ = sort_by_commit(runs, tmp_path)
    assert [run.id for run in outside] == ["none", "a", "b", "stranger", "c"]


def test_changes_are_found_and_explained(folder: Path, commits: list[str]) -> None:
    runs = nightly(commits, newest_first=True)
    found = told([run for at, run in enumerate(runs) if at != SLOW[0] - 1], folder)
    by_name = {(one.subject.name, one.kpi.name): one for one in found.series}
    assert len(by_name) == 6
    assert not by_name["copy", "measured_seconds"].changes
    assert not by_name["copy", "spills"].changes
    assert not by_name["softmax", "predicted_seconds"].changes
    times = by_name["softmax", "measured_seconds"]
    slower, faster = times.changes
    assert times.points[slower.at].run.commit == commits[SLOW[0]]
    assert times.points[faster.at].run.commit == commits[SLOW[1]]
    assert (slower.worse, faster.worse) == (True, False)
    assert slower.ratio == pytest.approx(1.06, abs=0.01)
    assert slower.commits == 2
    assert slower.also == ("triton 3.8.0 → 3.9.0", "other machine code")
    assert faster.also == ("other machine code",)
    assert not slower.few
    worse, better = by_name["softmax", "spills"].changes
    assert (worse.before, worse.after, worse.ratio, worse.worse) == (0, 14, None, True)
    assert (better.after, better.worse) == (0, False)


def test_points(folder: Path, commits: list[str]) -> None:
    ((run, (record, _)),) = nightly(commits[:1])
    times, prediction, spills = told([(run, [record])], folder).series
    samples = sorted(record.figures["measured_seconds"].samples)
    assert times.points[0].value == record.figures["measured_seconds"].value
    assert samples[4] <= times.points[0].low <= samples[5]
    assert samples[14] <= times.points[0].high <= samples[15]
    assert (prediction.points[0].low, prediction.points[0].high) == (2e-5, 4e-5)
    assert spills.points[0].low == spills.points[0].value == 0


def test_what_is_measured_otherwise_is_another_series(folder: Path, commits: list[str]) -> None:
    ((run, (record, _)),) = nightly(commits[:1])
    warm = replace(record, conditions=Conditions("warm", "graph", "random"))
    elsewhere = replace(record, environment=replace(record.environment, device="", board="GPU X"))
    found = told([(run, [record, warm, elsewhere])], folder, SeriesFilter(kpis=("spills",)))
    shown = [(one.device, one.conditions.cache) for one in found.series]
    assert sorted(shown) == [("GPU X", "cold"), ("mi300x", "cold"), ("mi300x", "warm")]
    only = told([(run, [record, elsewhere])], folder, SeriesFilter("copy", ("spills",), ("GPU X",)))
    assert [one.device for one in only.series] == ["GPU X"]


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    ((run, (record, other)),) = nightly([""])
    refused = replace(record, refused="faster than the roofline floor")
    strange = replace(other, figures={"frobs": Figure(1.0, "static")})
    found = told([(run, [refused, strange])], tmp_path)
    assert found.series == ()
    assert [note.split(":")[0] for note in found.notes] == [
        "1 refused records are left out",
        "no run names a commit",
        "unknown figures are left out",
    ]
    with pytest.raises(UsageError, match="not a regular expression"):
        told([(run, [record])], tmp_path, SeriesFilter("("))
