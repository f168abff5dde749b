"""Which tiles `matmul_kernel` may be cut into on a GPU, and what each demands of it."""

from functools import cache
from typing import Final

import numpy as np
import triton

from wavecast.dtypes import element_bytes
from wavecast.kernels import tiles
from wavecast.kernels.describe import Axes, Demand, Device, Problem, Settings
from wavecast.perfmodel.ranking import TileResources, TritonProduct

_LARGEST_WORKSPACE: Final = 2**28
"""Bytes of sums that the parts of a split K may take."""
_GROUPS: Final = (8, 4, 16, 2, 1)
"""Rows of tiles that are walked column by column; of two that read as little, the first."""
_NO_ACCUMULATION_REGISTERS: Final = "amdgpu-agpr-alloc=0"
"""Attribute of functions that LLVM is to give no accumulation registers."""
_FEW: Final = 64
"""Rows up to which a product waits for memory: tiles as tall as it, and many of them."""


def axes(problem: Problem, device: Device) -> Axes:
    """A step of 128 bytes reads whole cache lines of every row; longer ones pay only where a tile
    is so small that its requests would not fill the memory's pipeline. Where operands go to LDS
    without registers, they can be a step further ahead."""
    size = element_size(problem)
    few = problem["m"] <= _FEW
    capabilities = device.capabilities
    cdna = capabilities.matrix_unit == "mfma"
    steps = (128, 256) if few else (128,)
    warps = (1, 2, 4) if few else (4, 8)
    stages = (2, 3) if cdna and capabilities.direct_to_lds else (2,)
    largest = 256
    if device.vendor != "amd":
        warps = (4,) if few else (4, 8)
        stages = (3, 4)
        largest = 128 if few else 256
    elif not cdna:
        steps, largest = (64, 128), 128
    alone = problem["wide"] or problem["batch"] > 1
    whole = alone or problem["m"] * problem["n"] > 2**23
    units = device.compute_units
    attributes = ("", _NO_ACCUMULATION_REGISTERS)
    return {
        "BLOCK_M": tiles.blocks(problem["m"], 16 if few else 64, largest, 4),
        "BLOCK_N": _columns(problem, few, 128 if few else largest),
        "BLOCK_K": tuple(step // size for step in steps),
        "SPLIT_K": (1,) if whole else (1, 2, 4, 8),
        "PROGRAMS": (0,) if few or alone else (0, units, 2 * units),
        "GROUP": _GROUPS,
        "TMA": (int(problem["tma"] and capabilities.tensor_copies),),
        "num_warps": warps,
        "num_stages": stages,
        "matrix_instr_nonkdim": (16,) if cdna else (0,),
        **({"llvm_fn_attrs": attributes} if capabilities.accumulator_copies else {}),
    }


def element_size(problem: Problem) -> int:
    """Bytes of an operand's element."""
    return int(element_bytes(problem["dtype"]))


def count(problem: Problem, settings: Settings) -> int:
    """Tiles of a result."""
    down = triton.cdiv(problem["m"], settings["BLOCK_M"])
    return down * triton.cdiv(problem["n"], settings["BLOCK_N"])


def _columns(problem: Problem, few: bool, most: int) -> tuple[int, ...]:
    """Also three quarters of the largest, two sums a step, which can leave fewer compute units
    without a tile in the last round."""
    columns = tiles.blocks(problem["n"], 16 if few else 64, most, 4)
    if few or most < 256 or problem["n"] <= 128:
        return columns
    return tuple(sorted({*columns, most * 3 // 4}))


def resources(problem: Problem, settings: Settings) -> TileResources:
    """What a workgroup takes of a compute unit."""
    return TileResources(
        **tiles.sides(settings),
        element_size=element_size(problem),
        num_warps=settings["num_warps"],
        num_stages=settings["num_stages"],
        dtype=problem["rate"],
        aligned=problem["aligned"],
        copies=3 if problem["precision"] == "bf16x3" else 1,
    )


def fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, columns, depth = settings["BLOCK_M"], settings["BLOCK_N"], settings["BLOCK_K"]
    warps, splits, programs = settings["num_warps"], settings["SPLIT_K"], settings["PROGRAMS"]
    tile = resources(problem, settings)
    # Of eight waves two share a SIMD, so that a lane has half of the registers at most.
    halved = device.capabilities.accumulator_copies and warps >= 8
    if halved != bool(settings.get("llvm_fn_attrs")):
        return False
    resident = tile.resident(device) * device.compute_units
    if settings["GROUP"] != _best_group(problem, settings, device, resident):
        return False
    if not tile.fits(device) or (rows * columns < 16 * 16 * warps and warps > 1):
        return False
    if columns & (columns - 1) and (programs or settings["TMA"]):
        return False
    number = count(problem, settings)
    if programs and (
        splits > 1
        or not programs <= number <= 8 * programs
        or number % programs == 0
        or programs != resident
    ):
        return False
    parts = splits * problem["m"] * problem["n"] * 4
    return splits == 1 or (parts <= _LARGEST_WORKSPACE and splits * depth * 2 <= problem["k"])


def demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    sums = {"batch": problem["batch"], "splits": settings["SPLIT_K"]}
    return TritonProduct(
        product=tiles.product(problem, settings, problem["rate"], **sums),
        resources=resources(problem, settings),
        programs=settings["PROGRAMS"],
        few_rows=problem["m"] <= _FEW,
    )


def _best_group(problem: Problem, settings: Settings, device: Device, resident: int) -> int:
    """The order of tiles in which those that a die computes at once read least, of `resident`
    workgroups on the GPU."""
    rows, columns = settings["BLOCK_M"], settings["BLOCK_N"]
    down, across = triton.cdiv(problem["m"], rows), triton.cdiv(problem["n"], columns)

    def read(group: int) -> int:
        footprint = _tile_footprint(down, across, group, resident // device.dies)
        return footprint[0] * rows + footprint[1] * columns

    return min(_GROUPS, key=read)


@cache
def _tile_footprint(down: int, across: int, group: int, workgroups: int) -> tuple[int, int]:
    """Rows and columns of tiles that the first `workgroups` of one die take, by `tile_of`."""
    number = np.arange(min(workgroups, down * across))
    first = number // (group * across) * group
    height = np.minimum(down - first, group)
    within = number % (group * across)
    return len(np.unique(first + within % height)), len(np.unique(within // height))
