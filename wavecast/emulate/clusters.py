"""Clusters of workgroups: they run at the same time and have a barrier.

TTMP registers say which workgroup a wave is of: those of the workgroup's number have the number
of the cluster, TTMP6 the workgroup within it (4 bits each of x, y, z, then the largest of each,
then the largest flat number). Source: LLVM, SIISelLowering.cpp, `lowerWorkGroupId` and the cluster
intrinsics; "User Guide for AMDGPU Backend", `amdgpu-cluster-dims`.

A load for several workgroups of a cluster is executed by each of them, and each has its own copy
here. Source: AMD comgr's rewriting of gfx1250 code, which makes `cluster_load_*` the global load.
"""

from __future__ import annotations

import math

import numpy as np

from wavecast.arch import capabilities
from wavecast.compile.codeobject import Launch
from wavecast.emulate import hostmemory
from wavecast.errors import LaunchError
from wavecast.isa.targets import isa_target

MAXIMUM_THREADS = 1024
"""Work-items of a workgroup on every AMD target. Source: LLVM AMDGPU usage, "max flat workgroup
size"."""
LARGEST = 16
"""Workgroups of a cluster. Source: 4 bits of a flat number in IB_STS2, 16 of a workgroup mask."""
WORDS = 2
"""64-bit words of a cluster's barrier: arrivals, and how often all have arrived."""


def check(launch: Launch) -> None:
    """Raises LaunchError where the target has no clusters, or they do not divide the grid."""
    size = launch.cluster
    total = math.prod(size)
    if total == 1:
        return
    name = launch.code.kernel
    if not capabilities(isa_target(launch.code.target)).clusters:
        raise LaunchError(f"{name}: {launch.code.target} has no clusters of workgroups")
    if min(size) < 1 or total > LARGEST:
        raise LaunchError(f"{name}: a cluster of {size}", hint=f"1 to {LARGEST} workgroups")
    if any(groups % each for groups, each in zip(launch.grid, size, strict=True)):
        raise LaunchError(f"{name}: clusters of {size} do not divide a grid of {launch.grid}")


def barriers(launch: Launch) -> np.ndarray:
    """Memory of the barriers of all clusters (uint64), none for launches without clusters."""
    total = math.prod(launch.cluster)
    count = math.prod(launch.grid) // total if total > 1 else 0
    return hostmemory.zeros(max(1, WORDS * count), np.uint64)


def order(launch: Launch) -> np.ndarray | None:
    """The numbers of the workgroups (int64), cluster by cluster; None without clusters."""
    if math.prod(launch.cluster) == 1:
        return None
    x, y, z = launch.grid
    a, b, c = launch.cluster
    numbers = np.arange(x * y * z, dtype=np.int64).reshape(z // c, c, y // b, b, x // a, a)
    return np.ascontiguousarray(numbers.transpose(0, 2, 4, 1, 3, 5).reshape(-1))


__all__ = ["LARGEST", "MAXIMUM_THREADS", "WORDS", "barriers", "check", "order"]
