"""Memory that PyTorch allocates and does not fill carries a pattern; other memory is left alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from wavecast.emulate.tensors import CANARY  # noqa: E402
from wavecast.emulate.written_bytes import FollowedBytes  # noqa: E402
from wavecast.runtimes.torch_cpu.fresh import FreshMemory  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def memory() -> Iterator[FreshMemory]:
    with FreshMemory() as active:
        yield active


MAKERS = {
    "empty": lambda: torch.empty(8),
    "empty_like": lambda: torch.empty_like(torch.ones(8)),
    "empty_strided": lambda: torch.empty_strided((4, 2), (1, 4)),
    "new_empty": lambda: torch.ones(2).new_empty(8),
}


MAKERS |= {
    "empty_permuted": lambda: torch.empty_permuted((4, 2), (1, 0)),
    "new": lambda: torch.ones(2).new(8),
    "operator": lambda: torch.ops.aten.empty.memory_format([8]),
    "resize_": lambda: torch.empty(0).resize_(8),
    "resize_as_": lambda: torch.empty(0).resize_as_(torch.ones(8)),
}
PATTERN = CANARY.to_bytes(8, "little")


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_allocated_is_marked(name: str) -> None:
    make: Callable[[], Any] = MAKERS[name]
    assert bytes(make().untyped_storage()) == PATTERN * 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.uint8])
@pytest.mark.parametrize("count", [1, 3, 33])
def test_the_last_elements_are_marked(dtype: Any, count: int) -> None:
    memory = bytes(torch.empty(count, dtype=dtype).untyped_storage())
    assert memory == (PATTERN * len(memory))[: len(memory)]


def test_what_resizing_adds_is_marked() -> None:
    memory = bytes(torch.ones(3).resize_(8).untyped_storage())
    assert memory == bytes(np.ones(3, np.float32)) + (PATTERN * 4)[12:]
    assert torch.ones(8).resize_(3).tolist() == [1, 1, 1]


def test_a_tensor_of_given_elements_is_not_marked() -> None:
    assert torch.ones(2).new([1, 2]).tolist() == [1, 2]


def test_memory_that_is_given_keeps_what_is_beside_it() -> None:
    whole = torch.arange(16.0)
    torch.empty(4, out=whole[4:8])
    assert torch.equal(whole, torch.arange(16.0))


def test_fake_tensors_have_no_memory() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with FakeTensorMode():
            assert torch.empty(4).shape == (4,)


def test_tensors_of_a_transform() -> None:
    doubled = torch.vmap(lambda x: torch.empty_like(x).copy_(x) * 2)
    assert torch.equal(doubled(torch.ones(2, 3)), torch.full((2, 3), 2.0))


def _half(x: Any) -> None:
    x[:4] = 1
    x[4:].view(2, 2)[1] = 1


def _whole(x: Any) -> None:
    torch.add(torch.ones_like(x), 1, out=x)


WRITES = {
    "elements": (lambda x: x.__setitem__(slice(None, None, 2), 3), [1, 0, 1, 0, 1, 0, 1, 0]),
    "view": (_half, [1, 1, 1, 1, 0, 0, 1, 1]),
    "mask": (lambda x: x.__setitem__(torch.arange(8) > 5, 0), [0, 0, 0, 0, 0, 0, 1, 1]),
    "method": (lambda x: x[2:5].fill_(7), [0, 0, 1, 1, 1, 0, 0, 0]),
    "function": (lambda x: torch.nn.init.constant_(x[1:2], 2), [0, 1, 0, 0, 0, 0, 0, 0]),
    "operator": (lambda x: x[:3].__iadd__(1), [1, 1, 1, 0, 0, 0, 0, 0]),
    "out": (_whole, [1] * 8),
    "read": (lambda x: x.clone().add_(x.sum()), [0] * 8),
}


def _followed(memory: FreshMemory, x: Any) -> FollowedBytes | None:
    first = x.untyped_storage().data_ptr()
    return next(iter(memory.written.within([(first, first + x.nbytes)])), None)


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16])
def test_bytes_that_pytorch_writes_are_marked(name: str, dtype: Any, memory: FreshMemory) -> None:
    write, elements = WRITES[name]
    x = torch.empty(8, dtype=dtype)
    write(x)
    found = _followed(memory, x)
    if all(elements):
        assert found is None
    else:
        assert found is not None
        assert found.written.reshape(8, -1).all(axis=1).astype(int).tolist() == elements
        assert found.written.reshape(8, -1).any(axis=1).astype(int).tolist() == elements


def test_memory_written_by_other_code_counts_as_written(memory: FreshMemory) -> None:
    x = torch.empty(64, dtype=torch.uint8)
    assert _followed(memory, x) is not None
    x.numpy()[:] = 0
    assert _followed(memory, x) is None


def test_memory_that_is_freed_is_not_followed(memory: FreshMemory) -> None:
    x = torch.empty(64, dtype=torch.uint8)
    first = x.untyped_storage().data_ptr()
    del x
    assert memory.written.at(first) is None


def test_a_tensor_that_gets_other_memory(memory: FreshMemory) -> None:
    x = torch.empty(8, dtype=torch.uint8)
    x.set_(torch.zeros(64, dtype=torch.uint8))
    assert _followed(memory, x) is None


def test_bytes_that_resizing_adds_are_followed(memory: FreshMemory) -> None:
    x = torch.empty(2, dtype=torch.uint8)
    x[0] = 1
    first = x.untyped_storage().data_ptr()
    found = _followed(memory, x.resize_(4096))
    assert memory.written.at(first) is None  # others may have that memory now
    assert found is not None
    assert found.written.sum() == found.written[0] == 1
    whole = torch.ones(3, dtype=torch.uint8)
    found = _followed(memory, whole.resize_(5))
    assert found is not None
    assert found.written.tolist() == [1, 1, 1, 0, 0]


def test_compiled_code_does_not_trace_what_is_followed(memory: FreshMemory) -> None:
    x = torch.empty(8, dtype=torch.uint8)
    add = torch.compile(
        lambda one: torch.empty_like(one).copy_(one).add_(1), fullgraph=True, backend="eager"
    )
    assert torch.equal(add(x), x + 1)
    assert _followed(memory, x) is not None


def test_wide_values_are_not_followed(memory: FreshMemory) -> None:
    torch.empty(8)
    assert not memory.written
