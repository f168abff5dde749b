"""The interval of the time of a training step, from published runs of other models.

`residuals.toml` has half the intervals of log(measured / predicted), by vendor and by dense or
sparse.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from wavecast.arch import Device
from wavecast.systems.architecture import ModelArchitecture
from wavecast.systems.intervals import Interval


def bracketed_step(
    seconds: float,
    device: Device,
    architecture: ModelArchitecture,
    overlap_bounds: tuple[float, float],
) -> Interval:
    """The interval of a step's seconds: from residuals of runs of the vendor, else of all; at least
    the range `overlap_bounds` that the assumed overlaps leave. Raises LookupError."""
    sort = "sparse" if architecture.sparse else "dense"
    rows = _table()
    for vendor, words in ((device.vendor, f"{device.vendor.upper()} GPUs"), ("", "all GPUs")):
        row = rows.get((vendor, sort))
        if row is None:
            continue
        size, runs, models = row
        ends = seconds * math.exp(-size), seconds * math.exp(size)
        basis = f"{runs} runs of {models} {sort} models on {words}"
        if overlap_bounds[0] < ends[0] or overlap_bounds[1] > ends[1]:
            basis += "; overlap of communication from its least to its most"
        return Interval(
            seconds, min(ends[0], overlap_bounds[0]), max(ends[1], overlap_bounds[1]), basis
        )
    raise LookupError(f"residuals.toml has no row for {sort} models")


@cache
def _table() -> Mapping[tuple[str, str], tuple[float, int, int]]:
    """The rows by vendor and sort of model."""
    text = (resources.files("wavecast.systems.training") / "residuals.toml").read_text(
        encoding="utf-8"
    )
    return {
        (vendor, sort): (size, runs, models)
        for vendor, sort, size, runs, models in tomllib.loads(text)["rows"]
    }


__all__ = ["bracketed_step"]
