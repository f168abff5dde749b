"""Figures of hardware counters, and findings from them."""

from __future__ import annotations

import pytest

from wavecast.arch.select import load
from wavecast.profiles.counters import by_kernel, by_operator
from wavecast.profiles.findings import findings
from wavecast.profiles.predicted import OperatorTime, PredictedProfile
from wavecast.profiles.profile import Profile, ProfiledKernel
from wavecast.profiles.summary import summarise

_ONE = {"TCC_HIT": 30.0, "TCC_HIT_sum": 30.0, "TCC_MISS_sum": 70.0, "SQ_INSTS_VALU": 60.0,
        "SQ_WAVES": 10.0, "TCC_EA0_RDREQ_sum": 1000.0, "TCC_BUBBLE_sum": 500.0,
        "TCC_EA0_RDREQ_32B_sum": 0.0, "TCC_EA0_WRREQ_sum": 10.0, "TCC_EA0_WRREQ_64B_sum": 10.0,
        "SQ_LDS_BANK_CONFLICT": 0.0, "SQ_LDS_IDX_ACTIVE": 0.0}  # fmt: skip


def _profile() -> Profile:
    """Two launches of a kernel with counters, and one without."""
    profile = Profile("test")
    kernel = profile.kernels.number(ProfiledKernel("k", (400, 1, 1)))
    for number, hits in enumerate((30.0, 70.0, 0.0)):
        profile.launches.add(kernel, 0, 0, 100_000 * number, 100_000)
        if hits:
            profile.counters[number] = {**_ONE, "TCC_HIT": hits, "TCC_HIT_sum": hits}
    return profile


def test_counters_of_launches_are_added_before_they_are_divided() -> None:
    (counted,) = by_kernel(_profile()).values()
    assert counted.launches == 2
    assert counted.figures() == {
        "L2 hit": 100 / 240,
        "memory read": 2 * (64 * 1000 + 64 * 500),
        "memory written": 2 * (32 * 10 + 32 * 10),
        "vector instructions of a wave": 6,
    }


def test_percentages_of_a_profiler_are_weighted_by_time() -> None:
    profile = Profile("test")
    kernel = profile.kernels.number(ProfiledKernel("k"))
    for number, (duration, share) in enumerate([(100, 40.0), (300, 80.0)]):
        profile.launches.add(kernel, 0, 0, 0, duration)
        profile.counters[number] = {"L2 Hit Rate": share, "Achieved Occupancy": 50.0}
    (counted,) = by_kernel(profile).values()
    assert counted.figures() == {"L2 hit": pytest.approx(0.7), "occupancy": pytest.approx(0.5)}
    assert by_kernel(Profile("test")) == {}


@pytest.mark.parametrize(("least", "found"), [(50_000.0, True), (300_000.0, False), (0.0, False)])
def test_memory_that_moves_more_than_the_least_is_a_finding(least: float, found: bool) -> None:
    profile = _profile()
    time = OperatorTime("k", "", 3, 300e-6, "other", 290e-6, 100e-6, 400e-6, bytes=least)
    predicted = PredictedProfile(load("mi300x"), (time,), rows=[0, 0, 0])
    (one,) = by_operator(profile, predicted)
    assert one.least == (pytest.approx(least * 2 / 3) if least else None)
    assert one.moved == 193_280
    texts = [f.evidence for f in findings(profile, summarise(profile), predicted)]
    assert any("memory moves" in text and "L2 hit 42%" in text for text in texts) == found
