"""Numbers of a training step that are not of a chip or a model, with their status.

`assumptions.toml` has the values with unit, status and source.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class Overlap:
    """Share of a communication that runs while kernels compute, and the ends of its range."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAssumptions:
    """Bytes per parameter: `weight_bytes` of the 16-bit copy, `state_bytes` of AdamW with its fp32
    parameter, `adamw_traffic` that an update reads and writes.

    `usable_memory`: share of a GPU's memory that training may take. `communication_buffers`:
    bytes.
    `launch`: seconds of a kernel launch on the host. `kernel_slowdown`: time of a kernel in a long
    run over its time alone. `overlap`: by parallelism; `tensor_split` where products are split,
    `expert_batched` where exchanges with experts run next to another micro-batch.
    """

    weight_bytes: float
    state_bytes: float
    adamw_traffic: float
    usable_memory: float
    communication_buffers: float
    kernel_slowdown: float
    launch: float
    overlap: Mapping[str, Overlap]


@cache
def assumptions() -> TrainingAssumptions:
    """The values of `assumptions.toml`."""
    text = (resources.files("wavecast.systems.training") / "assumptions.toml").read_text(
        encoding="utf-8"
    )
    table: dict[str, Any] = tomllib.loads(text)
    overlaps = {
        name: Overlap(row["value"], row["low"], row["high"])
        for name, row in table.pop("overlap").items()
    }
    values = {name: row["value"] for name, row in table.items()}
    values["communication_buffers"] *= 2**30
    return TrainingAssumptions(overlap=overlaps, **values)


__all__ = ["Overlap", "TrainingAssumptions", "assumptions"]
