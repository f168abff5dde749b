"""Numeric loops: same results as Python, no Numba once the cache has them, errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from wavecast.compile.cache import DiskCache
from wavecast.compile.loops import always_inline, loop

SCALE = 3


class Pair(NamedTuple):
    values: np.ndarray
    step: int


@always_inline
def _scaled(value, factor):
    return value * factor * SCALE


@loop
def total(pair, factor, halve, out):
    values, step = pair
    count = 0
    for at in range(0, len(values), step):
        out[at] = _scaled(values[at]["size"], factor)
        if halve:
            out[at] /= 2
        count += 1
    return count


@loop
def divide(a, b):
    return a // b


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))


def test_records_tuples_and_scalars(tmp_path: Path) -> None:
    values = np.zeros(5, np.dtype([("kind", "i4"), ("size", "f8")]))
    values["size"] = np.arange(5)
    out = np.zeros(5)
    assert total(Pair(values, 2), 0.5, True, out) == 3
    assert out.tolist() == [0, 0, 1.5, 0, 3.0]
    assert [entry.kind for entry in DiskCache().entries()] == ["loops"]
    assert total(Pair(values[::2], 1), 0.5, False, out) == 3  # another layout: another entry
    assert out[:3].tolist() == [0, 3.0, 6.0]
    assert len(list(DiskCache().entries("loops"))) == 2


@loop
def first(values):
    return int(values[0, 0])


def test_an_array_of_both_orders_is_one_in_c_order() -> None:
    several = np.arange(6).reshape(2, 3)
    found = [first(several + 1), first(several[:1] + 2), first(several[:, :1].copy() + 3)]
    assert found == [1, 2, 3]
    assert len(list(DiskCache().entries("loops"))) == 1
    assert first(np.asfortranarray(several) + 4) == 4
    assert len(list(DiskCache().entries("loops"))) == 2


def test_errors() -> None:
    assert divide(7, 2) == 3
    with pytest.raises(RuntimeError, match="divide: compiled code raised"):
        divide(7, 0)
    with pytest.raises(TypeError, match="a loop takes no str"):
        divide("7", 2)


_MODULE = """
from wavecast.compile.loops import loop
SCALE = {scale}
@loop
def scaled(value):
    return value * SCALE
"""


def test_numba_is_imported_only_to_compile(tmp_path: Path) -> None:
    script = "import sys, scaled; print(scaled.scaled(7), 'numba' in sys.modules)"

    def run(scale: int) -> str:
        (tmp_path / "scaled.py").write_text(_MODULE.format(scale=scale))
        command = [sys.executable, "-B", "-c", script]
        environment = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}
        environment["WAVECAST_CACHE_DIR"] = str(tmp_path)
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()

    assert run(2) == "14 True"
    assert run(2) == "14 False"
    assert run(3) == "21 True"  # a constant that the loop reads has changed
