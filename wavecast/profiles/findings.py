"""What could make a profiled run faster, with the time it would save.

Every finding is from figures of the profile or of its predictions; savings of different findings
overlap and do not add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final

from wavecast.json_objects import JsonObject, NonNegative, doc
from wavecast.profiles.counters import L2_HIT, by_operator
from wavecast.profiles.predicted import PredictedProfile
from wavecast.profiles.profile import Profile
from wavecast.profiles.summary import (
    HOST,
    SYNCHRONISATION,
    DeviceSummary,
    ProfileSummary,
)

_TRAFFIC: Final = 1.5
"""Bytes by counters over the least bytes, above which memory traffic is reported."""
_LEAST: Final = 0.005
"""Share of the span below which nothing is reported."""
_ADVICE: Final[Mapping[str, str]] = {
    "gemm": "tune the library for these sizes, or another one (--what-if gemm=LIBRARY)",
    "attention": "another library (--what-if attention=LIBRARY)",
    "element-wise": "fuse it with its neighbours (torch.compile)",
    "index and copy": "avoid the copy: keep the layout, or write to the destination",
    "norm": "a fused norm, with the addition before it",
    "reduction": "fuse it with the operators around it (torch.compile)",
    "softmax": "a fused softmax",
    "optimizer": "a fused optimizer (fused=True)",
}
_ELSE: Final = "another kernel for these sizes"


class ProfileFinding(JsonObject):
    """What could make the run faster."""

    what: Annotated[str, doc("operator, kernels or device")]
    evidence: Annotated[str, doc("the figures")]
    advice: Annotated[str, doc("what to do")]
    seconds: Annotated[NonNegative, doc("time that it could save")]


def findings(
    profile: Profile, summary: ProfileSummary, predicted: PredictedProfile | None
) -> list[ProfileFinding]:
    """Those that save the most, first."""
    # What the file lacks may run where a device seems idle, or next to a collective.
    whole = [device for device in summary.devices if device.device not in profile.unknown_from]
    candidates = [*_idle(whole), *_collectives(whole)]
    if predicted:
        candidates += [*_slow(predicted), *_small_grids(profile, summary, predicted)]
        candidates += _memory(profile, predicted)
    span = max((device.span for device in summary.devices), default=0)
    significant = [finding for finding in candidates if finding.seconds >= _LEAST * span * 1e-9]
    return sorted(significant, key=lambda finding: -finding.seconds)


def _idle(devices: Sequence[DeviceSummary]) -> Iterator[ProfileFinding]:
    for device in devices:
        late = device.idle.get(HOST, 0)
        yield ProfileFinding(
            f"device {device.device} waits for the host",
            f"{late / max(1, device.span):.0%} of its time, nothing is launched yet",
            "graphs (--what-if graphs), torch.compile, or larger batches",
            late * 1e-9,
        )
        waited = device.idle.get(SYNCHRONISATION, 0)
        yield ProfileFinding(
            f"device {device.device} is idle after waits of the host",
            f"{waited / max(1, device.span):.0%} of its time, after a synchronising call",
            "avoid .item(), .cpu() and synchronize() between launches",
            waited * 1e-9,
        )


def _collectives(devices: Sequence[DeviceSummary]) -> Iterator[ProfileFinding]:
    for device in devices:
        yield ProfileFinding(
            f"collectives of device {device.device} run alone",
            f"{device.exposed / max(1, device.span):.0%} of its time, nothing else runs",
            "overlap them with computation, or look for the slowest rank",
            device.exposed * 1e-9,
        )


def _slow(predicted: PredictedProfile) -> Iterator[ProfileFinding]:
    """Operators that take longer than their 80 % interval."""
    for operator in predicted.known:
        if operator.measured > operator.high:
            yield ProfileFinding(
                f"{operator.name} {operator.sizes}",
                f"{operator.measured / operator.predicted:.2f} x the predicted time, "
                f"{operator.measured / operator.high:.2f} x the upper end of its interval",
                _ADVICE.get(operator.category, _ELSE),
                operator.measured - operator.predicted,
            )


def _memory(profile: Profile, predicted: PredictedProfile) -> Iterator[ProfileFinding]:
    """Operators whose memory traffic, by counters, is far above the least."""
    for operator in by_operator(profile, predicted):
        if (
            operator.moved is None
            or not operator.least
            or operator.moved < _TRAFFIC * operator.least
        ):
            continue
        time = predicted.operators[operator.row]
        hit = f", L2 hit {operator.figures[L2_HIT]:.0%}" if L2_HIT in operator.figures else ""
        yield ProfileFinding(
            f"{time.name} {time.sizes}",
            f"memory moves {operator.moved / operator.least:.1f} x the least bytes{hit}",
            "order workgroups so that those that run together share data, or larger tiles",
            time.measured * (1 - operator.least / operator.moved),
        )


def _small_grids(
    profile: Profile, summary: ProfileSummary, predicted: PredictedProfile
) -> Iterator[ProfileFinding]:
    """Kernels with fewer workgroups than compute units."""
    units = predicted.device.compute_units
    total, kernels = 0, 0
    for number, share in summary.by_kernel.items():
        x, y, z = profile.kernels[number].blocks
        if 0 < x * y * z < units:
            kernels += 1
            total += round(share.nanoseconds * (1 - x * y * z / units))
    if kernels:
        yield ProfileFinding(
            f"{kernels} kernels have fewer workgroups than the device has units",
            f"of {units} units some have no work",
            "smaller tiles, split-K, or several of these kernels at once",
            total * 1e-9,
        )


__all__ = ["ProfileFinding", "findings"]
