"""Samples inside a capture: what later kernels depend on is made, everything else stays."""

from __future__ import annotations

import pytest

from wavecast import arch
from wavecast.runtimes.triton import capture

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


@triton.jit
def lengths_kernel(base, lengths):
    row = tl.program_id(0)
    tl.store(lengths + row, tl.load(base + row) * 2)


@triton.jit
def ragged_kernel(x, lengths, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, tl.load(lengths + row), BLOCK):
        total += tl.load(x + start + tl.arange(0, BLOCK))
    tl.store(out + row, tl.sum(total))


def launched(length: int, *, kernels: str = "", sample: bool = True):
    x, out = torch.ones(1 << 16), torch.zeros(8)
    base, lengths = torch.full((8,), length // 2, dtype=torch.int32), torch.zeros(8).int()
    with capture("mi300x", kernels=kernels, sample=sample) as launches:
        lengths_kernel[(8,)](base, lengths)
        ragged_kernel[(8,)](x, lengths, out, BLOCK=256)
    return launches, lengths, out


def test_kernels_of_indices_are_run_and_no_others() -> None:
    launches, lengths, out = launched(8192)
    assert lengths.tolist() == [8192] * 8
    assert not out.any()
    assert [launch.code.kernel for launch in launches] == ["lengths_kernel", "ragged_kernel"]
    assert all(launches.profiles.of(launch, arch.load("mi300x")) for launch in launches)


def test_a_filter_does_not_keep_indices_from_being_made() -> None:
    launches, lengths, _ = launched(4096, kernels="ragged")
    assert [launch.code.kernel for launch in launches] == ["ragged_kernel"]
    assert lengths.tolist() == [4096] * 8


def test_without_a_sample_nothing_runs() -> None:
    launches, lengths, _ = launched(4096, sample=False)
    assert len(launches) == 2
    assert not lengths.any()


@triton.jit
def add_one_kernel(addresses, BLOCK: tl.constexpr):
    x = tl.load(addresses + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    place = tl.arange(0, BLOCK)
    tl.store(x + place, tl.load(x + place) + 1.0)


def test_arrays_found_through_numbers_are_many() -> None:
    """Half a gigabyte in small tensors, of which the first workgroups touch a few: what those few
    are asked for times all workgroups would fit the memory-side cache."""
    tensors = [torch.zeros(1 << 20) for _ in range(64)]
    blocks = [tensor[part << 12 :] for part in range(256) for tensor in tensors]
    addresses = torch.tensor([block.data_ptr() for block in blocks])
    with capture("mi300x", sample=True) as launches:
        add_one_kernel[(len(blocks),)](addresses, BLOCK=1 << 12)
    (launch,) = launches
    profile = launches.profiles.of(launch, arch.load("mi300x"))
    assert profile is not None
    assert profile.traffic is not None
    assert profile.traffic.hbm > 0.7 * profile.traffic.mall
