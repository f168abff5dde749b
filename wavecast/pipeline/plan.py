"""What to launch, as a TOML file or options state it: kernel, grid, block, arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wavecast import files
from wavecast.errors import InputError, UnknownName, UsageError

Grid = tuple[int, int, int]

RTOL = 1e-5
ATOL = 1e-6
"""Relative and absolute tolerance of comparisons that state none."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One argument: its value and what is expected in it afterwards, in the language of
    `capture.module.language`; `save` is where it is written as .npy afterwards.

    Paths in `value` and `expect` are relative to `folder`.
    """

    value: str
    expect: str = ""
    rtol: float = RTOL
    atol: float = ATOL
    save: Path | None = None
    folder: Path = Path()


@dataclass(frozen=True, slots=True)
class Plan:
    """A launch. A grid, block or number of bytes of None is not stated. Arguments go by name, by
    number from 1, or by place in the argument segment (`@16`)."""

    kernel: str = ""
    grid: Grid | None = None
    block: Grid | None = None
    dynamic_lds: int | None = None
    arguments: Mapping[str, Planned] = field(default_factory=dict)
    cluster: Grid | None = None
    """Workgroups of a cluster; None for what the kernel was compiled for."""

    def is_of(self, *names: str) -> bool:
        """Whether it is the launch of a kernel with one of these names."""
        return not self.kernel or self.kernel in names

    def over(self, other: Plan) -> Plan:
        """This plan, and where it states nothing, the other one."""
        return Plan(
            self.kernel or other.kernel,
            self.grid or other.grid,
            self.block or other.block,
            other.dynamic_lds if self.dynamic_lds is None else self.dynamic_lds,
            {**other.arguments, **self.arguments},
            self.cluster or other.cluster,
        )

    def with_expected(self, name: str, expect: str, rtol: float, atol: float) -> Plan:
        """The plan with an expectation for an argument it has. Raises UnknownName."""
        return self._with_argument(name, expect=expect, rtol=rtol, atol=atol)

    def with_saved(self, name: str, path: Path) -> Plan:
        """The plan with an argument it has written to a file afterwards. Raises UnknownName."""
        return self._with_argument(name, save=path)

    def _with_argument(self, name: str, **changes: Any) -> Plan:
        if name not in self.arguments:
            raise UnknownName("argument", name, self.arguments)
        argument = replace(self.arguments[name], **changes)
        return replace(self, arguments={**self.arguments, name: argument})


_KEYS = {
    "kernel": str,
    "grid": (int, list),
    "block": (int, list),
    "lds": int,
    "cluster": (int, list),
    "args": dict,
}
_ARGUMENT_KEYS = {
    "value": (str, int, float, bool),
    "expect": (str, int, float, bool),
    "rtol": (int, float),
    "atol": (int, float),
    "save": str,
}


def read_plan(path: Path) -> Plan:
    """The plan in a TOML file. Raises InputError, UnknownName for a key there is not."""
    try:
        document = files.parse_toml(files.read_text(path))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    _check_keys(path, "", document, _KEYS)
    arguments = {
        name: _parse_argument(path, name, value) for name, value in document.get("args", {}).items()
    }
    return Plan(
        document.get("kernel", ""),
        _dimensions(path, "grid", document.get("grid")),
        _dimensions(path, "block", document.get("block")),
        document.get("lds"),
        arguments,
        _dimensions(path, "cluster", document.get("cluster")),
    )


def _parse_argument(path: Path, name: str, value: Any) -> Planned:
    if not isinstance(value, dict):
        value = {"value": value}
    _check_keys(path, f"args.{name}.", value, _ARGUMENT_KEYS)
    if "value" not in value:
        raise InputError(f"{path}: args.{name} has no value")
    for tolerance in ("rtol", "atol"):
        if not value.get(tolerance, 0) >= 0:
            raise InputError(f"{path}: args.{name}.{tolerance} is negative")
    return Planned(
        _text(value["value"]),
        _text(value.get("expect", "")),
        value.get("rtol", RTOL),
        value.get("atol", ATOL),
        path.parent / value["save"] if "save" in value else None,
        path.parent,
    )


def _text(value: Any) -> str:
    """A TOML value in the language of arguments."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_keys(path: Path, prefix: str, table: Mapping[str, Any], schema: Mapping) -> None:
    for key, value in table.items():
        if key not in schema:
            raise UnknownName(f"key in {path}:", f"{prefix}{key}", [prefix + k for k in schema])
        if not isinstance(value, schema[key]) or (
            isinstance(value, bool) and key not in ("value", "expect")
        ):
            raise InputError(f"{path}: {prefix}{key} cannot be {value!r}")


def _dimensions(path: Path, key: str, value: Any) -> Grid | None:
    if value is None:
        return None
    sizes = value if isinstance(value, list) else [value]
    whole = all(isinstance(size, int) and 0 < size < 1 << 31 for size in sizes)
    if not whole or not 1 <= len(sizes) <= 3:
        raise InputError(f"{path}: {key} is not one to three positive integers below 2^31")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def named_value(text: str) -> tuple[str, str]:
    """`NAME=VALUE` of the command line. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value.strip()
