"""Operators on DTensors and in sharded models, in two processes of the CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.tensor import (  # noqa: E402
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)

from tests.warm_python import run_module  # noqa: E402
from wavecast import ops  # noqa: E402

pytestmark = pytest.mark.torch

RANKS = 2


def _products(mesh: Any) -> None:
    """A column-parallel and a row-parallel product, and their gradients."""
    x, w, v = torch.randn(4, 6, 64), torch.randn(64, 32), torch.randn(32, 64)
    plain = [one.clone().requires_grad_() for one in (w, v)]
    across = distribute_tensor(w, mesh, [Shard(1)]).requires_grad_()
    down = distribute_tensor(v, mesh, [Shard(0)]).requires_grad_()
    hidden = ops.matmul(distribute_tensor(x, mesh, [Replicate()]), across)
    assert hidden.placements == (Shard(2),)
    hidden = ops.gelu(hidden)
    assert hidden.placements == (Shard(2),)
    found = ops.matmul(hidden, down)
    assert found.placements == (Partial(),)
    expected = ops.matmul(ops.gelu(ops.matmul(x, plain[0])), plain[1])
    torch.testing.assert_close(found.full_tensor(), expected)
    found.redistribute(placements=[Replicate()]).square().sum().backward()
    expected.square().sum().backward()
    for got, want in zip((across, down), plain, strict=True):
        torch.testing.assert_close(got.grad.full_tensor(), want.grad, rtol=1e-4, atol=1e-3)
    bias = distribute_tensor(torch.randn(64), mesh, [Replicate()])
    summed = ops.matmul(hidden, down, bias=bias)
    assert summed.placements == (Replicate(),), "a bias must be added once"
    torch.testing.assert_close(
        summed.to_local(), ops.matmul(hidden.full_tensor(), v, bias.to_local())
    )


def _rows(mesh: Any) -> None:
    """Sequences divided among the ranks stay divided; rows that are divided are gathered."""
    x, weight = torch.randn(4, 6, 64), torch.rand(64)
    everywhere = distribute_tensor(weight, mesh, [Replicate()])
    for dimension, kept in ((0, Shard(0)), (1, Shard(1)), (2, Replicate())):
        part = distribute_tensor(x, mesh, [Shard(dimension)])
        for found, expected in (
            (ops.rms_norm(part, everywhere), ops.rms_norm(x, weight)),
            (ops.softmax(part), ops.softmax(x)),
        ):
            assert found.placements == (kept,)
            torch.testing.assert_close(found.full_tensor(), expected)
    q = torch.randn(4, 8, 2, 32)
    heads = distribute_tensor(q, mesh, [Shard(0)])
    found, _ = ops.attention(heads, heads, heads)
    assert found.placements == (Shard(0),)
    torch.testing.assert_close(found.full_tensor(), ops.attention(q, q, q)[0])


def _fully_sharded(mesh: Any) -> None:
    """FSDP2: the losses of a model whose parameters are divided are those of the whole one."""
    from torch.distributed.fsdp import fully_shard

    whole = [nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.LayerNorm(64), nn.Linear(64, 32))]
    whole.append(nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.LayerNorm(64), nn.Linear(64, 32)))
    whole[1].load_state_dict(whole[0].state_dict())
    assert ops.replace(whole[1]).done
    fully_shard(whole[1], mesh=mesh)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in whole]
    x = torch.randn(8, 32)
    for _ in range(3):
        losses = [model(x).square().mean() for model in whole]
        torch.testing.assert_close(losses[1], losses[0])
        for loss, optimizer in zip(losses, optimizers, strict=True):
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def _rank(rank: int, file: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=RANKS)
    try:
        mesh = init_device_mesh("cpu", (RANKS,))
        for check in (_products, _rows, _fully_sharded):
            torch.manual_seed(0)
            check(mesh)
    finally:
        dist.destroy_process_group()


def test_two_ranks_compute_what_one_does(tmp_path: Path) -> None:
    store, root = str(tmp_path / "store"), Path(__file__).resolve().parents[3]
    code, _, errors = run_module(__name__, store, folder=root)
    assert code == 0, errors


def test_checkpointed_blocks_have_the_same_gradients() -> None:
    from torch.utils.checkpoint import checkpoint

    weight = torch.rand(64, requires_grad=True)
    x = torch.randn(5, 64)

    def block(x: Any) -> Any:
        return ops.gelu(ops.rms_norm(x, weight))

    found = []
    for run in (block, lambda x: checkpoint(block, x, use_reentrant=False)):
        run(x).square().sum().backward()
        assert weight.grad is not None
        found.append(weight.grad.clone())
        weight.grad = None
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


if __name__ == "__main__":  # in a process that has no threads yet
    torch.multiprocessing.start_processes(
        _rank, args=(sys.argv[1],), nprocs=RANKS, start_method="fork"
    )
