"""`wavecast.explain` on a kernel at hand."""

from __future__ import annotations

import json

import pytest

import wavecast
from wavecast.errors import CompileError, InputError, UnknownName, UsageError, WavecastError

torch = pytest.importorskip("torch")
kernels = pytest.importorskip("tests.pipeline.kernels", exc_type=ImportError)

pytestmark = pytest.mark.torch
SIZE = 1000


@pytest.fixture(scope="module")
def report():
    x, y, out = (torch.empty(SIZE) for _ in range(3))
    arch = "gfx942,gfx1100,sm_90"
    return wavecast.explain(kernels.add, x, y, out, SIZE, BLOCK=256, grid=(4,), arch=arch)


def test_every_target_is_explained(report) -> None:
    assert [e.device.target for e in report.explanations] == ["gfx942", "gfx1100", "sm_90"]
    assert not report.failures


def test_least_bytes_are_the_tensors_once(report) -> None:
    for explanation in report.explanations:
        if explanation.code.is_amd:
            work = explanation.roofline.work
            assert (work.bytes_read, work.bytes_written) == (2 * 4 * SIZE, 4 * SIZE)
            assert explanation.roofline.bound == "memory"


def test_a_gather_counts_the_rows_it_asks_for() -> None:
    table, out = torch.empty(4096, 256), torch.empty(8, 256)
    index = torch.zeros(8, dtype=torch.int32)
    report = wavecast.explain(kernels.gather, table, index, out, BLOCK=256, grid=(8,))
    work = report.explanations[0].roofline.work
    assert work.bytes_written == 8 * 256 * 4
    assert 8 * 256 * 4 <= work.bytes_read < 2 * 8 * 256 * 4
    assert not work.bytes_at_most


def test_what_data_decides_is_counted_whole_and_said() -> None:
    values, out = torch.empty(64, 256), torch.empty(8, 256)
    lengths = torch.ones(8, dtype=torch.int32)
    report = wavecast.explain(kernels.ragged, values, lengths, out, BLOCK=256, grid=(8,))
    loops, work = report.explanations[0].analysis.loops, report.explanations[0].roofline.work
    assert {(loop.trip_count, loop.trip_note[:7]) for loop in loops} == {(None, "depends")}
    assert work.flops is None
    assert work.bytes_at_most
    assert "how much of values is not known" in work.bytes_source
    assert "needs at most" in str(report)


def test_work_that_corners_and_centre_of_the_grid_skip_is_found() -> None:
    """Programs on and above the diagonal return early: the first, the middle and the last do."""
    x, out = torch.empty(4, 4096), torch.empty(16, 256)
    report = wavecast.explain(kernels.below_diagonal, x, out, 4096, BLOCK=256, grid=(16,))
    found = report.explanations[0]
    assert [loop.trip_count for loop in found.analysis.loops] == [4096 / 256]
    assert 0 < found.roofline.work.bytes_written <= 16 * 256 * 4


def test_what_it_shows(report) -> None:
    document = report.to_dict()
    assert document["schema"] == "wavecast.explain/1"
    json.dumps(document, allow_nan=False)
    assert "gfx942" in str(report)
    assert "<table" in report._repr_html_()
    assert repr(report) == "<Explained: add on mi300x, rx7900xtx, h100_sxm>"
    launch = report.explanations[0].launch
    assert repr(launch) == "<Launch add for gfx942: grid (4, 1, 1), block (256, 1, 1)>"
    assert report.html().startswith("<!doctype html>")


def test_files_that_cannot_be_compared(tmp_path) -> None:
    script = tmp_path / "none.py"
    script.write_text("raise SystemExit('nothing here')")
    with pytest.raises(WavecastError, match="nothing here"):
        wavecast.diff(script, script)
    with pytest.raises(InputError, match=r"no \.json"):
        wavecast.profile(tmp_path, against=tmp_path)


def test_what_cannot_be_explained() -> None:
    x = torch.empty(16)
    with pytest.raises(UsageError, match="needs a grid"):
        wavecast.explain(kernels.add, x, x, x, 16, BLOCK=16)
    with pytest.raises(UsageError, match="not a Triton kernel"):
        wavecast.explain(len, x, grid=(1,))
    with pytest.raises(UnknownName, match="gfx942"):
        wavecast.explain(kernels.add, x, x, x, 16, BLOCK=16, grid=(1,), arch="gfx924")
    with pytest.raises(CompileError, match="BLOCK is too small"):
        wavecast.explain(kernels.broken, x, BLOCK=16, grid=(1,), arch="gfx942")
