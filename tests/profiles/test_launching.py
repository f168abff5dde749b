"""Time in launching calls and until kernels start."""

from __future__ import annotations

from wavecast.profiles.launching import LaunchCosts, launch_costs
from wavecast.profiles.profile import NONE, Profile, ProfiledKernel


def _profile(kernels: list[tuple[int, int, int]], calls: list[tuple[int, int, int]]) -> Profile:
    """Kernels and calls, each (start, duration, correlation)."""
    profile = Profile("test")
    info, name = profile.kernels.number(ProfiledKernel("k")), profile.call_names.number("launch")
    for start, duration, correlation in kernels:
        profile.launches.add(info, 0, 0, start, duration, correlation)
    for start, duration, correlation in calls:
        profile.calls.add(name, 0, start, duration, correlation)
    return profile


def test_medians_of_the_call_and_of_the_delay() -> None:
    profile = _profile(
        [(110, 5, 1), (230, 50, 2), (390, 50, 3)], [(300, 20, 3), (100, 10, 1), (200, 10, 2)]
    )
    assert launch_costs(profile, 0) == LaunchCosts(
        launches=3, call=10 * 1e-9, delay=30 * 1e-9, short=1
    )


def test_kernels_of_a_graph_and_without_a_call_have_no_launch_of_their_own() -> None:
    graph = [(110, 5, 1), (120, 5, 1), (130, 5, NONE), (140, 5, 9)]
    assert launch_costs(_profile(graph, [(100, 10, 1), (0, 5, NONE)]), 0) is None
    assert launch_costs(_profile([(210, 20, 2), *graph], [(200, 4, 2)]), 0) == LaunchCosts(
        1, 4 * 1e-9, 10 * 1e-9, 0
    )


def test_launches_of_another_device() -> None:
    assert launch_costs(_profile([(110, 5, 1)], [(100, 10, 1)]), 1) is None
    assert launch_costs(Profile("empty"), 0) is None
