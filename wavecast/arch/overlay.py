"""Files of the user that change a device's facts or add a device (`--arch-file`).

    device = "mi300x"                    # change a known device …
    [fields]
    peak_clock = 1200                    # in the unit of the field
    mem_bw = { value = 6, unit = "TB/s", note = "HBM4" }

    id = "mi999x"                        # … or add one, with what it does not say from `base`
    base = "mi355x"
    name = "AMD Instinct MI999X"
    [fields]
    cu = 320

Facts may also be in tables with the names of the package's device files. What a file sets has
status `override`, the file as source, and the value it replaces as alternative.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wavecast import files
from wavecast.arch.fields import DeviceField, fields
from wavecast.arch.quantity import STATUSES, Alternative, Quantity, Value
from wavecast.arch.reader import Identity, catalog
from wavecast.arch.units import alternatives as units_like
from wavecast.arch.units import convert, dimension
from wavecast.errors import UnknownName, UsageError, nearest_names

_HEAD = ("device", "id", "base", "name", "vendor", "target", "generation", "aliases")
_FACT_KEYS = ("value", "unit", "source", "status", "note")


@dataclass(frozen=True, slots=True)
class Overlay:
    """One file: the device it is about, that device's identity if it adds one, and its facts.

    `base` is the id of the device a new one starts from, "" for none.
    """

    device: str
    identity: Identity | None
    base: str
    facts: Mapping[str, Quantity]

    def apply(self, quantities: Mapping[str, Quantity]) -> dict[str, Quantity]:
        """`quantities` with the facts of this file. Units become those `quantities` uses."""
        changed = {
            name: _over(name, fact, quantities.get(name)) for name, fact in self.facts.items()
        }
        return {**quantities, **changed}


def overlay(path: Path) -> Overlay:
    """Read a file. Raises InputError when it cannot be read, UsageError when it is wrong."""
    text = files.read_text(path)
    try:
        data = files.parse_toml(text)
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    head = {key: _text(path, key, data[key]) for key in _HEAD if key in data and key != "aliases"}
    facts = dict(_facts(path, {key: data[key] for key in data if key not in _HEAD}))
    if "device" in head and "id" in head:
        raise UsageError(f"{path}: `device` changes a known device and `id` adds one: give one")
    if "device" in head:
        extra = [key for key in head if key != "device"] + ["aliases"] * ("aliases" in data)
        if extra:
            raise UsageError(
                f"{path}: {extra[0]} belongs to a new device", hint="use id instead of device"
            )
        return Overlay(head["device"], None, "", facts)
    if "id" not in head:
        raise UsageError(
            f"{path} names no device", hint='start it with device = "mi300x" or id = …'
        )
    return _new_device(path, head, _aliases(path, data.get("aliases", [])), facts)


def _new_device(
    path: Path, head: dict[str, str], aliases: tuple[str, ...], facts: dict[str, Quantity]
) -> Overlay:
    base = head.pop("base", "")
    if head["id"] in catalog():
        hint = f'say device = "{head["id"]}" to change it'
        raise UsageError(f"{path}: there is a device {head['id']} already", hint=hint)
    inherited: dict[str, str] = {"name": head["id"]}
    if base:
        if base not in catalog():
            raise UnknownName(f"base in {path}:", base, catalog())
        base_identity = catalog()[base]
        inherited |= {
            key: getattr(base_identity, key) for key in ("vendor", "target", "generation")
        }
    entries = {**inherited, **head}
    absent = [key for key in ("vendor", "target", "generation") if key not in entries]
    if absent:
        hint = 'or start from a known device: base = "mi355x"'
        raise UsageError(f"{path}: a new device needs {', '.join(absent)}", hint=hint)
    identity = Identity(
        id=entries["id"],
        name=entries["name"],
        vendor=entries["vendor"],
        target=entries["target"],
        generation=entries["generation"],
        aliases=aliases,
    )
    return Overlay(identity.id, identity, base, facts)


def _text(path: Path, key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{path}: {key} must be text, not {value!r}")
    return value


def _aliases(path: Path, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{path}: aliases must be a list of names")
    return tuple(value)


def _facts(path: Path, data: Mapping[str, Any]) -> list[tuple[str, Quantity]]:
    """Facts at the top level, in `[fields]`, and in tables named like the groups of fields."""
    groups = {"fields", *(item.group for item in fields().values())}
    quantities: list[tuple[str, Quantity]] = []
    for key, value in data.items():
        if key in fields():
            quantities.append((key, _fact(path, fields()[key], value)))
        elif key in groups and isinstance(value, dict):
            for name, fact in value.items():
                if name not in fields():
                    raise _unknown(path, name, fields())
                quantities.append((name, _fact(path, fields()[name], fact)))
        else:
            raise _unknown(path, key, (*_HEAD, *groups, *fields()))
    return quantities


def _unknown(path: Path, name: str, names: Iterable[str]) -> UsageError:
    near = nearest_names(name, names)
    hint = "nearest known: " + ", ".join(near) if near else "`wavecast arch mi300x` lists fields"
    return UsageError(f"{path}: unknown field {name!r}", hint=hint)


def _fact(path: Path, field: DeviceField, raw: object) -> Quantity:
    entry: dict[str, object] = raw if isinstance(raw, dict) else {"value": raw}
    for key in entry:
        if key not in _FACT_KEYS:
            hint = "a fact has " + ", ".join(_FACT_KEYS)
            raise UsageError(f"{path}: {field.name} has no {key!r}", hint=hint)
    if "value" not in entry:
        raise UsageError(f"{path}: {field.name} has no value")
    unit = entry.get("unit", "")
    if not isinstance(unit, str) or (unit and not field.accepts(unit)):
        hint = "one of " + ", ".join(units_like(field.unit))
        raise UsageError(f"{path}: {unit!r} is not a unit of {field.name}", hint=hint)
    status = entry.get("status", "override")
    if not isinstance(status, str) or status not in STATUSES:
        hint = "one of " + ", ".join(STATUSES)
        raise UsageError(f"{path}: {status!r} is not a status", hint=hint)
    texts = {
        key: _text(path, f"{key} of {field.name}", entry[key])
        for key in ("note", "source")
        if key in entry
    }
    note = texts.get("note", "")
    sources = (path.name, texts["source"]) if "source" in texts else (path.name,)
    if status not in ("override", "missing"):
        note = f"{status}; {note}" if note else status
    value = _value(path, field, entry["value"], unit)
    return Quantity(value, unit, "override", sources, note)


def _value(path: Path, field: DeviceField, value: object, unit: str) -> Value:
    if field.unit == "text" and isinstance(value, str):
        return value
    if field.unit == "flag" and isinstance(value, bool):
        return value
    countable = field.unit not in ("text", "flag") and not isinstance(value, bool)
    if countable and isinstance(value, (int, float)):
        number = _in_unit(value, unit, field)
        why = field.why_refused(number)
        if not why:
            return value
        raise UsageError(f"{path}: {field.name} {why}, not {number:g}")
    kind = {"text": "text", "flag": "true or false"}.get(field.unit, "a number")
    raise UsageError(f"{path}: {field.name} must be {kind}, not {value!r}")


def _in_unit(value: float, unit: str, field: DeviceField) -> float:
    """`value` in the unit of the field; a latency in another dimension in its own."""
    try:
        number = float(value)
    except OverflowError:  # an integer beyond floats
        number = math.inf if value > 0 else -math.inf
    if unit and dimension(unit) == dimension(field.unit):
        return convert(number, unit, field.unit)
    return number


def _over(name: str, fact: Quantity, old: Quantity | None) -> Quantity:
    """`fact` in the unit of the one it replaces, which becomes its alternative."""
    if old is None:
        return replace(fact, unit=fact.unit or fields()[name].unit)
    if fact.unit and dimension(fact.unit) != dimension(old.unit):
        return fact  # a latency in time instead of clocks: no common unit to show both in
    value = fact.value
    if fact.unit and not isinstance(value, (str, bool)):
        value = convert(fact.number, fact.unit, old.unit)
    changed = replace(fact, value=value, unit=old.unit)
    if old.value is None:
        return changed
    if old.status == "override":
        return replace(changed, alternatives=old.alternatives)
    before = Alternative(old.value, old.sources, "before the override")
    return replace(changed, alternatives=(before,))
