"""Adapters: which device a row was measured on, which format a file has."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast.bench.accuracy.datasets import DATASETS, adapter, device_of

DOCS = Path(__file__).resolve().parents[3] / "docs" / "validate.md"


@pytest.mark.parametrize(
    ("target", "units", "name", "device", "unsure"),
    [
        ("gfx942", 304, "", "mi300x", "mi300x or mi325x"),
        ("gfx942", 80.0, "MI308X (80 CU)", "mi308x", ""),
        ("gfx942", 304, "MI325X", "mi325x", ""),
        ("gfx950", 256, "MI350X or MI355X (256 CU)", "mi355x", "mi355x or mi350x"),
        ("gfx90a", 110, "MI250X GCD (110 CU)", "mi250x_gcd", ""),
        ("gfx90a", 104, "MI210", "mi210", ""),
        ("gfx908", float("nan"), "", "mi100", ""),
        ("", None, "AMD Instinct MI300A", "mi300a", ""),
        ("gfx950", 304, "MI300X", "", "no known device is gfx950 with 304 CUs"),
        ("gfx1", None, "", "", "no known device is gfx1"),
    ],
)
def test_devices(target: str, units: float | None, name: str, device: str, unsure: str) -> None:
    assert device_of(target, units, name) == (device, unsure)


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "general"])
def test_formats_are_documented_with_their_columns(name: str) -> None:
    (row,) = (
        line
        for line in DOCS.read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| `{name}`")
    )
    columns = row.split("|")[3].strip().strip("`").split()
    assert frozenset(columns) == adapter(name).columns
