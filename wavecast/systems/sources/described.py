"""A model without code: its kernels in a YAML file (docs/modules.md has the format)."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wavecast import files
from wavecast.errors import InputError, WavecastError
from wavecast.perfmodel.ops import OPS, op
from wavecast.systems.sources.calls import PHASES, ModuleGraph, OperatorCall
from wavecast.systems.sources.kernels import CallKernel
from wavecast.systems.sources.part import KernelPart, UnknownOperator

_ROOT: Final = {"name": str, "dtype": str, "parameters": int, "kernels": list}
_KERNEL: Final = {
    "op": str,
    "shape": str,
    "dtype": str,
    "module": str,
    "times": int,
    "phase": str,
    "set": dict,
    "flops": (int, float),
    "read": (int, float),
    "written": (int, float),
}
_BYTES: Final = "bytes"
"""`op` of a kernel that is given by its FLOPs and bytes."""
_MOST: Final = 1 << 20
"""Kernels of a file, repeated ones included."""
_LARGEST: Final = 1e30
"""FLOPs, bytes and parameters."""


@dataclass(frozen=True, slots=True)
class DescribedModel:
    """A graph whose calls are kernels, and these kernels."""

    graph: ModuleGraph
    kernels: tuple[CallKernel, ...]


def read_description(path: str | Path) -> DescribedModel:
    """The kernels of a YAML file, in order.

    Raises InputError that names the field: for a file that is not YAML, and for fields that are
    missing, unknown, or of another type.
    """
    path = Path(path)
    root = _load_yaml(path)
    _check(root, _ROOT, f"{path.name}")
    calls: list[OperatorCall] = []
    kernels: list[CallKernel] = []
    entries = _require_field(root, "kernels", path.name)
    if not entries:
        raise InputError(f"{path.name}: kernels is empty")
    for number, entry in enumerate(entries, 1):
        where = f"{path.name}: kernel {number}"
        if not isinstance(entry, dict):
            raise InputError(f"{where} is a {type(entry).__name__}, not a mapping")
        _check(entry, _KERNEL, where)
        part = _part(entry, str(root.get("dtype", "")), where)
        times, phase = entry.get("times", 1), entry.get("phase", "forward")
        if phase not in PHASES:
            raise InputError(f"{where}: phase is {phase!r}, not one of {', '.join(PHASES)}")
        if not 1 <= times <= _MOST - len(calls):
            raise InputError(f"{where}: times is {times}; a model has at most {_MOST:,} kernels")
        module = entry.get("module", "")
        for _ in range(times):
            kernels.append(CallKernel(part, len(calls), part.name, module, phase))
            calls.append(OperatorCall(part.name, (), (), {}, module, phase))
    name = root.get("name", path.stem)
    _number(root, "parameters", path.name)
    graph = ModuleGraph(name=name, calls=tuple(calls), parameters=root.get("parameters", 0))
    return DescribedModel(graph, tuple(kernels))


def _load_yaml(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        document = yaml.safe_load(files.read_text(path))
    # A ValueError: text that looks like a number or a date and is none.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        message = " ".join(str(error).split())[:200]
        raise InputError(f"{path.name} is not YAML: {message}") from error
    if not isinstance(document, dict):
        raise InputError(f"{path.name} is not a mapping", hint="docs/modules.md has the format")
    return document


def _check(document: Mapping[Any, Any], schema: Mapping[str, Any], where: str) -> None:
    for name, value in document.items():
        if name not in schema:
            near = difflib.get_close_matches(str(name), schema, 1)
            hint = f"nearest known: {near[0]}" if near else f"known: {', '.join(schema)}"
            raise InputError(f"{where}: unknown field {_short_repr(name)}", hint=hint)
        if not isinstance(value, schema[name]) or isinstance(value, bool):
            field_type = schema[name] if isinstance(schema[name], type) else float
            raise InputError(
                f"{where}: {name} is {_short_repr(value)}, not a {field_type.__name__}"
            )


def _short_repr(value: Any) -> str:
    """A value in a message. YAML's aliases make values of any size, so its beginning."""
    short = reprlib.Repr()
    short.maxlevel = 2
    return short.repr(value)


def _require_field(document: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in document:
        raise InputError(f"{where}: no field {name}")
    return document[name]


def _part(entry: Mapping[str, Any], dtype: str, where: str) -> KernelPart:
    kind = _require_field(entry, "op", where)
    if kind == _BYTES:
        for name in ("read", "written"):
            _require_field(entry, name, where)
        sizes = [_number(entry, name, where) for name in ("read", "written")]
        rate = entry.get("dtype") or dtype or "fp32"
        flops = _number(entry, "flops", where) if "flops" in entry else None
        name = entry.get("module") or _BYTES
        return KernelPart(name, UnknownOperator(name, rate, flops, *sizes))
    if kind not in OPS:
        names = ", ".join((*OPS, _BYTES))
        raise InputError(f"{where}: unknown op {kind!r}", hint=f"known: {names}")
    options = {str(name): _text(value, where) for name, value in entry.get("set", {}).items()}
    if dtype or "dtype" in entry:
        options["dtype"] = entry.get("dtype") or dtype
    try:
        return KernelPart(kind, op(kind).parse(_require_field(entry, "shape", where), options))
    except InputError:
        raise
    except WavecastError as error:
        raise InputError(f"{where}: {error.message}", hint=error.hint) from error


def _number(entry: Mapping[str, Any], name: str, where: str) -> float:
    """0 where it is missing. Raises InputError for one that is negative, huge or NaN."""
    value = entry.get(name, 0)
    if not 0 <= value <= _LARGEST:
        raise InputError(f"{where}: {name} must be from 0 to {_LARGEST:g}, not {value}")
    return float(value)


def _text(value: Any, where: str) -> str:
    """A value of `set`: text, a number, a flag, or a list of those."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and not any(isinstance(element, (list, dict)) for element in value):
        return ",".join(_text(element, where) for element in value)
    if not isinstance(value, (str, int, float)):
        raise InputError(f"{where}: set has {_short_repr(value)}, not a number or text")
    return str(value)


__all__ = ["DescribedModel", "read_description"]
