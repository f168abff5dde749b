"""What each field of a configuration does to the layers of its model.

`config_fields.csv` is measured: `python -m calibration.config_fields --write` builds small models
with transformers, changes every field that their class or modelling code has, and compares layers.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from wavecast.errors import UsageError
from wavecast.systems.config_fields import Fields

_SAME: Final = {"kimi_k2": "deepseek_v3"}
"""Types without a class in transformers -> the type whose class engines take for them (vLLM)."""
EVERY_TYPE: Final = "*"
_ALWAYS: Final[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
    ("minimax_m2", "qwen3_moe"), ("use_qk_norm",)
)
"""Fields of checkpoints that are True for what the class of their type always does: the norms of
queries and keys (`q_norm`, `k_norm` in transformers' attention of both)."""
_NOTHING: Final = (None, False, 0, [], {}, "")
"""Values that switch a field off; a step of 1 does too."""


@dataclass(frozen=True, slots=True)
class FieldEffect:
    """`effect` is `layers` where a value of the field changes layers, `none` where no value does,
    `unknown` where transformers takes no other value. `default` is the value of an absent field."""

    effect: str
    default: Any


def effects(kind: str) -> Mapping[str, FieldEffect]:
    """Field -> effect, of a model type and of all types; empty for a type without a table."""
    tables = table()
    return {**tables[EVERY_TYPE], **tables.get(_SAME.get(kind, kind), {})}


def defaults(kind: str) -> Mapping[str, Any]:
    """The values of absent fields."""
    return {name: effect.default for name, effect in effects(kind).items()}


def check_unread(kind: str, fields: Fields) -> None:
    """Raises UsageError for a field that was not read and may change layers: its class says so, or
    its class does not have it and that of another type does."""
    by_field = effects(kind)
    for name, value in fields.values.items():
        if name in fields.names_read or (value is True and name in _ALWAYS.get(kind, ())):
            continue
        effect = by_field.get(name)
        if effect:
            open_ = effect.effect != "none" and value != effect.default
        else:
            open_ = name in changing() and not _off(name, fields)
        if open_:
            raise UsageError(
                f"{fields.name}: {name} is {value!r}, which is not read for model_type {kind} and "
                f"{_WHY[effect.effect if effect else '']}",
                hint=f"remove {name} if the model does not use it",
            )


def _off(name: str, fields: Fields) -> bool:
    """Whether a field that the class does not have is off. Windows have a switch in Qwen's
    configurations."""
    value, switch = fields.values[name], fields.values.get("use_sliding_window")
    if value in _NOTHING or (value == 1 and value is not True):
        return True
    if name == "max_window_layers":
        return not switch
    return name == "sliding_window" and switch is False


_WHY: Final = {
    "layers": "changes its layers",
    "unknown": "may change its layers",
    "": "changes layers of other types",
}


@cache
def changing() -> frozenset[str]:
    """Fields that change layers of some type."""
    return frozenset(
        name
        for rows in table().values()
        for name, found in rows.items()
        if found.effect == "layers"
    )


@cache
def table() -> Mapping[str, Mapping[str, FieldEffect]]:
    """Model type -> field -> effect."""
    tables: dict[str, dict[str, FieldEffect]] = {EVERY_TYPE: {}}
    for row in _rows():
        effect = FieldEffect(row["effect"], json.loads(row["default"]))
        tables.setdefault(row["model_type"], {})[row["field"]] = effect
    return tables


def version() -> str:
    """The version of transformers that the table is of."""
    return _lines()[0].split()[2].rstrip(";")


def _rows() -> Iterator[dict[str, str]]:
    return csv.DictReader(line for line in _lines() if not line.startswith("#"))


def _lines() -> list[str]:
    path = resources.files("wavecast.systems") / "config_fields.csv"
    return path.read_text(encoding="utf-8").splitlines()


__all__ = [
    "EVERY_TYPE",
    "FieldEffect",
    "changing",
    "check_unread",
    "defaults",
    "effects",
    "table",
    "version",
]
