"""How much worse a figure may become: by an amount, by a share, or up to a limit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wavecast.benchmarking.kpis import KPIS, Kpi, kpi
from wavecast.errors import UnknownName, UsageError

_PERCENT: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
_ROUNDED: Final = 1e-6
"""Relative: a baseline keeps seven digits."""
_KEYS: Final = ("change", "limit")
OTHERS: Final = "others"


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a gate lets pass of one KPI. `change` is how much worse than the baseline it may be, in
    the KPI's unit, or as a share of the baseline's value where `relative`; None: as much as it
    likes. `limit` is the worst value there may be, whatever the baseline says."""

    change: float | None = 0.0
    relative: bool = False
    limit: float | None = None

    def worst_allowed(self, kpi: Kpi, before: float | None) -> float | None:
        """The worst value that passes, None where any does."""
        sign = 1.0 if kpi.better == "lower" else -1.0
        bounds = [] if self.limit is None else [self.limit]
        if before is not None and self.change is not None:
            room = self.change * abs(before) if self.relative else self.change
            bounds.append(before + sign * room)
        return None if not bounds else min(bounds) if sign > 0 else max(bounds)


def passes(kpi: Kpi, value: float, bound: float | None) -> bool:
    """Whether a value is not worse than what is allowed, but for rounding."""
    if bound is None:
        return True
    room = _ROUNDED * max(abs(bound), abs(value))
    return value <= bound + room if kpi.better == "lower" else value >= bound - room


def worse(kpi: Kpi, before: float, after: float) -> int:
    """1 for a worse value, -1 for a better one, 0 for the same but for rounding."""
    if abs(after - before) <= _ROUNDED * max(abs(after), abs(before)):
        return 0
    return 1 if (after > before) == (kpi.better == "lower") else -1


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of a subject by KPI, None for one that is not gated. `others` says whether
    KPIs that are not named have their usual ones (`Kpi.threshold`) or are not gated."""

    named: Mapping[str, Threshold | None] = field(default_factory=dict)
    others: bool = True

    def of(self, name: str) -> Threshold | None:
        """The threshold of a KPI. Raises UnknownName."""
        if name in self.named:
            return self.named[name]
        usual = kpi(name).threshold
        return Threshold(usual, relative=usual > 0) if self.others else None


def parse(table: Mapping[str, Any], where: str, inherited: Thresholds) -> Thresholds:
    """Thresholds of a table of settings: `spills = 0`, `vgprs = "10%"`, `sgprs = false`,
    `lds_bytes = { change = "5%", limit = 65536 }`, `others = false`. What it does not name is
    `inherited`. Raises UnknownName, UsageError."""
    by_name = dict(inherited.named)
    others = inherited.others
    for key, value in table.items():
        name = key.replace("-", "_")
        if name == OTHERS:
            if not isinstance(value, bool):
                raise UsageError(f"{where}: {OTHERS} is true or false")
            others = value
        elif name not in KPIS:
            raise UnknownName(f"KPI in {where}", key, [*KPIS, OTHERS])
        else:
            by_name[name] = _threshold(value, f"{where}: {name}")
    return Thresholds(by_name, others)


def _threshold(value: Any, where: str) -> Threshold | None:
    if value is False:
        return None
    if not isinstance(value, Mapping):
        amount, relative = _amount(value, where)
        return Threshold(amount, relative)
    for key in value:
        if key not in _KEYS:
            raise UnknownName(f"setting in {where}", key, _KEYS)
    if not value:
        raise UsageError(f"{where} says neither change nor limit")
    amount, relative = _amount(value["change"], where) if "change" in value else (None, False)
    limit = value.get("limit")
    if limit is not None:
        limit = _number(limit, where)
    return Threshold(amount, relative, limit)


def _amount(value: Any, where: str) -> tuple[float, bool]:
    """(how much, whether of the baseline's value)."""
    if isinstance(value, str):
        percent = _PERCENT.fullmatch(value)
        if percent is None:
            raise UsageError(
                f"{where} = {value!r} is not a threshold", hint='such as 0, 16 or "10%"'
            )
        return float(percent[1]) / 100, True
    return _number(value, where), False


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise UsageError(f"{where} = {value!r} is not a threshold", hint='such as 0, 16 or "10%"')
    return float(value)


__all__ = ["OTHERS", "Threshold", "Thresholds", "parse", "passes", "worse"]
