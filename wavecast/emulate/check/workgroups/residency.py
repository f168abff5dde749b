"""Workgroups that wait for others which cannot start: a barrier of more than the GPU holds at once.

Workgroups start in order, each once the GPU has room for it. In check mode at most as many as the
device holds are under way. Where all of them only wait, and others have not started, the launch
would hang a GPU; here it continues without the limit, and is reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wavecast import arch as devices
from wavecast.analyze.occupancy import kernel_occupancy
from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.emulate.reports import Kind, Report
from wavecast.errors import MissingFact, UnknownName, UsageError
from wavecast.isa.program import Kernel, KernelDescriptor


@dataclass(frozen=True, slots=True)
class ResidentGroups:
    """How many workgroups of a launch a device holds at once."""

    device: str
    per_unit: int
    units: int
    unit: str
    limiter: str

    @property
    def workgroups(self) -> int:
        return self.per_unit * self.units


def residency(
    launch: Launch, descriptor: KernelDescriptor, device: Device | None
) -> ResidentGroups | None:
    """That of `device`, by default the one that the code is compiled for; None where a fact of it
    is not known."""
    lds_bytes = descriptor.lds_bytes + launch.dynamic_lds
    try:
        device = device or devices.load(launch.code.target)
        occupancy = kernel_occupancy(device, descriptor, lds_bytes, math.prod(launch.block))
        cu_mode = descriptor.directives.get("workgroup_processor_mode") == 0
        units = device.limits(descriptor.wave_size, cu_mode=cu_mode).units or device.compute_units
    except (MissingFact, UnknownName, UsageError):
        return None
    return ResidentGroups(device.id, occupancy.workgroups, units, occupancy.unit, occupancy.limiter)


def starvation_report(kernel: Kernel, launch: Launch, limit: ResidentGroups, index: int) -> Report:
    """The report of workgroups that wait at an instruction for others that cannot start."""
    instruction = kernel.program.instructions[index]
    groups = math.prod(launch.grid)
    return Report(
        kind=Kind.NOT_RESIDENT,
        kernel=kernel.name,
        target=kernel.program.target,
        message=f"waits for workgroups that cannot start: of {groups:,} workgroups {limit.device} "
        f"holds {limit.workgroups:,} of this kernel at once ({limit.per_unit} per {limit.unit}, "
        f"limited by {limit.limiter}, and {limit.units} of these), and all of them wait; launch at "
        f"most {limit.workgroups:,}, or wait only for workgroups with lower numbers",
        instruction=index,
        text=instruction.decoded.text,
        location=instruction.location,
    )


__all__ = ["ResidentGroups", "residency", "starvation_report"]
