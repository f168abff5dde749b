"""The kernels a library can compute a part of the layer with, and the fastest of them.

Two stages share one sorting of the rows, hence the height of blocks; each has its own width of
tiles. A batch is problems of one part, format and chip, computed at once: arrays are [problem, …].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavecast.perfmodel.ops.moe.stages import MoeModel, MoeSizes, StageTime

Array = np.ndarray[Any, Any]

PARTS = {
    "layer": "both stages, by the faster of two kernels and one",
    "gate-up": "the first stage alone",
    "down": "the second stage alone",
    "one-kernel": "both stages in one kernel",
}
"""What of the layer is timed."""
BLOCKS = (16, 32, 64, 128)
"""Heights of row blocks that libraries have kernels for."""
TILES = (64, 128, 256)
"""Widths of column tiles."""
NARROW = 128
"""Widest tile of the second stage where products are scaled by row or not at all (AITER)."""
SLICES = (128, 256, 512)
"""Inner columns a workgroup of the one-kernel form owns (AITER)."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A configuration and its time: seconds in all and per resource."""

    seconds: float
    assumed: Mapping[str, object]
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TiledProblems:
    """Sizes of problems by tiles: of each stage's own kernel, and of the kernel of both."""

    part: str
    stages: MoeSizes
    fused: MoeSizes

    @staticmethod
    def of(
        part: str,
        problems: Sequence[tuple[int, int, int, int, int, int]],
        block_m: int = 0,
        tile_n: int = 0,
    ) -> TiledProblems:
        """Problems as `MoeSizes.of` takes them; a tile of 0 means all of the library."""
        heights = (block_m,) if block_m else BLOCKS
        return TiledProblems(
            part,
            MoeSizes.of(problems, heights, (tile_n,) if tile_n else TILES),
            MoeSizes.of(problems, heights, (tile_n,) if tile_n else SLICES),
        )

    def seconds(self, machine: MoeModel) -> Array:
        """The time of the fastest strategy for every problem."""
        times = []
        if self.part == "layer":
            first, second = (launch.seconds.min(axis=2) for launch in self._two(machine))
            times.append((first + second).min(axis=1))
        if self.part in ("gate-up", "down"):
            times.append(self._stage_time(machine).seconds.min(axis=(1, 2)))
        if self._fuses(machine):
            times.append(machine.fused_kernel(self.fused).seconds.min(axis=(1, 2)))
        return np.minimum.reduce(times)

    def best(self, machine: MoeModel) -> Strategy:
        """The fastest strategy for the first problem."""
        strategies = []
        if self.part == "layer":
            strategies.append(_two_kernels(*self._two(machine), self.stages))
        if self.part in ("gate-up", "down"):
            strategies.append(_one_kernel(self._stage_time(machine), self.stages, {}))
        if self._fuses(machine):
            strategies.append(
                _one_kernel(machine.fused_kernel(self.fused), self.fused, {"kernels": 1})
            )
        return min(strategies, key=lambda strategy: strategy.seconds)

    def _fuses(self, machine: MoeModel) -> bool:
        return self.part == "one-kernel" or (self.part == "layer" and machine.form.fusible)

    def _stage_time(self, machine: MoeModel) -> StageTime:
        return machine.gate_up(self.stages) if self.part == "gate-up" else self._down(machine)

    def _two(self, machine: MoeModel) -> tuple[StageTime, StageTime]:
        return machine.gate_up(self.stages), self._down(machine)

    def _down(self, machine: MoeModel) -> StageTime:
        stage = machine.down(self.stages)
        if machine.form.scaled_in_groups or self.stages.widths.size == 1:
            return stage
        missing = np.where(self.stages.widths > NARROW, np.inf, 0.0)
        return StageTime(stage.seconds + missing, stage.parts)


def _one_kernel(launch: StageTime, sizes: MoeSizes, more: Mapping[str, object]) -> Strategy:
    row, column = divmod(int(np.argmin(launch.seconds[0])), sizes.widths.size)
    return Strategy(
        float(launch.seconds[0, row, column]),
        {
            **more,
            "block_m": int(sizes.heights.flat[row]),
            "tile_n": int(sizes.widths.flat[column]),
        },
        _at(launch, row, column),
    )


def _two_kernels(first: StageTime, second: StageTime, sizes: MoeSizes) -> Strategy:
    total = first.seconds[0].min(axis=1) + second.seconds[0].min(axis=1)
    row = int(np.argmin(total))
    columns = [int(np.argmin(launch.seconds[0, row])) for launch in (first, second)]
    parts = _at(first, row, columns[0])
    for name, value in _at(second, row, columns[1]).items():
        parts[name] = parts.get(name, 0.0) + value
    assumed: dict[str, object] = {
        "kernels": 2,
        "block_m": int(sizes.heights.flat[row]),
        "tile_n": tuple(int(sizes.widths.flat[column]) for column in columns),
    }
    return Strategy(float(total[row]), assumed, parts)


def _at(launch: StageTime, row: int, column: int) -> dict[str, float]:
    """Seconds per resource of one tile; parts broadcast over the tiles they do not depend on."""
    return {
        name: float(part[0, row % part.shape[1], column % part.shape[2]])
        for name, part in launch.parts.items()
    }


__all__ = ["BLOCKS", "NARROW", "PARTS", "SLICES", "TILES", "Strategy", "TiledProblems"]
