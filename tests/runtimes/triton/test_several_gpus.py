"""`wavecast.device(count=N)`: kernels that wait for each other, devices of tensors, streams."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast  # noqa: E402
from wavecast.emulate.check.collected import Reports  # noqa: E402
from wavecast.emulate.errors import ExecutionError  # noqa: E402
from wavecast.errors import LaunchError, UsageError  # noqa: E402

kernels = pytest.importorskip("tests.runtimes.triton.signal_kernels")
pytestmark = pytest.mark.torch
N, BLOCK = 700, 256
GRID = (3,)


def _all_reduce(flags, inputs, outs, rank: int) -> None:
    with torch.cuda.device(rank):
        kernels.add_peers[GRID](
            inputs[0], inputs[1], flags[0], flags[1], flags[rank], outs[rank], rank, N, BLOCK=BLOCK
        )


def _memory():
    flags = [torch.zeros(6, dtype=torch.int32, device=f"cuda:{rank}") for rank in range(2)]
    inputs = [torch.randn(N, device=f"cuda:{rank}") for rank in range(2)]
    return flags, inputs, [torch.empty_like(one) for one in inputs]


@pytest.mark.parametrize(
    "target", ["gfx942", "gfx1201", pytest.param("gfx950", marks=pytest.mark.thorough)]
)
def test_kernels_of_two_gpus_wait_for_each_other(target: str) -> None:
    with wavecast.device(target, count=2, threads=2) as node:
        flags, inputs, outs = _memory()
        for rank in range(2):
            _all_reduce(flags, inputs, outs, rank)
        torch.cuda.synchronize(0)
        total = inputs[0].cpu() + inputs[1].cpu()
        assert all(torch.equal(out.cpu(), total) for out in outs)
        assert node.executed == 2


def test_ranks_are_threads_with_their_device() -> None:
    with wavecast.device("gfx942", count=2) as node:
        flags, inputs, outs = _memory()

        def rank(number: int) -> tuple[int, str]:
            _all_reduce(flags, inputs, outs, number)
            return torch.cuda.current_device(), str(torch.zeros(1, device="cuda").device)

        assert node.ranks(rank) == [(0, "cuda:0"), (1, "cuda:1")]
        assert torch.equal(outs[0].cpu(), outs[1].cpu())


def test_a_missing_peer_is_a_deadlock_with_who_waits_for_what() -> None:
    with wavecast.device("gfx942", count=2) as node:
        flags, inputs, outs = _memory()
        with pytest.raises(ExecutionError) as raised:
            node.ranks(lambda rank: rank or _all_reduce(flags, inputs, outs, rank))
    text = str(raised.value)
    assert text.startswith(
        "deadlock: all that runs waits: GPU 0 (add_peers, launched at test_several_gpus.py:"
    )
    assert "polls own[1] in memory of GPU 0" in text
    assert "signal_kernels.py" in text
    assert text.endswith("GPU 1 runs nothing (0 launches ended): rank 1 has ended")


def test_a_host_that_waits_before_the_peer_is_launched() -> None:
    with wavecast.device("gfx942", count=2):
        flags, inputs, outs = _memory()
        _all_reduce(flags, inputs, outs, 0)
        with pytest.raises(ExecutionError, match=r"deadlock: .*GPU 0 \(add_peers"):
            outs[0].sum()


def test_a_rank_that_dies_is_what_is_raised() -> None:
    def rank(number: int) -> None:
        if number:
            raise ValueError("out of patience")
        _all_reduce(flags, inputs, outs, number)

    with wavecast.device("gfx942", count=2) as node:
        flags, inputs, outs = _memory()
        with pytest.raises(ValueError, match="out of patience") as raised:
            node.ranks(rank)
        assert raised.value.__notes__ == ["raised by rank 1"]


def test_devices_of_tensors() -> None:
    with wavecast.device("gfx942", count=2):
        x = torch.ones(4, device="cuda:1")
        assert (x.device, x.get_device(), x.is_cuda) == (torch.device("cuda", 1), 1, True)
        assert (x + 1)[1:].view(-1).device.index == 1
        on_zero = x.to("cuda:0")
        on_zero += 1
        assert on_zero.device.index == 0
        assert x.sum().item() == 4, "a copy to another GPU has its own memory"
        assert x.to("cuda:1") is x
        host = x.cpu()
        host += 1
        assert (host.device.type, host.is_cuda, x.sum().item()) == ("cpu", False, 4)
        assert host.cuda(1).device.index == 1
        with torch.cuda.device(1):
            assert torch.zeros(2, device="cuda").device.index == 1
        on_zero.copy_(x)
        with pytest.raises(RuntimeError, match="at least two devices, cuda:1 and cuda:0"):
            on_zero + x
        layer = torch.nn.Linear(4, 2).to("cuda:1")
        assert layer(x).device.index == 1
        assert (layer(x).sum().backward(), layer.weight.grad.device.index) == (None, 1)
        with pytest.raises(RuntimeError, match="invalid device ordinal: cuda:2"):
            torch.cuda.set_device(2)


def test_what_names_no_device_is_the_hosts() -> None:
    reference = torch.randn(4)
    with wavecast.device("gfx942", count=2):
        host = torch.arange(4.0)
        read = torch.from_numpy(host.numpy().copy())
        assert {x.device.type for x in (host, read, torch.Tensor(3), reference, host + 1)} == {
            "cpu"
        }
        assert host.cpu() is host
        x = reference.to("cuda:1")
        torch.testing.assert_close(x.cpu(), reference)
        for call in (lambda: x + host, lambda: torch.cat([host, x]), lambda: x.add_(host)):
            with pytest.raises(RuntimeError, match="at least two devices, cuda:1 and cpu"):
                call()
        assert (x * torch.tensor(2.0)).device.index == 1, "numbers of the host may be operands"
        assert x[torch.tensor([0, 2])].device.index == 1, "and indices"
        x[:] = host
        assert x.tolist() == host.tolist()


def test_devices_of_blocks_defaults_and_files(tmp_path) -> None:
    with wavecast.device("gfx942", count=2):
        with torch.device("cuda:1"):
            assert torch.ones(3).device.index == 1
            assert torch.ones(3, device="cpu").device.type == "cpu"
        torch.set_default_device("cuda:1")
        try:
            assert torch.nn.Linear(2, 2).weight.device.index == 1
        finally:
            torch.set_default_device(None)
        torch.save({"x": torch.ones(2, device="cuda:1")}, tmp_path / "x.pt")
        loaded = torch.load(tmp_path / "x.pt", map_location="cuda:0")
        assert loaded["x"].device.index == 0


class _Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        assert grad.device.index == 1
        return 2 * grad


def test_gradients_are_on_the_gpu_of_their_tensors() -> None:
    with wavecast.device("gfx942", count=2):
        x = torch.ones(4, device="cuda:1", requires_grad=True)
        _Double.apply(x).square().sum().backward()
        (grad,) = torch.autograd.grad(_Double.apply(x).sum(), x)
        assert (x.grad.device.index, grad.device.index) == (1, 1)
        assert grad.cpu().tolist() == [2.0] * 4


def test_streams_and_events_order_launches_of_two_gpus() -> None:
    with wavecast.device("gfx942", count=2):
        flags = [torch.zeros(2, dtype=torch.int32, device=f"cuda:{rank}") for rank in range(2)]
        seen = torch.zeros(2, dtype=torch.int32, device="cuda:0")
        first = torch.cuda.Event(enable_timing=True)
        with torch.cuda.device(1):
            kernels.set_flag[(1,)](flags[1])
            first.record()
        stream = torch.cuda.Stream(0)
        stream.wait_event(first)
        with torch.cuda.stream(stream):
            assert torch.cuda.current_stream() == stream
            kernels.copy_flag[(1,)](flags[1], seen)
        torch.cuda.current_stream(0).wait_stream(stream)
        assert seen.tolist() == [7, 0]
        assert first.query()
        assert stream.query()


def test_tensors_of_the_host_are_refused() -> None:
    with wavecast.device("gfx942", count=2):
        flag = torch.zeros(2, dtype=torch.int32, device="cpu")
        with pytest.raises(LaunchError, match="set_flag: a tensor of the host"):
            kernels.set_flag[(1,)](flag)


def test_an_access_out_of_bounds_names_the_gpu() -> None:
    with wavecast.device("gfx942", count=2):
        flag = torch.zeros(1, dtype=torch.int32, device="cuda:1")
        with torch.cuda.device(1):
            kernels.set_flag[(40,)](flag)
        with pytest.raises(ExecutionError, match="GPU 1: set_flag: workgroup"):
            torch.cuda.synchronize(1)


def test_a_count_out_of_range() -> None:
    with pytest.raises(UsageError, match="count=0"), wavecast.device("gfx942", count=0):
        pass


def test_traces_are_refused() -> None:
    several = wavecast.device("gfx942", count=2, trace=True)
    with pytest.raises(UsageError, match="not with several GPUs"), several:
        pass


def test_a_check_of_determinism_is_refused() -> None:
    several = wavecast.device("gfx942", count=2, check=Reports(determinism=True))
    with pytest.raises(UsageError, match="no check of determinism with several GPUs"), several:
        pass
