"""What every JSON document shares: the class of its objects, types of fields, and JSON text.

Documents are deterministic: keys are in the order of the fields, there is no time stamp, and a
number that is unknown, infinite or NaN is null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from typing import Annotated, Any, Self, TypeVar, dataclass_transform

from msgspec import UNSET, Meta, Struct, ValidationError, convert, field

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
NonNegative = Annotated[float, Meta(ge=0)]
Low = Annotated[float, Meta(ge=0, description="lower end of the 80 % interval")]
High = Annotated[float, Meta(ge=0, description="upper end of the 80 % interval")]
Share = Annotated[float, Meta(ge=0, le=1)]
Numbers = dict[str, float | None]
"""Numbers by name."""
Size3 = Annotated[list[Count], Meta(min_length=3, max_length=3)]
"""x, y, z."""


def doc(text: str) -> Meta:
    """What a field means: `vgpr: Annotated[Count, doc("VGPRs per lane")]`."""
    return Meta(description=text)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class JsonObject(Struct, forbid_unknown_fields=True, frozen=True):
    """A frozen object of a document: a result whose fields are its keys, in this order, or what is
    made of a result that has other units. A field that is UNSET is left out. The root of a document
    has its schema's name as tag (`tag_field="schema"`)."""

    @classmethod
    def of(cls, source: object, /, **fields: Any) -> Self:
        """The object with `fields`, and every other field from the attribute of `source` of that
        name. Raises AttributeError where `source` has none, TypeError for fields that are none."""
        names = cls.__struct_fields__
        attributes = {name: getattr(source, name) for name in names if name not in fields}
        return cls(**attributes, **fields)


Kind = TypeVar("Kind")


def checked_object(
    kind: type[Kind], attributes: Mapping[str, Any], *, finite: bool = False
) -> Kind:
    """The dataclass or `JsonObject` `kind` of values of JSON, each of the type that its field has.

    Raises ValueError for a value of another type, a field that is missing and, if they are to be
    `finite`, numbers that are not; TypeError for other names and for values that are not an object.
    """
    if finite and not _is_finite([*attributes.values()]):
        raise ValueError(f"a number of {kind.__name__} is not finite")
    named: Any = kind
    names = getattr(kind, "__struct_fields__", None) or [field.name for field in fields(named)]
    unknown = {*attributes} - {*names}
    if unknown:
        raise TypeError(f"{kind.__name__} has no {min(map(str, unknown))!r}")
    try:
        return convert(attributes, kind)
    except (ValidationError, RecursionError) as error:
        raise ValueError(str(error)) from None


def values(value: Any) -> Any:
    """A `JsonObject`, container or scalar as dicts, lists, strings and numbers.

    Raises TypeError for what has no JSON form; `plain` is for values of unknown type.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, JsonObject):
        config = value.__struct_config__
        members = {} if config.tag_field is None else {config.tag_field: config.tag}
        for name, key in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            item = getattr(value, name)
            if item is not UNSET:
                members[key] = values(item)
        return members
    if isinstance(value, Mapping):
        return {str(key): values(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [values(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _is_finite(value: Any) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case list() | tuple():
            return all(map(_is_finite, value))
        case Mapping():
            return all(map(_is_finite, value.values()))
    return True


def plain(value: object) -> Any:
    """Any value as JSON: containers are walked, foreign objects become their text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(item) for item in value)
    if value is None or isinstance(value, bool | int | float | str):
        return values(value)
    return str(value)


def dumps(document: Any, *, indent: int | None = None) -> str:
    """JSON text of a document or of its `values`, in UTF-8, without NaN and Infinity."""
    return json.dumps(values(document), indent=indent, ensure_ascii=False, allow_nan=False)


__all__ = [
    "Count",
    "High",
    "JsonObject",
    "Low",
    "NonNegative",
    "Numbers",
    "Positive",
    "Share",
    "Size3",
    "doc",
    "dumps",
    "plain",
    "values",
]
