"""The interval of a prediction for a whole model, from runs of other models.

`residuals.toml` has intervals of log(measured / predicted) of times by metric and by how far a
prediction is from what was measured (`DISTANCES`), written by `python -m calibration.systems DATA
--write`. Nothing in a prediction is fitted to a model, so its runs are in the residuals only as
those of one model among several of equal weight. Its `pairs` are errors of ratios of two systems.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Any, Final

from msgspec.structs import replace

from wavecast.arch import Device
from wavecast.json_objects import JsonObject, NonNegative, doc


class Interval(JsonObject):
    """A predicted figure with its 80 % interval."""

    value: Annotated[NonNegative, doc("the prediction")]
    low: Annotated[NonNegative, doc("lower end")]
    high: Annotated[NonNegative, doc("upper end")]
    basis: Annotated[str, doc("the measured runs that the interval was derived from")]


DISTANCES: Final = {
    "chip": "{engine} on this chip",
    "engine": "{engine} on other chips of {vendor}",
    "vendor": "other engines on chips of {vendor}",
    "any": "all engines and GPUs",
}
"""What is measured next to a prediction, the nearest first, and how a report says it."""


@dataclass(frozen=True, slots=True)
class _Row:
    chips: frozenset[str]
    low: float
    high: float
    runs: int
    models: int


def metric_interval(metric: str, value: float, device: Device, engine: str) -> Interval:
    """The interval of a metric from the nearest runs; where no run was speculative or
    disaggregated, from plain ones. Raises LookupError."""
    rows = table()
    mode, _, plain = metric.rpartition(" ")
    if mode and (metric, "", "", "any") not in rows:
        interval = metric_interval(plain, value, device, engine)
        return replace(interval, basis=f"{interval.basis}, none of them {mode}")
    for distance, words in DISTANCES.items():
        vendor = device.vendor if distance != "any" else ""
        name = engine if distance in ("chip", "engine") else ""
        row = rows.get((metric, vendor, name, distance))
        if row is None or (distance == "chip" and device.id not in row.chips):
            continue
        where = words.format(engine=engine, vendor=device.vendor.upper())
        basis = f"{row.runs} runs of {row.models} models, {where}"
        low, high = math.exp(min(0.0, row.low)), math.exp(max(0.0, row.high))
        return Interval(value, value * low, value * high, basis)
    raise LookupError(f"residuals.toml has no row for {metric}")


@dataclass(frozen=True, slots=True)
class RatioErrors:
    """What runs of equal configurations on two systems tell about a ratio of both: the
    `correlation` of their errors, and half the interval of log(measured / predicted ratio) where
    enough models were measured (`half`, else 0)."""

    correlation: float = 0.0
    half: float = 0.0


def ratio_errors(metric: str, first: tuple[str, str], other: tuple[str, str]) -> RatioErrors:
    """Errors of ratios of two systems, each (vendor, engine); without pairs of runs their errors
    are taken to be independent."""
    same = "engine" if first[1] == other[1] else "vendor"
    common = same if first[0] == other[0] else "any"
    pairs = _file()["pairs"]
    errors = (RatioErrors(*row[2:4]) for row in pairs if row[:2] == [metric, common])
    return next(errors, RatioErrors())


@cache
def table() -> Mapping[tuple[str, str, str, str], _Row]:
    """The rows by metric, vendor, engine ("" is all of them) and distance."""
    return {
        (metric, vendor, engine, distance): _Row(frozenset(chips.split()), low, high, runs, models)
        for metric, vendor, engine, distance, chips, low, high, runs, models in _file()["rows"]
    }


@cache
def _file() -> Mapping[str, list[Any]]:
    text = (resources.files("wavecast.systems") / "residuals.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


__all__ = ["DISTANCES", "Interval", "RatioErrors", "metric_interval", "ratio_errors", "table"]
