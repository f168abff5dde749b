"""What a file of measurements holds: measured times of ops, and measured figures of devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from wavecast import arch
from wavecast.errors import UnknownName

if TYPE_CHECKING:
    from wavecast.perfmodel.ops.base import Op


NO_TIME = "the measured time is not a positive number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One measured time.

    `op` is what ran, with its configuration where the configuration is known and the prediction
    may use it. An op is hashable, can be pickled and has `kind`, `predict(device)` and `work()`.
    Without an op, or without a `device` (its id), `reason` says why the row cannot be predicted.
    Cases with equal `op` and `device` are repeats: they count once, with their median time.
    """

    kind: str
    """Op kind as in `OPS`, also of rows without an op: `gemm`, `moe`, `attention` …; "" where a row
    cannot be read."""
    op: Op | None
    device: str
    seconds: float
    problem: str = ""
    """What was computed, without how. Cases of one problem, device and `group` with different ops
    are alternatives, which validate ranks. "" excludes the case from the ranking."""
    group: str = ""
    """Model, paper or file the row is from; a group is left out as a whole."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that scores are grouped by in addition to kind, device and size: `dtype`,
    `direction` …"""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """Properties of the measured best, compared with `Prediction.assumed`: `algorithm` …"""
    source: str = ""
    """Where the row is from, as a person would look it up."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFigure:
    """A measured figure that is not the time of an op, with the value the tables have for it.

    `expected` is None where the tables have no value, and `reason` says so.
    """

    kind: str
    """`instruction issue`, `cache latency`, `memory bandwidth` …"""
    name: str
    device: str
    measured: float
    expected: float | None
    unit: str
    labels: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    reason: str = ""


def device_of(target: str, cu_count: float | str | None = None, name: str = "") -> tuple[str, str]:
    """Id of the device a row was measured on, and what is uncertain about it.

    A `name` that is a known device of that target decides. Otherwise the devices of `target` with
    `cu_count` compute units match; of several, the default device of the target comes first.
    Without a count the default device is returned. The id is "" where no device matches, and the
    second string is the reason.

    Raises ValueError for a `cu_count` that is not a number.
    """
    units = None if cu_count is None else float(cu_count)
    has_count = units is not None and units == units and units > 0
    return _device_of(target, units if has_count else None, name)


def stated_board(target: str, cu_count: float | str | None) -> tuple[str, str]:
    """`device_of` for collections whose rows are from any board of a target: without `cu_count` the
    id is "" and the second string the reason, since the default board would be a guess.
    """
    if not cu_count:
        return "", f"compute units of the {target} board are not stated"
    return device_of(target, cu_count)


@cache
def _device_of(target: str, cu_count: float | None, name: str) -> tuple[str, str]:
    if name:
        try:
            by_name = arch.load(name)
        except UnknownName:
            pass
        else:
            if not target or by_name.target == target:
                return by_name.id, ""
    same_target = [device for device in arch.devices() if device.target == target]
    matching = [d for d in same_target if cu_count is None or d.compute_units == cu_count]
    if not matching:
        units = "" if cu_count is None else f" with {cu_count:g} CUs"
        return "", f"no known device is {target or name or 'unnamed'}{units}"
    default = arch.load(target)
    choice = default if default in matching else matching[0]
    others = ", ".join(device.id for device in matching if device is not choice)
    return choice.id, f"{choice.id} or {others}" if others else ""


__all__ = ["NO_TIME", "Case", "MeasuredFigure", "device_of", "stated_board"]
