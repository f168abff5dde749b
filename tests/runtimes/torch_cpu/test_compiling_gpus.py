"""`torch.compile` with several emulated GPUs: where graphs run, and graphs of ranks."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import torch.distributed as dist  # noqa: E402
from torch.distributed import _functional_collectives as collectives  # noqa: E402

import wavecast  # noqa: E402
from tests.runtimes.distributed.models import expected, step, transformer  # noqa: E402
from tests.runtimes.distributed.test_parallel_models import (  # noqa: E402
    _data_parallel,
    _fully_sharded,
    _tensor_parallel,
    _whole,
)
from wavecast.errors import ArgumentError  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def _compute(x, y):
    rows = torch.arange(len(x), device=x.device)[:, None]
    return x @ y + rows + 10 * x.device.index + torch.cuda.current_device()


def _move(x):
    there = torch.sin(x).to("cuda:0") + 1
    return there, there.cpu() * 2


def test_a_graph_runs_on_the_gpu_of_its_inputs() -> None:
    with wavecast.device("gfx942", count=2):
        compiled, moving = torch.compile(_compute, fullgraph=True), torch.compile(_move)
        for gpu in range(2):
            torch.cuda.set_device(gpu)
            x, y = (torch.randn(16, 16, device=f"cuda:{gpu}") for _ in range(2))
            torch.testing.assert_close(compiled(x, y), _compute(x, y))
            assert compiled(x, y).device.index == gpu
        there, back = moving(x)
        assert (there.device.index, back.device.type) == (0, "cpu")
        torch.testing.assert_close(back, _move(x)[1])
        with pytest.raises(RuntimeError, match="at least two devices, cuda:1 and cuda:0"):
            torch.compile(torch.add)(x, x.to("cuda:0"))
        double = torch.compile(lambda x: 2 * x)
        assert double(x.cpu()).device.type == "cpu"
        torch.cuda.set_device(0)
        assert double(x).device.index == 1


def test_graphs_of_ranks_have_their_collectives_and_gradients() -> None:
    def compute(x):
        return collectives.all_reduce(2 * x, "sum", dist.group.WORLD) + 1

    def rank(number: int) -> None:
        dist.init_process_group("nccl")
        x = torch.full((8,), number + 1.0, device="cuda")
        y = torch.compile(compute)(x)
        assert (y.device.index, y.tolist()) == (number, [7.0] * 8)
        layer = torch.nn.Linear(8, 8).cuda()
        torch.compile(layer)(x).sum().backward()
        assert layer.weight.grad.device.index == number
        assert layer.weight.grad.tolist() == [[number + 1.0] * 8] * 8

    with wavecast.device("gfx942", count=2) as node:
        node.ranks(rank)


@pytest.mark.thorough
@pytest.mark.parametrize("divide", [_tensor_parallel, _fully_sharded, _data_parallel])
def test_compiled_models_divided_among_ranks(divide) -> None:
    reference = expected()

    def rank(number: int) -> None:
        del number
        dist.init_process_group("nccl")
        model = transformer()
        model.load_state_dict(reference.state)
        mesh = dist.device_mesh.init_device_mesh("cuda", (2,))
        divided = divide(model.cuda(), mesh)
        compiled = torch.compile(divided)
        y = step(compiled, reference.x.cuda())
        torch.testing.assert_close(_whole(y), reference.y, rtol=1e-4, atol=1e-5)
        for name, value in divided.state_dict().items():
            after = reference.after[name.removeprefix("module.")]
            torch.testing.assert_close(_whole(value), after, rtol=1e-3, atol=1e-5)
        step(compiled, reference.x.cuda())  # DDP has other buckets from the second one on

    with wavecast.device("gfx942", count=2) as node:
        node.ranks(rank)


def _count(x, steps):
    steps.add_(1)
    return 2 * x, 3 * steps


def test_graphs_take_tensors_of_the_host_as_calls_do() -> None:
    with wavecast.device("gfx942", count=2):
        x, host = torch.arange(4.0, device="cuda:1"), torch.ones(4)
        add, pick = torch.compile(torch.add), torch.compile(lambda x, index: x[index] * 2)
        for left, right in ((x, host), (host, x)):
            with pytest.raises(RuntimeError, match="at least two devices, cuda:1 and cpu"):
                add(left, right)
        assert add(x, torch.tensor(2.0)).device == x.device
        assert pick(x, torch.tensor([1, 3])).tolist() == [2.0, 6.0]
        double, steps = torch.compile(_count)(x, host)
        assert (double.device.type, steps.device.type) == ("cuda", "cpu")
        assert host.tolist() == [2.0] * 4
        assert steps.tolist() == [6.0] * 4


def test_calls_of_graphs_that_differ_are_named_by_the_models_lines() -> None:
    @torch.compile
    def compute(x, rank):
        double = 2 * x
        if rank:
            return collectives.all_reduce(double, "sum", dist.group.WORLD) + 1
        return collectives.all_reduce(double[:2], "sum", dist.group.WORLD) + 1

    def run(rank):
        dist.init_process_group("wavecast")
        return compute(torch.ones(4, device="cuda"), rank)

    line = run.__code__.co_firstlineno - 3
    message = rf"0 calls all_reduce of 2 .*:{line + 1}, rank 1 calls all_reduce of 4 .*:{line}"
    with wavecast.device("gfx942", count=2) as node, pytest.raises(ArgumentError, match=message):
        node.ranks(run)
