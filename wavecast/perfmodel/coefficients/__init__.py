"""Every fitted, measured or assumed number of the model: one table, in the TOML files here.

A file is a family, a table in it a coefficient:

    [overlap]
    unit = "1"
    meaning = "…"
    status = "fitted"          # fitted, measured, documented, derived or guessed
    source = "gemm_tuned: gfx942 and gfx950, winners"
    default = 0.9
    gfx950 = 0.85

A value belongs to a scope: a device (`mi355x`), a target (`gfx950`) or the one whose instruction
set it has, a generation (`cdna4`), RDNA of every generation (`rdna`), chips with a memory-side
cache (`mall`), a vendor (`amd`) or `default`, looked up in that order. A device whose own scopes
have none gets the default: the prediction for a chip nobody calibrated.
`statuses = { nvidia = "guessed" }` names scopes whose value has another status than the row.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from wavecast.arch import Device
from wavecast.arch.processors import named_in_tables
from wavecast.errors import MissingFact, UnknownName

STATUSES = ("fitted", "measured", "documented", "derived", "guessed")
MALL = "mall"
"""Scope of chips with a memory-side cache: their memory is behind a fabric of several dies or
partitions."""
RDNA = "rdna"
"""Scope of RDNA of every generation: waves of 32 lanes, workgroup processors of two CUs."""
_FIELDS = ("unit", "meaning", "status", "source")


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One number of the model. `values` is by scope; `statuses` has the scopes whose value has
    another status than `status`."""

    family: str
    name: str
    unit: str
    meaning: str
    status: str
    source: str
    values: Mapping[str, float]
    statuses: Mapping[str, str]

    def of(self, device: Device) -> float:
        """The value for a device. Raises MissingFact when no scope of the device has one."""
        scope = self.scope(device)
        if scope is None:
            raise MissingFact(f"{self.family}.{self.name} is not known for {device.id}")
        return self.values[scope]

    def scope(self, device: Device) -> str | None:
        """The scope whose value holds for a device, None when there is none."""
        return next((name for name in scopes(device) if name in self.values), None)

    def status_in(self, scope: str) -> str:
        """The status of the value of a scope."""
        return self.statuses.get(scope, self.status)


def scopes(device: Device) -> tuple[str, ...]:
    """The scopes of a device, the narrowest first."""
    cached = (MALL,) if device.get("mall") else ()
    targets = dict.fromkeys((device.target, named_in_tables(device.target)))
    family_scope = (RDNA,) if device.generation.startswith(RDNA) else ()
    return device.id, *targets, device.generation, *family_scope, *cached, device.vendor, "default"


@cache
def family(name: str) -> Mapping[str, Coefficient]:
    """The coefficients of a family by name. Raises UnknownName."""
    path = resources.files(__name__) / f"{name}.toml"
    if not path.is_file():
        raise UnknownName("coefficient family", name, families())
    return read(name, path.read_text(encoding="utf-8"))


def read(name: str, text: str) -> Mapping[str, Coefficient]:
    """The coefficients of family `name` that the text of its file has. Raises ValueError."""
    return {key: _coefficient(name, key, dict(row)) for key, row in tomllib.loads(text).items()}


@cache
def families() -> tuple[str, ...]:
    """The names of all families."""
    files = resources.files(__name__).iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")))


def coefficient(family_name: str, name: str) -> Coefficient:
    """One coefficient. Raises UnknownName."""
    coefficients = family(family_name)
    if name not in coefficients:
        raise UnknownName(f"coefficient of {family_name}", name, coefficients)
    return coefficients[name]


@cache
def values(family_name: str, device: Device) -> Mapping[str, float]:
    """The values of a family for a device by name; those without one for it are absent."""
    coefficients = family(family_name)
    return {name: row.of(device) for name, row in coefficients.items() if row.scope(device)}


def _coefficient(family_name: str, name: str, row: dict[str, object]) -> Coefficient:
    where = f"{family_name}.toml, {name}"
    texts = {}
    for field in _FIELDS:
        text = row.pop(field, None)
        if not isinstance(text, str):
            raise ValueError(f"{where}: {field} is missing")
        texts[field] = text
    statuses = _statuses(where, row)
    for status in (texts["status"], *statuses.values()):
        if status not in STATUSES:
            raise ValueError(f"{where}: no status {status!r}")
    numbers = {}
    for scope, value in row.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{where}: {scope} = {value!r} is not a number")
        numbers[scope] = float(value)
    if not numbers:
        raise ValueError(f"{where}: no value")
    if unknown := statuses.keys() - numbers.keys():
        raise ValueError(f"{where}: a status but no value of {min(unknown)}")
    return Coefficient(family_name, name, values=numbers, statuses=statuses, **texts)


def _statuses(where: str, row: dict[str, object]) -> dict[str, str]:
    statuses = row.pop("statuses", {})
    if not isinstance(statuses, dict):
        raise ValueError(f"{where}: statuses is not a table of scopes")
    return {str(scope): str(status) for scope, status in statuses.items()}


__all__ = ["Coefficient", "coefficient", "families", "family", "read", "scopes", "values"]
