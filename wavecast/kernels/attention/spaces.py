"""Configurations of the attention kernels, ranked by what limits a compute unit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton

from wavecast.arch import Device
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.ops.attention.machine import Machine

_RATES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}


def padded(head: int) -> int:
    """Elements of a head that tiles hold."""
    return max(16, triton.next_power_of_2(head))


def _forward_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    wide = problem["dtype"] == "float32"
    amd = device.target.startswith("gfx")
    gfx9 = device.target.startswith("gfx9")
    axes: dict[str, Sequence[Any]] = {
        "BLOCK_M": (16, 32, 64) if wide else (16, 32, 64, 128, 256),
        "BLOCK_N": (16, 32) if wide else (32, 64, 128),
        "num_warps": (2, 4, 8),
        "num_stages": (1,) if wide else (1, 2),
    }
    if amd:
        axes["waves_per_eu"] = (0,)
        axes["allow_flush_denorm"] = (True,)
    if gfx9:
        axes["matrix_instr_nonkdim"] = (16, 32)
    return axes


def _forward_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    return True


def _forward_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    return 1.0


FORWARD = Space(
    kernel="attention_kernel",
    axes=_forward_axes,
    fits=_forward_fits,
    seconds=_forward_seconds,
    classes=("batch", "queries", "keys", "left"),
)

__all__ = ["FORWARD", "padded"]
