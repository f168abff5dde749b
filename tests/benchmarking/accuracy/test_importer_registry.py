"""The registry of importers, and the device a row was measured on."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from calibration import datasets
from wavecast import plugins
from wavecast.benchmarking.accuracy import importers
from wavecast.benchmarking.accuracy.cases import device_of
from wavecast.benchmarking.accuracy.importers import Importer
from wavecast.benchmarking.accuracy.validate import load
from wavecast.errors import InputError
from wavecast.profiles import reading

ROOT = Path(__file__).resolve().parents[3]


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


def every() -> list[Importer]:
    return [*datasets.importers(), *importers.all_importers()]


@pytest.mark.parametrize("importer", every(), ids=lambda one: one.name)
def test_formats_are_documented_with_their_columns(importer: Importer) -> None:
    if importer.name == "general":
        return
    (row,) = (
        line
        for line in (ROOT / "docs" / "validate.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| `{importer.name}`")
    )
    columns = row.split("|")[3].strip().strip("`").split()
    assert (frozenset(columns),) == importer.columns


@pytest.mark.parametrize("importer", every(), ids=lambda one: one.name)
def test_a_format_is_identified_by_its_columns(importer: Importer) -> None:
    known = (*datasets.importers(), *importers.all_importers())
    for columns in (*importer.columns, *importer.conversions):
        found = importers.by_columns(known, columns | {"more"}, Path("x.csv"))
        assert found.name == importer.name


def test_entry_points_are_for_other_distributions() -> None:
    """The package's own importers and readers are listed in code only."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {importers.GROUP, reading.GROUP}.isdisjoint(project["entry-points"])


PLUG_IN = """
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers.base import Importer, each, rows

class Nanoseconds(Importer):
    name = "nanoseconds"
    columns = (frozenset({"ns", "bytes"}),)

    def cases(self, frame):
        return each(rows(frame), lambda row: Case(
            kind="copy", op=None, device="mi300x", seconds=row["ns"] * 1e-9, reason="no copy op"))
"""


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Adds a distribution with one entry point and the module `nanoseconds` to `sys.path`."""
    (tmp_path / "nanoseconds.py").write_text(PLUG_IN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def add(name: str, value: str) -> None:
        folder = tmp_path / f"{name.replace('-', '_')}_plug_in-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-plug-in\n")
        (folder / "entry_points.txt").write_text(f"[{importers.GROUP}]\n{name} = {value}\n")
        importlib.invalidate_caches()

    return add


def test_another_distribution_adds_an_importer(
    distribution: Callable[[str, str], None], tmp_path: Path
) -> None:
    distribution("nanoseconds", "nanoseconds:Nanoseconds")
    assert [one.name for one in importers.all_importers()] == [*importers.BUILT_IN, "nanoseconds"]
    path = tmp_path / "rows.csv"
    path.write_text("ns,bytes\n5,1\nmany,2\n")
    loaded = load(path, importers.all_importers())
    assert (loaded.file.dataset, loaded.file.rows) == ("nanoseconds", 2)
    assert sum(loaded.file.not_predicted.values()) == 2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("nanoseconds", "nanoseconds:Gone", "cannot be imported: .*Gone"),
        ("nanoseconds", "nanoseconds:each", "is not a subclass of Importer"),
        ("general", "nanoseconds:Nanoseconds", "general-plug-in and wavecast both register"),
    ],
)
def test_a_wrong_plug_in_is_an_error(
    distribution: Callable[[str, str], None], name: str, value: str, message: str
) -> None:
    distribution(name, value)
    with pytest.raises(InputError, match=message):
        importers.all_importers()


def test_own_names_are_loaded_without_entry_points() -> None:
    assert plugins.load(importers.GROUP, importers.BUILT_IN, "general").name == "general"
    with pytest.raises(KeyError):
        plugins.load(importers.GROUP, importers.BUILT_IN, "gone")
