"""Simple methods to be compared with: what a prediction has to beat."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from wavecast.arch import Device
from wavecast.perfmodel.ops.base import Op
from wavecast.perfmodel.roofline import roofline

ROOFLINE = "roofline"
"""The roofline with sustained peaks, where the device has them."""

NEIGHBOUR = "neighbour"
"""The measured time of the nearest other problem on the same device."""

_ROWS = 512  # of distances at a time: some MB


def roofline_seconds(op: Op, device: Device) -> float | None:
    """The time of the sustained roofline, None when the device lacks a rate."""
    bound = roofline(op.work(), device)
    return bound.sustained_seconds or bound.floor_seconds


def neighbours(
    ops: Sequence[Op], devices: Sequence[str], problems: Sequence[str], seconds: Sequence[float]
) -> list[float]:
    """For every case the time of the nearest one of another problem, NaN where there is none.

    Near is in the logarithms of the sizes; everything that is not a size (dtype, layout, causal …)
    has to be equal, the device too. Cases of equal names in `problems` are one problem; "" is none.
    """
    names = {name: number for number, name in enumerate(dict.fromkeys(problems))}
    problem = np.array([names[n] if n else -1 - i for i, n in enumerate(problems)])
    groups: dict[Hashable, list[int]] = defaultdict(list)
    points = []
    for index, (op, device) in enumerate(zip(ops, devices, strict=True)):
        kind, sizes = _coordinates(op)
        groups[device, kind].append(index)
        points.append(sizes)
    times, estimates = np.asarray(seconds, float), np.full(len(ops), math.nan)
    for members in groups.values():
        if len(members) > 1:
            index = np.array(members)
            nearest = _nearest(np.array([points[i] for i in members]), problem[index])
            valid = nearest >= 0
            estimates[index[valid]] = times[index[nearest[valid]]]
    return [float(value) for value in estimates]


def _nearest(points: np.ndarray, problem: np.ndarray) -> np.ndarray:
    """Index of the nearest point of another problem, -1 where there is none."""
    result = np.empty(len(points), int)
    square = (points**2).sum(1)
    for start in range(0, len(points), _ROWS):
        rows = slice(start, min(start + _ROWS, len(points)))
        distance = square[rows, None] + square - 2 * points[rows] @ points.T
        distance[problem[rows, None] == problem] = math.inf
        nearest = distance.argmin(1)
        finite = np.isfinite(distance[np.arange(len(nearest)), nearest])
        result[rows] = np.where(finite, nearest, -1)
    return result


def _coordinates(value: Any) -> tuple[Hashable, list[float]]:
    """What must be equal, and the logarithms of the sizes, of an op and what it is made of."""
    kind: list[Hashable] = [type(value).__name__]
    sizes: list[float] = []
    for field in fields(value):
        part = getattr(value, field.name)
        _add_coordinate(part, kind, sizes)
    return tuple(kind), sizes


def _add_coordinate(part: Any, kind: list[Hashable], sizes: list[float]) -> None:
    if isinstance(part, (int, float)) and not isinstance(part, bool):
        sizes.append(math.log1p(max(part, 0)))
    elif isinstance(part, tuple):
        kind.append(len(part))
        for item in part:
            _add_coordinate(item, kind, sizes)
    elif is_dataclass(part) and not isinstance(part, type):
        inner, more = _coordinates(part)
        kind.append(inner)
        sizes += more
    else:
        kind.append(part)
