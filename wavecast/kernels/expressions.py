"""Numbers as text: Python expressions of names that a call, a problem or a configuration binds.

    "cdiv(columns, group)", "rows * columns * bytes", "1 <= ROWS * BLOCK / lanes <= 32"

Functions: `cdiv(a, b)`, `min`, `max`, `next_power_of_2`, `element_bytes(dtype)`, and
`up_to(most, *values)`: the values that are at most `most`, or `most` alone where there are none.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

import triton

from wavecast.dtypes import element_bytes


def _up_to(most: int, *values: int) -> tuple[int, ...]:
    return tuple(value for value in values if value <= most) or (most,)


_FUNCTIONS: Final[Mapping[str, Any]] = {
    "cdiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "next_power_of_2": triton.next_power_of_2,
    "element_bytes": element_bytes,
    "up_to": _up_to,
}


@dataclass(frozen=True, slots=True)
class Expression:
    """A Python expression, compiled once."""

    text: str
    code: CodeType

    @staticmethod
    @functools.cache
    def parse(text: str) -> Expression:
        """Raises SyntaxError for text that is not an expression."""
        return Expression(text, compile(text, f"<{text}>", "eval"))

    @property
    def names(self) -> tuple[str, ...]:
        """The names that need values."""
        return tuple(name for name in self.code.co_names if name not in _FUNCTIONS)

    def value(self, values: Mapping[str, Any]) -> Any:
        """With `values` by name. Raises NameError for a name without one."""
        return eval(self.code, {"__builtins__": {}, **_FUNCTIONS}, values)
