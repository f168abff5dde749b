"""Configurations of the attention kernels, ranked by what limits a compute unit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import triton

from wavecast.arch import Device
from wavecast.kernels import estimates
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.ops.attention.machine import Machine

NO_BFLOAT_CONVERSION = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
"""Targets that round to bfloat16 in integer instructions."""
_RATES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}
_SCHEDULES = ("", "amdgpu-sched-strategy=iterative-ilp")
"""LLVM's usual order of instructions, and one that spends registers with more care."""
_MOST_REGISTERS = 250.0
"""Per lane; configurations estimated beyond come last."""
_FIXED_REGISTERS = 44.0
_FRAGMENT = 48.0
"""Registers of keys or values that the compiler reads from LDS ahead of their products, at most."""
_LATENCY = 1200.0
"""Clocks of a workgroup before its first and after its last step."""


def padded(head: int) -> int:
    """Elements of a head that tiles hold."""
    return max(16, triton.next_power_of_2(head))


def _forward_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    target = device.target
    axes: dict[str, Sequence[Any]] = {
        "BLOCK_M": (16, 32, 64, 128),
        "BLOCK_N": (32, 64, 128),
        "EDGE": (64, 32),
        "num_warps": (1, 2, 4, 8),
        "num_stages": (1, 2),
    }
    if problem["dtype"] == "float32":
        axes |= {"BLOCK_M": (16, 32, 64), "BLOCK_N": (16, 32), "EDGE": (16,), "num_stages": (1,)}
    if target.startswith("gfx"):
        axes |= {"waves_per_eu": (0, 2), "allow_flush_denorm": (True,)}
    if target.startswith("gfx9"):
        axes["matrix_instr_nonkdim"] = (32, 16)
    if target in ("gfx90a", "gfx942"):
        axes |= {"kpack": (1, 2), "llvm_fn_attrs": _SCHEDULES}
    return axes


