"""What limits a compute unit in a configuration of an attention kernel: registers, LDS, seconds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
import triton

from wavecast.arch import Device
from wavecast.kernels.attention.sizes import FLOPS
from wavecast.kernels.quantise import formats
from wavecast.kernels.space import Problem, Settings
from wavecast.kernels.tiles import copies_to_lds
from wavecast.model.ops.attention.machine import Machine

NO_BFLOAT_CONVERSION = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
"""Targets that round to bfloat16 in integer instructions."""

_FORMATS = {str(kind).removeprefix("torch."): name for kind, name in formats.FP8.items()}
_FIXED_REGISTERS = 44.0
_FIXED_GRADIENT = 124.0
"""Of the gradient kernels on NVIDIA, beside sums and scores."""
_FRAGMENT = {"gfx1100": 96.0, "gfx950": 96.0, "": 48.0}
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
class Tile:
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
    rounds: float = 1.0
    """Times per step that operands go through LDS, with barriers before and after."""


def padded(head: int) -> int:
    """Elements of a head that tiles hold."""
    return max(16, triton.next_power_of_2(head))


def _by_target(table: Mapping[str, float], device: Device) -> float:
    return next(value for start, value in table.items() if device.target.startswith(start))


def _size(problem: Problem) -> int:
    return getattr(torch, problem["dtype"]).itemsize


def _rate(problem: Problem, device: Device) -> str:
    """The dtype that is multiplied: fp8 that the device does not know is widened."""
    rate = FLOPS[problem["dtype"]]
    known = rate != "fp8" or formats.native(_FORMATS[problem["dtype"]], device)
    return rate if known else "bf16"


def _words(problem: Problem, device: Device) -> float:
    """Registers of an operand's element."""
    return {"fp8": 0.25, "fp32": 1.0}.get(_rate(problem, device), 0.5)


def heads(problem: Problem) -> tuple[int, int]:
    """Elements of queries and keys, and of values."""
    rope = padded(problem["rope"]) if problem["rope"] else 0
    return padded(problem["head"]) + rope, padded(problem["head_v"])


def _twice(problem: Problem, device: Device) -> float:
    """Both halves of a wave of RDNA 3 hold the operands of its matrix instructions."""
    return 2.0 if device.target == "gfx1100" else 1.0


def by_lanes(problem: Problem, device: Device) -> bool:
    """Whether products are sums of vector instructions, for want of matrix instructions."""
    return problem["dtype"] == "float32" and device.target.startswith("gfx1")


def _rounding(problem: Problem, device: Device) -> float:
    """Operations of a value that becomes an operand."""
    if _rate(problem, device) != "bf16":
        return 0.5
    return 1.5 if device.target in NO_BFLOAT_CONVERSION else 0.5


Tiles = Callable[[Problem, Settings, Device], Tile]


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
    words, twice = _words(problem, device), _twice(problem, device)
    moved = _loaded(problem, settings)
    head, head_v = heads(problem)
    if settings["CHUNK"]:
        held = settings["CHUNK"]
    if by_lanes(problem, device):  # a lane holds all rows and columns its sums are made of
        depth = settings["CHUNK"] or max(head, head_v)
        fragment = 2 * depth * math.sqrt(max(1.0, rows * columns / threads))
        fragment = max(fragment, 2 * columns * math.sqrt(rows * max(head, head_v) / threads))
        of_row = accumulated + held + scores * columns
        return _FIXED_REGISTERS + rows * of_row / threads + fragment
    if device.target.startswith("sm") and scores > 1:  # operands stay in shared memory
        return _FIXED_GRADIENT + rows * (accumulated + scores * columns) / threads
    fragment = twice * columns * max(head, head_v) * words / device.wave_lanes
    staged = settings["num_stages"] > 1 and device.target in ("gfx90a", "gfx942", "gfx1201")
    if settings.get("AHEAD", False):  # the rows of this step and of the next
        moved, staged = 2 * moved, True
    return (
        _FIXED_REGISTERS
        + rows * accumulated / threads
        + twice * rows * held * words / threads
        + scores * rows * columns / threads
        + fragments * min(fragment, _by_target(_FRAGMENT, device))
        + (columns * moved / 4 / threads if staged else 0.0)
        + (16.0 if "dropout" in problem["flags"] else 0.0)
    )


def _loaded(problem: Problem, settings: Settings) -> float:
    """Bytes that are loaded per row walked over."""
    return sum(heads(problem)) * _size(problem) * (2 if settings.get("TWICE", False) else 1)


def _lds(problem: Problem, settings: Settings, device: Device, rows: int, columns: int) -> float:
    size, head = _size(problem), sum(heads(problem))
    buffers = settings["num_stages"] if copies_to_lds(device) else 1
    held = rows * head * size if device.target.startswith("sm") else 0
    padding = 1.06 if device.target == "gfx950" else 1.0
    return buffers * columns * _loaded(problem, settings) * padding + held


def _operations(problem: Problem) -> float:
    extra = {"dropout": 40.0, "cap": 14.0, "alibi": 3.0}
    return 4.0 + sum(extra.get(flag, 0.0) for flag in problem["flags"].split())


