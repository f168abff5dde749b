"""Attention kernels whose workgroups keep one block of rows and loop over the others."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.arch import Device
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.ops.attention.machine import AttentionRates
from wavecast.perfmodel.ranking.demand import Demand

FAMILY: Final = "ranking_attention"


@dataclass(frozen=True, slots=True)
class _Cost:
    """What a configuration takes: per score `flops` of matrix products, vector `operations` of
    single lanes and bytes of LDS traffic (`lds`); `registers` per lane."""

    flops: float
    operations: float
    lds: float
    registers: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionPass(Demand):
    """One kernel of attention in one configuration.

    There are `batch` sequences of `queries` and `keys`, `heads` heads of queries and `kv_heads` of
    keys, with `head` elements of queries and keys and `head_v` of values as padded in tiles.
    Windows have `left` and `right` sides (-1: none). `dtype` names the matrix rate and `itemsize`
    is the size of an element in memory.

    A workgroup keeps `rows` of queries (of keys in `AttentionKeyGradients`) and loops over the
    others, `columns` at a time, or `edge` where a mask cuts a tile. With `chunk` (0: none) both
    operands of a product are read again, so many elements of a head at a time. With `ahead` the
    next tile is in registers. With `twice` tiles are loaded once for each product they are in.
    """

    batch: int
    queries: int
    keys: int
    heads: int
    kv_heads: int
    head: int
    head_v: int
    dtype: str
    itemsize: int
    rows: int
    columns: int
    edge: int
    left: int = -1
    right: int = -1
    soft_cap: bool = False
    alibi: bool = False
    dropout: bool = False
    chunk: int = 0
    num_stages: int = 1
    ahead: bool = False
    twice: bool = False

    @abstractmethod
    def cost(self, device: Device, num_warps: int) -> _Cost:
        """The cost of a score, and registers. Raises MissingFact."""

    @abstractmethod
    def spans(self) -> np.ndarray:
        """Rows that each workgroup of a head loops over."""

    @property
    def heads_of_blocks(self) -> int:
        """Heads whose blocks are separate workgroups."""
        return self.heads

    @property
    def first_loads(self) -> int:
        """Loops, after the first, whose first tile nothing hides."""
        return 0

    @property
    def barriers_per_step(self) -> float:
        """Times per step that operands go through LDS, with barriers before and after."""
        return 1.0

    def without_matrix(self, device: Device) -> bool:
        """Whether products are sums of vector instructions, for want of matrix instructions."""
        amd = device.vendor == "amd"
        return amd and self.dtype == "fp32" and not device.capabilities.matrix_fp32

    def lds(self, device: Device) -> float:
        """Bytes of LDS of a workgroup."""
        direct = device.capabilities.direct_to_lds
        buffers = self.num_stages if direct else 1
        operands = self.rows * (self.head + self.head_v) * self.itemsize
        padding = coefficients.values(FAMILY, device)["lds_padding"]
        tiles = buffers * self.columns * self._loaded_bytes * padding
        return tiles + (operands if device.vendor == "nvidia" else 0)

    def seconds(self, device: Device, num_warps: int) -> float:
        """Matrix, vector and LDS clocks per score, which the waves of a SIMD hide of each other
        the better the more there are. A configuration that needs more registers than a lane can
        have ranks after all others."""
        k, machine = coefficients.values(FAMILY, device), AttentionRates.of(device)
        chip, cost = machine.chip, self.cost(device, num_warps)
        file = float(device.limits().vgpr_total)
        most = file / max(1.0, num_warps / chip.simds)
        if cost.registers > min(most, k["most_registers"]):
            return 1.0 + cost.registers
        no_matrix = self.without_matrix(device)
        rate = chip.vector_flops if no_matrix else chip.matrix_rate(self.dtype)
        matrix = cost.flops / rate
        vector = cost.operations / machine.lanes + 1.0 / machine.exponentials
        lds = cost.lds / chip.lds_rate
        waves = min(k["most_waves"], max(1.0, k["register_slack"] * file // cost.registers))
        resident = max(1.0, waves * chip.simds // num_warps)
        resident = max(1.0, min(resident, chip.lds_bytes // max(1.0, self.lds(device))))
        per_simd = max(1.0, resident * num_warps / chip.simds)
        pipelined = self.num_stages > 1 or self.ahead
        power = k["overlap"] - k["overlap_one_wave"] / per_simd
        power += k["overlap_pipelined"] if pipelined else 0.0
        clocks = (matrix**power + vector**power + lds**power) ** (1 / power)
        wait = self.barriers_per_step * k["step_clocks"]
        wait += 0.0 if pipelined else chip.latency["l2"] * chip.clock
        wait /= resident
        spans = self.spans()
        times = spans * self.rows * clocks * max(1.0, chip.simds / num_warps / resident)
        times = times + spans / self.columns * wait
        first = self.first_loads * chip.latency["hbm"] * chip.clock
        times = times + (k["start_clocks"] + first) / resident
        count = self.heads_of_blocks * self.batch
        rounds = len(spans) * count / chip.units / resident
        tail = 1.0 if self.right >= 0 else math.ceil(rounds) / rounds
        compute = max(float(times.sum()) * count / chip.units * tail, float(times.max()))
        bytes_moved = float(spans.sum()) * count * self._loaded_bytes
        l2 = chip.l2_bandwidth or k["l2_over_memory"] * chip.hbm
        return compute / chip.clock + k["l2_share"] * bytes_moved / l2

    @property
    def _loaded_bytes(self) -> float:
        """Bytes that are loaded per row looped over."""
        return (self.head + self.head_v) * self.itemsize * (2 if self.twice else 1)

    def _operations(self, device: Device) -> float:
        """Lane operations of a score without the exponential."""
        k = coefficients.values(FAMILY, device)
        return (
            k["score_operations"]
            + (k["soft_cap_operations"] if self.soft_cap else 0.0)
            + (k["dropout_operations"] if self.dropout else 0.0)
            + (k["alibi_operations"] if self.alibi else 0.0)
        )

    def _rounding(self, device: Device) -> float:
        """Lane operations of a value that becomes an operand."""
        k = coefficients.values(FAMILY, device)
        native = self.dtype != "bf16" or device.capabilities.bf16_conversion
        return k["conversion_operations" if native else "bf16_rounding_operations"]

    def _registers(
        self, device: Device, num_warps: int, *, accumulated: float, operands: float, scores: int,
        tiles: float = 1,
    ) -> float:  # fmt: skip
        """Registers of a lane, of a workgroup with `accumulated` elements of results and `operands`
        elements per row, so many tiles of `scores`, and `tiles` of the other rows on their way from
        LDS to matrix instructions."""
        k = coefficients.values(FAMILY, device)
        lanes, threads = device.wave_lanes, num_warps * device.wave_lanes
        words = {"fp8": 0.25, "fp32": 1.0}.get(self.dtype, 0.5)
        copies = float(device.capabilities.matrix_operand_copies)
        widest = max(self.head, self.head_v)
        fixed, rows, columns = k["fixed_registers"], self.rows, self.columns
        if self.chunk:
            operands = self.chunk
        if self.without_matrix(device):  # a lane has all rows and columns its sums are made of
            depth = self.chunk or widest
            fragment = 2 * depth * math.sqrt(max(1.0, rows * columns / threads))
            fragment = max(fragment, 2 * columns * math.sqrt(rows * widest / threads))
            of_row = accumulated + operands + scores * columns
            return fixed + rows * of_row / threads + fragment
        if device.vendor == "nvidia" and scores > 1:  # operands stay in shared memory
            fixed = k["gradient_registers"]
            return fixed + rows * (accumulated + scores * columns) / threads
        fragment = copies * columns * widest * words / lanes
        loads = k["pipelined_loads"] if self.num_stages > 1 else 0.0
        if self.ahead:  # the rows of this step and of the next
            loads = 2.0
        return (
            fixed
            + rows * accumulated / threads
            + copies * rows * operands * words / threads
            + scores * rows * columns / threads
            + tiles * min(fragment, k["fragment_registers"])
            + columns * (loads * self._loaded_bytes) / 4 / threads
            + (k["dropout_registers"] if self.dropout else 0.0)
        )

    def _keys_of(self, rows: int) -> np.ndarray:
        """Keys that each block of `rows` queries of a head sees."""
        return self._visible_counts(rows, self.queries, self.keys, self.left, self.right)

    def _visible_counts(
        self, rows: int, queries: int, keys: int, left: int, right: int
    ) -> np.ndarray:
        first = np.arange(max(1, -(-queries // rows))) * rows + keys - queries
        last = np.minimum(first + rows, keys) - 1
        hi = np.full(len(first), keys) if right < 0 else np.clip(last + right + 1, 0, keys)
        lo = np.zeros(len(first))
        if left >= 0:
            lo = np.maximum(first - left, 0) // self.edge * self.edge
        return np.maximum(np.ceil((hi - lo) / self.edge) * self.edge, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionForward(AttentionPass):
    """Blocks of queries loop over keys; a block holds `pack` heads that share keys."""

    pack: int = 1

    def cost(self, device: Device, num_warps: int) -> _Cost:
        head, head_v = self.head, self.head_v
        again = 2.0 * head * self.itemsize / self.columns if self.chunk else 0.0
        reads = coefficients.values(FAMILY, device)["lds_per_operand"]
        return _Cost(
            2.0 * (head + head_v),
            self._operations(device) + self._rounding(device) + head_v / self.columns,
            reads * self.itemsize * (head + head_v) * num_warps / self.rows + again,
            self._registers(device, num_warps, accumulated=head_v, operands=head, scores=1),
        )

    def spans(self) -> np.ndarray:
        return self._keys_of(self.rows // self.pack)

    @property
    def heads_of_blocks(self) -> int:
        return self.heads // self.pack

    @property
    def first_loads(self) -> int:
        # the left edge of a window and its middle are loops before the last one
        return 2 if self.left >= 0 and not self.ahead else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionKeyGradients(AttentionPass):
    """Blocks of keys loop over the queries of all heads that share them. With `split`, workgroups
    compute the gradient either of keys or of values."""

    split: bool = False

    def cost(self, device: Device, num_warps: int) -> _Cost:
        k = coefficients.values(FAMILY, device)
        head, head_v, split = self.head, self.head_v, self.split
        again = 2.0 * (head + head_v) * self.itemsize / self.columns if self.chunk else 0.0
        operations = self._operations(device) + k["key_gradient_operations"]
        operations += 2 * self._rounding(device) + (k["split_operations"] if split else 0.0)
        reads = 2 * k["lds_per_operand"]
        return _Cost(
            2.0 * (2 * head + 2 * head_v + (head if split else 0)),
            operations,
            reads * self.itemsize * (head + head_v) * num_warps / self.rows + again,
            self._registers(
                device, num_warps,
                accumulated=max(head, head_v) if split else head + head_v,
                operands=head + head_v, scores=3,
                tiles=k["tiles_loaded_twice"] if self.twice else 2,
            ),
        )  # fmt: skip

    def spans(self) -> np.ndarray:
        queries = self._visible_counts(self.rows, self.keys, self.queries, self.right, self.left)
        return queries * (self.heads // self.kv_heads)

    @property
    def heads_of_blocks(self) -> int:
        return self.kv_heads

    @property
    def barriers_per_step(self) -> float:
        return 1.0 if self.twice else 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionQueryGradients(AttentionPass):
    """Blocks of queries loop over keys again, for the gradient of queries."""

    def cost(self, device: Device, num_warps: int) -> _Cost:
        k = coefficients.values(FAMILY, device)
        head, head_v = self.head, self.head_v
        again = 2.0 * (head + head_v) * self.itemsize / self.columns if self.chunk else 0.0
        operations = self._operations(device) + k["query_gradient_operations"]
        lds = k["lds_per_operand"] * self.itemsize * (2 * head + head_v) * num_warps / self.rows
        registers = self._registers(
            device, num_warps, accumulated=head, operands=head + head_v, scores=2
        )
        flops = 2.0 * (2 * head + head_v)
        return _Cost(flops, operations + self._rounding(device), lds + again, registers)

    def spans(self) -> np.ndarray:
        return self._keys_of(self.rows)

    @property
    def barriers_per_step(self) -> float:
        return 1.0 if self.twice else 2.0


__all__ = [
    "FAMILY",
    "AttentionForward",
    "AttentionKeyGradients",
    "AttentionPass",
    "AttentionQueryGradients",
]
