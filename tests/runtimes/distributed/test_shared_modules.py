"""What ranks that are threads share: modules, with groups and functions that these have stored, and
threads that stay."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import torch.distributed as dist  # noqa: E402
from torch.distributed import init_process_group, new_group  # noqa: E402

import wavecast  # noqa: E402

pytestmark = pytest.mark.torch
MODULE = """
import torch.distributed as dist
from torch.distributed import init_process_group

STORED = dist.group.WORLD


def reduce(x, group=dist.group.WORLD):
    dist.all_reduce(x, group=group)
    return group.rank(), group.size(), dist.get_rank(STORED), dist.get_world_size(STORED)
"""


def _ranks(world: int, function: Callable[[int], Any]) -> list[Any]:
    node: Any
    with wavecast.device("gfx942", count=world) as node:
        return node.ranks(function)


def test_a_module_that_a_rank_imports_has_the_groups_of_every_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the next emulation, of other GPUs; functions that it imports are PyTorch's again."""
    (tmp_path / "imported_by_rank.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)

    def rank(number: int) -> Any:
        init_process_group("nccl")
        from imported_by_rank import reduce  # pyright: ignore[reportMissingImports]

        x = torch.full((3,), number + 1, device=f"cuda:{number}")
        found = reduce(x)
        dist.all_reduce(x, group=new_group([1, 0]) if dist.get_world_size() == 2 else None)
        return found, x.tolist()

    try:
        for world, total in ((2, 6), (3, 18)):
            results = _ranks(world, rank)
            expected = [((rank, world, rank, world), [total] * 3) for rank in range(world)]
            assert results == expected
        module = sys.modules["imported_by_rank"]
        assert module.init_process_group is init_process_group is dist.init_process_group
    finally:
        sys.modules.pop("imported_by_rank", None)


def test_a_thread_that_stays_has_nothing_of_its_rank() -> None:
    """It would free tensors while Python ends, which ends the process: Inductor's pool stays."""
    leave, groups = threading.Event(), list[Any]()

    def rank(number: int) -> None:
        init_process_group("nccl")
        torch.rand(1, device=f"cuda:{number}")
        threading.Thread(target=leave.wait, daemon=True).start()
        groups.append(weakref.ref(dist.group.WORLD))

    try:
        _ranks(2, rank)
        gc.collect()
        assert [group() for group in groups] == [None, None]
    finally:
        leave.set()
