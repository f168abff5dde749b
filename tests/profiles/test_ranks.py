"""Ranks that wait for one another, and the path that the end of a run waited for."""

from __future__ import annotations

import pytest

from wavecast.profiles.critical import COPY, HOST, WAIT, critical_path
from wavecast.profiles.profile import Profile, ProfiledKernel
from wavecast.profiles.ranks import skew

_REDUCE = "ncclDevKernel_AllReduce"


def _rank(rank: int, *runs: tuple[str, int]) -> Profile:
    profile, now = Profile("test", rank=rank), 0
    for name, duration in runs:
        number = profile.kernels.number(ProfiledKernel(name))
        profile.launches.add(number, 0, 0, now, duration)
        now += duration
    return profile


def test_the_rank_that_waits_least_is_the_slowest() -> None:
    found = skew(
        [
            _rank(0, ("Cijk_a", 100), (_REDUCE, 50), (_REDUCE, 9)),
            _rank(1, ("Cijk_a", 140), (_REDUCE, 10), (_REDUCE, 5)),
            _rank(2, ("Cijk_a", 120), (_REDUCE, 30), (_REDUCE, 6)),
        ]
    )
    assert found is not None
    assert found.slowest == 1
    assert dict(found.waited) == {0: 44, 1: 0, 2: 21}
    assert dict(found.last_in) == {0: 0, 1: 2, 2: 0}
    assert [one.skew for one in found.collectives] == [40, 4]
    assert found.median_skew == 22


def test_collectives_that_not_all_ranks_have_are_counted() -> None:
    ranks = [
        _rank(0, ("ncclDevKernel_A", 5), ("ncclDevKernel_B", 5)),
        _rank(1, ("ncclDevKernel_A", 7), ("ncclDevKernel_B", 5), ("ncclDevKernel_B", 5)),
    ]
    found = skew(ranks)
    assert found is not None
    assert (len(found.collectives), found.unmatched) == (1, 3)
    assert skew(ranks[:1]) is None
    assert skew([_rank(0, ("Cijk_a", 5)), _rank(1, ("Cijk_a", 5))]) is None


def _path() -> Profile:
    """Two streams: a product and a longer copy; a norm that waits for the copy; then the host."""
    profile = Profile("test")
    product = profile.kernels.number(ProfiledKernel("Cijk_Alik_Bljk_BBS_BH_MT64x32x256_"))
    norm = profile.kernels.number(ProfiledKernel("void at::native::vectorized_layer_norm_kernel"))
    launch = profile.call_names.number("hipLaunchKernel")
    profile.launches.add(product, 0, 0, 0, 40_000)
    profile.copies.add(profile.copy_names.number("copy"), 0, 1, 0, 60_000)
    profile.launches.add(norm, 0, 0, 60_500, 10_000)
    profile.calls.add(launch, 0, 85_000, 5_000, 4)
    profile.launches.add(product, 0, 0, 94_500, 20_000, 4)
    return profile


def test_every_nanosecond_of_the_span_is_on_the_critical_path() -> None:
    found = critical_path(_path(), 0)
    assert found.parts == {COPY: 60_000, "gemm": 20_000, HOST: 19_500, "norm": 10_000, WAIT: 5_000}
    assert (found.length, found.kernels) == (114_500, 2)
    assert critical_path(Profile("test"), 0).length == 0


@pytest.mark.parametrize("overlap", [0, 30])
def test_kernels_that_overlap_are_counted_once(overlap: int) -> None:
    profile = Profile("test")
    kernel = profile.kernels.number(ProfiledKernel("k"))
    for number in range(5):
        profile.launches.add(kernel, 0, number % 2, number * (100 - overlap), 100)
    found = critical_path(profile, 0)
    assert found.length == 4 * (100 - overlap) + 100
