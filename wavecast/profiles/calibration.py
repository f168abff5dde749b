"""Facts of a chip from a profile of it: clock under load, memory bandwidth, launch time.

The file that is written is one for `--arch-file`, so that later predictions on this machine use it.
Each fact is from the operators that it limits; other errors of their predictions are in it too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.arch.device import Device
from wavecast.errors import NothingAnalysed
from wavecast.perfmodel.chip import Chip
from wavecast.profiles.predicted import OperatorTime, PredictedProfile
from wavecast.profiles.profile import Profile

_MATRIX: Final = frozenset({"matrix"})
_MEMORY: Final = frozenset({"HBM"})
_LEAST_SHARE: Final = 0.02
"""The least share of the time of all kernels in those that a fact is fitted to."""
_LEAST_LAUNCHES: Final = 5


@dataclass(frozen=True, slots=True)
class FittedFact:
    """A field of `wavecast arch` with its fitted value, the value before, and what it is from."""

    field: str
    value: float
    before: float
    unit: str
    origin: str


def fit_facts(profile: Profile, predicted: PredictedProfile) -> tuple[FittedFact, ...]:
    """The facts that the profile tells. Raises NothingAnalysed where it tells none."""
    chip = Chip.of(predicted.device)
    facts = [*_clock(chip, predicted), *_bandwidth(chip, predicted), *_launch(chip, profile)]
    if not facts:
        raise NothingAnalysed(
            f"nothing to fit {predicted.device.id} to",
            hint="the profile needs operators with sizes that matrix rate or memory limits",
        )
    return tuple(facts)


def _factor(
    predicted: PredictedProfile, limiters: frozenset[str]
) -> tuple[float, Sequence[OperatorTime]] | None:
    """(geometric mean of predicted over measured time, weighted by time; the operators)."""
    mine = [
        operator
        for operator in predicted.known
        if operator.limiter in limiters and operator.measured
    ]
    weights = [operator.measured for operator in mine]
    if sum(weights) < _LEAST_SHARE * predicted.measured or not mine:
        return None
    logs = [math.log(operator.predicted / operator.measured) for operator in mine]
    return math.exp(float(np.average(logs, weights=weights))), mine


def _clock(chip: Chip, predicted: PredictedProfile) -> list[FittedFact]:
    fit = _factor(predicted, _MATRIX)
    if fit is None:
        return []
    factor, mine = fit
    before = chip.clock * 1e-6
    return [_fact("peak_clock", min(1.0, factor) * before, before, "MHz", mine, predicted)]


def _bandwidth(chip: Chip, predicted: PredictedProfile) -> list[FittedFact]:
    fit = _factor(predicted, _MEMORY)
    if fit is None:
        return []
    factor, mine = fit
    before = chip.hbm * 1e-9
    value = min(factor * before, chip.hbm_peak * 1e-9)
    return [_fact("meas_mem_bw", value, before, "GB/s", mine, predicted)]


def _fact(
    field: str,
    value: float,
    before: float,
    unit: str,
    mine: Sequence[OperatorTime],
    predicted: PredictedProfile,
) -> FittedFact:
    share = sum(operator.measured for operator in mine) / predicted.measured
    origin = f"{len(mine)} operators, {share:.0%} of the time of the kernels"
    return FittedFact(field, value, before, unit, origin)


def _launch(chip: Chip, profile: Profile) -> list[FittedFact]:
    """The lower quartile of kernels with one workgroup: hardly more than their launch."""
    launches = profile.launches
    single = [kernel.blocks == (1, 1, 1) for kernel in profile.kernels.values]
    times = [
        duration
        for info, duration in zip(launches.info, launches.duration, strict=True)
        if single[info] and duration
    ]
    if len(times) < _LEAST_LAUNCHES:
        return []
    value = float(np.quantile(times, 0.25)) * 1e-3
    origin = f"the lower quartile of {len(times)} launches with one workgroup"
    return [FittedFact("meas_launch", value, chip.launch * 1e6, "us", origin)]


def overlay(device: Device, facts: Sequence[FittedFact], source: str) -> str:
    """The facts as TOML for `--arch-file`; `source` is the profile."""
    lines = [
        f"# Fitted by wavecast profile --calibrate to {_plain(source)}.",
        f'device = "{device.id}"',
        "",
        "[fields]",
    ]
    lines += [
        f'{fact.field} = {{ value = {fact.value:.6g}, unit = "{fact.unit}", '
        f'source = "{_plain(source)}", note = "was {fact.before:.6g}; from {fact.origin}" }}'
        for fact in facts
    ]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text that can be in a string or a comment of TOML."""
    return "".join(c if c.isprintable() and c not in '"\\' else "_" for c in text)


def overlaid(device: Device) -> list[str]:
    """What the user's files changed about a device, a line per fact."""
    return [
        f"{device.id}: {name} is {fact.value:g} {fact.unit}, from {fact.sources[0]}"
        for name, fact in device.facts.mapping.items()
        if fact.status == "override" and isinstance(fact.value, int | float)
    ]


__all__ = ["FittedFact", "fit_facts", "overlaid", "overlay"]