def _forward_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, columns, edge = settings["BLOCK_M"], settings["BLOCK_N"], settings["EDGE"]
    warps, stages = settings["num_warps"], settings["num_stages"]
    if edge > columns or (edge < columns // 2 and edge != 32) or rows < 16 * warps and warps > 1:
        return False
    if device.target.startswith("sm") and warps < 4:
        return False
    if rows > 4 * triton.next_power_of_2(problem["queries"]):
        return False
    shape = settings.get("matrix_instr_nonkdim", 16)
    if rows < shape * warps or edge < shape:
        return False
    if not _one_of_a_kind(problem, settings, device):
        return False
    if _forward_lds(problem, settings, device) > device.limits().lds_max_per_workgroup:
        return False
    return True


def _one_of_a_kind(problem: Problem, settings: Settings, device: Device) -> bool:
    """Compiler options that go together."""
    pipelined = settings["num_stages"] > 1
    if "kpack" in settings:
        special = pipelined and settings.get("matrix_instr_nonkdim") == 32
        if (settings["kpack"] == 2) != special:
            return False
        if (settings["llvm_fn_attrs"] != "") != special:
            return False
    # Two waves per SIMD asked for only where they are within reach and would not come by themselves
    return "waves_per_eu" not in settings or (
        settings["waves_per_eu"] == (2 if device.target in ("gfx90a", "gfx942") else 0)
    )


def _forward_lds(problem: Problem, settings: Settings, device: Device) -> float:
    size = getattr(torch, problem["dtype"]).itemsize
    head = padded(problem["head"]) + padded(problem["head_v"])
    buffers = settings["num_stages"] if device.target == "gfx950" else 1
    if device.target.startswith("sm"):
        buffers = max(1, settings["num_stages"])
    rows = settings["BLOCK_M"] if not device.target.startswith("gfx9") else 0
    tiles = buffers * settings["BLOCK_N"] * head * size
    return tiles + rows * padded(problem["head"]) * size * (device.target.startswith("sm"))


def _forward_registers(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns, lanes = settings["BLOCK_M"], settings["BLOCK_N"], device.wave_lanes
    threads = settings["num_warps"] * lanes
    words = getattr(torch, problem["dtype"]).itemsize / 4
    head, head_v = padded(problem["head"]), padded(problem["head_v"])
    twice = 2.0 if device.target == "gfx1100" else 1.0  # both halves of a wave hold operands
    fragment = min(_FRAGMENT, twice * columns * max(head, head_v) * words / lanes)
    staged = settings["num_stages"] > 1 and device.target != "gfx950"
    return (
        _FIXED_REGISTERS
        + rows * head_v / threads
        + rows * columns / threads
        + twice * rows * head * words / threads
        + fragment
        + (columns * (head + head_v) * words / threads if staged else 0.0)
        + (16.0 if "dropout" in problem["flags"] else 0.0)
    )


def _forward_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    """Matrix, vector and LDS clocks per score, which the waves of a SIMD hide of each other the
    better the more there are."""
    registers = _forward_registers(problem, settings, device)
    if registers > _MOST_REGISTERS:
        return 1.0 + registers
    machine = Machine.of(device)
    chip = machine.chip
    rows, columns, warps = settings["BLOCK_M"], settings["BLOCK_N"], settings["num_warps"]
    words = getattr(torch, problem["dtype"]).itemsize / 4
    head, head_v = padded(problem["head"]), padded(problem["head_v"])
    rate = chip.matrix_rate(_RATES[problem["dtype"]])
    if device.target == "gfx1100" and problem["dtype"] == "float32":
        rate = chip.vector_flops
    matrix = 2.0 * (head + head_v) / rate
    rounding = 1.5 if problem["dtype"] == "bfloat16" else 0.5
    operations = 4.0 + rounding + head_v / columns + (40.0 if "dropout" in problem["flags"] else 0)
    vector = operations / machine.lanes + 1.0 / machine.exponentials
    lds = 4.0 * words * (head + head_v) * warps / rows / chip.lds_rate * 1.25
    space = {"gfx9": 512, "gfx1": 1536}.get(device.target[:4], 512)
    resident = max(1, min(space // max(registers, 1), 8)) * chip.simds // warps
    local = max(1.0, _forward_lds(problem, settings, device))
    resident = max(1, min(resident, chip.lds_bytes // local))
    per_simd = max(1.0, resident * warps / chip.simds)
    power = 1.0 + 1.6 * (1 - 1 / per_simd) + (0.5 if settings["num_stages"] > 1 else 0.0)
    clocks = (matrix**power + vector**power + lds**power) ** (1 / power)
    step = 500.0 if settings["num_stages"] > 1 else 500.0 + chip.latency["l2"] * chip.clock
    widths = _widths(problem, rows, columns, settings["EDGE"])
    workgroups = len(widths) * problem["heads"] * problem["batch"]
    spans = (
        widths * rows * clocks
        + widths / columns * step / resident / per_simd
        + (_LATENCY / resident)
    )
    total = float(spans.sum()) * problem["heads"] * problem["batch"] / chip.units
    slots = chip.units
    rounds = math.ceil(workgroups / slots) / (workgroups / slots)
    longest = float(spans.max())
    compute = max(total, longest) * (rounds if not problem["window"][1] else 1.0)
    moved = float(widths.sum()) * problem["heads"] * problem["batch"] * 4 * words * (head + head_v)
    cached = moved / (chip.l2_bandwidth or 4 * chip.hbm)
    return (compute / chip.clock) + 0.3 * cached


def _widths(problem: Problem, rows: int, columns: int, edge: int) -> np.ndarray:
    """Keys that each block of queries of a head walks over."""
    queries, keys = problem["queries"], problem["keys"]
    first = np.arange(triton.cdiv(queries, rows)) * rows + keys - queries
    last = np.minimum(first + rows, keys) - 1
    left, right = problem["left"], problem["right"]
    hi = np.full(len(first), keys) if right < 0 else np.clip(last + right + 1, 0, keys)
    lo = np.zeros(len(first)) if left < 0 else np.maximum(first - left, 0) // edge * edge
    return np.maximum(np.ceil((hi - lo) / edge) * edge, 1.0)


FORWARD = Space(
    kernel="attention_kernel",
    axes=_forward_axes,
    fits=_forward_fits,
    seconds=_forward_seconds,
    classes=("batch", "queries", "keys", "left"),
)


def _backward_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    axes: dict[str, Sequence[Any]] = {
        "BLOCK_M": (16, 32, 64, 128),
        "BLOCK_N": (16, 32, 64, 128),
        "EDGE": (16, 32),
        "num_warps": (1, 2, 4, 8),
        "num_stages": (1, 2),
    }
    if device.target.startswith("gfx"):
        axes |= {"waves_per_eu": (0,), "allow_flush_denorm": (True,)}
    if device.target.startswith("gfx9"):
        axes["matrix_instr_nonkdim"] = (32, 16)
    return axes


def _backward_kv_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    return True


def _backward_kv_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    return 1.0


BACKWARD_KV = Space(
    kernel="attention_backward_kv_kernel",
    axes=_backward_axes,
    fits=_backward_kv_fits,
    seconds=_backward_kv_seconds,
    classes=("batch", "queries", "keys", "left"),
)
BACKWARD_Q = Space(
    kernel="attention_backward_q_kernel",
    axes=_backward_axes,
    fits=_backward_kv_fits,
    seconds=_backward_kv_seconds,
    classes=("batch", "queries", "keys", "left"),
)


def _delta_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {"ROWS": (4, 8, 16, 32, 64), "num_warps": (1, 2, 4), "num_stages": (1,)}


def _delta_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, head = problem["rows"], problem["head"]
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(rows, settings["ROWS"]),
        read=2.0 * rows * head * problem["bytes"],
        written=4.0 * rows,
        elements=settings["ROWS"] * padded(head),
        operations=4.0,
        held=1.5,
    )


DELTA = Space(
    kernel="attention_delta_kernel",
    axes=_delta_axes,
    seconds=_delta_seconds,
    classes=("rows",),
)

__all__ = ["BACKWARD_KV", "BACKWARD_Q", "DELTA", "FORWARD", "NO_BFLOAT_CONVERSION", "padded"]
