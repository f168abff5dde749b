"""The profile of an NVIDIA launch from its SASS: warps of some workgroups, followed.

Integer instructions are evaluated with the launch's arguments (`analyze.sass.walk`), so loops have
their trip counts and accesses the addresses of their lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from wavecast.analyze.result import CodeAnalysis
from wavecast.analyze.sass.control import controls
from wavecast.analyze.sass.rates import SassCharges
from wavecast.analyze.sass.tcgen05 import shapes
from wavecast.analyze.sass.walk import follow
from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.errors import Unpredictable
from wavecast.isa.program import Program
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.profile import LaunchProfile, ProfileSource
from wavecast.perfmodel.sm.code import SmCode
from wavecast.perfmodel.sm.followed import WARP, FollowedWorkgroups
from wavecast.perfmodel.sm.samples import sample_workgroups, workgroup_ids

ISSUE_ONLY: Final = frozenset({"uniform", "tma"})
"""Cost classes without a published rate whose instructions count as an issue slot."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SassProfile(LaunchProfile):
    """A launch of SASS: `code` has its instructions with their control bits and costs, `arrivals`
    (i64[n]) what completes a phase of each memory barrier."""

    code: SmCode
    arrivals: np.ndarray[Any, Any]


def profile_of_sass(
    launch: Launch, analysis: CodeAnalysis, program: Program, device: Device
) -> SassProfile:
    """The profile of a launch of an NVIDIA kernel.

    Raises Unpredictable where a loop depends on data, the grid or the arguments are not known, or
    an instruction has no known cost, MissingFact where the device lacks a number.
    """
    placement = LaunchPlacement.of(launch, analysis.occupancy, device, WARP)
    rates = SassCharges(device.target, placement.waves, shapes(program))
    charges = tuple(rates.of(i.decoded, i.index) for i in program.instructions)
    unknown = rates.unknown_rates - ISSUE_ONLY
    if unknown:
        names = ", ".join(sorted(unknown))
        raise Unpredictable(f"the rate of {names} is not known for {device.id}")
    code = SmCode.of(program, charges, controls(launch.code, program), placement.waves)
    workgroups = sample_workgroups(placement)
    numbers = np.repeat(workgroups, placement.waves)
    ids = workgroup_ids(launch, numbers)
    warps = np.tile(np.arange(placement.waves), len(workgroups))
    paths = follow(program, launch, ids, warps)
    sample = FollowedWorkgroups(code, paths, placement, device, launch, analysis)
    streams, arrivals = sample.streams()
    flops = analysis.matrix_flops_static
    return SassProfile(
        program=program,
        target=device.target,
        source=ProfileSource.CODE,
        placement=placement,
        streams=streams,
        traffic=sample.traffic,
        dtype=max(flops, key=lambda name: flops[name]) if flops else "",
        notes=sample.notes,
        origin=launch.code.origin,
        code=code,
        arrivals=arrivals,
    )


__all__ = ["SassProfile", "profile_of_sass"]
