"""Sizes of an operator that a user gives: which there are, which values they may have, and the
inputs of a call that has them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from wavecast.errors import UsageError, WavecastError
from wavecast.kernels.operator import Operator, Sizes

_MOST = (1 << 63) - 1
_LARGEST_FLOAT = sys.float_info.max
_REFUSED = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError,
            ValueError)  # fmt: skip
"""What PyTorch raises for tensors that cannot be: too large, of a name that is not a dtype."""


def names(operator: Operator) -> list[str]:
    """The sizes an operator can be given."""
    parameters = list(inspect.signature(operator.inputs).parameters.values())[1:]
    size_names = [
        parameter.name
        for parameter in parameters
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    if len(size_names) < len(parameters):  # it takes any: those its cases have
        for sizes in _rows(operator):
            size_names += [name for name in sizes if name not in size_names]
    return size_names


def complete(operator: Operator, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes that are not given are their defaults, or, without one, those of the first shape it is
    judged on; without any given, all of them are."""
    first = dict(operator.shapes[0]) if operator.shapes else {}
    if not sizes:
        return first
    parameters = inspect.signature(operator.inputs).parameters.values()
    defaults = {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.default is not inspect.Parameter.empty and parameter.default is not None
    }
    optional = {
        parameter.name
        for parameter in parameters
        if parameter.default is not inspect.Parameter.empty
    }
    mandatory = {name: value for name, value in first.items() if name not in optional}
    return {**defaults, **mandatory, **sizes}


def check(operator: Operator, sizes: Mapping[str, Any]) -> None:
    """Compare `sizes` with those of the operator's own calls. Raises UsageError for a name that it
    does not have, and a value of another type or outside of the range of the type."""
    accepted = names(operator)
    for name, value in sizes.items():
        if name not in accepted:
            axis_names = ", ".join(accepted)
            raise UsageError(f"{operator.name} has no axis {name!r}", hint=f"it has {axis_names}")
        if value is None and any(name in row and row[name] is None for row in _rows(operator)):
            continue
        requirement = _expectation(tuple(_case_values(operator, name)), value)
        if requirement:
            raise UsageError(
                f"{operator.name}: {name} must be {requirement}, not {_value_text(value)}"
            )


def call_inputs(operator: Operator, make: Any, sizes: Sizes) -> dict[str, Any]:
    """The arguments of a call with `sizes`, whose tensors `make` makes (`inputs.Make`). Raises
    UsageError where there are none: too large, of an unknown dtype, of sizes that do not
    belong together."""
    try:
        return operator.inputs(make, **sizes)
    except WavecastError:
        raise
    except _REFUSED as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UsageError(f"no inputs of {operator.describe(sizes)}: {reason}") from error


def _case_values(operator: Operator, name: str) -> Iterator[Any]:
    """The values that a size has in the operator's own calls."""
    parameter = inspect.signature(operator.inputs).parameters.get(name)
    if parameter is not None and parameter.default not in (inspect.Parameter.empty, None):
        yield parameter.default
    for sizes in _rows(operator):
        if sizes.get(name) is not None:
            yield sizes[name]


def _rows(operator: Operator) -> tuple[Sizes, ...]:
    """The operator's own calls."""
    return (*operator.shapes, *operator.cases, *operator.thorough)


def _expectation(examples: tuple[Any, ...], value: Any) -> str:
    """What `value` must be according to known values; "" for one that fits."""
    if not examples:
        return ""
    if isinstance(examples[0], bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(examples[0], str):
        return "" if isinstance(value, str) else "text"
    if isinstance(examples[0], int):
        least = min(1, *examples)
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST
        return "" if fits else f"an integer from {least}"
    if isinstance(examples[0], float):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return "a finite number"
        return "" if abs(value) <= _LARGEST_FLOAT else "a finite number"
    return "" if isinstance(value, type(examples[0])) else type(examples[0]).__name__


def _value_text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


__all__ = ["call_inputs", "check", "complete", "names"]
