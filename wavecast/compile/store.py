"""Code objects as plain values, the form the cache keeps them in."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from wavecast.compile.codeobject import CodeObject, Parameter

_FIELDS = {field.name for field in fields(CodeObject)}
_PARAMETER_FIELDS = {field.name for field in fields(Parameter)}


def to_value(code: CodeObject) -> dict[str, object]:
    """A code object as nested plain values. Options and constants must be plain already."""
    value = {name: getattr(code, name) for name in _FIELDS}
    value["parameters"] = [asdict(parameter) for parameter in code.parameters]
    value["stages"] = dict(code.stages)
    value["options"] = dict(code.options)
    return value


def from_value(value: object) -> CodeObject | None:
    """The code object of a cached value, None when another version of wavecast wrote it."""
    if not isinstance(value, dict) or value.keys() != _FIELDS:
        return None
    known: dict[str, Any] = dict(value)
    if any(set(item) != _PARAMETER_FIELDS for item in known["parameters"]):
        return None
    known["parameters"] = tuple(Parameter(**item) for item in known["parameters"])
    return CodeObject(**known)
