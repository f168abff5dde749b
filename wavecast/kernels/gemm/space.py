"""Which tiles a dense product may be cut into on a GPU, and how long each would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import triton

from wavecast.arch import Device
from wavecast.kernels import estimates, tiles
from wavecast.kernels.space import Problem, Settings, Space

_BYTES: Final = {"fp32": 4, "xf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
"""Bytes of an operand's element by the name of its format."""
_PARTS_AT_MOST: Final = 2**28
"""Bytes of sums that the parts of a split K may take."""
_GROUPS: Final = (8, 4, 16, 2, 1)
"""Rows of tiles that are walked column by column; where two do, the first."""
_VECTORS_ONLY: Final = "amdgpu-agpr-alloc=0"
"""Attribute of functions that LLVM is to give no accumulation registers."""
_SECOND_LAUNCH: Final = 3e-6
"""Seconds of the kernel that adds up parts beyond what `estimates.tile` says of the sums."""
_TURN: Final = 1e-5
"""Seconds more of a tile that its program computes after another: nothing hides where they begin
and end. By `_seconds`, whose products take about half as long again as compiled ones."""
_BY_AREA: Final = 0.15
"""The time of a tile of CDNA grows with this power of its area where operands wait in registers on
their way to the LDS, and falls with it where they do not. Like `_TURN` and `_exposure` fitted to
predictions of compiled kernels: of 15 products of language models, with 256 to 8192 rows, what is
ranked first is 3 % slower than the best of 16 on gfx942 and 2 % on gfx950 (12 and 5 % without)."""
_SUMS: Final = 128
"""Sums of a lane beyond which LLVM copies from and to accumulation registers."""
_FEW: Final = 64
"""Rows up to which a product waits for memory: tiles as tall as it, and many of them."""


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    size = _BYTES[problem["dtype"]]
    few = problem["m"] <= _FEW
    steps, warps, stages, largest = _usual(few, device)
    attributes = {"llvm_fn_attrs": ("", _VECTORS_ONLY)} if device.target == "gfx950" else {}
    return {
        "BLOCK_M": _blocks(problem["m"], 16 if few else 64, largest),
        "BLOCK_N": _columns(problem, few, 128 if few else largest),
        "BLOCK_K": tuple(bytes_ // size for bytes_ in steps),
        "SPLIT_K": _splits(problem),
        "PROGRAMS": _programs(problem, few, device),
        "GROUP": _GROUPS,
        "TMA": (int(problem["tma"] and _is_hopper(device)),),
        "num_warps": warps,
        "num_stages": stages,
        "matrix_instr_nonkdim": (16,) if device.target.startswith("gfx9") else (0,),
        **attributes,
    }


def _usual(
    few: bool, device: Device
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int]:
    """Bytes of K per step, waves, stages, and the largest side of a tile.

    A step of 128 bytes reads whole cache lines of every row; longer ones pay only where a tile is
    so small that its requests would not fill the memory's pipeline. gfx950 copies to the LDS
    without registers, so that it can be a step further ahead.
    """
    if device.target.startswith("gfx9"):
        stages = (2, 3) if device.target == "gfx950" else (2,)
        return ((128, 256), (1, 2, 4), stages, 256) if few else ((128,), (4, 8), stages, 256)
    if device.target.startswith("gfx"):
        return (64, 128), (1, 2, 4) if few else (4, 8), (2,), 128
    return ((128, 256), (4,), (3, 4), 128) if few else ((128,), (4, 8), (3, 4), 256)


def _blocks(size: int, least: int, most: int) -> tuple[int, ...]:
    """Powers of two from `least` to `most`, at most four, without those a half of would do."""
    enough = min(most, max(least, triton.next_power_of_2(size)))
    found = []
    while enough >= least and len(found) < 4:
        found.append(enough)
        enough //= 2
    return tuple(reversed(found))


def _columns(problem: Problem, few: bool, most: int) -> tuple[int, ...]:
    """Also three quarters of the largest, two sums a step, which can leave fewer compute units
    without a tile in the last round."""
    found = _blocks(problem["n"], 16 if few else 64, most)
    if few or most < 256 or problem["n"] <= 128:
        return found
    return tuple(sorted({*found, most * 3 // 4}))


def _splits(problem: Problem) -> tuple[int, ...]:
    if problem["wide"] or problem["batch"] > 1 or problem["m"] * problem["n"] > 2**23:
        return (1,)
    return (1, 2, 4, 8)


def _programs(problem: Problem, few: bool, device: Device) -> tuple[int, ...]:
    """0: one per tile."""
    if few or problem["wide"] or problem["batch"] > 1:
        return (0,)
    return (0, device.compute_units, 2 * device.compute_units)


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, columns, depth = settings["BLOCK_M"], settings["BLOCK_N"], settings["BLOCK_K"]
    limits = device.limits()
    warps = settings["num_warps"]
    if _vectors_only(settings, device) != bool(settings.get("llvm_fn_attrs")):
        return False
    if settings["GROUP"] != _best_group(problem, settings, device):
        return False
    if _staged(problem, settings, device) > limits.lds_max_per_workgroup:
        return False
    if rows * columns < 16 * 16 * warps and warps > 1:
        return False
    if _registers(problem, settings, device) > (200 if limits.wave_lanes == 32 else 320):
        return False
    splits, programs = settings["SPLIT_K"], settings["PROGRAMS"]
    if columns & (columns - 1) and (programs or settings["TMA"]):
        return False
    if programs:
        count = triton.cdiv(problem["m"], rows) * triton.cdiv(problem["n"], columns)
        if splits > 1 or count < programs or count % programs == 0 or count > 8 * programs:
            return False
        if programs != _resident(problem, settings, device) * device.compute_units:
            return False
    if splits > 1:
        if splits * problem["m"] * problem["n"] * 4 > _PARTS_AT_MOST:
            return False
        if splits * depth * 2 > problem["k"]:
            return False
    return True


def _vectors_only(settings: Settings, device: Device) -> bool:
    """Whether sums are better kept out of accumulation registers. Of eight waves two share a SIMD,
    so that a lane has 256 registers at most; LLVM halves them for gfx950, and copies."""
    return device.target == "gfx950" and settings["num_warps"] >= 8


def _best_group(problem: Problem, settings: Settings, device: Device) -> int:
    """The order of tiles in which those that a die computes at once read least."""
    rows, columns = settings["BLOCK_M"], settings["BLOCK_N"]
    down, across = triton.cdiv(problem["m"], rows), triton.cdiv(problem["n"], columns)
    dies = tiles.xcds(device)
    at_once = _resident(problem, settings, device) * device.compute_units // dies

    def read(group: int) -> int:
        reached = tiles.reached(down, across, group, at_once)
        return reached[0] * rows + reached[1] * columns

    return min(_GROUPS, key=read)


def _registers(problem: Problem, settings: Settings, device: Device) -> float:
    """About how many registers a lane needs: sums, the next step's operands on their way to the
    LDS, and those that the matrix instructions take now."""
    rows, columns, depth = settings["BLOCK_M"], settings["BLOCK_N"], settings["BLOCK_K"]
    threads = settings["num_warps"] * device.limits().wave_lanes
    size = _BYTES[problem["dtype"]]
    # elements that are loaded one by one take a register each
    loaded = (rows + columns) * depth * (size / 4 if problem["aligned"] else 1.0) / threads
    if tiles.copies_to_lds(device) and problem["aligned"]:
        loaded = 0.0
    across = 1 if settings["num_warps"] == 1 else 2
    taken = (rows + columns) / across * min(depth, 32) * size / 4 / device.limits().wave_lanes
    if problem["precision"] == "bf16x3":
        taken *= 3
    if _is_hopper(device) and problem["rate"] != "fp32" and rows >= 64:
        taken = 0.0  # wgmma takes operands from shared memory
    return rows * columns / threads + loaded + taken + 32


def _staged(problem: Problem, settings: Settings, device: Device) -> int:
    """Bytes of LDS."""
    rows, columns, depth = settings["BLOCK_M"], settings["BLOCK_N"], settings["BLOCK_K"]
    return (rows + columns) * depth * _BYTES[problem["dtype"]] * tiles.buffers(settings, device)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    found = estimates.tile(
        device,
        settings,
        m=problem["m"],
        n=problem["n"],
        k=problem["k"],
        batch=problem["batch"],
        dtype=problem["rate"],
        rows=settings["BLOCK_M"],
        columns=settings["BLOCK_N"],
        depth=settings["BLOCK_K"],
        splits=settings["SPLIT_K"],
    )
    found *= _exposure(problem, settings, device)
    if settings["SPLIT_K"] > 1:
        found += _SECOND_LAUNCH
    return _shared_rest(problem, settings, device, found) if settings["PROGRAMS"] else found


def _shared_rest(problem: Problem, settings: Settings, device: Device, whole: float) -> float:
    """Seconds where the last round of tiles is shared out, from those where it is not."""
    rows, columns, programs = settings["BLOCK_M"], settings["BLOCK_N"], settings["PROGRAMS"]
    count = triton.cdiv(problem["m"], rows) * triton.cdiv(problem["n"], columns)
    rounds = count / programs
    parts = 4.0 * rows * columns * (programs + count % programs)
    adding = estimates.streaming(
        device,
        {"num_warps": 4},
        workgroups=count % programs * rows // 8,
        read=parts,
        written=parts,
        elements=8 * columns,
    )
    turns = count // programs + 2
    return whole * rounds / triton.cdiv(count, programs) + adding + turns * _TURN


def _is_hopper(device: Device) -> bool:
    """Whether it is an NVIDIA GPU since sm_90, whose TMA loads tiles through descriptors."""
    return device.target.startswith("sm_") and int(device.target[3:].rstrip("af")) >= 90


def _resident(problem: Problem, settings: Settings, device: Device) -> int:
    """About how many workgroups share a compute unit."""
    limits = device.limits()
    waves = settings["num_warps"] / limits.simds
    by_lds = limits.lds_max_per_workgroup // max(1, _staged(problem, settings, device))
    registers = _registers(problem, settings, device)
    by_registers = int(limits.vgpr_total / max(registers, 1.0) / max(waves, 1.0))
    return max(1, min(by_lds, by_registers, 8))


def _exposure(problem: Problem, settings: Settings, device: Device) -> float:
    """How much longer a tile takes where few workgroups share a compute unit: what one waits for,
    only others, or its own steps ahead, can hide. Fitted to predictions of compiled kernels, whose
    waits the formula of `estimates.tile`, made for libraries' kernels, does not know."""
    resident = _resident(problem, settings, device)
    ahead = settings["num_stages"] - 1 if tiles.copies_to_lds(device) else 1
    wait = 0.35 if tiles.copies_to_lds(device) else 0.5
    slower = 1.03 if settings["num_warps"] > 4 else 1.0
    if problem["m"] > _FEW and settings["BLOCK_N"] > settings["BLOCK_M"]:
        slower *= 1.03
    if problem["m"] > _FEW and device.target.startswith("gfx9"):
        area = settings["BLOCK_M"] * settings["BLOCK_N"] / 128**2
        slower *= area ** (-_BY_AREA if tiles.copies_to_lds(device) else _BY_AREA)
        if area * 128**2 / (settings["num_warps"] * 64) > _SUMS:
            slower *= 1.08
    if problem["m"] <= _FEW:
        # memory waits for the compute units that have one workgroup more
        count = triton.cdiv(problem["m"], settings["BLOCK_M"]) * settings["SPLIT_K"]
        count *= triton.cdiv(problem["n"], settings["BLOCK_N"]) * problem["batch"]
        units = device.compute_units
        slower *= triton.cdiv(count, units) * units / count
    return (1.0 + wait / (resident * ahead)) * slower


def _sum_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {
        "BLOCK_M": (1,) if problem["m"] == 1 else (1, 4, 16),
        "BLOCK_N": (64, 128, 256, 512),
        "num_warps": (1, 2, 4),
        "num_stages": (1,),
    }


def _sum_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = settings["BLOCK_M"], settings["BLOCK_N"]
    outputs = problem["m"] * problem["n"]
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(problem["m"], rows) * triton.cdiv(problem["n"], columns),
        read=4.0 * outputs * problem["splits"],
        written=4.0 * outputs,
        elements=rows * columns,
        operations=4.0 + 2.0 * problem["splits"],
        held=1.0 + problem["splits"],
    )


def _rest_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns, programs = problem["BLOCK_M"], problem["BLOCK_N"], problem["PROGRAMS"]
    count = triton.cdiv(problem["m"], rows) * triton.cdiv(problem["n"], columns) % programs
    return estimates.streaming(
        device,
        settings,
        workgroups=count * triton.cdiv(rows, settings["ROWS"]),
        read=4.0 * rows * columns * (programs + count),
        written=4.0 * rows * columns * count,
        elements=settings["ROWS"] * columns,
        operations=4.0 + 2.0 * triton.cdiv(programs, count),
        held=3.0,
    )


def _vector_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    if problem["rows"]:  # B is contiguous along N
        return {
            "BLOCK_N": (32, 64, 128, 256),
            "BLOCK_K": (8, 16, 32, 64),
            "num_warps": (1, 2, 4),
            "num_stages": (1,),
        }
    return {
        "BLOCK_N": (2, 4, 8, 16),
        "BLOCK_K": (256, 512, 1024, 2048),
        "num_warps": (1, 2, 4),
        "num_stages": (1,),
    }


def _vector_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    elements = settings["BLOCK_N"] * settings["BLOCK_K"]
    per_lane = elements / (settings["num_warps"] * device.limits().wave_lanes)
    return 8 <= per_lane <= (32 if problem["aligned"] else 16)


def _vector_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    columns, depth = settings["BLOCK_N"], settings["BLOCK_K"]
    size = _BYTES[problem["dtype"]]
    steps = triton.cdiv(problem["k"], depth)
    workgroups = triton.cdiv(problem["n"], columns) * problem["batch"]
    return estimates.streaming(
        device,
        settings,
        workgroups=workgroups,
        read=1.0 * problem["batch"] * problem["n"] * problem["k"] * size,
        written=1.0 * problem["batch"] * problem["n"] * size,
        elements=columns * depth,
        operations=4.0 * steps,
        held=2.0,
    )


VECTOR = Space(
    kernel="matmul_vector_kernel",
    axes=_vector_axes,
    fits=_vector_fits,
    seconds=_vector_seconds,
)
TILES = Space(kernel="matmul_kernel", axes=_axes, fits=_fits, seconds=_seconds, classes=("m",))
SUM = Space(kernel="matmul_sum_kernel", axes=_sum_axes, seconds=_sum_seconds, classes=("m",))
REST = Space(
    kernel="matmul_rest_kernel",
    axes=lambda problem, device: {
        "ROWS": (2, 4, 8, 16),
        "num_warps": (1, 2, 4),
        "num_stages": (1,),
    },
    seconds=_rest_seconds,
    classes=("m",),
)

__all__ = ["REST", "SUM", "TILES", "VECTOR"]
