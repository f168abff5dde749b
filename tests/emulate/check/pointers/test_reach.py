"""Accesses that leave their tensor, also for the rest of its storage, and memory nobody wrote."""

import struct
from pathlib import Path

import numpy as np
import pytest

import wavecast
from tests.emulate.check.test_planted import line_of
from tests.targets import swept
from wavecast.emulate.errors import AddressFault, ChecksFailed
from wavecast.emulate.reports import Kind
from wavecast.emulate.tensors import CANARY

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).with_name("reach.hip")
TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")


@pytest.fixture(scope="module", params=swept(TARGETS))
def kernels(request):
    return wavecast.load(SOURCE, arch=request.param, check=True, threads=1)


def found(kernel, grid, block, *values, memory=()):
    """The reports of a launch that has errors, () of others."""
    try:
        kernel(grid, block, *values, memory=memory)
    except ChecksFailed as error:
        return error.reports
    return ()


def zeros(count=64, dtype=np.float32):
    return np.zeros(count, dtype)


def fresh(count, dtype=np.float32):
    """Memory as `torch.empty` gives it to kernels that are checked."""
    words = np.full(count * np.dtype(dtype).itemsize // 8, CANARY, np.uint64)
    return words.view(dtype)


def only(reports, kind, line):
    (report,) = (one for one in reports if one.severity == "error")
    assert report.kind is kind
    assert line in SOURCE.read_text().splitlines()[line_of(report) - 1]
    return report


def test_a_view_ends_at_its_last_element(kernels):
    storage = zeros(1024)
    assert found(kernels["copy"], 2, 64, zeros(128), storage[:128]) == ()
    reports = found(kernels["copy"], 2, 64, zeros(128), storage[:100])
    report = only(reports, Kind.OUT_OF_BOUNDS, "out[i] = in[i];")
    assert "touches in[100], outside in (100 elements)" in report.message
    assert report.workgroup == (1, 0, 0)


def test_a_launch_that_breaks_off_leaves_no_reports_to_the_next(kernels):
    with pytest.raises(AddressFault) as caught:
        kernels["copy"](1 << 20, 64, zeros(), zeros())
    kinds = {report.kind for report in caught.value.reports}
    assert Kind.OUT_OF_BOUNDS in kinds
    assert found(kernels["copy"], 1, 64, zeros(), zeros()) == ()


def test_a_strided_view_includes_its_strides(kernels):
    storage = zeros(128)
    assert found(kernels["copy"], 1, 64, zeros(64), storage.reshape(64, 2)[:, 0]) == ()
    assert found(kernels["copy"], 1, 64, zeros(64), storage[63::-1][::-1]) == ()


def test_an_index_below_zero(kernels):
    storage = zeros(256)
    assert found(kernels["difference"], 1, 64, zeros(), storage[64:128], 1) == ()
    reports = found(kernels["difference"], 1, 64, zeros(), storage[64:128], 0)
    assert "in[-1]" in only(reports, Kind.OUT_OF_BOUNDS, "in[i - 1]").message


def test_a_scalar_load_beyond_its_tensor(kernels):
    table = zeros(64, np.int32)
    assert found(kernels["uniform"], 2, 64, zeros(), table[:16], 14) == ()
    reports = found(kernels["uniform"], 2, 64, zeros(), table[:16], 15)
    assert "table[16]" in only(reports, Kind.OUT_OF_BOUNDS, "table[blockIdx.x + offset]").message


def test_an_atomic_on_memory_nobody_wrote(kernels):
    assert found(kernels["count"], 1, 64, zeros(8, np.uint32)) == ()
    reports = found(kernels["count"], 1, 64, fresh(8, np.uint32))
    assert "bins[0]" in only(reports, Kind.UNINITIALISED_GLOBAL, "atomicAdd").message


def test_single_elements_nobody_wrote(kernels):
    data = fresh(64)
    data[:] = 1
    assert found(kernels["copy"], 1, 64, zeros(), data) == ()
    data[13] = fresh(64)[13]
    reports = found(kernels["copy"], 1, 64, zeros(), data)
    assert "in[13]" in only(reports, Kind.UNINITIALISED_GLOBAL, "out[i] = in[i];").message


def test_a_scalar_load_of_memory_nobody_wrote(kernels):
    reports = found(kernels["uniform"], 1, 64, zeros(), fresh(16, np.int32), 3)
    only(reports, Kind.UNINITIALISED_GLOBAL, "table[blockIdx.x + offset]")


def test_pointers_in_a_structure_reach_their_own_memory(kernels):
    out, data, other = zeros(), zeros() + 1, zeros()
    both = struct.pack("QQ", out.ctypes.data, data.ctypes.data)
    memory = (out, data, other)
    assert found(kernels["pair"], 1, 64, both, 0, memory=memory) == ()
    assert (out == 1).all()
    far = (other.ctypes.data - data.ctypes.data) // 4
    reports = found(kernels["pair"], 1, 64, both, far, memory=memory)
    message = only(reports, Kind.OUT_OF_BOUNDS, "both.in[threadIdx.x + offset]").message
    assert "outside both (byte 8)" in message


def test_an_address_made_from_one_of_two_pointers(kernels):
    storage = zeros(256)
    a, b = storage[:64], storage[64:128]
    assert found(kernels["either"], 1, 64, zeros(), a, b, 0) == ()
    reports = found(kernels["either"], 1, 64, zeros(), a, b, 128)
    assert "outside b (64" in only(reports, Kind.OUT_OF_BOUNDS, "chosen[threadIdx.x").message


def test_arguments_without_names(kernels):
    storage = zeros(256)
    assert found(kernels["unnamed"], 1, 64, zeros(), storage[:64]) == ()
    reports = found(kernels["unnamed"], 1, 64, zeros(), storage[:63])
    only(reports, Kind.OUT_OF_BOUNDS, "out[threadIdx.x] = in[threadIdx.x]")
