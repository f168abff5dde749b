"""Formulas that rank configurations before anything is compiled."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavecast.arch import Device
from wavecast.kernels.space import Settings
from wavecast.model.chip import Chip
from wavecast.model.memory import Traffic
from wavecast.model.ops.gemm.problem import Gemm, bounds, machine
from wavecast.model.streaming import Streaming, kernel_parts, kernel_seconds, lanes

LIBRARY = "triton"
_OVERLAP = 2.0
"""Exponent that joins memory and issue of a streaming kernel (`model.streaming`)."""
_FIXED_REGISTERS = 24
_REGISTERS = {"gfx": 512, "sm_": 255}
"""Registers a lane can have, by the beginning of a target; more elements spill."""


def tile(
    device: Device,
    settings: Settings,
    *,
    m: int,
    n: int,
    k: int,
    dtype: str,
    rows: int,
    columns: int,
    depth: int,
    splits: int = 1,
    batch: int = 1,
    groups: tuple[int, ...] = (),
    weight: str = "",
    scaling: str = "",
) -> float:
    """Seconds of a matrix product in tiles of `rows` x `columns` with steps of `depth` elements of
    K; `dtype`, `weight` and `scaling` as `model.ops.gemm.Gemm` names them.

    Raises MissingFact for a dtype the device has no rate of.
    """
    chip, known = machine(device)
    problem = _gemm(
        m, n, k, dtype, batch, groups, weight, scaling, rows, columns, depth, splits,
        int(settings.get("num_warps", 4)),
    )  # fmt: skip
    found = bounds(problem, problem.candidates(device.generation), chip, known)
    return float(np.asarray(found.seconds).flat[0])


@cache
def _gemm(
    m: int, n: int, k: int, dtype: str, batch: int, groups: tuple[int, ...], weight: str,
    scaling: str, rows: int, columns: int, depth: int, splits: int, waves: int,
) -> Gemm:  # fmt: skip
    plain = Gemm(m=m, n=n, k=k, dtype=dtype, weight=weight)
    size = plain.operands.a.size
    return Gemm(
        m=m,
        n=n,
        k=k,
        dtype=dtype,
        batch=batch,
        groups=groups,
        weight=weight,
        scaling=scaling,
        library=LIBRARY,
        tile=(rows, columns, max(1, int(depth * size))),
        splits=splits,
        waves=waves,
    )


def streaming(
    device: Device,
    settings: Settings,
    *,
    workgroups: int,
    read: float,
    written: float,
    elements: int,
    operations: float = 8.0,
    held: float = 1.0,
) -> float:
    """Seconds of a kernel that streams tensors: bytes `read` and `written` in all, each workgroup
    `operations` vector instructions on each of `elements` elements, of which it holds `held` 32-bit
    registers each at once.

    Configurations whose registers cannot be had come out last.
    """
    chip = Chip.of(device)
    threads = int(settings.get("num_warps", 4)) * chip.lanes
    per_thread = elements / threads
    registers = _FIXED_REGISTERS + held * per_thread
    limit = next(most for start, most in _REGISTERS.items() if device.target.startswith(start))
    if registers > limit:
        return 1.0 + registers
    launch = Streaming(
        Traffic(read, written, footprint=read + written, warm=False),
        workgroups=max(1, workgroups),
        issue=np.ceil(per_thread) * threads * operations / lanes(chip),
        overlap=_OVERLAP,
        threads=max(threads, round(threads * registers / 64)),
    )
    parts = kernel_parts(chip, launch)
    return float(kernel_seconds(chip, parts, _OVERLAP))


__all__ = ["LIBRARY", "streaming", "tile"]
