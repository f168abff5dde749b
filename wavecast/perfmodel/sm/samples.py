"""Which workgroups of a SASS launch are followed with all their warps."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from wavecast.compile.codeobject import Launch
from wavecast.perfmodel.placement import LaunchPlacement

Array = np.ndarray[Any, Any]

TEMPLATES: Final = 4
"""Workgroups that are followed with all their warps."""


def sample_workgroups(placement: LaunchPlacement) -> Array:
    """Workgroups at equal distances in the launch."""
    count = min(TEMPLATES, placement.workgroups)
    return np.arange(count) * placement.workgroups // count


def workgroup_ids(launch: Launch, numbers: Array) -> Array:
    """The ids (x, y, z) of workgroups by their numbers (i64[n, 3])."""
    return np.array([launch.workgroup(int(number)) for number in numbers], np.int64).reshape(-1, 3)


__all__ = ["sample_workgroups", "workgroup_ids"]
