"""Kernels that stream tensors through registers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wavecast.arch import Device
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import Traffic
from wavecast.perfmodel.ranking.demand import Demand
from wavecast.perfmodel.streaming import Streaming, kernel_parts, kernel_seconds, lanes

FAMILY = "ranking"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingKernel(Demand):
    """A kernel that moves tensors and computes a little on each element.

    `read` and `written` are bytes of the whole launch. A workgroup takes `elements` elements,
    executes `instructions` vector instructions on each and keeps `live_registers` 32-bit registers
    for each. A configuration that needs more registers than a lane can have ranks after all others.
    """

    workgroups: int
    read: float
    written: float
    elements: int
    instructions: float = 8.0
    live_registers: float = 1.0

    def seconds(self, device: Device, num_warps: int) -> float:
        chip, constants = Chip.of(device), coefficients.values(FAMILY, device)
        threads = num_warps * chip.lanes
        per_thread = self.elements / threads
        registers = constants["streaming_fixed_registers"] + self.live_registers * per_thread
        if registers > device.capabilities.registers_per_lane:
            return 1.0 + registers
        overlap = constants["streaming_overlap"]
        launch = Streaming(
            Traffic(self.read, self.written, footprint=self.read + self.written, warm=False),
            workgroups=max(1, self.workgroups),
            issue=np.ceil(per_thread) * threads * self.instructions / lanes(chip),
            overlap=overlap,
            threads=max(
                threads, round(threads * registers / constants["streaming_full_registers"])
            ),
        )
        return float(kernel_seconds(chip, kernel_parts(chip, launch), overlap))


__all__ = ["FAMILY", "StreamingKernel"]
