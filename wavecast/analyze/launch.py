"""Sizes a launch fixes: threads of a workgroup, waves of the whole grid."""

from __future__ import annotations

import math

from wavecast.compile.codeobject import CodeObject, Launch


def threads_of(code: CodeObject, launch: Launch | None) -> int:
    """Threads of a workgroup as the launch or the kernel fixes them, 0 when neither does."""
    if launch is not None and math.prod(launch.block) > 1:
        return math.prod(launch.block)
    return code.workgroup_size


def waves_of(launch: Launch | None, waves_per_workgroup: int) -> int | None:
    """Waves of all workgroups of the grid; None without a launch."""
    return None if launch is None else math.prod(launch.grid) * waves_per_workgroup
