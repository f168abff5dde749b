"""Where `mla_cdna_kernel` runs, how it cuts its work, and its configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton

from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.chip import Chip

_TOKEN_CLOCKS: Final = {
    "gfx90a": {32: 190.0, 64: 218.0},
    "gfx942": {32: 155.0, 64: 170.0},
    "gfx950": {16: 55.0, 32: 75.0, 64: 110.0, 128: 155.0},
}
"""Clocks that a token costs a workgroup of so many heads; from executed samples with 576 elements
a token."""
_START: Final = 3.0
"""Loads one after the other before a workgroup's first tile: length, block number, tokens."""
_STEP_CLOCKS: Final = 2000.0
"""Clocks of a step that nothing hides: waits for LDS and other waves, weights."""
_SHARED_CLOCKS: Final = 400.0
"""What each doubling of the waves that share heads adds to that."""
_REGISTERS: Final = 60
"""Registers for addresses, weights and operands on their way; from compiled kernels."""
_SHORTEST: Final = 64
"""Tokens that are worth a part of their own."""
_MOST_PARTS: Final = 256
_TILE: Final = 32
"""Tokens of the smallest tile."""


def runs(device: Device, q: torch.Tensor, cache: torch.Tensor, rope: int) -> bool:
    """Whether a cache is one for `mla_cdna_kernel`: not to be widened, of whole tiles, and aligned
    as loads of 16 bytes are. Fewer heads than a workgroup takes are the other kernel's."""
    rows = _TOKEN_CLOCKS.get(device.target)
    return (
        rows is not None
        and 2 * q.shape[1] > min(rows)
        and cache.dtype == q.dtype
        and cache.shape[1] % _TILE == 0
        and rope % 32 == 0
        and not any(at % 16 for at in (cache.data_ptr(), *cache.stride()[:2]))
    )


def plan(
    device: Device, sequences: int, heads: int, tokens: int, latent: int, rope: int
) -> tuple[int, int]:
    """Heads that a workgroup takes and parts of a sequence's tokens that take the least time.

    Many heads read a token from LDS once for more products; few leave fewer parts to write and
    join where parts are what fills the GPU.
    """
    clocks = _TOKEN_CLOCKS[device.target]
    choices = [rows for rows in clocks if rows < 2 * heads] or [min(clocks)]
    most = max(1, min(_MOST_PARTS, tokens // _SHORTEST))
    try:
        chip = Chip.of(device)
    except MissingFact:
        tiles = triton.cdiv(heads, choices[-1])
        return choices[-1], min(most, max(1, device.compute_units // (sequences * tiles)))

    def seconds(rows: int, parts: int) -> float:
        programs = sequences * triton.cdiv(heads, rows) * parts
        rounds = -(-programs // chip.units)
        token = clocks[rows] * (latent + rope) / 576 / chip.clock
        walked = rounds * (-(-tokens // parts) * token + _START * chip.latency["hbm"])
        if parts == 1:
            return walked
        return walked + chip.launch + 8.0 * programs * rows * latent / chip.hbm

    every = [(rows, parts) for rows in choices for parts in range(1, most + 1)]
    return min(every, key=lambda one: seconds(*one))


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {
        "ROWS": (problem["rows"],),
        "BLOCK_N": (_TILE, 2 * _TILE),
        "SIDE": (16,),
        "ROW_WAVES": (1, 2, 4),
        "PIECE": (128,),
        "AHEAD": (2, 1) if device.target == "gfx950" else (1,),
        "num_warps": (4, 2),
        "num_stages": (1,),
    }


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    latent, whole = problem["latent"], problem["latent"] + problem["rope"]
    rows, tokens, side = settings["ROWS"], settings["BLOCK_N"], settings["SIDE"]
    waves, over_rows = settings["num_warps"], settings["ROW_WAVES"]
    shared = waves // over_rows
    if problem["block_size"] % tokens or rows < side * over_rows or tokens < side * shared:
        return False
    lanes, mine = device.wave_lanes, rows / over_rows
    held = mine * whole / 2 / lanes + rows * (latent + tokens) / waves / lanes
    lds = tokens * whole * 2.0
    if device.target == "gfx950":
        # a part more, which keeps banks apart
        lds *= (settings["AHEAD"] + 1) * 1.036
    else:
        # values of a tile, and the tile on its way; weights, which waves exchange
        held += tokens * (latent + whole) / 2 / waves / lanes
        lds += rows * tokens * 2
    limits = device.limits()
    return lds <= limits.lds_max_per_workgroup and held + _REGISTERS <= limits.vgpr_total


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    chip = Chip.of(device)
    latent, whole = problem["latent"], problem["latent"] + problem["rope"]
    rows, tokens, over_rows = settings["ROWS"], settings["BLOCK_N"], settings["ROW_WAVES"]
    kind = "fp16" if problem["dtype"] == "float16" else "bf16"
    products = 2.0 * rows * tokens * (latent + whole) / chip.matrix_rate(kind)
    products *= chip.simds / settings["num_warps"]
    if device.target == "gfx950":
        work = products + 2.0 * over_rows * tokens * (latent + whole) / chip.lds_rate
    else:
        # keys alone are read, while others are multiplied
        work = max(products, 2.0 * over_rows * tokens * whole / chip.lds_rate)
    shared = settings["num_warps"] // over_rows
    step = work + _STEP_CLOCKS + _SHARED_CLOCKS * (shared.bit_length() - 1)
    wait = chip.latency["hbm"] * chip.clock
    step = max(step, wait / settings["AHEAD"])
    steps = triton.cdiv(triton.cdiv(problem["tokens"], tokens), problem["splits"])
    programs = problem["sequences"] * triton.cdiv(problem["heads"], rows) * problem["splits"]
    return -(-programs // chip.units) * steps * step / chip.clock


SPACE = Space(
    kernel="mla_cdna_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("sequences", "tokens"),
)

__all__ = ["SPACE", "plan", "runs"]
