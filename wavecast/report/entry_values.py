"""Values as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def number(value: float | None) -> float | int | None:
    """`value`, or null where JSON has no such number."""
    if value is None or not math.isfinite(value):
        return None
    return value


def plain(value: object) -> Any:
    """Any value as JSON: containers are walked, foreign objects become their text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(item) for item in value)
    return str(value)
