"""The configurations that the attention kernels can run in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import triton

from wavecast.arch import Device
from wavecast.kernels import estimates
from wavecast.kernels.attention.ranking import (
    Tiles,
    backward_kv_seconds,
    backward_kv_tile,
    backward_q_seconds,
    backward_q_tile,
    by_lanes,
    forward_seconds,
    forward_tile,
    heads,
    padded,
)
from wavecast.kernels.space import Problem, Settings, Space

_BY_ILP = "amdgpu-sched-strategy=iterative-ilp"
"""The order of instructions by LLVM that keeps pipelined loops within their registers."""


def _axes(problem: Problem, device: Device) -> dict[str, Sequence[Any]]:
    """Those all kernels have."""
    wide = problem["dtype"] == "float32"
    rdna = device.target.startswith("gfx1")
    nvidia = device.target.startswith("sm")
    large = max(heads(problem)) > 128
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
    group = problem["heads"] // problem["shared"]
    few = problem["left"] >= 0 or problem["queries"] <= 64
    packs = (1, min(16, group & -group)) if few and group % 2 == 0 else (1,)
    # of windows there are few tiles, each part's first one waited for
    ahead = (True, False) if problem["left"] >= 0 and not problem["rope"] else (False,)
    return {**blocks, **_axes(problem, device), "PACK": packs, "AHEAD": ahead}


def _forward_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    columns, edge = settings["BLOCK_N"], settings["EDGE"]
    if settings["AHEAD"] and (edge != columns or settings["CHUNK"] or settings["num_stages"] > 1):
        return False
    if edge != columns and edge != max(columns // 2, 32 if columns > 16 else 16):
        return problem["dtype"] == "float32" and _fits(forward_tile, problem, settings, device)
    return _fits(forward_tile, problem, settings, device)


def _backward_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    axes = {
        "BLOCK_M": (16, 32, 64, 128),
        "BLOCK_N": (16, 32, 64, 128),
        "EDGE": (16,) if problem["dtype"] == "float32" else (32, 16),
        **_axes(problem, device),
    }
    if problem["dtype"] == "float32":
        return {**axes, "AHEAD": (False,), "TWICE": (False,)}
    return {**axes, "AHEAD": (False, True), "TWICE": (True, False)}


def _loads_fit(settings: Settings, device: Device) -> bool:
    """Whether a gradient kernel's loads go with its stages: operands used both ways are slow to
    read from LDS once pipelined, but where they are loaded twice, or turned as they are read."""
    pipelined, nvidia = settings["num_stages"] > 1, device.target.startswith("sm")
    if settings["TWICE"] and (not pipelined or settings["CHUNK"] or nvidia):
        return False
    if settings["AHEAD"] and (pipelined or nvidia):
        return False
    if "kpack" in settings:
        wide = settings["TWICE"] or settings["AHEAD"]
        if (settings["kpack"] == 2) != wide or settings["llvm_fn_attrs"]:
            return False
    return not pipelined or settings["TWICE"] or nvidia or device.target == "gfx950"


def _backward_kv_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    large = max(heads(problem)) > 128
    few = not device.target.startswith("gfx9")
    splits = (False, True) if large or few else (False,)
    return {**_backward_axes(problem, device), "SPLIT": splits}


def _backward_kv_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    wanted = min(32 if problem["dtype"] != "float32" else 16, settings["BLOCK_M"])
    if settings["EDGE"] != wanted or not _loads_fit(settings, device):
        return False
    return _fits(backward_kv_tile, problem, settings, device)


def _backward_q_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    wanted = min(32 if problem["dtype"] != "float32" else 16, settings["BLOCK_N"])
    if settings["EDGE"] != wanted or not _loads_fit(settings, device):
        return False
    return _fits(backward_q_tile, problem, settings, device)


def _fits(tiles: Tiles, problem: Problem, settings: Settings, device: Device) -> bool:
    """Whether matrix instructions, LDS and options go together."""
    tile, warps = tiles(problem, settings, device), settings["num_warps"]
    shape = settings.get("matrix_instr_nonkdim", 16)
    each = shape if device.target.startswith("gfx") else 16
    if by_lanes(problem, device):
        if tile.rows * tile.columns < 32 * warps:
            return False
    elif tile.rows * _sharing(problem, settings, device) < each * warps:
        return False
    if settings["EDGE"] < shape or tile.columns < shape:
        return False
    if tile.rows == 16 and problem["queries"] > 16 and warps == 1 and shape == 32:
        return False
    parts = padded(problem["head"]), padded(problem["head_v"]), padded(problem["rope"] or 256)
    if settings["CHUNK"] and (settings["CHUNK"] > min(parts) or shape == 32):
        return False
    if problem["dtype"] == "float32" and tile.rows * tile.columns > 2048:
        return False
    if tile.lds > device.limits().lds_max_per_workgroup:
        return False
    if "TWICE" in settings:  # a gradient kernel
        return not settings.get("waves_per_eu", 0)
    early = settings["num_stages"] > 1 or settings["AHEAD"]
    pipelined = "kpack" in settings and early and shape == 32
    if "kpack" in settings:
        both = settings["kpack"] == 2, settings["llvm_fn_attrs"] != ""
        if both != (pipelined, pipelined) or early != pipelined:
            return False
    return settings.get("waves_per_eu", 0) == (2 if pipelined else 0)


def _sharing(problem: Problem, settings: Settings, device: Device) -> int:
    """Waves that may share the rows of one matrix instruction: of the sums of wide heads over keys
    none holds all, where a wave has 256 registers for all it does."""
    wide = max(heads(problem)) > 128 and device.target.startswith("gfx1")
    return 2 if wide and settings.get("SPLIT", False) else 1


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
    seconds=forward_seconds,
    classes=_CLASSES,
)
BACKWARD_KV = Space(
    kernel="attention_backward_kv_kernel",
    axes=_backward_kv_axes,
    fits=_backward_kv_fits,
    seconds=backward_kv_seconds,
    classes=_CLASSES,
)
BACKWARD_Q = Space(
    kernel="attention_backward_q_kernel",
    axes=_backward_axes,
    fits=_backward_q_fits,
    seconds=backward_q_seconds,
    classes=_CLASSES,
)
DELTA = Space(
    kernel="attention_delta_kernel",
    axes=_delta_axes,
    seconds=_delta_seconds,
    classes=("rows",),
)

__all__ = ["BACKWARD_KV", "BACKWARD_Q", "DELTA", "FORWARD"]
