"""The search over releases, on releases that are made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavecast.benchmarking.diff.bisect import Found, bisect
from wavecast.benchmarking.kpis import kpi
from wavecast.errors import CompileError, NothingAnalysed

RELEASES = tuple(f"3.{number}.0" for number in range(12))


def search(
    values: dict[str, float | str],
    releases: tuple[str, ...] = RELEASES,
    *,
    name: str = "spills",
    minimum: float = 0.0,
) -> Found:
    """A search where a text instead of a number is why that release cannot be asked."""

    def ask(release: str) -> dict[str, float]:
        value = values[release]
        if isinstance(value, str):
            raise CompileError(value)
        return {"k mi300x": value}

    return bisect(kpi(name), releases, ask, minimum=minimum)


def stepping(at: int) -> dict[str, float | str]:
    return {release: 8.0 if n >= at else 0.0 for n, release in enumerate(RELEASES)}


@pytest.mark.parametrize("at", range(1, 12))
def test_the_first_worse_release_is_found(at: int) -> None:
    found = search(stepping(at))
    assert (found.last_good, found.first_worse) == (RELEASES[at - 1], RELEASES[at])
    assert found.undecided == ()
    assert len(found.probes) <= 6
    assert len({probe.release for probe in found.probes}) == len(found.probes)


def test_nothing_worse() -> None:
    found = search(stepping(12))
    assert (found.first_worse, found.last_good) == ("", "3.11.0")
    assert len(found.probes) == 2


def test_a_kpi_where_more_is_better() -> None:
    values: dict[str, float | str] = {r: 8.0 if n < 5 else 4.0 for n, r in enumerate(RELEASES)}
    assert search(values, name="waves").first_worse == "3.5.0"
    assert search(values, name="vgprs").first_worse == ""


def test_small_changes_may_be_left_out() -> None:
    values: dict[str, float | str] = {r: 100.0 + n for n, r in enumerate(RELEASES)}
    assert search(values, name="vgprs").first_worse == "3.1.0"
    assert search(values, name="vgprs", minimum=0.05).first_worse == "3.6.0"


def test_releases_that_cannot_be_asked_are_passed_over() -> None:
    values = stepping(7)
    values["3.6.0"] = "does not import"
    found = search(values)
    assert (found.last_good, found.first_worse, found.undecided) == ("3.5.0", "3.7.0", ("3.6.0",))
    (skipped,) = [probe for probe in found.probes if probe.verdict == "skipped"]
    assert (skipped.release, skipped.failed) == ("3.6.0", "does not import")


def test_ends_that_cannot_be_asked_move_inwards() -> None:
    values = stepping(4)
    values["3.0.0"] = values["3.1.0"] = values["3.11.0"] = "no wheel"
    found = search(values)
    assert (found.last_good, found.first_worse) == ("3.3.0", "3.4.0")


@given(st.integers(1, 11), st.sets(st.integers(0, 11), max_size=8))
def test_the_answer_brackets_the_change(at: int, broken: set[int]) -> None:
    values = {**stepping(at), **{RELEASES[n]: "broken" for n in broken}}
    usable = [n for n in range(12) if n not in broken]
    good, bad = [n for n in usable if n < at], [n for n in usable if n >= at]
    if len(usable) < 2:
        with pytest.raises(NothingAnalysed):
            search(values)
        return
    found = search(values)
    if not good or not bad:
        assert found.first_worse == ""
        return
    assert (found.last_good, found.first_worse) == (RELEASES[good[-1]], RELEASES[bad[0]])
    assert found.undecided == RELEASES[good[-1] + 1 : bad[0]]


def test_no_release_can_be_asked() -> None:
    with pytest.raises(NothingAnalysed, match="no wheel"):
        search(dict.fromkeys(RELEASES, "no wheel"))
    with pytest.raises(NothingAnalysed, match=r"no release but 3\.0\.0"):
        search({**dict.fromkeys(RELEASES, "no wheel"), "3.0.0": 1.0})


def test_kernels_that_vanish_cannot_be_compared() -> None:
    def ask(release: str) -> dict[str, float]:
        return {"k mi300x": 1.0} if release < "3.5.0" and release[3:4] == "." else {"j mi300x": 2.0}

    found = bisect(kpi("spills"), ("3.0.0", "3.4.0", "3.9.0"), ask)
    assert found.probes[1].failed == "none of its kernels is one of the oldest release"
    assert found.first_worse == ""
