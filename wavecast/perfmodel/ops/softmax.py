"""Softmax of rows, as PyTorch runs it (aten/src/ATen/native/cuda/SoftMax.cu).

Up to 1024 columns a wave holds whole rows in registers, two at a time up to 128 columns, in
workgroups of 128 threads. Longer rows take a workgroup of 1024 threads each, which passes three
times over the row (maximum, sum, result): through LDS if the row is aligned to 16 bytes, else from
memory one element per thread at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from wavecast.arch import Device
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.dtypes import element_bytes
from wavecast.perfmodel.ops.row_op import RowOp
from wavecast.perfmodel.ops.rows import FAMILY, RowSizes, launch, next_power_of_two
from wavecast.perfmodel.ops.sizes import predict_kernels
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.streaming import kernel_parts, lanes, resident

LONGEST_IN_WAVE: Final = 1024
LONGEST_OF_TWO: Final = 128
WAVE_THREADS: Final = 128
BLOCK_THREADS: Final = 1024


@dataclass(frozen=True, slots=True)
class Softmax(RowOp):
    """Softmax of each row."""

    kind: ClassVar[str] = "softmax"

    def work(self) -> Work:
        size = self.rows * self.columns * element_bytes(self.dtype)
        flops = {"vector_fp32": 5.0 * self.rows * self.columns}
        return Work(
            flops,
            size,
            size,
            "five per element: maximum, difference, exponential, sum, quotient",
            "derived from the shape",
        )

    @property
    def in_wave(self) -> bool:
        """Whether rows stay in the registers of a wave."""
        return self.columns <= LONGEST_IN_WAVE

    @property
    def aligned(self) -> bool:
        """Whether rows start at multiples of 16 bytes."""
        return self.columns * element_bytes(self.dtype) % 16 == 0

    def predict(self, device: Device) -> Prediction:
        chip = Chip.of(device)
        rows = self._in_wave(chip) if self.in_wave else self._in_workgroup(chip)
        streaming = launch(chip, rows)
        through = "registers" if self.in_wave else "LDS" if self.aligned else "memory"
        return predict_kernels(
            self,
            device,
            [kernel_parts(chip, streaming)],
            streaming.overlap,
            timing=self.timing,
            assumed={
                "rows kept in": through,
                "threads": rows.threads,
                "workgroups": rows.workgroups,
                "timing": self.timing,
            },
        )

    def _in_wave(self, chip: Chip) -> RowSizes:
        constants = coefficients.values(FAMILY, chip.device)
        padded = next_power_of_two(max(2, self.columns))
        batch = 2 if padded <= LONGEST_OF_TWO else 1
        lanes_per_row = min(padded, chip.lanes)
        rows = WAVE_THREADS // lanes_per_row * batch
        per_lane = padded / lanes_per_row * batch
        clocks = constants["wave_reduction"] + per_lane * constants["softmax_instructions"]
        if batch > 1:
            clocks *= constants["batch_cost"]
        waves = WAVE_THREADS / chip.lanes
        return RowSizes(
            rows=self.rows,
            columns=self.columns,
            width=element_bytes(self.dtype),
            shared=self.timing == "kernel",
            threads=WAVE_THREADS,
            workgroups=math.ceil(self.rows / rows),
            issue=clocks * waves * chip.lanes / lanes(chip),
            chain=constants["softmax_chain"] + (constants["batch_chain"] if batch > 1 else 0.0),
        )

    def _in_workgroup(self, chip: Chip) -> RowSizes:
        constants = coefficients.values(FAMILY, chip.device)
        if self.aligned:
            vector = 16 / element_bytes(self.dtype)
            walks = math.ceil(self.columns / (BLOCK_THREADS * vector))
            row = constants["block_reduction"] + walks * constants["aligned_walk"]
        else:
            walks = math.ceil(self.columns / BLOCK_THREADS)
            row = constants["block_reduction"] + walks * constants["unaligned_walk"]
        at_once = resident(chip, BLOCK_THREADS)
        return RowSizes(
            rows=self.rows,
            columns=self.columns,
            width=element_bytes(self.dtype),
            shared=self.timing == "kernel",
            threads=BLOCK_THREADS,
            workgroups=self.rows,
            issue=row / at_once,
            chain=constants["softmax_chain"] + row * (1 - 1 / at_once),
        )


__all__ = ["Softmax"]
