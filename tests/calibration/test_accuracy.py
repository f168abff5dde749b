"""Predictions of the published measurements are as accurate as the committed table says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pandas")

from calibration import accuracy
from calibration.table import put
from wavecast import arch
from wavecast.perfmodel import coefficients, ops

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the published measurements (../shared/data) are absent"
)


@needs_data
@pytest.mark.parametrize("name", accuracy.read())
def test_no_median_error_is_worse_than_the_table(name: str) -> None:
    """`python -m calibration.accuracy ../shared/data --write` writes the table."""
    worse = accuracy.differences(accuracy.read()[name], accuracy.errors(DATA / name))
    assert not worse, "\n".join(worse)


@needs_data
def test_the_table_has_every_file_that_an_importer_reads() -> None:
    missing = {path.name for path in DATA.glob("*.parquet")} - set(accuracy.read())
    for name in missing:
        with pytest.raises(accuracy.InputError, match="no importer reads"):
            accuracy.errors(DATA / name)


ELEMENTS = [1 << place for place in range(24, 32)]


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """Additions on two devices, measured 2 % faster to 5 % slower than they are predicted now."""
    lines = ["op,shape,dtype,function,device,seconds"]
    for device in ("mi300x", "mi355x"):
        for place, count in enumerate(ELEMENTS):
            op = ops.op("elementwise").parse(str(count), {"dtype": "bf16", "function": "add"})
            seconds = op.predict(arch.load(device)).seconds * (0.98 + 0.01 * place)
            lines.append(f"elementwise,{count},bf16,add,{device},{seconds!r}")
    path = tmp_path / "additions.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def scaled() -> Iterator[Callable[[str, str, str, float], None]]:
    """Multiplies one coefficient, and restores it after the test."""
    restored = []

    def scale(family: str, name: str, scope: str, factor: float) -> None:
        row = coefficients.coefficient(family, name)
        value = row.values.get(scope, row.values["default"])
        restored.append((family, name, row))
        put({(family, name, scope): value * factor})

    yield scale
    for family, name, row in restored:
        table = coefficients.family(family)
        assert isinstance(table, dict)
        table[name] = row
    put({})


def test_a_worse_coefficient_fails_on_its_device_only(
    measured: Path, scaled: Callable[[str, str, str, float], None]
) -> None:
    before = accuracy.errors(measured)
    assert [(row.op, row.device, row.n) for row in before.rows] == [
        ("elementwise", "mi300x", 8), ("elementwise", "mi355x", 8),
    ]  # fmt: skip
    assert accuracy.differences(before, accuracy.errors(measured)) == []
    scaled("chips", "hbm_fraction", "gfx950", 0.8)
    (line,) = accuracy.differences(before, accuracy.errors(measured))
    assert line.startswith("elementwise mi355x: median error ")


def test_more_than_five_percent_of_the_median_fails() -> None:
    row = accuracy.AccuracyRow("gemm", "mi300x", "s", 100, 0.02, 0.1, 0.0)
    before = accuracy.AccuracyFile("digest", (row,))

    def now(**change: float) -> list[str]:
        return accuracy.differences(before, replace(before, rows=(replace(row, **change),)))

    assert now(median=0.021) == []
    assert now(median=0.01, p90=0.5) == []
    assert now(median=0.0212) == ["gemm mi300x: median error 2.12%, 2.00% in the table"]
    assert now(n=99) == ["gemm mi300x: 99 predictions, 100 in the table"]
    assert accuracy.differences(before, replace(before, rows=())) == [
        "gemm mi300x: 0 predictions, 100 in the table"
    ]
    assert accuracy.differences(before, replace(before, digest="other")) == [
        "the file is not the one the table was written for"
    ]


def test_fewer_choices_named_right_fail() -> None:
    row = accuracy.AccuracyRow("conv", "mi100", "s", 100, 0.02, 0.1, 0.0, named=0.8)
    before = accuracy.AccuracyFile("digest", (row,))

    def now(named: float | None) -> list[str]:
        return accuracy.differences(before, replace(before, rows=(replace(row, named=named),)))

    assert now(0.77) == now(0.9) == []
    assert now(0.75) == ["conv mi100: 75.0% of choices named, 80.0% in the table"]
    assert now(None) == ["conv mi100: 0.0% of choices named, 80.0% in the table"]


def test_the_table_has_the_share_of_algorithms_named_right() -> None:
    rows = accuracy.read()["conv_miopen.parquet"].rows
    assert {row.device for row in rows if row.named is not None} >= {"mi100", "mi250x_gcd"}


def test_a_choice_is_named_if_the_prediction_assumes_it(tmp_path: Path) -> None:
    """The fastest solver of a problem is that of the predicted algorithm, or of another."""
    problem = "gfx908,120,mi100,F,fp16,NCHW,32,64,1,56,56,64,1,3,3,1x1,1x1,1x1,1"
    columns = (
        "arch,cu_count,device,direction,dtype,layout,N,C,D,H,W,K,Z,R,S,pad,stride,dilation,groups"
    )
    path = tmp_path / "solvers.csv"
    shares = []
    for algorithm in ("ImplicitGEMM", "GEMM", "Winograd", "Direct"):
        path.write_text(f"{columns},solver,algo,time_us\n{problem},Solver,{algorithm},80.0\n")
        (row,) = accuracy.errors(path).rows
        shares.append(row.named)
    assert sorted(shares) == [0.0, 0.0, 0.0, 1.0]


def test_the_table_reads_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text(accuracy.document(accuracy.read()))
    assert accuracy.read(path) == accuracy.read()
    assert path.read_text() == accuracy.TABLE.read_text()
