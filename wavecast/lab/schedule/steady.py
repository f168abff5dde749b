"""The simulator's clocks per iteration of a loop, for orders of its blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from wavecast.arch import Device
from wavecast.isa.parser import parse
from wavecast.isa.program import Loop, Program
from wavecast.lab.schedule.layout import Item
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.cu.code import LDS, SMEM, Code
from wavecast.perfmodel.cu.machine import ComputeUnit
from wavecast.perfmodel.cu.run import run
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.perfmodel.streams import HBM, L2, MALL, Streams

Array = np.ndarray[Any, Any]

ITERATIONS: Final = 12
"""Iterations that a figure is of."""
FILL: Final = 4
"""Iterations that fill pipes and queues, left out of exact figures."""
_TABLES: Final = ("reads", "accumulators", "writes")


@dataclass(frozen=True, slots=True)
class LoopPath:
    """The blocks of an iteration that waves take most often, and its executions over all waves of
    the profile."""

    blocks: tuple[int, ...]
    executions: float


def paths(profile: LaunchProfile) -> dict[int, LoopPath]:
    """The path of every innermost loop that the waves of a profile execute, by loop."""
    program, streams = profile.program, profile.streams
    starts = {block.start: block.index for block in program.blocks}
    innermost = {loop.header: loop for loop in program.loops if not loop.children}
    path_weights: dict[int, dict[tuple[int, ...], float]] = {}
    for first, stop in zip(streams.start[:-1], streams.start[1:], strict=True):
        steps, weights = streams.steps[first:stop], streams.weights[first:stop]
        at = np.flatnonzero(np.isin(steps, list(starts)))
        path: list[int] = []
        loop: Loop | None = None
        weight = 0.0
        for step, step_weight in zip(steps[at].tolist(), weights[at].tolist(), strict=True):
            block = starts[step]
            if loop is not None and (block == loop.header or block not in loop.blocks):
                weights_by_path = path_weights.setdefault(loop.index, {})
                weights_by_path[tuple(path)] = weights_by_path.get(tuple(path), 0.0) + weight
                loop = None
            if block in innermost:
                loop, path, weight = innermost[block], [], step_weight
            if loop is not None:
                path.append(block)
    best = {
        index: max(weights_by_path, key=weights_by_path.__getitem__)
        for index, weights_by_path in path_weights.items()
    }
    return {i: LoopPath(path, float(sum(path_weights[i].values()))) for i, path in best.items()}


class SteadyLoop:
    """Simulates iterations of one loop on a unit with all workgroups that fit it."""

    def __init__(self, profile: LaunchProfile, device: Device, path: LoopPath) -> None:
        self.path = path
        placement = profile.placement
        self._program = profile.program
        self._device = device
        self._lanes = placement.wave_lanes
        self._waves = placement.waves
        self._resident = min(placement.resident, placement.most_per_unit)
        self._machine = ComputeUnit.of(
            Chip.of(device), simds=placement.simds, active=placement.active_units
        )
        self._own = self._code = Code.of(profile.program, device, self._lanes)
        self._requests = _requests(self._own, profile.streams)
        self._texts: dict[str, int] = {}

    @property
    def latency(self) -> Array:
        """Clocks until the result of each instruction is there, f64[n], without waiting for
        others: of a load the latency of the level that it comes from."""
        code, machine = self._own, self._machine
        clocks = code.latency.astype(float)
        levels = (machine.latency_l1, machine.latency_l2, machine.latency_mall, machine.latency_hbm)
        for index in np.flatnonzero(code.slots > 0):
            row = self._requests[index]
            level = sum(bool(row[column] > 0) for column in (L2, MALL, HBM))
            clocks[index] = levels[level]
        clocks[code.pipe == LDS] = machine.latency_lds
        clocks[code.pipe == SMEM] = machine.latency_scalar
        return clocks

    @property
    def issue(self) -> Array:
        """Clocks that each instruction takes its pipe, f64[n]."""
        return np.maximum(self._own.issue.astype(float), self._machine.period)

    @property
    def pipe(self) -> Array:
        """The pipe of each instruction as a number, i8[n]."""
        return self._own.pipe

    def cycles(self, blocks: Mapping[int, Sequence[Item]], *, exact: bool = False) -> float:
        """Clocks per iteration with other items in some blocks. Quick figures have the first
        iterations in them, `exact` ones do not."""
        items: list[Item] = []
        for block in self.path.blocks:
            bounds = self._program.blocks[block]
            items += blocks.get(block, range(bounds.start, bounds.stop))
        steps = self._steps(items)
        if not exact:
            return self._clocks(steps, ITERATIONS) / ITERATIONS
        more = self._clocks(steps, ITERATIONS + FILL) - self._clocks(steps, FILL)
        return more / ITERATIONS

    def work(self, items: int) -> int:
        """Instructions that a quick figure simulates for an iteration of `items`."""
        return items * self._waves * self._resident * ITERATIONS

    def _steps(self, items: Sequence[Item]) -> Array:
        """Rows of the items in the arrays of instructions."""
        new = {item for item in items if isinstance(item, str)} - self._texts.keys()
        if new:
            for text in sorted(new):
                self._texts[text] = len(self._program.instructions) + len(self._texts)
            texts = list(self._texts)
            self._code = _concatenate(
                self._own, _code(texts, self._program, self._device, self._lanes)
            )
        return np.array([self._texts[i] if isinstance(i, str) else i for i in items], np.int32)

    def _clocks(self, steps: Array, iterations: int) -> float:
        asking = steps[self._code.slots[steps] > 0]
        times = iterations * self._waves
        rows = np.tile(self._requests[asking], (times, 1))
        each = np.arange(self._waves + 1, dtype=np.int64) * iterations
        streams = Streams(
            waves=self._waves,
            steps=np.tile(steps, times),
            weights=np.ones(len(steps) * times, np.float32),
            start=each * len(steps),
            rows=rows,
            rows_start=each * len(asking),
        )
        simulation = run(
            self._code,
            streams,
            self._machine,
            template=np.zeros(self._resident, np.int32),
            begins=np.zeros(self._resident),
            resident=self._resident,
        )
        return simulation.clocks


def _requests(code: Code, streams: Streams) -> Array:
    """The mean request of every memory instruction, f32[n, REQUEST]; one that no wave executes has
    the request of contiguous lanes."""
    asks = code.slots[streams.steps] > 0
    at = streams.steps[asks]
    weights = streams.weights[asks]
    total = np.bincount(at, weights, len(code.slots))
    requests = code.contiguous.copy()
    for column in range(requests.shape[1]):
        summed = np.bincount(at, weights * streams.rows[:, column], len(code.slots))
        requests[:, column] = np.where(
            total > 0, summed / np.maximum(total, 1e-9), requests[:, column]
        )
    return requests


def _code(texts: Sequence[str], program: Program, device: Device, lanes: int) -> Code:
    """The arrays of instructions that have no registers."""
    body = "".join(f"\t{text}\n" for text in texts)
    source = f".type new,@function\nnew:\n{body}"
    parsed = parse(source, program.target, wave_lanes=lanes).functions["new"]
    code = Code.of(parsed, device, lanes)
    assert not any(len(getattr(code, name)) for name in _TABLES)
    return code


def _concatenate(first: Code, other: Code) -> Code:
    """The arrays of two programs, the second without registers."""
    changed: dict[str, Any] = {"charges": first.charges + other.charges}
    for field in fields(Code):
        value = getattr(first, field.name)
        if field.name in _TABLES or field.name == "limits" or not isinstance(value, np.ndarray):
            continue
        other_value = getattr(other, field.name)
        if field.name.endswith("_start"):
            other_value = np.full(len(other_value) - 1, value[-1], value.dtype)
        changed[field.name] = np.concatenate([value, other_value])
    return replace(first, **changed)


__all__ = ["LoopPath", "SteadyLoop", "paths"]
