"""What a profile has next to the times of kernels: copies and collectives with their bandwidth,
ranges, sequences, memory, queues. It is analysed once, for every format of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wavecast.profiles.annotations import AnnotatedTime, annotated_time
from wavecast.profiles.counters import CountedLaunches, by_kernel
from wavecast.profiles.critical import CriticalPath, critical_path
from wavecast.profiles.launching import (
    LaunchCosts,
    QueueLength,
    launch_costs,
    queue_lengths,
)
from wavecast.profiles.memory import TensorMemory, memory_use
from wavecast.profiles.profile import Profile
from wavecast.profiles.sequences import KernelSequence, kernel_sequences
from wavecast.profiles.summary import KernelVariation, ProfileSummary, variations
from wavecast.profiles.traffic import (
    CollectiveTraffic,
    CopyTraffic,
    collective_traffic,
    copy_traffic,
)


@dataclass(frozen=True, slots=True)
class DeviceActivity:
    """A device: its critical path, what launches cost (None: the calls are not known), and the
    queues of its streams."""

    path: CriticalPath
    costs: LaunchCosts | None
    queues: list[QueueLength]


@dataclass(frozen=True, slots=True)
class ProfileActivity:
    """Lists with the most time first; `variations` and `counters` by number of the kernel."""

    devices: Mapping[int, DeviceActivity]
    copies: list[CopyTraffic]
    memory: list[TensorMemory]
    collectives: list[CollectiveTraffic]
    annotations: list[AnnotatedTime]
    sequences: list[KernelSequence]
    variations: Mapping[int, KernelVariation]
    counters: Mapping[int, CountedLaunches]


def activity(profile: Profile, summary: ProfileSummary) -> ProfileActivity:
    """That of all devices of a profile."""
    return ProfileActivity(
        devices={device.device: _device(profile, device.device) for device in summary.devices},
        copies=copy_traffic(profile),
        memory=memory_use(profile),
        collectives=collective_traffic(profile),
        annotations=annotated_time(profile),
        sequences=kernel_sequences(profile),
        variations=variations(profile),
        counters=by_kernel(profile),
    )


def _device(profile: Profile, device: int) -> DeviceActivity:
    return DeviceActivity(
        critical_path(profile, device),
        launch_costs(profile, device),
        queue_lengths(profile, device),
    )


__all__ = ["DeviceActivity", "ProfileActivity", "activity"]
