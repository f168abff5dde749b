"""Launches repeated in other orders: what differs is named, what does not is silent."""

from pathlib import Path

import numpy as np
import pytest

import wavecast
from tests.emulate.check.test_planted import line_of
from tests.targets import swept
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.reports import Kind

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).with_name("order.hip")
RACES = ["workgroup-race", "global-race", "lane-race", "same-value"]
FLOATS = (np.random.default_rng(0).standard_normal(1024) * 1e3).astype(np.float32)


@pytest.fixture(scope="module", params=swept(("gfx90a", "gfx942", "gfx1100", "gfx1201")))
def checked(request):
    known = {kind.rule for kind in Kind}
    reports = Reports([rule for rule in RACES if rule in known], determinism=True)
    return wavecast.load(SOURCE, arch=request.param, check=reports, threads=1), reports


def test_a_sum_of_floats_by_atomics(checked):
    kernels, reports = checked
    out = np.zeros(1, np.float32)
    kernels["sum"](16, 64, out, FLOATS)
    (report,) = reports.take()
    assert report.kind is Kind.ORDER_DEPENDENT
    assert "atomicAdd(out" in SOURCE.read_text().splitlines()[line_of(report) - 1]
    assert report.message.startswith(f"makes out[0] {out[0]!s} or ")
    assert "instead of atomically" in report.message


@pytest.mark.parametrize(
    ("name", "grid", "block", "element"),
    [("last_wins", 8, 64, "out[2] 7 or 0"), ("last_wave_wins", 1, 256, "out[1]")],
)
def test_the_last_store_wins(checked, name, grid, block, element):
    kernels, reports = checked
    out = np.zeros(4, np.int32)
    kernels[name](grid, block, out)
    after = out.copy()
    (report,) = reports.take()
    assert element in report.message
    assert "out[" in SOURCE.read_text().splitlines()[line_of(report) - 1]
    assert (out == after).all()


def test_sums_of_integers_do_not_depend_on_the_order(checked):
    kernels, reports = checked
    out = np.zeros(8, np.int32)
    kernels["count"](16, 64, out)
    assert reports.take() == []
    assert (out == 8 * 120).all()
