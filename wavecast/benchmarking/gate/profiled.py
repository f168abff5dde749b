"""Figures of a profile that a gate judges: the time of all kernels, and of each category."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from wavecast.arch import Device
from wavecast.benchmarking.gate.guards import Guard
from wavecast.benchmarking.gate.scripts import EnvironmentOf
from wavecast.benchmarking.records import BenchRecord, BenchSubject, Conditions, Figure
from wavecast.errors import NothingAnalysed, UsageError
from wavecast.profiles.chips import chips
from wavecast.profiles.reading import read
from wavecast.profiles.summary import summarise

ALL = "all"


def profile_records(
    guard: Guard, device: Device, root: Path, environment_of: EnvironmentOf
) -> tuple[BenchRecord, ...]:
    """Records named `FILE:all` and `FILE:CATEGORY`, with seconds.

    Raises InputError for a file that cannot be read, NothingAnalysed without kernels, UsageError
    where the file is of another chip.
    """
    profile = read(root / guard.name)
    summary = summarise(profile)
    if not summary.kernel_time:
        raise NothingAnalysed(f"{guard.name} has no kernel times")
    for device_info in profile.devices.values():
        ids = [chip.id for chip in chips(device_info)]
        if ids and device.id not in ids:
            raise UsageError(f"{guard.name} is a profile of {', '.join(ids)}, not {device.id}")
    times = {ALL: summary.kernel_time}
    times |= {name: share.nanoseconds for name, share in summary.by_category.items()}
    environment = replace(environment_of(device), emulated=False)
    return tuple(
        BenchRecord(
            subject=BenchSubject("kernel", f"{guard.name}:{name.replace(' ', '-')}", {}),
            environment=environment,
            conditions=Conditions(timing=profile.tool),
            figures={"measured_seconds": Figure(time * 1e-9, "imported")},
        )
        for name, time in times.items()
    )


__all__ = ["ALL", "profile_records"]
