"""Reductions of rows to one value each: sum, mean, extremes, norms (aten/…/cuda/Reduce.cuh).

A workgroup of 512 threads takes 16 elements per thread at least; rows longer than that are shared
by workgroups that combine their parts through memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

from wavecast.arch import Device
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.bounds import MemoryFloor, Work
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import Traffic
from wavecast.perfmodel.ops.dtypes import element_bytes
from wavecast.perfmodel.ops.row_op import RowOp
from wavecast.perfmodel.ops.rows import FAMILY
from wavecast.perfmodel.ops.sizes import predict_kernels, warm_floor
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.streaming import Streaming, kernel_parts, lanes

THREADS: Final = 512
PER_THREAD: Final = 16


@dataclass(frozen=True, slots=True)
class Reduction(RowOp):
    """One value of each row: `rows` values."""

    kind: ClassVar[str] = "reduction"

    def work(self) -> Work:
        width = element_bytes(self.dtype)
        elements = self.rows * self.columns
        return Work(
            {"vector_fp32": float(elements)},
            elements * width,
            self.rows * width,
            "one per element",
            "derived from the shape",
        )

    def memory_floor(self, device: Device) -> MemoryFloor:
        return warm_floor(self, device, self.work().bytes or 0.0, streams=1)

    def predict(self, device: Device) -> Prediction:
        chip = Chip.of(device)
        constants = coefficients.values(FAMILY, device)
        width = element_bytes(self.dtype)
        elements = self.rows * self.columns
        launch = Streaming(
            traffic=Traffic(
                elements * width, self.rows * width, streams=1, shared=self.timing == "kernel"
            ),
            workgroups=math.ceil(elements / (THREADS * PER_THREAD)),
            issue=THREADS * PER_THREAD * constants["reduction_instructions"] / lanes(chip),
            overlap=constants["overlap"],
            chain=constants["reduction_chain"],
            threads=THREADS,
        )
        return predict_kernels(
            self,
            device,
            [kernel_parts(chip, launch)],
            launch.overlap,
            timing=self.timing,
            assumed={"threads": THREADS, "timing": self.timing},
        )


__all__ = ["Reduction"]
