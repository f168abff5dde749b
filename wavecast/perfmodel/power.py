"""The clock a chip sustains while its matrix pipes work.

    P(f) = static + CUs · activity · energy · FLOP/clock · f · V(f)²  ≤  TDP,   V(f) = 1 + rise · f

`energy` is that of one FLOP of a dtype at V = 1 (J), `rise` the rise of the voltage per
clock (1/Hz), `activity` the share of clocks in which the matrix pipes are busy. The clock is the
highest that keeps the limit, at most the chip's peak clock. A chip whose power limit nobody
published (`Chip.tdp` is None) runs at its peak clock. In code, matrix instructions with 32 × 32
results take more energy per FLOP (`shape_energy`).

Other models use `sustained_clock(chip, dtype, activity)`; `activity` may be an array. What a
kernel's activity is depends on the clock only weakly: take the busy share at the peak clock, or
iterate once with the time the first clock gives.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from wavecast.arch import Device
from wavecast.isa.program import Program
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.demand import Amount

_WIDE = (32, 32)
_ENERGY = {
    "fp64": "energy_fp64",
    "fp32": "energy_fp32",
    "xf32": "energy_xf32",
    "fp16": "energy_fp16",
    "bf16": "energy_bf16",
    "fp8": "energy_fp8",
    "int8": "energy_int8",
    "fp6": "energy_fp4",
    "fp4": "energy_fp4",
    "int4": "energy_fp4",
}


def sustained_clock(chip: Chip, dtype: str, activity: Amount) -> Amount:
    """Clock in Hz while matrix pipes of `dtype` are busy for `activity` (0 to 1) of the time.

    `dtype` "" means no matrix work. Raises MissingFact for a dtype the chip has no rate of.
    """
    if not dtype or chip.tdp is None:
        return chip.clock
    constants = coefficients.values("power", chip.device)
    per_clock = chip.units * chip.matrix_rate(dtype) * constants[_ENERGY[dtype]]
    head = chip.tdp * (1.0 - constants["static_fraction"])
    load = head / (per_clock * np.maximum(activity, 1e-6))
    return np.interp(load, *_loads(chip.device, chip.clock))


def shape_energy(program: Program, clocks: np.ndarray[Any, Any], device: Device) -> float:
    """Energy of the matrix work of a program over that of the same work in instructions with
    16 × 16 results. `clocks` (f64[instructions]) are those of the matrix pipes."""
    total = float(clocks.sum())
    shapes = {int(index): program.instructions[index].opcode.matrix
              for index in np.flatnonzero(clocks)}  # fmt: skip
    wide = [index for index, shape in shapes.items() if shape and (shape.m, shape.n) == _WIDE]
    more = coefficients.coefficient("power", "energy_32x32").of(device) - 1.0
    return 1.0 + more * float(clocks[wide].sum()) / total if total else 1.0


@cache
def _loads(device: Device, peak: float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """f·V(f)² over clocks up to the peak: the inverse is a look-up."""
    rise = coefficients.coefficient("power", "voltage_rise").of(device)
    clocks = np.linspace(0.0, peak, 257)
    return clocks * (1.0 + rise * clocks) ** 2, clocks


__all__ = ["shape_energy", "sustained_clock"]
