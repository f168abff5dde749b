"""Attention kernels whose workgroups loop over tokens of a cache, and joins of their parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import overlap_time
from wavecast.perfmodel.ranking.demand import Demand

FAMILY: Final = "ranking_decode"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLoop(Demand):
    """`programs` workgroups that take `steps` tiles of `columns` tokens each for `rows` rows of
    queries: keys of `depth` elements of `itemsize` bytes, values of `width`. `dtype` names the
    matrix rate.

    `read` bytes come from memory in all. With `queries_in_registers` queries are loaded once, with
    `values_in_keys` values are a part of the keys. `prefetched` tiles are loaded before they are
    needed. With `columns_by_wave` each wave multiplies different columns of the values.
    """

    programs: float
    steps: float
    rows: int
    columns: int
    depth: int
    width: int
    itemsize: int
    read: float
    dtype: str
    queries_in_registers: bool = True
    values_in_keys: bool = False
    prefetched: int = 0
    columns_by_wave: bool = False

    def registers(self, device: Device, num_warps: int) -> float:
        """Registers of a lane, about."""
        lanes = device.wave_lanes
        threads = lanes * num_warps
        own_rows = max(16, self.rows // num_warps)
        copies = device.capabilities.matrix_operand_copies
        queries = own_rows * self.depth / 2 / lanes * copies if self.queries_in_registers else 0.0
        loaded = self.columns * self._loaded_elements / threads
        tiles = loaded * (1 + self.prefetched) * self.itemsize / 4
        tiles += loaded / 2 if self.itemsize == 1 else 0
        fixed = coefficients.values(FAMILY, device)["fixed_registers"]
        return fixed + queries + tiles + self.rows * self.width / threads

    def lds(self) -> float:
        """Bytes of LDS of a workgroup: a tile of keys or values, or the queries on their way."""
        tile = self.columns * max(self.depth, self.width) * 2
        return max(tile, self.rows * self.width * 2 if self.queries_in_registers else 0)

    def excess(self, device: Device, num_warps: int) -> float:
        """Registers needed over those a lane can have."""
        most = 256 if num_warps > 4 else max(256, device.capabilities.registers_per_lane)
        usable = coefficients.values(FAMILY, device)["usable_registers"]
        return self.registers(device, num_warps) / (usable * most)

    def fits(self, device: Device, num_warps: int) -> bool:
        """Whether LDS suffices, and registers may."""
        most = coefficients.values(FAMILY, device)["most_excess"]
        fits_lds = self.lds() <= device.limits().lds_max_per_workgroup
        return fits_lds and self.excess(device, num_warps) < most

    def seconds(self, device: Device, num_warps: int) -> float:
        """Memory, matrix pipe and LDS overlapped, with the chain of steps of each workgroup."""
        chip, k = Chip.of(device), coefficients.values(FAMILY, device)
        products = 2.0 * self.rows * self.columns * (self.depth + self.width)
        matrix = products / chip.matrix_rate(self.dtype)
        # every wave of other rows reads all keys and values; a tile is written once
        readers = max(1, min(num_warps, self.rows // 16))
        of_values = 1 if self.columns_by_wave else readers
        bytes_moved = self.columns * 2 * (self.depth * (readers + 1) + self.width * (of_values + 1))
        if not self.queries_in_registers:
            bytes_moved += self.rows * self.depth * 2 * 2
        lds = bytes_moved / chip.lds_rate
        vector = self.rows * (
            self.columns * k["score_operations"] + self.width * k["result_operations"]
        )
        if self.itemsize == 1:
            vector += self.columns * self._loaded_elements * k["widening_operations"]
        vector /= chip.vector_flops / 2
        running = min(self.programs, self._resident(device, num_warps) * chip.units)
        prefetched = 1 + k["prefetch_gain"] * self.prefetched
        alone = chip.latency["hbm"] * chip.clock / prefetched + k["step_clocks"]
        alone += k["barrier_clocks"] * (num_warps.bit_length() - 1)
        alone += matrix * min(4, 4 / num_warps) + lds + vector
        total = self.programs * self.steps
        rounds = -(-self.programs // running) * running / self.programs
        busy = total / min(self.programs, chip.units)
        parts = [
            total / running * rounds * alone / chip.clock,
            busy * matrix / chip.clock,
            busy * lds / chip.clock,
            busy * vector / chip.clock,
            self.read / chip.hbm,
        ]
        spilled = max(0.0, self.excess(device, num_warps) - 1.0)
        return float(overlap_time(parts, k["overlap"])) * (1 + k["spilling"] * spilled)

    @property
    def _loaded_elements(self) -> int:
        """Elements that are loaded of a token."""
        return self.depth + (0 if self.values_in_keys else self.width)

    def _resident(self, device: Device, num_warps: int) -> int:
        """Workgroups of a unit at once."""
        limits = device.limits()
        registers = max(16.0, self.registers(device, num_warps))
        waves = min(limits.max_waves_per_simd, int(limits.vgpr_total // registers))
        chip = Chip.of(device)
        by_registers = max(1, waves) * chip.simds // num_warps
        by_lds = int(chip.lds_bytes // max(1.0, self.lds()))
        return max(1, min(by_registers, by_lds))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillLoop(CacheLoop):
    """A loop for many rows, with keys a tile ahead: on CDNA, with what limits workgroups that
    differ in their rows."""

    def registers(self, device: Device, num_warps: int) -> float:
        """With scores, and a tile as the operand of matrix instructions besides those on their way
        from memory: within 20% of compiled kernels."""
        count = CacheLoop.registers(self, device, num_warps)
        if device.capabilities.matrix_unit != "mfma":
            return count
        threads = device.wave_lanes * num_warps
        loaded = self.prefetched * self.columns * (self.depth + self.width) * self.itemsize
        operand = self.columns * self.depth / 2 / device.wave_lanes
        return count - loaded / 4 / threads + operand + self.rows * self.columns / threads

    def seconds(self, device: Device, num_warps: int) -> float:
        """With what all workgroups together read from L2, and few waves per SIMD."""
        seconds = CacheLoop.seconds(self, device, num_warps)
        if device.capabilities.matrix_unit != "mfma":
            return seconds
        chip, k = Chip.of(device), coefficients.values(FAMILY, device)
        tiles = self.programs * self.steps * self.columns
        read = tiles * (self.depth + self.width) * self.itemsize
        seconds += read / (chip.l2_bandwidth or k["l2_over_memory"] * chip.hbm)
        waves = max(1, int(device.limits().vgpr_total // self.registers(device, num_warps)))
        return seconds * (1 + k["one_wave"] / waves**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsJoin(Demand):
    """`streamed`, a kernel that joins parts in `steps`, each of which waits for its loads."""

    streamed: Demand
    steps: int

    def seconds(self, device: Device, num_warps: int) -> float:
        latency = Chip.of(device).latency["l2"]
        return self.streamed.seconds(device, num_warps) + self.steps * latency


def splits(
    device: Device,
    programs: int,
    tokens: int,
    *,
    resident: int,
    token_bytes: float,
    token_flops: float,
    result_bytes: float,
) -> int:
    """In how many parts the tokens of a sequence take the least time, with `programs` that each
    loop over `tokens` otherwise, `resident` of them at once on a unit; each token costs a program
    `token_bytes` of memory and `token_flops` of 16-bit matrix products, each part `result_bytes`
    that are written and read again.

    More parts fill the GPU, or end together; fewer have less to write and join.
    """
    k = coefficients.values(FAMILY, device)
    most = _most_parts(device, tokens)
    try:
        chip = Chip.of(device)
        rate = k["split_efficiency"] * chip.matrix_rate("bf16") * chip.clock
    except MissingFact:
        return min(most, max(1, resident * device.compute_units // programs))
    slots = resident * chip.units
    token = max(token_bytes * slots / chip.hbm, token_flops * resident / rate)

    def seconds(parts: int) -> float:
        time = _rounds_seconds(chip, device, programs * parts, slots, tokens, parts, token)
        if parts == 1:
            return time
        return time + chip.launch + 2.0 * programs * parts * result_bytes / chip.hbm

    return min(range(1, most + 1), key=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentLoop(Demand):
    """`programs` workgroups of one per unit that take `steps` tiles of `tokens` compressed tokens
    each for `rows` heads: keys of `width` elements, whose first `latent` are the values.
    `row_waves` waves score different heads, `prefetched` tiles are on their way. `dtype` names
    the matrix rate."""

    programs: int
    steps: int
    rows: int
    tokens: int
    latent: int
    width: int
    row_waves: int
    prefetched: int
    dtype: str

    def fits(self, device: Device, num_warps: int) -> bool:
        """Whether registers and LDS suffice."""
        k, limits = coefficients.values(FAMILY, device), device.limits()
        lanes, rows, tokens = device.wave_lanes, self.rows, self.tokens
        registers = rows / self.row_waves * self.width / 2 / lanes
        registers += rows * (self.latent + tokens) / num_warps / lanes
        lds = tokens * self.width * 2.0
        if device.capabilities.direct_to_lds:
            lds *= (self.prefetched + 1) * k["latent_lds_padding"]
        else:  # values of a tile, and the tile on its way; weights, which waves exchange
            registers += tokens * (self.latent + self.width) / 2 / num_warps / lanes
            lds += rows * tokens * 2
        vgprs = registers + k["latent_registers"]
        return lds <= limits.lds_max_per_workgroup and vgprs <= limits.vgpr_total

    def seconds(self, device: Device, num_warps: int) -> float:
        chip, k = Chip.of(device), coefficients.values(FAMILY, device)
        products = 2.0 * self.rows * self.tokens * (self.latent + self.width)
        products = products / chip.matrix_rate(self.dtype) * (chip.simds / num_warps)
        reads = 2.0 * self.row_waves * self.tokens
        if device.capabilities.direct_to_lds:
            work = products + reads * (self.latent + self.width) / chip.lds_rate
        else:  # only keys are read, while others are multiplied
            work = max(products, reads * self.width / chip.lds_rate)
        sharing = (num_warps // self.row_waves).bit_length() - 1
        step = work + k["latent_step_clocks"] + k["latent_sharing_clocks"] * sharing
        step = max(step, chip.latency["hbm"] * chip.clock / self.prefetched)
        return -(-self.programs // chip.units) * self.steps * step / chip.clock


def latent_rows(device: Device) -> dict[int, float]:
    """Clocks that a token of 576 elements costs a workgroup of `LatentLoop`, by its heads; {} where
    nobody measured any."""
    k = coefficients.values(FAMILY, device)
    names = {rows: f"latent_token_clocks_{rows}" for rows in (16, 32, 64, 128)}
    return {rows: k[name] for rows, name in names.items() if name in k}


def latent_plan(
    device: Device, sequences: int, heads: int, tokens: int, latent: int, width: int
) -> tuple[int, int]:
    """Heads of a workgroup of `LatentLoop`, and parts of a sequence's tokens, that take the least
    time.

    Many heads read a token from LDS once for more products; few leave fewer parts to write and
    join where parts are what fills the GPU.
    """
    clocks = latent_rows(device)
    choices = [rows for rows in clocks if rows < 2 * heads] or [min(clocks)]
    most = _most_parts(device, tokens)
    try:
        chip = Chip.of(device)
    except MissingFact:
        tiles = -(-heads // choices[-1])
        return choices[-1], min(most, max(1, device.compute_units // (sequences * tiles)))

    def seconds(rows: int, parts: int) -> float:
        programs = sequences * -(-heads // rows) * parts
        token = clocks[rows] * width / 576 / chip.clock
        time = _rounds_seconds(chip, device, programs, chip.units, tokens, parts, token)
        if parts == 1:
            return time
        return time + chip.launch + 8.0 * programs * rows * latent / chip.hbm

    every = [(rows, parts) for rows in choices for parts in range(1, most + 1)]
    return min(every, key=lambda plan: seconds(*plan))


def _most_parts(device: Device, tokens: int) -> int:
    k = coefficients.values(FAMILY, device)
    return max(1, min(int(k["most_parts"]), tokens // int(k["least_part"])))


def _rounds_seconds(
    chip: Chip, device: Device, programs: int, slots: int, tokens: int, parts: int, token: float
) -> float:
    """Seconds of workgroups that each take a part of the tokens, at `token` seconds each."""
    start = coefficients.values(FAMILY, device)["start_loads"] * chip.latency["hbm"]
    return -(-programs // slots) * (-(-tokens // parts) * token + start)


__all__ = [
    "FAMILY",
    "CacheLoop",
    "LatentLoop",
    "PartsJoin",
    "PrefillLoop",
    "latent_plan",
    "latent_rows",
    "splits",
]
