"""Operator calls of a profile as calls of a graph: their tensors are made again without values.

PyTorch's profiler (`record_shapes=True`) writes sizes, strides, C++ types and the other arguments
as text. The operator runs on meta tensors of these sizes, which gives its outputs and its FLOPs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import torch

from wavecast.errors import UsageError
from wavecast.runtimes.operator_recorder import OperatorRecorder
from wavecast.systems.sources.calls import OperatorCall

_TYPES: Final = {
    "float": torch.float32,
    "double": torch.float64,
    "c10::BFloat16": torch.bfloat16,
    "c10::Half": torch.float16,
    "long": torch.int64,
    "long int": torch.int64,
    "int": torch.int32,
    "short": torch.int16,
    "signed char": torch.int8,
    "unsigned char": torch.uint8,
    "bool": torch.bool,
    "c10::Float8_e4m3fn": torch.float8_e4m3fn,
    "c10::Float8_e4m3fnuz": torch.float8_e4m3fnuz,
    "c10::Float8_e5m2": torch.float8_e5m2,
    "c10::Float8_e5m2fnuz": torch.float8_e5m2fnuz,
    "c10::complex<float>": torch.complex64,
}
_SCALAR_TYPES: Final = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64,
    5: torch.float16, 6: torch.float32, 7: torch.float64, 11: torch.bool, 15: torch.bfloat16,
    23: torch.float8_e5m2, 24: torch.float8_e4m3fn, 25: torch.float8_e5m2fnuz,
    26: torch.float8_e4m3fnuz,
}  # fmt: skip
"""Numbers of `c10::ScalarType`, as which profiles have the argument `dtype`."""
_LISTS: Final = frozenset({"TensorList", "GenericList"})


class UnknownCall(UsageError):
    """A call of a profile that cannot be made again."""


def calls(
    name: str, sizes: str, dtypes: str, strides: str, values: str, *, list_dtype: str = "float"
) -> tuple[OperatorCall, ...]:
    """The calls that one operator of a profile makes, one unless PyTorch divides it.

    The texts are JSON arrays with an element per argument. `list_dtype` is the C++ type of tensors
    in lists, which profiles do not name. Raises UnknownCall where the profile has no sizes, or for
    an operator that PyTorch does not have with such arguments."""
    if not sizes:
        raise UnknownCall(f"{name} has no sizes")
    try:
        shapes, types = json.loads(sizes), json.loads(dtypes)
        steps = json.loads(strides) if strides else [[] for _ in shapes]
        texts = json.loads(values) if values else ["" for _ in shapes]
    except (ValueError, TypeError, RecursionError) as error:
        raise UnknownCall(f"{name}: {error}") from None
    if not all(isinstance(column, list) for column in (shapes, types, steps, texts)):
        raise UnknownCall(f"{name} has sizes, dtypes, strides or values that are not lists")
    rows = list(zip(shapes, types, steps, texts, strict=False))
    for overload in _overloads(name, len(shapes)):
        try:
            arguments = [
                _argument(schema, *row, list_dtype)
                for schema, row in zip(overload._schema.arguments, rows, strict=False)
            ]
            return _record_call(overload, arguments)
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            continue
    raise UnknownCall(f"PyTorch {torch.__version__} has no {name} with these arguments")


def _overloads(name: str, count: int) -> list[Any]:
    """The overloads that take as many arguments, the closest first. PyTorch adds arguments with
    defaults to the end of a schema, so a profile may be of an older one."""
    namespace, _, operator = name.partition("::")
    if not operator:
        raise UnknownCall(f"{name} is not an operator")
    try:
        packet = getattr(getattr(torch.ops, namespace), operator)
    except (AttributeError, RuntimeError):
        raise UnknownCall(f"{name} is not an operator of PyTorch") from None
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    fitting = [
        overload
        for overload in overloads
        if len(overload._schema.arguments) >= count
        and all(extra.has_default_value() for extra in overload._schema.arguments[count:])
    ]
    return sorted(
        fitting,
        key=lambda overload: (
            len(overload._schema.arguments),
            any(argument.is_out for argument in overload._schema.arguments),
        ),
    )


def _record_call(overload: Any, arguments: Sequence[Any]) -> tuple[OperatorCall, ...]:
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for schema, value in zip(overload._schema.arguments, arguments, strict=False):
        if schema.kwarg_only:
            keywords[schema.name] = value
        else:
            positional.append(value)
    recorder = OperatorRecorder()
    with torch.no_grad(), recorder:
        overload(*positional, **keywords)
    return tuple(recorder.calls)


def _argument(schema: Any, sizes: Any, dtype: str, strides: Any, text: str, list_dtype: str) -> Any:
    """The value of an argument. Raises ValueError for one that does not fit the schema."""
    schema_type = str(schema.type)
    if dtype in _TYPES and "Tensor" in schema_type:
        return _tensor(sizes, strides, dtype)
    if dtype in _LISTS and sizes and "Tensor" in schema_type:
        each = strides if isinstance(strides, list) and len(strides) == len(sizes) else None
        return [
            _tensor(shape, each[number] if each else [], list_dtype)
            for number, shape in enumerate(sizes)
        ]
    if "Tensor" in schema_type:
        if dtype not in ("", "Scalar", "None") or text not in ("", "None"):
            raise ValueError(f"{schema.name} is {dtype}")
        return None
    if text == "":
        return schema.default_value if schema.has_default_value() else None
    return _value(schema_type, text)


def _value(schema_type: str, text: str) -> Any:
    """A number, truth value, list or name. A device becomes that of meta tensors."""
    if "Device" in schema_type or text.startswith(("cuda", "cpu")):
        return torch.device("meta")
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    try:
        value = json.loads(text)
    except ValueError:
        try:
            value = float(text)  # C++ writes 0. and inf
        except ValueError:
            return text
    if "ScalarType" in schema_type:
        return _SCALAR_TYPES[int(value)]
    if "Layout" in schema_type or "MemoryFormat" in schema_type:
        return None
    if "float" in schema_type.lower() and isinstance(value, int):
        return float(value)
    return value


def _tensor(sizes: Any, strides: Any, dtype: str) -> torch.Tensor:
    if not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise ValueError(f"sizes {sizes}")
    kind = _TYPES[dtype]
    if len(strides) == len(sizes):
        return torch.empty_strided(sizes, strides, dtype=kind, device="meta")
    return torch.empty(sizes, dtype=kind, device="meta")


__all__ = ["UnknownCall", "calls"]
