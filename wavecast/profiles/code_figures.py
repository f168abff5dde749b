"""Figures of hardware counters as the prediction of a launch has them, by the names of
`counters.toml`.

Counters of AMD's L2 count requests: a read asks for a line, a write for half of one, and a line
that is written in halves misses once. Those of NVIDIA's L2 count sectors, which miss when they are
written too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from wavecast.errors import WavecastError
from wavecast.isa.program import Kernel
from wavecast.perfmodel.cu import code as cu
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.perfmodel.sm import code as sm
from wavecast.perfmodel.sm.profile import SassProfile
from wavecast.perfmodel.static import profile_of_code
from wavecast.perfmodel.streams import HBM, L2, MALL, PASSES
from wavecast.pipeline.explain.reading import read_launch
from wavecast.pipeline.explain.result import Explanation
from wavecast.profiles.counters import (
    CLOCK,
    CONFLICTS,
    L2_HIT,
    OCCUPANCY,
    READ,
    VECTOR,
    WRITTEN,
)

Array = np.ndarray[Any, Any]

_AMD_READ: Final = 128
_AMD_WRITE: Final = 64
"""Bytes of a request to the L2, by the counters of a copy on MI300X: 8 MiB are read in 65,536
requests and written in 131,072."""
_NVIDIA_SECTOR: Final = 32


def predicted_figures(explanation: Explanation) -> dict[str, float]:
    """Shares from 0 to 1, bytes of a launch, instructions of a wave, the clock in GHz. Figures that
    the model does not have are missing; all are, where the launch is not predicted."""
    predicted = explanation.predicted
    if predicted.profile is None or predicted.prediction is None:
        return {}
    gaps: dict[str, float] = {OCCUPANCY: _occupancy(explanation, predicted.profile)}
    clock = predicted.prediction.assumed.get("clock_ghz")
    if isinstance(clock, float):
        gaps[CLOCK] = clock
    counts = _Requests(explanation, predicted.profile)
    gaps.update(counts.cache())
    if not isinstance(predicted.profile, SassProfile):
        gaps.update(counts.instructions())
    return gaps


def hit_alone(explanation: Explanation) -> float | None:
    """The share of L2 hits if no workgroup found what another one fetched; None where the code
    does not give it."""
    launch = explanation.launch
    if launch is None or not launch.code.is_amd:
        return None
    try:
        read = read_launch(replace(launch, grid=(1, 1, 1)), explanation.device)
        assert isinstance(read.kernel, Kernel)
        profile = profile_of_code(read.launch, read.analysis, read.kernel, explanation.device)
    except WavecastError:
        return None
    return _Requests(explanation, profile).cache().get(L2_HIT)


def _occupancy(explanation: Explanation, profile: LaunchProfile) -> float:
    """The most waves that are resident at once, of those that a unit can have."""
    placement, occupancy = profile.placement, explanation.analysis.occupancy
    resident = min(placement.resident, placement.most_per_unit) * placement.waves
    return min(1.0, resident / (placement.simds * occupancy.max_waves_per_simd))


class _Requests:
    """What the waves of a launch execute and ask for: sums by instruction over the launch."""

    def __init__(self, explanation: Explanation, profile: LaunchProfile) -> None:
        streams, placement = profile.streams, profile.placement
        self._amd = not isinstance(profile, SassProfile)
        if not isinstance(profile, SassProfile):
            code = cu.Code.of(profile.program, explanation.device, placement.wave_lanes)
            self._lds, stores = code.pipe == cu.LDS, (cu.STORE, cu.ATOMIC)
            self._ideal = code.contiguous[:, PASSES]
        else:
            code = profile.code
            self._lds, stores = code.kind == sm.SHARED, (sm.STORE, sm.ATOMIC)
            self._ideal = np.zeros(len(code.pipe))
        self._writes = np.isin(code.kind, stores) & ~self._lds
        self._pipe, number = code.pipe, len(code.pipe)
        scale = profile.work * placement.workgroups / streams.workgroups
        self._waves = float(placement.workgroups * placement.waves)
        self._executions = scale * np.bincount(streams.steps, streams.weights, number)
        memory = code.slots[streams.steps] > 0
        steps, weights = streams.steps[memory], streams.weights[memory]
        self._sums = scale * np.stack(
            [np.bincount(steps, column * weights, number) for column in streams.rows.T], axis=1
        )

    def cache(self) -> dict[str, float]:
        """L2 hits, and bytes beyond the L2."""
        read, written = (self._bytes(mine) for mine in (~self._writes, self._writes))
        if self._amd:
            requests = read[0] / _AMD_READ + written[0] / _AMD_WRITE
            missed = (read[1] + written[1]) / _AMD_READ
        else:
            requests = (read[0] + written[0]) / _NVIDIA_SECTOR
            missed = (read[1] + written[1]) / _NVIDIA_SECTOR
        gaps = {L2_HIT: max(0.0, 1 - missed / requests)} if requests else {}
        return {**gaps, READ: read[1], WRITTEN: written[1]} if self._amd else gaps

    def _bytes(self, mine: Array) -> tuple[float, float]:
        """(bytes from the L2, bytes beyond it) of some instructions."""
        beyond = MALL if self._amd else HBM
        return float(self._sums[mine, L2].sum()), float(self._sums[mine, beyond].sum())

    def instructions(self) -> dict[str, float]:
        """Vector instructions of a wave, matrix instructions included, and LDS conflicts."""
        vector = np.isin(self._pipe, (cu.VALU, cu.MATRIX, cu.TRANS))
        gaps = {VECTOR: float(self._executions[vector].sum()) / self._waves}
        passes = float(self._sums[self._lds, PASSES].sum())
        if passes:
            ideal = float((self._ideal * self._executions)[self._lds].sum())
            gaps[CONFLICTS] = max(0.0, 1 - ideal / passes)
        return gaps


__all__ = ["hit_alone", "predicted_figures"]
