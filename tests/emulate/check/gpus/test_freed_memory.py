"""Memory that ends while its records are in use."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from wavecast.runtimes.triton.node_checks import NodeChecks  # noqa: E402

pytestmark = pytest.mark.torch


def test_the_garbage_collector_waits_for_no_lock_and_changes_no_records() -> None:
    checks = NodeChecks(2)
    storage = torch.zeros(64).untyped_storage()
    first, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    checks.follow(storage, 1)
    memory = checks.order.memory
    records = memory.of((first, end), tracked=True)
    with checks.order.lock:  # as a launch that looks at all memory
        del storage
        assert memory.__dict__["_known"] == {(first, end): records}
        assert memory.__dict__["_owners"] == {(first, end): 1}
        assert memory.at((first, end)) is None  # and the next use knows
        assert not memory.memory_label(first)


def test_memory_at_the_address_of_freed_memory_is_new() -> None:
    checks = NodeChecks(2)
    storage = torch.zeros(64).untyped_storage()
    interval = (storage.data_ptr(), storage.data_ptr() + storage.nbytes())
    memory = checks.order.memory
    memory.belongs(interval, 1)
    memory.of(interval, tracked=False)
    memory.free(interval)  # not yet forgotten
    checks.follow(storage, 0)
    assert memory.at(interval) is None
    assert memory.memory_label(interval[0]) == " in memory of GPU 0"
