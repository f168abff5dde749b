"""Tests that repeat on many targets: one CDNA and one RDNA target in `make test`, all in
`make test-all`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

QUICK = ("gfx942", "gfx1201")


def thorough_beyond(quick: Iterable[object], values: Iterable[Any]) -> list[Any]:
    """The values (a tuple for several arguments) as parameters, marked `thorough` unless they are
    in `quick`."""
    chosen, found = tuple(quick), []
    for value in values:
        marks = () if value in chosen else pytest.mark.thorough
        found.append(pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks))
    return found


def swept(targets: Iterable[str]) -> list[Any]:
    """The targets as parameters: those of `QUICK`, and the others marked `thorough`."""
    return thorough_beyond(QUICK, targets)
