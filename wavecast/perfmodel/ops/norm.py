"""Normalisation: of rows (layer, RMS), of groups of channels, and of channels over a batch.

What runs, by what PyTorch and AITER launch:

- layer norm: one workgroup of 256 threads per row, four elements per load; a pass for mean and
  variance, a pass that normalises (vectorized_layer_norm_kernel).
- RMS norm: the row stays in registers, so it is read once.
- group norm: a kernel of partial sums, one that adds them and normalises; the second finds the
  channel of every load by a division of 64-bit numbers (AITER, csrc/kernels/groupnorm.cu).
- batch norm: one workgroup per channel for the statistics, then an element-wise kernel; backward
  the same workgroups pass over the channel twice (Normalization.cuh).

`residual` adds a tensor first and writes the sum, `dropout` draws a mask first, in the same kernel
if `fused`, else each as a separate element-wise kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from wavecast.arch import Device
from wavecast.errors import UnknownName
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.bounds import MemoryFloor, Work
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.demand import Amount
from wavecast.perfmodel.memory import Traffic
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.ops.dtypes import KNOWN, element_bytes
from wavecast.perfmodel.ops.rows import FAMILY, RowSizes, launch
from wavecast.perfmodel.ops.sizes import (
    check_options,
    parse_sizes,
    predict_kernels,
    truth,
    warm_floor,
)
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.streaming import Streaming, kernel_parts, lanes
from wavecast.perfmodel.timing import TIMINGS

_ROW_NORMS: Final = ("layer_norm", "rms_norm")
FUNCTIONS: Final = {
    "layer_norm": "mean and variance of every row",
    "rms_norm": "root mean square of every row",
    "group_norm": "mean and variance of every group of channels",
    "batch_norm": "mean and variance of every channel",
    "batch_norm_backward": "gradients of batch norm",
}
OPTIONS: Final = ("function", "dtype", "residual", "dropout", "fused", "timing")
THREADS: Final = 256
WAVE: Final = 64
SHORT: Final = 512
"""Rows up to this long take one wave in RMS norm."""
CHANNEL_THREADS: Final = 512
GROUP_THREADS: Final = 1024
GROUP_STEPS: Final = 8
GROUP_SHARES: Final = 16
GROUP_WORKGROUPS: Final = 4096
VECTOR: Final = 4

Parts = dict[str, Amount]


@dataclass(frozen=True, slots=True)
class Norm(Op):
    """`function` (a key of `FUNCTIONS`) over `rows` of `columns` elements that share statistics.

    Batch norm has a row per channel. `timing` is a key of `timing.TIMINGS`.
    """

    kind: ClassVar[str] = "norm"
    shape_help: ClassVar[str] = (
        "ROWSxCOLUMNS (a row per group or channel); --dtype, function=layer_norm|rms_norm|"
        "group_norm|batch_norm|batch_norm_backward, residual=true, dropout=true, fused=false, "
        "timing (kernel, launch, eager, …)"
    )

    function: str
    rows: int
    columns: int
    dtype: str
    residual: bool = False
    dropout: bool = False
    fused: bool = True
    timing: str = "kernel"

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise UnknownName("norm", self.function, FUNCTIONS)
        if self.timing not in TIMINGS:
            raise UnknownName("way of timing", self.timing, TIMINGS)
        element_bytes(self.dtype)

    @classmethod
    def parse(cls, shape: str, options: Mapping[str, str]) -> Self:
        values = check_options(
            cls.kind,
            options,
            OPTIONS,
            required=("function", "dtype"),
            values={"function": FUNCTIONS, "dtype": KNOWN},
        )
        rows, columns = parse_sizes(shape, 2)
        return cls(
            values["function"],
            rows,
            columns,
            values["dtype"],
            residual=truth(cls.kind, "residual", values.get("residual", "false")),
            dropout=truth(cls.kind, "dropout", values.get("dropout", "false")),
            fused=truth(cls.kind, "fused", values.get("fused", "true")),
            timing=values.get("timing", "kernel"),
        )

    @property
    def size(self) -> float:
        """Bytes of the tensor."""
        return self.rows * self.columns * element_bytes(self.dtype)

    def work(self) -> Work:
        reads = 1 + self.residual + (self.function == "batch_norm_backward")
        return Work(
            {"vector_fp32": 8.0 * self.rows * self.columns},
            reads * self.size,
            (1 + self.residual) * self.size,
            "eight per element: mean, variance, scale and shift",
            "derived from the shape",
        )

    def memory_floor(self, device: Device) -> MemoryFloor:
        return warm_floor(self, device, self.work().bytes or 0.0)

    def predict(self, device: Device) -> Prediction:
        chip = Chip.of(device)
        kernels = [*self._before(chip), *self._kernels(chip)]
        return predict_kernels(
            self,
            device,
            kernels,
            coefficients.values(FAMILY, device)["overlap"],
            timing=self.timing,
            assumed={"kernels": len(kernels), "threads": THREADS, "timing": self.timing},
        )

    def _before(self, chip: Chip) -> list[Parts]:
        """Dropout and addition as separate kernels, which norms of groups and channels have no
        kernel in one with."""
        if self.fused and self.function in _ROW_NORMS:
            return []
        masked = self.size + self.rows * self.columns * element_bytes("bool")
        random = chip.coefficient("elementwise", "random_instructions")
        return [
            *([self._plain(chip, Traffic(self.size, masked, streams=3), random)] * self.dropout),
            *([self._plain(chip, Traffic(2 * self.size, self.size, streams=3))] * self.residual),
        ]

    def _kernels(self, chip: Chip) -> list[Parts]:
        if self.function == "group_norm":
            return [self._groups(chip, 0.0), self._groups(chip, self.size)]
        if self.function == "batch_norm":
            shared = self.timing == "kernel"
            traffic = Traffic(self.size, self.size, shared=shared)
            return [self._channels(chip), self._plain(chip, traffic)]
        if self.function == "batch_norm_backward":
            return [self._channels(chip)]
        return [kernel_parts(chip, launch(chip, self._rows(chip)))]

    def _rows(self, chip: Chip) -> RowSizes:
        constants = coefficients.values(FAMILY, chip.device)
        fused = self.fused
        threads = THREADS
        if self.function == "rms_norm" and self.columns <= SHORT:
            threads = WAVE
        walks = math.ceil(self.columns / (threads * VECTOR))
        of_waves = math.ceil(self.columns / (chip.lanes * VECTOR)) * chip.lanes * VECTOR
        reduction, instructions = constants["norm_reduction"], constants["norm_instructions"]
        if self.function == "rms_norm":
            reduction = constants["sum_reduction"]
        elif self.dtype == "bf16":
            instructions += constants["conversion_instructions"]
        if self.dropout and fused:
            instructions += constants["mask_instructions"]
        return RowSizes(
            rows=self.rows,
            columns=self.columns,
            width=element_bytes(self.dtype),
            threads=threads,
            workgroups=self.rows,
            issue=reduction + of_waves * instructions / lanes(chip),
            chain=walks * constants["walk_chain"],
            reads=1 + (self.residual and fused),
            writes=1 + (self.residual and fused),
            shared=self.timing == "kernel",
            passes=1 if self.function == "rms_norm" or (fused and self.residual) else 2,
        )

    def _plain(self, chip: Chip, traffic: Traffic, instructions: float = 0.0) -> Parts:
        """A kernel that streams, with the wait of its reduction."""
        constants = coefficients.values(FAMILY, chip.device)
        workgroups = math.ceil(self.rows * self.columns / (THREADS * VECTOR))
        instructions = instructions or constants["norm_instructions"]
        issue = THREADS * VECTOR * instructions / lanes(chip)
        return kernel_parts(
            chip,
            Streaming(traffic, workgroups, issue, constants["overlap"], constants["walk_chain"]),
        )

    def _groups(self, chip: Chip, written: float) -> Parts:
        """One kernel over groups: partial sums, or the result from all partial sums of a group.

        A workgroup takes eight steps, of four elements per thread once a group has 16 workgroups.
        """
        constants = coefficients.values(FAMILY, chip.device)
        shares = math.ceil(self.columns / (GROUP_STEPS * GROUP_THREADS))
        vector = 1
        if self.columns % VECTOR == 0 and shares >= GROUP_SHARES:
            shares, vector = shares // VECTOR, VECTOR
        shares = min(math.ceil(GROUP_WORKGROUPS / self.rows), shares)
        walks = math.ceil(self.columns / (shares * GROUP_THREADS * vector))
        latency = chip.latency["mall" if chip.mall_bytes else "hbm"]
        instructions = vector * constants["norm_instructions"]
        if written:
            instructions += constants["channel_instructions"]
        return kernel_parts(
            chip,
            Streaming(
                Traffic(
                    self.size,
                    written,
                    streams=1 + (written > 0),
                    shared=self.timing == "kernel",
                ),
                self.rows * shares,
                walks * GROUP_THREADS * instructions / lanes(chip),
                constants["overlap"],
                walks * latency * chip.clock,
                threads=GROUP_THREADS,
            ),
        )

    def _channels(self, chip: Chip) -> Parts:
        """A workgroup per channel, one element per thread at a time: statistics, and in the
        backward pass the gradients after them."""
        constants = coefficients.values(FAMILY, chip.device)
        reads, passes, writes = (2, 2, 1) if self.function == "batch_norm_backward" else (1, 1, 0)
        walks = passes * math.ceil(self.columns / CHANNEL_THREADS)
        return kernel_parts(
            chip,
            Streaming(
                Traffic(
                    reads * passes * self.size,
                    writes * self.size,
                    footprint=(reads + writes) * self.size,
                    streams=reads + writes,
                    shared=self.timing == "kernel",
                ),
                self.rows,
                walks * CHANNEL_THREADS * constants["norm_instructions"] / lanes(chip),
                constants["overlap"],
                walks * constants["walk_chain"],
                threads=CHANNEL_THREADS,
            ),
        )

    def __str__(self) -> str:
        return f"{self.function} {self.rows}x{self.columns} {self.dtype}"


__all__ = ["FUNCTIONS", "Norm"]
