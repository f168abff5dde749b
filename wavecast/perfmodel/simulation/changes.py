"""What changes of a launch share: how much counts, and profiles with other streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from wavecast.perfmodel.profile import LaunchProfile
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.perfmodel.streams import HBM, L2, MALL, Streams

Array = np.ndarray[Any, Any]
Change = tuple[str, Callable[[], LaunchTiming]]
"""What is different, and the simulation with it."""

PLENTY: Final = 1e6
"""Bytes per clock of a resource made free."""
LEAST: Final = 0.005
"""Speedups below this part of the time are left out."""


def requesting(profile: LaunchProfile, rows: Array, slots: Array, stores: Array) -> LaunchProfile:
    """The profile with other requests (as `Streams.rows`): the traffic of the launch changes as
    their sums do. `slots` and `stores` (bool) are per instruction."""
    streams, traffic = profile.streams, profile.traffic
    changed = replace(profile, streams=replace(streams, rows=rows))
    if traffic is None:
        return changed
    in_memory = slots[streams.steps] > 0
    weights, storing = streams.weights[in_memory], stores[streams.steps[in_memory]]

    def ratio(level: int, part: Array) -> float:
        before = float(streams.rows[part, level] @ weights[part])
        return float(rows[part, level] @ weights[part]) / before if before else 1.0

    every = np.ones(len(weights), bool)
    return replace(
        changed,
        traffic=replace(
            traffic,
            l2=traffic.l2 * ratio(L2, every),
            mall=traffic.mall * ratio(MALL, every),
            hbm=traffic.hbm * ratio(HBM, every),
            written=traffic.written * ratio(MALL, storing),
            updated=traffic.updated * ratio(MALL, storing),
        ),
    )


def select_steps(streams: Streams, slots: Array, stays: Array) -> Streams:
    """The streams with some of their steps (bool[n]); `slots` is per instruction."""
    asks = slots[streams.steps] > 0
    steps = np.concatenate([[0], np.cumsum(stays)])
    requests = np.concatenate([[0], np.cumsum(stays[asks])])
    return replace(
        streams,
        steps=streams.steps[stays],
        weights=streams.weights[stays],
        start=steps[streams.start],
        rows=streams.rows[stays[asks]],
        rows_start=requests[streams.rows_start],
    )


__all__ = ["LEAST", "PLENTY", "Change", "requesting", "select_steps"]
