"""CUDA graphs on an emulated GPU: a capture changes nothing, a replay is the captured code."""

from __future__ import annotations

import copy

import pytest

import wavecast
from tests.runtimes.conftest import GFX942
from wavecast.emulate.check.collected import Reports
from wavecast.errors import CaptureError
from wavecast.runtimes.torch_cpu import emulated_cuda

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402

import wavecast.ops as ops  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*:UserWarning"),
]
LIMITED = "not permitted when stream is capturing"


@pytest.fixture
def cuda():
    with emulated_cuda(GFX942, lambda text: None):
        yield


@triton.jit
def add_kernel(x, y, out, count, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    total = tl.load(x + index, mask=mask) + tl.load(y + index, mask=mask)
    tl.store(out + index, total, mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out


def captured(function):
    """The graph of a call, and what the call returned."""
    function()  # compiled outside of the capture, as on a GPU
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()
    return graph, result


@pytest.mark.parametrize("check", [False, True])
def test_replays_are_the_captured_code_with_new_inputs(check):
    with wavecast.device("gfx942", check=check) as gpu:
        x, y = torch.randn(32, 64, device="cuda"), torch.randn(32, 64, device="cuda")
        total, expected = torch.zeros(32, 32, device="cuda"), torch.zeros(32, 32, device="cuda")

        def step(total):
            product = torch.relu(add(x, y)) @ y.t()
            total.add_(product)
            product.mul_(2)
            return product.softmax(-1)

        graph, result = captured(lambda: step(total))
        total.zero_()
        before = gpu.executed
        for _ in range(2):
            x.copy_(torch.randn(32, 64))
            graph.replay()
            torch.testing.assert_close(result, step(expected))
            torch.testing.assert_close(total, expected)
        assert gpu.executed == before + 4


def test_a_capture_changes_no_memory(cuda):
    x, out = torch.ones(4, device="cuda"), torch.full((2, 4), 5.0, device="cuda")

    def write():
        x.add_(1)
        out[1].copy_(x)
        torch.mul(x, 3, out=out[0])
        torch._foreach_mul_([x, out], 2)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        write()
    assert x.tolist() == [1] * 4
    assert out.tolist() == [[5] * 4] * 2
    graph.replay()
    assert x.tolist() == [4] * 4
    assert out.tolist() == [[12] * 4, [4] * 4]


def test_a_step_of_training(cuda):
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.GELU(), torch.nn.Linear(16, 2)
    )
    nets = net, copy.deepcopy(net)
    optimizers = [torch.optim.Adam(item.parameters(), capturable=True) for item in nets]
    x, y = torch.randn(8, 8, device="cuda"), torch.randn(8, 2, device="cuda")

    def step(index):
        optimizers[index].zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(nets[index](x), y)
        loss.backward()
        optimizers[index].step()
        return loss

    step(1)
    graph, loss = captured(lambda: step(0))
    for _ in range(3):
        x.copy_(torch.randn(8, 8))
        graph.replay()
        torch.testing.assert_close(loss, step(1))
        torch.testing.assert_close(nets[0].state_dict(), nets[1].state_dict())


def test_graphed_callables(cuda):
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    plain = copy.deepcopy(net)
    graphed = torch.cuda.make_graphed_callables(net, (torch.randn(4, 8, device="cuda"),))
    for _ in range(2):
        x = torch.randn(4, 8, device="cuda")
        for item in (graphed, plain):
            item.zero_grad()
            item(x).square().sum().backward()
        torch.testing.assert_close(graphed(x), plain(x))
        torch.testing.assert_close(graphed[0].weight.grad, plain[0].weight.grad)


def test_operators_and_compiled_code():
    with wavecast.device("gfx942"), torch.no_grad():
        x = torch.randn(16, 64, device="cuda", dtype=torch.bfloat16)
        weight = torch.randn(64, 64, device="cuda", dtype=torch.bfloat16)
        compiled = torch.compile(lambda x: torch.nn.functional.gelu(x @ weight) * 2)

        def step():
            return compiled(ops.rms_norm(x, weight[0]))

        graph, result = captured(step)
        for _ in range(2):
            x.normal_()
            graph.replay()
            torch.testing.assert_close(result, step())


def test_times_of_replays_are_predictions():
    with wavecast.device("gfx942"):
        x = torch.ones(1000, device="cuda")
        graph, _ = captured(lambda: add(add(x, x), x))
        start, middle, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        start.record()
        add(x, x)
        middle.record()
        graph.replay()
        end.record()
        assert middle.elapsed_time(end) == pytest.approx(2 * start.elapsed_time(middle), rel=0.1)


def test_what_waits_for_results_is_refused(cuda):
    x = torch.ones(4, device="cuda")
    assert not torch.cuda.is_current_stream_capturing()
    stream, event = torch.cuda.Stream(), torch.cuda.Event()
    for waits in (
        x.sum().item, x.nonzero, x.tolist, x.cpu, lambda: x[x > 0], torch.cuda.synchronize,
        stream.synchronize, event.synchronize,
    ):  # fmt: skip
        with torch.cuda.graph(torch.cuda.CUDAGraph()), pytest.raises(RuntimeError, match=LIMITED):
            waits()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        assert torch.cuda.is_current_stream_capturing()
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="without a preceding"):
        graph.replay()
    with pytest.raises(RuntimeError, match="bogus"):
        graph.capture_begin(capture_error_mode="bogus")
    with (
        torch.cuda.graph(graph),
        pytest.raises(RuntimeError, match=LIMITED),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        pass
    with pytest.raises(RuntimeError, match="already owns"), torch.cuda.graph(graph):
        pass
    graph.reset()
    with pytest.raises(CaptureError, match="sparse"), torch.cuda.graph(graph):
        torch.eye(2).to_sparse()


def test_indices_recurrent_nets_and_numbers(cuda):
    """What does not wait on a GPU, what keeps values for gradients, and drawn numbers."""
    x, index = torch.randn(5, 4, device="cuda"), torch.tensor([3, 0, 3], device="cuda")
    net = torch.nn.LSTM(4, 3)
    plain = copy.deepcopy(net)
    sequence = torch.randn(6, 2, 4, device="cuda")

    def step(net):
        net.zero_grad()
        net(sequence)[0].square().sum().backward()
        return x[index].sum() + x[:, index[:1]].sum()

    graph, result = captured(lambda: step(net))
    sequence.normal_()
    x.normal_()
    graph.replay()
    torch.testing.assert_close(result, step(plain))
    for item, other in zip(net.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(item.grad, other.grad)
    torch.manual_seed(7)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        drawn = torch.rand(4, device="cuda") + torch.nn.functional.dropout(x[0], 0.5)
    graph.replay()
    torch.manual_seed(7)
    expected = torch.rand(4, device="cuda") + torch.nn.functional.dropout(x[0], 0.5)
    torch.testing.assert_close(drawn, expected)


def test_a_capture_keeps_memory_unwritten_for_checks():
    reports = Reports()
    with wavecast.device("gfx942", check=reports):
        x = torch.ones(256, device="cuda")
        add(x, x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            add(x, torch.empty(256, device="cuda"))
        assert not list(reports)
        graph.replay()
    assert [report.kind.rule for report in reports] == ["uninitialised-global"]


def test_timed_replays_are_predicted():
    with wavecast.device("gfx942"):
        x = torch.ones(1000, device="cuda")
        graph, _ = captured(lambda: add(x, x))
        single = triton.testing.do_bench(lambda: add(x, x))
        assert triton.testing.do_bench(graph.replay) == pytest.approx(single)


def test_recomputed_activations(cuda):
    """Not of graphs: PyTorch compares where saved tensors and recomputed ones are."""
    from torch.utils.checkpoint import checkpoint

    net, x = torch.nn.Linear(4, 4), torch.randn(2, 4, device="cuda", requires_grad=True)
    checkpoint(lambda x: torch.relu(net(x)), x, use_reentrant=False).sum().backward()
    assert x.grad is not None


def test_several_gpus_capture_nothing():
    with (
        wavecast.device("gfx942", count=2),
        pytest.raises(CaptureError, match="on one emulated GPU"),
    ):
        torch.cuda.CUDAGraph()


SCRIPT = """
import torch, triton, triton.language as tl

@triton.jit
def double_kernel(x, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.store(x + index, 2 * tl.load(x + index))

x = torch.ones(64, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    double_kernel[(1,)](x, BLOCK=64)
for _ in range(REPLAYS):
    graph.replay()
"""


@pytest.mark.parametrize(("replays", "launches"), [(0, 1), (1, 1), (5, 5)])
def test_explain_counts_replays(tmp_path, replays, launches):
    script = tmp_path / "graph.py"
    script.write_text(SCRIPT.replace("REPLAYS", str(replays)))
    (explanation,) = wavecast.explain(str(script), arch="gfx942").explanations
    assert explanation.launch is not None
    assert explanation.launch.count == launches
