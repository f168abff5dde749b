"""What kernels of one call leave each other in the memory-side cache."""

from __future__ import annotations

import pytest

from tests.analyze.support import code
from wavecast import arch
from wavecast.compile.codeobject import Argument, Launch
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.sequence import CallSequence

MIB = 2**20


def tensor(name: str, storage: int, mib: int) -> Argument:
    bytes_ = mib * MIB
    return Argument(name, "tensor", "int8", (bytes_,), (1,), bytes_, storage)


def launch(*arguments: Argument) -> Launch:
    return Launch(code(), (1, 1, 1), (256, 1, 1), arguments)


def whole(given: Launch) -> dict[str, tuple[float, float]]:
    return {argument.name: (float(argument.bytes), 0.0) for argument in given.arguments}


@pytest.fixture
def sequence() -> CallSequence:
    """On a MI300X: 256 MiB of memory-side cache."""
    return CallSequence(Chip.of(arch.load("mi300x")))


def test_the_second_kernel_finds_what_the_first_wrote(sequence: CallSequence) -> None:
    first = launch(tensor("x", 1, 32), tensor("out", 2, 32))
    assert sequence.mall_resident(first) == {}
    sequence.ran(first, whole(first))
    assert sequence.mall_resident(launch(tensor("a", 2, 32), tensor("b", 3, 8))) == {"a": 1.0}


def test_what_passed_since_pushes_it_out(sequence: CallSequence) -> None:
    first, between = launch(tensor("x", 1, 32)), launch(tensor("y", 2, 1024))
    sequence.ran(first, whole(first))
    sequence.ran(between, whole(between))
    assert sequence.mall_resident(first)["x"] < 0.05
    sequence.ran(first, whole(first))
    assert sequence.mall_resident(first) == {"x": 1.0}


def test_a_part_of_a_tensor_is_no_more_than_that(sequence: CallSequence) -> None:
    """A write into a cache of keys touches some rows of it; what nobody counted, nothing."""
    first = launch(tensor("cache", 1, 64), tensor("gathered", 2, 64))
    sequence.ran(first, {"cache": (0.0, 16.0 * MIB)})
    assert sequence.mall_resident(first) == {"cache": pytest.approx(0.25)}


def test_without_a_memory_side_cache_nothing_is_held() -> None:
    sequence = CallSequence(Chip.of(arch.load("mi210")))
    first = launch(tensor("x", 1, 1))
    sequence.ran(first, whole(first))
    assert sequence.mall_resident(first) == {"x": 0.0}
