"""The interval of a prediction for a whole model, from runs of other models.

`residuals.toml` has quantiles of log(measured / predicted) of times by metric, vendor and engine,
written by `python -m calibration.systems DATA --write`. Nothing in a prediction is fitted to a
model, so its runs are in the residuals only as those of one model among several of equal weight.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from wavecast.arch import Device


@dataclass(frozen=True, slots=True)
class Interval:
    """A value, the ends of an interval that should hold 80 % of measurements, and `basis`: which
    runs it was derived from."""

    value: float
    low: float
    high: float
    basis: str


@dataclass(frozen=True, slots=True)
class _Row:
    low: float
    high: float
    runs: int
    models: int


def bracketed(metric: str, value: float, device: Device, engine: str) -> Interval:
    """The interval of a metric: residuals of the engine on GPUs of the vendor, else of the vendor,
    else of all runs; where no run was speculative or disaggregated, those of plain ones. Raises
    LookupError."""
    rows = table()
    mode, _, plain = metric.rpartition(" ")
    if mode and (metric, "", "") not in rows:
        found = bracketed(plain, value, device, engine)
        return replace(found, basis=f"{found.basis}, none of them {mode}")
    for vendor, name, words in (
        (device.vendor, engine, f"{engine} on {device.vendor.upper()} GPUs"),
        (device.vendor, "", f"other engines on {device.vendor.upper()} GPUs"),
        ("", "", "all engines and GPUs"),
    ):
        row = rows.get((metric, vendor, name))
        if row is not None:
            basis = f"{row.runs} runs of {row.models} models, {words}"
            low, high = math.exp(min(0.0, row.low)), math.exp(max(0.0, row.high))
            return Interval(value, value * low, value * high, basis)
    raise LookupError(f"residuals.toml has no row for {metric}")


@cache
def table() -> Mapping[tuple[str, str, str], _Row]:
    """The rows by metric, vendor and engine; "" is all of them."""
    text = (resources.files("wavecast.systems") / "residuals.toml").read_text(encoding="utf-8")
    return {
        (metric, vendor, engine): _Row(low, high, runs, models)
        for metric, vendor, engine, low, high, runs, models in tomllib.loads(text)["rows"]
    }


__all__ = ["Interval", "bracketed", "table"]
