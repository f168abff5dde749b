"""Launches of library kernels: arguments by the names that the kernel's metadata gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wavecast
from wavecast import compile as compilers
from wavecast.compile.codeobject import Parameter
from wavecast.runtimes.module import Function

OBJECTS = Path(__file__).resolve().parents[3] / "shared" / "library_objects"

needs_objects = pytest.mark.skipif(not OBJECTS.is_dir(), reason="needs ../shared/library_objects")


def library_kernel(file: str, pattern: str = "") -> Function:
    """The first kernel of an object whose symbol the regular expression `pattern` occurs in."""
    codes = compilers.load(OBJECTS / file, kernels=pattern)
    return next(iter(wavecast.load(codes[:1]).values()))


def launch(
    kernel: Function,
    grid: Sequence[int],
    block: int | Sequence[int],
    arguments: Mapping[str, Any],
    *,
    dynamic_lds: int = 0,
) -> None:
    """Execute a kernel. Arguments go by name, or by their offset (`@16`) where the metadata has no
    names; others are null pointers and zeros."""
    known = {(p.name or f"@{p.offset}"): p for p in kernel.parameters}
    assert arguments.keys() <= known.keys()
    values = [_value(arguments.get(name), one) for name, one in known.items()]
    kernel(grid, block, *values, dynamic_lds=dynamic_lds)


def _value(value: Any, parameter: Parameter) -> Any:
    """A value of an argument whose type the metadata does not tell."""
    size = parameter.size or 0
    if value is None:
        return None if parameter.type.startswith("*") else bytes(size)
    if isinstance(value, float):
        return np.float32(value).tobytes()
    if isinstance(value, int):
        return value.to_bytes(size, "little")
    return value