def forward_tile(problem: Problem, settings: Settings, device: Device) -> Tile:
    rows, columns, warps = settings["BLOCK_M"], settings["BLOCK_N"], settings["num_warps"]
    head, head_v = heads(problem)
    size = _size(problem)
    again = 2.0 * head * size / columns if settings["CHUNK"] else 0.0
    return Tile(
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
        _loaded(problem, settings),
    )  # fmt: skip


def backward_kv_tile(problem: Problem, settings: Settings, device: Device) -> Tile:
    rows, columns, warps = settings["BLOCK_N"], settings["BLOCK_M"], settings["num_warps"]
    head, head_v = heads(problem)
    size, split = _size(problem), settings["SPLIT"]
    again = 2.0 * (head + head_v) * size / columns if settings["CHUNK"] else 0.0
    return Tile(
        rows,
        columns,
        2.0 * (2 * head + 2 * head_v + (head if split else 0)),
        _operations(problem) + 5.0 + 2 * _rounding(problem, device) + (8.0 if split else 0.0),
        2.5 * size * (head + head_v) * warps / rows + again,
        _registers(
            problem, settings, device, rows=rows, columns=columns,
            accumulated=max(head, head_v) if split else head + head_v,
            held=head + head_v, scores=3, fragments=_fragments(settings),
        ),
        _lds(problem, settings, device, rows, columns),
        _loaded(problem, settings),
        1.0 if settings["TWICE"] else 3.0,
    )  # fmt: skip


def _fragments(settings: Settings) -> int:
    """Tiles of queries and gradients that a step reads from LDS at once; gfx90a and gfx942 turn
    half of what they load twice in registers."""
    if not settings["TWICE"]:
        return 2
    return 6 if "kpack" in settings else 4


def backward_q_tile(problem: Problem, settings: Settings, device: Device) -> Tile:
    rows, columns, warps = settings["BLOCK_M"], settings["BLOCK_N"], settings["num_warps"]
    head, head_v = heads(problem)
    size = _size(problem)
    again = 2.0 * (head + head_v) * size / columns if settings["CHUNK"] else 0.0
    return Tile(
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
        _loaded(problem, settings),
        1.0 if settings["TWICE"] else 2.0,
    )  # fmt: skip


def forward_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    pack = settings["PACK"]
    widths = _keys_seen(problem, settings["BLOCK_M"] // pack, settings["EDGE"])
    programs = problem["heads"] // pack
    # of a window the left edge and the middle are loops before the last, each with a first tile
    waits = 2 if problem["window"][0] and not settings["AHEAD"] else 0
    return _seconds(problem, settings, device, forward_tile, widths, programs, waits)


def backward_kv_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    widths = _queries_seen(problem, settings["BLOCK_N"], settings["EDGE"])
    widths = widths * (problem["heads"] // problem["shared"])
    return _seconds(problem, settings, device, backward_kv_tile, widths, problem["shared"])


def backward_q_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    widths = _keys_seen(problem, settings["BLOCK_M"], settings["EDGE"])
    return _seconds(problem, settings, device, backward_q_tile, widths, problem["heads"])


def _seconds(
    problem: Problem,
    settings: Settings,
    device: Device,
    tiles: Tiles,
    widths: np.ndarray,
    programs: int,
    waits: int = 0,
) -> float:
    """Matrix, vector and LDS clocks per score, which the waves of a SIMD hide of each other the
    better the more there are. There are `programs` heads, whose workgroups walk over `widths` and
    wait for memory so many times more than once.

    Configurations whose registers cannot be had come out last.
    """
    tile, warps = tiles(problem, settings, device), settings["num_warps"]
    machine = Machine.of(device)
    chip = machine.chip
    most = _by_target(_FILE, device) / max(1.0, warps / chip.simds)
    if tile.registers > min(most, _by_target(_MOST_REGISTERS, device)):
        return 1.0 + tile.registers
    rate = (
        chip.vector_flops if by_lanes(problem, device) else chip.matrix_rate(_rate(problem, device))
    )
    matrix = tile.flops / rate
    vector = tile.operations / machine.lanes + 1.0 / machine.exponentials
    lds = tile.lds_traffic / chip.lds_rate
    waves = min(8.0, max(1.0, 1.03 * _by_target(_FILE, device) // tile.registers))
    resident = max(1.0, waves * chip.simds // warps)
    resident = max(1.0, min(resident, chip.lds_bytes // max(1.0, tile.lds)))
    per_simd = max(1.0, resident * warps / chip.simds)
    pipelined = settings["num_stages"] > 1 or settings.get("AHEAD", False)
    power = 2.6 - 1.6 / per_simd + (0.5 if pipelined else 0.0)
    clocks = (matrix**power + vector**power + lds**power) ** (1 / power)
    wait = tile.rounds * _STEP + (0.0 if pipelined else chip.latency["l2"] * chip.clock)
    wait /= resident
    spans = widths * tile.rows * clocks * max(1.0, chip.simds / warps / resident)
    spans = spans + widths / tile.columns * wait
    spans = spans + (_START + waits * chip.latency["hbm"] * chip.clock) / resident
    count = programs * problem["batch"]
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


__all__ = [
    "NO_BFLOAT_CONVERSION",
    "Tile",
    "Tiles",
    "backward_kv_seconds",
    "backward_kv_tile",
    "backward_q_seconds",
    "backward_q_tile",
    "by_lanes",
    "forward_seconds",
    "forward_tile",
    "heads",
    "padded",
]
