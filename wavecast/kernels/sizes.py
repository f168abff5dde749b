"""Values that the sizes of an operator may have, after those of its calls in tests."""

from __future__ import annotations

import sys
from typing import Any

_MOST = (1 << 63) - 1
_LARGEST_FLOAT = sys.float_info.max


def expectation(examples: tuple[Any, ...], value: Any) -> str:
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


def value_text(value: Any) -> str:
    """A value in a message, cut to 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


__all__ = ["expectation", "value_text"]
