"""Timelines with other times of the kernels or the host."""

from __future__ import annotations

import numpy as np
import pytest

from wavecast.profiles.profile import Profile, ProfiledKernel
from wavecast.profiles.replay import measured_timeline, replay


def _profile() -> Profile:
    """Two kernels in a queue, a wait of the host, and a third one that is called after it."""
    profile = Profile("test")
    kernel = profile.kernels.number(ProfiledKernel("k"))
    launch = profile.call_names.number("hipLaunchKernel")
    wait = profile.call_names.number("hipDeviceSynchronize")
    profile.calls.add(launch, 0, 0, 10_000, 1)
    profile.calls.add(launch, 0, 10_000, 10_000, 2)
    profile.calls.add(wait, 0, 20_000, 95_000)
    profile.calls.add(launch, 0, 120_000, 10_000, 3)
    profile.launches.add(kernel, 0, 0, 12_000, 50_000, 1)
    profile.launches.add(kernel, 0, 0, 62_000, 50_000, 2)
    profile.launches.add(kernel, 0, 0, 133_000, 50_000, 3)
    return profile


def test_the_same_times_are_the_same_timeline() -> None:
    profile = _profile()
    found, file = replay(profile, [50e-6] * 3), measured_timeline(profile)
    assert np.array_equal(found.starts, file.starts)
    assert np.array_equal(found.ends, file.ends)
    assert (found.span, found.busy) == (171_000, 150_000)


def test_faster_kernels_leave_the_host_as_it_is() -> None:
    found = replay(_profile(), [10e-6] * 3)
    # The second starts 2 us after its call now, and not when the first ends; the wait ends 3 us
    # after it, the third call follows by 5 us, its kernel 3 us after the call.
    assert found.starts.tolist() == [12_000, 22_000, 53_000]
    assert found.span == 51_000


def test_a_faster_host_and_graphs() -> None:
    profile = _profile()
    half = replay(profile, [50e-6] * 3, host=0.5)
    assert half.starts.tolist() == [7_000, 57_000, 120_500]
    graphs = replay(profile, [50e-6] * 3, graphs=True)
    assert graphs.span < half.span < measured_timeline(profile).span
    assert graphs.busy == 150_000


@pytest.mark.parametrize("streams", [1, 2])
def test_streams_are_queues(streams: int) -> None:
    profile = Profile("test")
    kernel = profile.kernels.number(ProfiledKernel("k"))
    for number in range(4):
        profile.launches.add(kernel, 0, number % streams, 10 * (number // streams), 10)
    found = replay(profile, [20e-9] * 4)
    assert found.span == 20 * 4 // streams
