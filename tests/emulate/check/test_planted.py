"""Mistakes planted in HIP kernels are found, and their kernels without the mistake are clean."""

from pathlib import Path

import numpy as np
import pytest

import wavecast
from tests.emulate.check.mutation import without
from tests.targets import swept
from wavecast.emulate.errors import ChecksFailed
from wavecast.emulate.reports import Kind, Report

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).with_name("planted.hip")
TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
FLOATS = np.arange(512, dtype=np.float32)


@pytest.fixture(scope="module", params=swept(TARGETS))
def kernels(request):
    return wavecast.load(SOURCE, arch=request.param, check=True, threads=1)


def found(kernel, grid, block, *values) -> tuple[Report, ...]:
    try:
        kernel(grid, block, *values)
    except ChecksFailed as error:
        return error.reports
    return ()


def kinds(reports) -> set[Kind]:
    return {report.kind for report in reports}


def line_of(report: Report) -> int:
    assert report.location is not None
    return report.location.outermost.line


def zeros(count=512, dtype=np.float32):
    return np.zeros(count, dtype)


CLEAN = ["rotate", "same_value_by_all", "through_memory"]


@pytest.mark.parametrize("name", CLEAN)
def test_a_right_kernel_is_clean(kernels, name):
    assert found(kernels[name], 2 if name == "rotate" else 1, 256, zeros(), FLOATS.copy()) == ()


PLANTED = {
    "rotate_without_barrier": (Kind.LDS_RACE, "tile[(threadIdx.x + 64) % 256]", "reads what"),
    "overwrite_what_others_read": (Kind.LDS_RACE, "tile[threadIdx.x] = 1.0f", "read"),
    "two_waves_one_place": (Kind.LDS_RACE, "place[0] = in[threadIdx.x]", "overwrites what"),
    "lds_never_written": (Kind.UNINITIALISED_LDS, "out[threadIdx.x] = tile[threadIdx.x]", "LDS"),
    "through_memory_without_barrier": (Kind.GLOBAL_RACE, "between[255", "reads what"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_reported_at_its_line(kernels, name):
    kind, line, words = PLANTED[name]
    reports = found(kernels[name], 1, 256, zeros(), FLOATS.copy())
    assert kind in kinds(reports) <= {kind, Kind.UNINITIALISED_LDS}
    lines = SOURCE.read_text().splitlines()
    assert any(line in lines[line_of(r) - 1] and words in r.message for r in reports)
    for report in reports:
        assert report.workgroup == (0, 0, 0)
        assert report.lanes
        assert report.count >= 1


def test_bytes_of_one_dword_are_places_of_their_own(kernels):
    data = np.arange(256, dtype=np.uint8)
    out = np.zeros(256, np.uint8)
    assert found(kernels["bytes_side_by_side"], 1, 256, out, data) == ()
    assert (out == data).all()


def test_workgroups_that_share_a_place_without_order(kernels):
    (report, *_) = found(kernels["neighbour_workgroup"], 4, 64, zeros())
    assert report.kind is Kind.WORKGROUP_RACE
    assert report.workgroup == (1, 0, 0)
    assert "data" in report.message
    assert "workgroup (0, 0, 0)" in report.message


def test_atomics_are_no_race_and_their_plain_form_is(kernels):
    values = np.arange(1024, dtype=np.uint32)
    bins = np.zeros(8, np.uint32)
    assert found(kernels["count_with_atomics"], 4, 256, bins, values) == ()
    assert bins.tolist() == [128] * 8
    reports = found(kernels["count_without_atomics"], 4, 256, np.zeros(8, np.uint32), values + 1)
    assert kinds(reports) == {Kind.WORKGROUP_RACE}


def test_an_atomic_flag_orders_two_workgroups(kernels):
    out = zeros(64)
    assert found(kernels["handed_over"], 2, 64, out, zeros(64), np.zeros(1, np.uint32)) == ()
    assert (out == 3).all()


def test_an_address_that_lands_in_another_tensor(kernels):
    first, second = np.zeros(256, np.float32), np.zeros(256, np.float32)
    far = (second.ctypes.data - first.ctypes.data) // 4
    kernel = kernels["beyond_its_tensor"]
    assert found(kernel, 1, 64, second, first, 0) == ()
    (report,) = found(kernel, 1, 64, second, first, far)
    assert report.kind is Kind.OUT_OF_BOUNDS
    assert "outside in (256 elements): it lands in out[0]" in report.message


def test_tensors_that_overlap_are_one_place(kernels):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    whole = np.zeros(160, np.float32)
    out, after = (torch.from_numpy(part) for part in (whole[:64], whole[32:]))
    assert out.untyped_storage().nbytes() == 256
    assert found(kernels["beyond_its_tensor"], 1, 64, out, after, 32) == ()


def test_an_offset_beyond_lds(kernels):
    kernel = kernels["beyond_lds"]
    assert found(kernel, 1, 256, zeros(), FLOATS.copy(), 0) == ()
    reports = found(kernel, 1, 256, zeros(), FLOATS.copy(), 200)
    assert Kind.OUT_OF_LDS in kinds(reports)


def test_a_barrier_some_lanes_skip(kernels):
    reports = found(kernels["barrier_in_a_branch"], 1, 256, zeros(), FLOATS.copy(), 100)
    assert Kind.PARTIAL_BARRIER in kinds(reports)


def test_waves_at_different_barriers(kernels):
    reports = found(kernels["two_barriers"], 1, 256, zeros(), FLOATS.copy())
    assert kinds(reports) <= {Kind.DIVERGENT_BARRIER}


def test_a_missing_wait_is_reported_at_every_launch():
    code = wavecast.load(SOURCE, arch="gfx942")["rotate"].code
    lines = code.assembly.split("\n")
    wait = next(n for n, line in enumerate(lines) if "s_waitcnt" in line and "vmcnt(0)" in line)
    kernel = wavecast.load(without(code, wait), check=True)["rotate"]
    for _ in range(2):
        reports = found(kernel, 1, 256, zeros(), FLOATS.copy())
        assert kinds(reports) == {Kind.MISSING_WAIT}
        assert "s_waitcnt vmcnt(0)" in reports[0].message
