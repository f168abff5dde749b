"""Models divided among emulated GPUs: results and trained parameters are those of one GPU."""

from __future__ import annotations

import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import DTensor, Shard, distribute_tensor  # noqa: E402
from torch.distributed.tensor.parallel import (  # noqa: E402
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

import wavecast  # noqa: E402
from tests.runtimes.distributed.models import (  # noqa: E402
    Expected,
    expected,
    step,
    transformer,
)

pytestmark = pytest.mark.torch
WIDE = pytest.param(4, marks=pytest.mark.thorough)
COLUMNS, ROWS = ("q", "k", "v", "up"), ("o", "down")


def _tensor_parallel(model: Any, mesh: Any) -> Any:
    plan: dict[str, Any] = {}
    for layer in range(len(model)):
        plan |= {f"{layer}.{name}": ColwiseParallel() for name in COLUMNS}
        plan |= {f"{layer}.{name}": RowwiseParallel() for name in ROWS}
    return parallelize_module(model, mesh, plan)


def _fully_sharded(model: Any, mesh: Any) -> Any:
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def _data_parallel(model: Any, mesh: Any) -> Any:
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model, process_group=mesh.get_group())


def _whole(value: Any) -> Any:
    return (value.full_tensor() if isinstance(value, DTensor) else value).detach().cpu()


def _trained(node: Any, divide: Any, given: Expected) -> None:
    def rank(number: int) -> None:
        dist.init_process_group("nccl")
        mesh = init_device_mesh("cuda", (dist.get_world_size(),))
        model = transformer()
        model.load_state_dict({name: one.cuda() for name, one in given.state.items()})
        divided = divide(model.cuda(), mesh)
        y = step(divided, given.x.cuda())
        torch.testing.assert_close(_whole(y), given.y.cpu())
        for name, value in model.state_dict().items():
            torch.testing.assert_close(_whole(value), given.after[name].cpu())

    node.ranks(rank)


@pytest.mark.parametrize("world", [2, WIDE])
@pytest.mark.parametrize("divide", [_tensor_parallel, _fully_sharded, _data_parallel])
def test_a_step_of_training(divide: Any, world: int) -> None:
    given = expected()
    with wavecast.device("gfx942", count=world) as node:
        _trained(node, divide, given)
        assert node.executed >= world, "collectives are launches"


def test_every_rank_has_its_data_parallel_module() -> None:
    """Dynamo asks for the module whose forward pass runs. Those of two ranks overlap and end in the
    order they began."""
    from torch.nn.parallel import DistributedDataParallel

    both, first_ended = threading.Barrier(2), threading.Event()
    active: dict[int, Any] = {}

    class Overlapping(torch.nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            both.wait(60)
            active[dist.get_rank()] = DistributedDataParallel._get_active_ddp_module()
            if dist.get_rank() == 1:
                assert first_ended.wait(60)
            return super().forward(input)

    def rank(number: int) -> None:
        dist.init_process_group("nccl")
        model = DistributedDataParallel(Overlapping(2, 2).cuda())
        model(torch.ones(1, 2).cuda())
        first_ended.set()
        assert active[number] is model
        assert DistributedDataParallel._get_active_ddp_module() is None

    with wavecast.device("gfx942", count=2) as node:
        node.ranks(rank)
    assert DistributedDataParallel._get_active_ddp_module() is None


def test_redistributed_tensors() -> None:
    """Shards of one dimension become shards of another, and partial sums whole ones."""
    x = torch.arange(24.0).view(4, 6)

    def rank(number: int) -> None:
        mesh = init_device_mesh("cuda", (2,))
        rows = distribute_tensor(x.cuda(), mesh, [Shard(0)])
        assert rows.to_local().shape == (2, 6)
        columns = rows.redistribute(placements=[Shard(1)])
        expected = x.cpu()[:, 3 * number : 3 * number + 3]
        assert torch.equal(columns.to_local().cpu(), expected)
        assert torch.equal(rows.full_tensor().cpu(), x.cpu())
        product: Any = columns @ distribute_tensor(x.t().contiguous().cuda(), mesh, [Shard(0)])
        assert torch.equal(product.full_tensor().cpu(), (x @ x.t()).cpu())

    with wavecast.device("gfx942", count=2) as hooks:
        node: Any = hooks
        node.ranks(rank)
