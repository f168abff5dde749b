"""Configurations of the attention kernels, ranked by what limits a compute unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
_BY_ILP = "amdgpu-sched-strategy=iterative-ilp"
"""The order of instructions by LLVM that keeps pipelined loops within their registers."""
_FIXED_REGISTERS = 44.0
_FRAGMENT = {"gfx1100": 96.0, "": 48.0}
"""Registers of keys or values that the compiler reads from LDS ahead of their products, at most."""
_MOST_REGISTERS = {"gfx9": 490.0, "gfx1": 240.0, "sm": 240.0}
"""Per lane, by the beginning of a target; configurations estimated beyond come last."""
_FILE = {"gfx9": 512.0, "gfx1": 1536.0, "sm": 512.0}
"""Registers per lane of a SIMD, for all its waves."""
_START = 1200.0
"""Clocks of a workgroup before its first and after its last step."""
_STEP = 500.0
"""Clocks of a step that only other waves hide: barriers, and LDS before the first product."""


@dataclass(frozen=True, slots=True)
class _Tile:
    """What one configuration of a kernel does. A workgroup holds `rows` of queries (of keys in the
    gradient of keys and values) and walks over the others `columns` at a time. Per score: `flops`,
    `operations` of lanes, and bytes of LDS; `registers` are per lane, `lds` bytes."""

    rows: int
    columns: int
    flops: float
    operations: float
    lds_traffic: float
    registers: float
    lds: float
    moved: float
    """Bytes a workgroup reads per row it walks over."""


def padded(head: int) -> int:
    """Elements of a head that tiles hold."""
    return max(16, triton.next_power_of_2(head))


def _by_target(table: Mapping[str, float], device: Device) -> float:
    return next(value for start, value in table.items() if device.target.startswith(start))


def _size(problem: Problem) -> int:
    return getattr(torch, problem["dtype"]).itemsize


def _heads(problem: Problem) -> tuple[int, int]:
    return padded(problem["head"]), padded(problem["head_v"])


def _twice(problem: Problem, device: Device) -> float:
    """Both halves of a wave of RDNA 3 hold the operands of its matrix instructions."""
    return 2.0 if device.target == "gfx1100" else 1.0


def _by_lanes(problem: Problem, device: Device) -> bool:
    """Whether products are sums of vector instructions, for want of matrix instructions."""
    return problem["dtype"] == "float32" and device.target.startswith("gfx1")


def _rounding(problem: Problem, device: Device) -> float:
    """Operations of a value that becomes an operand."""
    if problem["dtype"] != "bfloat16":
        return 0.5
    return 1.5 if device.target in NO_BFLOAT_CONVERSION else 0.5


def _axes(problem: Problem, device: Device) -> dict[str, Sequence[Any]]:
    """Those all kernels have."""
    wide = problem["dtype"] == "float32"
    rdna = device.target.startswith("gfx1")
    nvidia = device.target.startswith("sm")
    large = max(_heads(problem)) > 128
    axes: dict[str, Sequence[Any]] = {
        "num_warps": (4, 8) if nvidia else (1, 2, 4, 8),
        "num_stages": (1,) if wide else (2, 1),
        "CHUNK": (0, 64, 32) if rdna else (0, 64) if large else (0,),
    }
    if not nvidia:
        axes |= {"waves_per_eu": (0, 2), "allow_flush_denorm": (True,)}
    if device.target.startswith("gfx9"):
        axes["matrix_instr_nonkdim"] = (32, 16)
    if device.target in ("gfx90a", "gfx942"):
        axes |= {"kpack": (1, 2), "llvm_fn_attrs": ("", _BY_ILP)}
    return axes


def _forward_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    if problem["dtype"] == "float32":
        blocks = {"BLOCK_M": (16, 32, 64), "BLOCK_N": (16, 32), "EDGE": (16,)}
    elif device.target.startswith("gfx1"):
        blocks = {"BLOCK_M": (16, 32, 64, 128), "BLOCK_N": (16, 32, 64), "EDGE": (32, 16)}
    else:
        edges = (64, 32) if device.target == "gfx950" else (32, 64)
        blocks = {"BLOCK_M": (16, 32, 64, 128), "BLOCK_N": (32, 64, 128), "EDGE": edges}
    return {**blocks, **_axes(problem, device)}


def _forward_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    columns, edge = settings["BLOCK_N"], settings["EDGE"]
    if edge != columns and edge != max(columns // 2, 32 if columns > 16 else 16):
        return problem["dtype"] == "float32" and _fits(_forward_tile, problem, settings, device)
    return _fits(_forward_tile, problem, settings, device)


def _backward_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    axes = {
        "BLOCK_M": (16, 32, 64, 128),
        "BLOCK_N": (16, 32, 64, 128),
        "EDGE": (16,) if problem["dtype"] == "float32" else (32, 16),
        **_axes(problem, device),
    }
    if device.target in ("gfx90a", "gfx942", "gfx1100", "gfx1201"):
        axes["num_stages"] = (1,)  # operands used both ways are slow to read once pipelined
    return axes


def _backward_kv_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    large = max(_heads(problem)) > 128
    splits = (False, True) if large or device.target.startswith("gfx1") else (False,)
    return {**_backward_axes(problem, device), "SPLIT": splits}


def _backward_kv_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    wanted = min(32 if problem["dtype"] != "float32" else 16, settings["BLOCK_M"])
    return settings["EDGE"] == wanted and _fits(_backward_kv_tile, problem, settings, device)


def _backward_q_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    wanted = min(32 if problem["dtype"] != "float32" else 16, settings["BLOCK_N"])
    return settings["EDGE"] == wanted and _fits(_backward_q_tile, problem, settings, device)


_Tiles = Callable[[Problem, Settings, Device], _Tile]


def _fits(tiles: _Tiles, problem: Problem, settings: Settings, device: Device) -> bool:
    """Whether matrix instructions, LDS and options go together."""
    tile, warps = tiles(problem, settings, device), settings["num_warps"]
    shape = settings.get("matrix_instr_nonkdim", 16)
    each = shape if device.target.startswith("gfx") else 16
    if _by_lanes(problem, device):
        if tile.rows * tile.columns < 32 * warps:
            return False
    elif tile.rows < each * warps:
        return False
    if settings["EDGE"] < shape or tile.columns < shape:
        return False
    if tile.rows == 16 and problem["queries"] > 16 and warps == 1 and shape == 32:
        return False
    if settings["CHUNK"] and (settings["CHUNK"] > min(_heads(problem)) or shape == 32):
        return False
    if problem["dtype"] == "float32" and tile.rows * tile.columns > 2048:
        return False
    if tile.lds > device.limits().lds_max_per_workgroup:
        return False
    gfx942 = "kpack" in settings
    pipelined = gfx942 and settings["num_stages"] > 1 and shape == 32
    if gfx942:
        both = settings["kpack"] == 2, settings["llvm_fn_attrs"] != ""
        if both != (pipelined, pipelined) or (settings["num_stages"] > 1) != pipelined:
            return False
    return settings.get("waves_per_eu", 0) == (2 if pipelined else 0)


def _registers(
    problem: Problem,
    settings: Settings,
    device: Device,
    *,
    rows: int,
    columns: int,
    accumulated: float,
    held: float,
    scores: float,
    fragments: float = 1,
) -> float:
    """Per lane, of a workgroup with `accumulated` and `held` elements per row and so many tiles of
    `scores` and of `fragments` of the others."""
    threads = settings["num_warps"] * device.wave_lanes
    words, twice = _size(problem) / 4, _twice(problem, device)
    head, head_v = _heads(problem)
    if settings["CHUNK"]:
        held = settings["CHUNK"]
    if _by_lanes(problem, device):  # a lane holds all rows and columns its sums are made of
        depth = settings["CHUNK"] or max(head, head_v)
        fragment = 2 * depth * math.sqrt(max(1.0, rows * columns / threads))
        fragment = max(fragment, 2 * columns * math.sqrt(rows * max(head, head_v) / threads))
        of_row = accumulated + held + scores * columns
        return _FIXED_REGISTERS + rows * of_row / threads + fragment
    fragment = twice * columns * max(head, head_v) * words / device.wave_lanes
    staged = settings["num_stages"] > 1 and device.target in ("gfx90a", "gfx942", "gfx1201")
    return (
        _FIXED_REGISTERS
        + rows * accumulated / threads
        + twice * rows * held * words / threads
        + scores * rows * columns / threads
        + fragments * min(fragment, _by_target(_FRAGMENT, device))
        + (columns * (head + head_v) * words / threads if staged else 0.0)
        + (16.0 if "dropout" in problem["flags"] else 0.0)
    )


def _lds(problem: Problem, settings: Settings, device: Device, rows: int, columns: int) -> float:
    size, head = _size(problem), sum(_heads(problem))
    stages = settings["num_stages"]
    buffers = stages if device.target == "gfx950" or device.target.startswith("sm") else 1
    held = rows * head * size if device.target.startswith("sm") else 0
    padding = 1.06 if device.target == "gfx950" else 1.0
    return buffers * columns * head * size * padding + held


def _operations(problem: Problem) -> float:
    extra = {"dropout": 40.0, "cap": 14.0, "alibi": 3.0}
    return 4.0 + sum(extra.get(flag, 0.0) for flag in problem["flags"].split())


def _forward_tile(problem: Problem, settings: Settings, device: Device) -> _Tile:
    rows, columns, warps = settings["BLOCK_M"], settings["BLOCK_N"], settings["num_warps"]
    head, head_v = _heads(problem)
    size = _size(problem)
    again = 2.0 * head * size / columns if settings["CHUNK"] else 0.0
    return _Tile(
        rows,
        columns,
        2.0 * (head + head_v),
        _operations(problem) + _rounding(problem, device) + head_v / columns,
        1.25 * size * (head + head_v) * warps / rows + again,
        _registers(
            problem, settings, device,
            rows=rows, columns=columns, accumulated=head_v, held=head, scores=1,
        ),
        _lds(problem, settings, device, rows, columns),
        size * (head + head_v),
    )  # fmt: skip


def _backward_kv_tile(problem: Problem, settings: Settings, device: Device) -> _Tile:
    rows, columns, warps = settings["BLOCK_N"], settings["BLOCK_M"], settings["num_warps"]
    head, head_v = _heads(problem)
    size, split = _size(problem), settings["SPLIT"]
    again = 2.0 * (head + head_v) * size / columns if settings["CHUNK"] else 0.0
    return _Tile(
        rows,
        columns,
        2.0 * (2 * head + 2 * head_v + (head if split else 0)),
        _operations(problem) + 5.0 + 2 * _rounding(problem, device) + (8.0 if split else 0.0),
        2.5 * size * (head + head_v) * warps / rows + again,
        _registers(
            problem, settings, device, rows=rows, columns=columns,
            accumulated=max(head, head_v) if split else head + head_v,
            held=head + head_v, scores=3, fragments=2,
        ),
        _lds(problem, settings, device, rows, columns),
        size * (head + head_v),
    )  # fmt: skip


def _backward_q_tile(problem: Problem, settings: Settings, device: Device) -> _Tile:
    rows, columns, warps = settings["BLOCK_M"], settings["BLOCK_N"], settings["num_warps"]
    head, head_v = _heads(problem)
    size = _size(problem)
    again = 2.0 * (head + head_v) * size / columns if settings["CHUNK"] else 0.0
    return _Tile(
        rows,
        columns,
        2.0 * (2 * head + head_v),
        _operations(problem) + 4.0 + _rounding(problem, device),
        1.25 * size * (2 * head + head_v) * warps / rows + again,
        _registers(
            problem, settings, device,
            rows=rows, columns=columns, accumulated=head, held=head + head_v, scores=2,
        ),
        _lds(problem, settings, device, rows, columns),
        size * (head + head_v),
    )  # fmt: skip


def _forward_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    widths = _keys_seen(problem, settings["BLOCK_M"], settings["EDGE"])
    return _seconds(problem, settings, device, _forward_tile, widths, problem["heads"])


def _backward_kv_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    widths = _queries_seen(problem, settings["BLOCK_N"], settings["EDGE"])
    widths = widths * (problem["heads"] // problem["shared"])
    return _seconds(problem, settings, device, _backward_kv_tile, widths, problem["shared"])


def _backward_q_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    widths = _keys_seen(problem, settings["BLOCK_M"], settings["EDGE"])
    return _seconds(problem, settings, device, _backward_q_tile, widths, problem["heads"])


def _seconds(
    problem: Problem,
    settings: Settings,
    device: Device,
    tiles: _Tiles,
    widths: np.ndarray,
    heads: int,
) -> float:
    """Matrix, vector and LDS clocks per score, which the waves of a SIMD hide of each other the
    better the more there are; `widths` are what the workgroups of a head walk over.

    Configurations whose registers cannot be had come out last.
    """
    tile, warps = tiles(problem, settings, device), settings["num_warps"]
    if tile.registers > _by_target(_MOST_REGISTERS, device):
        return 1.0 + tile.registers
    machine = Machine.of(device)
    chip = machine.chip
    by_lanes = _by_lanes(problem, device)
    rate = chip.vector_flops if by_lanes else chip.matrix_rate(_RATES[problem["dtype"]])
    matrix = tile.flops / rate
    vector = tile.operations / machine.lanes + 1.0 / machine.exponentials
    lds = tile.lds_traffic / chip.lds_rate
    waves = min(8.0, max(1.0, _by_target(_FILE, device) // tile.registers))
    resident = max(1.0, waves * chip.simds // warps)
    resident = max(1.0, min(resident, chip.lds_bytes // max(1.0, tile.lds)))
    per_simd = max(1.0, resident * warps / chip.simds)
    pipelined = settings["num_stages"] > 1
    power = 2.6 - 1.6 / per_simd + (0.5 if pipelined else 0.0)
    clocks = (matrix**power + vector**power + lds**power) ** (1 / power)
    wait = _STEP + (0.0 if pipelined else chip.latency["l2"] * chip.clock)
    wait /= resident
    spans = widths * tile.rows * clocks * max(1.0, chip.simds / warps / resident)
    spans = spans + widths / tile.columns * wait + _START / resident
    count = heads * problem["batch"]
    per_unit = len(widths) * count / chip.units
    tail = 1.0 if problem["window"][1] else math.ceil(per_unit / resident) / (per_unit / resident)
    compute = max(float(spans.sum()) * count / chip.units * tail, float(spans.max()))
    moved = float(widths.sum()) * count * tile.moved
    return compute / chip.clock + 0.3 * moved / (chip.l2_bandwidth or 4 * chip.hbm)


def _keys_seen(problem: Problem, rows: int, edge: int) -> np.ndarray:
    """Keys that each block of queries of a head walks over."""
    queries, keys, left, right = _sizes(problem)
    first = np.arange(max(1, triton.cdiv(queries, rows))) * rows + keys - queries
    last = np.minimum(first + rows, keys) - 1
    hi = np.full(len(first), keys) if right < 0 else np.clip(last + right + 1, 0, keys)
    lo = np.zeros(len(first)) if left < 0 else np.maximum(first - left, 0) // edge * edge
    return np.maximum(np.ceil((hi - lo) / edge) * edge, 1.0)


def _queries_seen(problem: Problem, rows: int, edge: int) -> np.ndarray:
    """Queries that each block of keys of a head walks over."""
    queries, keys, left, right = _sizes(problem)
    first = np.arange(max(1, triton.cdiv(keys, rows))) * rows + queries - keys
    last = np.minimum(first + rows, queries) - 1
    hi = np.full(len(first), queries) if left < 0 else np.clip(last + left + 1, 0, queries)
    lo = np.zeros(len(first)) if right < 0 else np.maximum(first - right, 0) // edge * edge
    return np.maximum(np.ceil((hi - lo) / edge) * edge, 1.0)


def _sizes(problem: Problem) -> tuple[int, int, int, int]:
    return problem["queries"], problem["keys"], problem["left"], problem["right"]


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


_CLASSES = ("batch", "queries", "keys", "left")

FORWARD = Space(
    kernel="attention_kernel",
    axes=_forward_axes,
    fits=_forward_fits,
    seconds=_forward_seconds,
    classes=_CLASSES,
)
BACKWARD_KV = Space(
    kernel="attention_backward_kv_kernel",
    axes=_backward_kv_axes,
    fits=_backward_kv_fits,
    seconds=_backward_kv_seconds,
    classes=_CLASSES,
)
BACKWARD_Q = Space(
    kernel="attention_backward_q_kernel",
    axes=_backward_axes,
    fits=_backward_q_fits,
    seconds=_backward_q_seconds,
    classes=_CLASSES,
)
DELTA = Space(
    kernel="attention_delta_kernel",
    axes=_delta_axes,
    seconds=_delta_seconds,
    classes=("rows",),
)

__all__ = ["BACKWARD_KV", "BACKWARD_Q", "DELTA", "FORWARD", "NO_BFLOAT_CONVERSION", "padded"]
