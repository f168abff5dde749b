"""Which tiles `matmul_sparse24_kernel` may be cut into on a GPU, and what each demands of it."""

from collections.abc import Mapping

from wavecast.dtypes import element_bytes
from wavecast.kernels import tiles
from wavecast.kernels.describe import Axes, Demand, Device, Problem, Settings
from wavecast.kernels.quantised import parts
from wavecast.kernels.sparse.instructions import A_WORDS, B_WORDS, LIBRARY, LINE, SIDE, library
from wavecast.kernels.sparse.kernel import matmul_sparse24_kernel
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.ranking.tile import FAMILY


def axes(problem: Problem, device: Device) -> Axes:
    few = problem["m"] <= parts.SKINNY
    return {
        "BLOCK_M": tiles.blocks(problem["m"], SIDE if few else 64, 64 if few else 256),
        "BLOCK_N": (32, 64, 128) if few else (64, 128, 256),
        "WAVES_M": (1, 2) if few else (1, 2, 4),
        "SPLIT_K": parts.splits(problem),
        "GROUP": (8,),
        "num_warps": (1, 2, 4) if few else (4, 8),
    }


def fits(problem: Problem, settings: Settings, device: Device) -> bool:
    if settings["WAVES_M"] != _fewest_reads(settings):
        return False
    most = coefficients.values(FAMILY, device)["most_registers"]
    if _registers(settings, device) > max(most, device.capabilities.registers_per_lane / 2):
        return False
    lds = _step_bytes(settings)
    sums = settings["BLOCK_M"] * settings["BLOCK_N"] * (4 if settings["SPLIT_K"] > 1 else 2)
    if max(lds, sums) > device.limits().lds_max_per_workgroup:
        return False
    return parts.splits_fit(problem, settings, problem["step"])


def demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    """That of a dense product of half as many elements of K, which takes the matrix unit as long
    and reads as much of the weights."""
    if problem["m"] <= parts.SKINNY:
        element = element_bytes(problem["rate"])
        weights = problem["n"] * problem["k"] * (element / 2 + 1 / 8)
        return parts.skinny(problem, settings, weights, element, problem["step"])
    half = problem["k"] // 2
    return parts.tiled_product(problem, settings, problem["rate"], problem["step"] // 2, k=half)


def libraries(device: Device) -> Mapping[str, str]:
    """The library that the kernel is linked with."""
    return {LIBRARY: str(library(device.target))}


def _tiles(settings: Settings, waves_m: int) -> tuple[int, int]:
    """Tiles of 16 that a wave has along the rows of `x` and along those of the weights; 0 where
    there are more waves than tiles."""
    waves_n = settings["num_warps"] // waves_m
    return settings["BLOCK_M"] // (SIDE * waves_m), settings["BLOCK_N"] // (SIDE * waves_n or 1)


def _step_bytes(settings: Settings) -> int:
    """Bytes of operands of a step."""
    return settings["BLOCK_M"] * 2 * LINE + settings["BLOCK_N"] * LINE


def _fewest_reads(settings: Settings) -> int:
    """The waves along the rows of `x` with which a wave reads the fewest words from the LDS."""
    choices = [waves for waves in (1, 2, 4) if waves <= settings["num_warps"]]
    possible = [waves for waves in choices if all(_tiles(settings, waves))]

    def read(waves: int) -> int:
        tiles_m, tiles_n = _tiles(settings, waves)
        return tiles_m * B_WORDS + tiles_n * A_WORDS

    return min(possible, key=read, default=0)


def _registers(settings: Settings, device: Device) -> float:
    """Registers of a lane: its sums, the operands of the next step, and those the instructions take
    now, of which the compiler reads half at a time."""
    waves, lanes = settings["num_warps"], device.wave_lanes
    tiles_m, tiles_n = _tiles(settings, settings["WAVES_M"])
    sums = tiles_m * tiles_n * SIDE * SIDE / lanes
    loaded = _step_bytes(settings) / 4 / (waves * lanes)
    operands = 2 * (tiles_m * B_WORDS + tiles_n * A_WORDS) / 2
    return sums + loaded + operands + coefficients.values(FAMILY, device)["fixed_registers"]


TILES = parts.split_kernel(
    matmul_sparse24_kernel,
    axes,
    fits,
    demand,
    libraries=libraries,
)
