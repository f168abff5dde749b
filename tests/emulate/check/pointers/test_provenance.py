"""Addresses made from one of several pointers, or from pointers in memory, stay in their tensor."""

from __future__ import annotations

import numpy as np
import pytest

import wavecast
from tests.emulate.check.pointers.test_reach import SOURCE, TARGETS, found, only, zeros
from tests.targets import swept
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.check.pointers.provenance import provenance
from wavecast.emulate.reports import Kind

pytestmark = pytest.mark.hip


@pytest.fixture(scope="module", params=swept(TARGETS))
def kernels(request):
    return wavecast.load(SOURCE, arch=request.param, check=True, threads=1)


def parts(count=3, size=64):
    """Tensors at equal distances, in buffers next to each other."""
    step = 8 * size
    data = bytearray(count * step)
    return [np.frombuffer(data, np.float32, size, step * n) for n in range(count)]


FAR = 128
"""Elements from one of `parts` to the next."""


def table(*arrays):
    return np.array([array.ctypes.data for array in arrays], np.uint64)


@pytest.mark.parametrize("name", ["chosen_by_lane", "either", "of_first_lane"])
def test_a_pointer_chosen_by_a_selection(kernels, name):
    a, b, out = parts()
    assert found(kernels[name], 1, 64, out, a, b, 0) == ()
    reports = found(kernels[name], 1, 64, out, a, b, FAR)
    message = only(reports, Kind.OUT_OF_BOUNDS, "chosen[").message
    assert "outside" in message


def test_lanes_keep_the_pointer_that_each_has_chosen(kernels):
    a, b, out = parts()  # lanes of a land in b, some of b may land in out
    reports = found(kernels["chosen_by_lane"], 1, 64, out, a, b, FAR)
    report = only(reports, Kind.OUT_OF_BOUNDS, "chosen[")
    assert set(report.lanes) >= set(range(1, len(report.lanes), 2))


def test_a_store_through_a_chosen_pointer(kernels):
    a, b, _ = parts()
    kernel = kernels["chosen_store"]
    assert found(kernel, 1, 64, a, b, 0, 1) == ()
    assert found(kernel, 1, 64, a, b, 0, 0) == ()
    report = only(found(kernel, 1, 64, a, b, FAR, 1), Kind.OUT_OF_BOUNDS, "] = 1.0f")
    assert "outside a (64 elements): it lands in b[0]" in report.message


@pytest.mark.parametrize("name", ["table_of_pointers", "pointer_per_lane"])
def test_pointers_in_an_array(kernels, name):
    *rows, _ = memory = parts(4)
    out, pointers = zeros(256), table(*rows)
    kernel = kernels[name]
    assert found(kernel, 1, 64, out, pointers, 0, memory=memory) == ()
    reports = found(kernel, 1, 64, out, pointers, FAR, memory=memory)
    only(reports, Kind.OUT_OF_BOUNDS, "threadIdx.x + offset]")


def test_pointers_in_structures_in_memory(kernels):
    *data, other = parts(3)
    nodes = [np.zeros(3, np.uint64) for _ in data]
    for number, (node, part) in enumerate(zip(nodes, data, strict=True)):
        following = nodes[number + 1].ctypes.data if number + 1 < len(nodes) else 0
        node[:] = following, part.ctypes.data, 64
    memory = (*data, other, *nodes)
    kernel = kernels["linked"]
    assert found(kernel, 1, 64, zeros(), nodes[0], 0, memory=memory) == ()
    reports = found(kernel, 1, 64, zeros(), nodes[0], FAR, memory=memory)
    only(reports, Kind.OUT_OF_BOUNDS, "node->data[(int)threadIdx.x + offset]")


def test_an_index_of_64_bits_is_no_pointer(kernels):
    a, b, out = parts()
    index = np.arange(64, dtype=np.int64)
    assert found(kernels["indexed_by_long"], 1, 64, out, a, index, memory=(b,)) == ()
    far = index + FAR
    reports = found(kernels["indexed_by_long"], 1, 64, out, a, far, memory=(b,))
    only(reports, Kind.OUT_OF_BOUNDS, "in[index[threadIdx.x]]")


def test_a_pointer_to_the_end_of_a_tensor(kernels):
    rows = parts(3)
    pointers = table(*rows, rows[0])
    pointers[3] += rows[0].nbytes
    out = zeros()
    assert found(kernels["from_the_end"], 1, 64, out, pointers, memory=rows) == ()


def test_pointers_that_change_places(kernels):
    a, b, other = parts()
    kernel = kernels["exchanged"]
    assert found(kernel, 1, 64, a, b, 5, 0, memory=(other,)) == ()
    reports = found(kernel, 1, 64, a, b, 4, FAR, memory=(other,))
    only(reports, Kind.OUT_OF_BOUNDS, "b[threadIdx.x] = a[")


def test_addresses_of_one_argument_are_not_followed(kernels):
    for name in ("copy", "difference", "uniform", "count", "pair"):
        assert not provenance(parse_kernel(kernels[name].code, link=True)).accesses
