"""What a data set gives to be scored: measured times of ops, and measured figures of tables.

An adapter reads one file format. It recognises the format by its columns and turns rows into
cases; a row it cannot use becomes a case that says why, so that every row is accounted for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast import arch
from wavecast.errors import UnknownName

if TYPE_CHECKING:
    import pandas as pd

    from wavecast.model.ops.base import Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One measured time.

    `op` is what ran, with its configuration where that is known and meant to be predicted; it is
    hashable, can be pickled and has `kind`, `predict(device)` and `work()`. Without one, or without
    a `device` (its id), `reason` says why the row cannot be predicted.
    Cases of equal `op` and `device` are repeats: they count once, with their median time.
    """

    kind: str
    """Op kind as in `OPS`, also of rows without an op: `gemm`, `moe`, `attention` …"""
    op: Op | None
    device: str
    seconds: float
    problem: str = ""
    """What was computed, without how. Cases of one problem, device and `group` whose ops differ
    are alternatives: validate ranks them. "" where nothing is to be ranked."""
    group: str = ""
    """Model, paper or file the row is from; left out together."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What scores are told apart by beside kind, device and size: `dtype`, `direction` …"""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """Properties of the measured best, scored against `Prediction.assumed`: `solver class` …"""
    source: str = ""
    """Where the row is from, as a person would look it up."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure that is no time of an op, beside what the tables have for it.

    `expected` is None where they have nothing, and `reason` says so.
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


@dataclass(frozen=True, slots=True)
class Given:
    """What the user gives beside the file. `sources` is a checkout of the measured programs."""

    sources: Path | None = None


class Dataset(ABC):
    """Adapter of one file format."""

    name: ClassVar[str]
    """Names the format in reports."""
    columns: ClassVar[frozenset[str]]
    """Columns a file of this format has; others may be there too."""

    def recognise(self, columns: Collection[str], path: Path) -> bool:  # noqa: ARG002
        """Whether a file with these columns is of this format."""
        return self.columns <= set(columns)

    @abstractmethod
    def cases(self, frame: pd.DataFrame, given: Given) -> Iterator[Case | Figure]:
        """Every row of the file as a case, in order; rows may share a case or make several."""


def rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Rows by column, without the cells pandas has NaN for."""
    for row in frame.to_dict("records"):
        yield {str(name): value for name, value in row.items() if value == value}


def device_of(target: str, cu_count: float | None = None, name: str = "") -> tuple[str, str]:
    """Id of the device a row was measured on, and what is unsure about it or why there is none.

    `name` decides where it is a known device of that target; else the devices of `target` with
    `cu_count` compute units, of which the one its target stands for comes first. Without a count
    the target's own default device is taken.
    """
    known = cu_count is not None and cu_count == cu_count and cu_count > 0
    return _device_of(target, cu_count if known else None, name)


@cache
def _device_of(target: str, cu_count: float | None, name: str) -> tuple[str, str]:
    if name:
        try:
            found = arch.load(name)
        except UnknownName:
            pass
        else:
            if not target or found.target == target:
                return found.id, ""
    sharing = [device for device in arch.devices() if device.target == target]
    fitting = [d for d in sharing if cu_count is None or d.compute_units == cu_count]
    if not fitting:
        units = "" if cu_count is None else f" with {cu_count:g} CUs"
        return "", f"no known device is {target or name or 'unnamed'}{units}"
    default = arch.load(target)
    chosen = default if default in fitting else fitting[0]
    others = ", ".join(device.id for device in fitting if device is not chosen)
    return chosen.id, f"{chosen.id} or {others}" if others else ""
