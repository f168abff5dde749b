"""Memory that PyTorch allocates and does not fill carries a pattern; other memory is left alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from wavecast.integrations.torch_cpu.fresh import CANARY, FreshMemory  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    with FreshMemory():
        yield


MAKERS = {
    "empty": lambda: torch.empty(8),
    "empty_like": lambda: torch.empty_like(torch.ones(8)),
    "empty_strided": lambda: torch.empty_strided((4, 2), (1, 4)),
    "new_empty": lambda: torch.ones(2).new_empty(8),
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_allocated_is_marked(name: str) -> None:
    make: Callable[[], Any] = MAKERS[name]
    memory = np.frombuffer(bytes(make().untyped_storage()), np.uint64)
    assert memory.tolist() == [CANARY] * 4


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
