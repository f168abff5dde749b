"""Devices of what PyTorch gives where two GPUs are emulated: those of a real node."""

from __future__ import annotations

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

from torch.func import grad, vmap  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.nn.utils import clip_grad_norm_, rnn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import wavecast  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::UserWarning")]
GPU = "cuda:1"


@pytest.fixture(scope="module", autouse=True)
def node():
    with wavecast.device("gfx942", count=2) as node:
        yield node


def _on_gpu(*tensors) -> bool:
    return all(str(tensor.device) == GPU and tensor.is_cuda for tensor in tensors)


def _on_host(*tensors) -> bool:
    return all(tensor.device.type == "cpu" and not tensor.is_cuda for tensor in tensors)


def _trained(**options):
    layer = torch.nn.Linear(4, 4).to(GPU)
    layer(torch.randn(2, 4, device=GPU)).sum().backward()
    torch.optim.Adam(layer.parameters(), **options).step()
    return layer


def test_data_of_a_loader_is_pinned_memory() -> None:
    data = TensorDataset(torch.randn(8, 3), torch.arange(8))
    for x, y in DataLoader(data, 4, pin_memory=True):
        assert _on_host(x, y)
        assert x.is_pinned()
        assert _on_gpu(x.to(GPU, non_blocking=True))


@pytest.mark.parametrize("options", [{"fused": True}, {"foreach": True}, {}], ids=str)
def test_optimizers(options) -> None:
    layer = _trained(**options)
    assert _on_gpu(layer.weight, layer.weight.grad)
    assert _on_gpu(clip_grad_norm_(layer.parameters(), 1.0))


def test_automatic_mixed_precision() -> None:
    layer = torch.nn.Linear(4, 4).to(GPU)
    optimizer, scaler = torch.optim.AdamW(layer.parameters()), torch.amp.GradScaler("cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = layer(torch.randn(2, 4, device=GPU)).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert _on_gpu(layer.weight.grad)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant) -> None:
    layer, x = torch.nn.Linear(4, 4).to(GPU), torch.randn(2, 4, device=GPU, requires_grad=True)
    checkpoint(layer, x, use_reentrant=reentrant).sum().backward()
    assert _on_gpu(x.grad)


def test_transforms_of_functions() -> None:
    x = torch.randn(3, 4, device=GPU)
    assert _on_gpu(vmap(lambda row: row.sum())(x), grad(lambda x: x.square().sum())(x))


def test_sparse_complex_and_nested_tensors() -> None:
    x = torch.eye(4, device=GPU)
    sparse = x.to_sparse()
    assert _on_gpu(sparse, sparse @ x, sparse.to_dense(), x.to_sparse_csr(), torch.fft.fft(x).real)
    rows = [torch.randn(count, 3, device=GPU) for count in (2, 4)]
    assert _on_gpu(torch.nested.nested_tensor(rows, layout=torch.jagged))


def test_lengths_of_sequences_are_the_hosts() -> None:
    net, x = torch.nn.LSTM(4, 4, batch_first=True).to(GPU), torch.randn(2, 3, 4, device=GPU)
    packed = rnn.pack_padded_sequence(x, torch.tensor([3, 2]), batch_first=True)
    assert _on_host(packed.batch_sizes)
    result, _ = net(packed)
    assert _on_gpu(result.data, rnn.pad_packed_sequence(result)[0])


def test_indices_and_numbers_may_be_the_hosts() -> None:
    x = torch.randn(4, 4, device=GPU)
    x[torch.tensor([0, 1])] = 0
    x[0] = torch.ones(4)
    x.index_put_((torch.tensor([1]),), torch.tensor(1.0))
    picked = x[torch.tensor([True, False, True, False])]
    zero = torch.tensor(0.0)
    assert _on_gpu(picked, torch.where(x > 0, x, zero), torch.maximum(x, zero))
    there = torch.zeros(4, dtype=torch.bool, device="cuda:0")
    for value in (x, x.cpu()):
        with pytest.raises(RuntimeError, match="either on cpu or on the same device"):
            value[there]
    with pytest.raises(RuntimeError, match="same device"):
        torch.nn.Embedding(10, 4).to(GPU)(torch.tensor([1]))


def test_a_model_over_all_gpus() -> None:
    layer = torch.nn.Linear(4, 4).cuda()
    y = torch.nn.DataParallel(layer)(torch.randn(6, 4, device="cuda:0"))
    y.sum().backward()
    assert (y.device.index, layer.weight.grad.device.index) == (0, 0)
    assert layer.bias.grad.tolist() == [6.0] * 4


def test_memory_of_numpy_is_the_hosts() -> None:
    values = np.ones(3, np.float32)
    assert _on_host(torch.as_tensor(values), torch.tensor(values), torch.from_numpy(values))
    assert _on_host(torch.frombuffer(values, dtype=torch.float32))
    x = torch.as_tensor(values, device=GPU)
    assert _on_gpu(x, torch.as_tensor(x), torch.asarray(x, device="cuda:0").to(GPU))
    assert _on_host(torch.as_tensor(x, device="cpu"), torch.asarray(x, device="cpu"))
    assert torch.as_tensor(x, device=GPU) is x


def test_names_of_types_and_texts() -> None:
    x = torch.ones(2).to(GPU, torch.float16)
    assert (x.type(), torch.ones(2).type()) == ("torch.cuda.HalfTensor", "torch.FloatTensor")
    assert _on_gpu(torch.ones(2).type_as(x))
    assert repr(x) == "tensor([1., 1.], device='cuda:1', dtype=torch.float16)"
    assert repr(torch.ones(2)) == "tensor([1., 1.])"


def test_states_of_modules() -> None:
    norm = torch.nn.BatchNorm1d(4).to(GPU)
    norm(torch.randn(3, 4, device=GPU))
    state = {name: value.cpu() for name, value in norm.state_dict().items()}
    assert _on_host(*state.values())
    norm.load_state_dict(state)
    assert _on_gpu(norm.running_mean, norm.num_batches_tracked, copy.deepcopy(norm).weight)
    with torch.device("meta"):
        layer = torch.nn.Linear(2, 2)
    assert _on_gpu(layer.to_empty(device=GPU).weight)


def test_random_numbers() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, device=GPU)
    torch.manual_seed(0)
    assert torch.equal(x, torch.randn(3, device=GPU))
    generator = torch.Generator(device=GPU).manual_seed(3)
    assert _on_gpu(x, torch.randn(3, generator=generator, device=GPU))
    assert _on_host(torch.get_rng_state(), torch.randperm(5, generator=torch.Generator()))


def test_results_with_indices() -> None:
    x = torch.tensor([1, 2, 2], device=GPU)
    assert _on_gpu(torch.unique(x), x.nonzero(), torch.bincount(x), *x.topk(2))
    logits = torch.randn(3, 5, device=GPU)
    q = torch.randn(1, 2, 8, 16, device=GPU)
    mask = torch.ones(8, 8, dtype=torch.bool, device=GPU)
    attention = functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    assert _on_gpu(functional.cross_entropy(logits, x), attention)


def test_gradients_go_back_to_the_device_of_each_tensor() -> None:
    devices = []
    x = torch.randn(3, device="cuda:0", requires_grad=True)
    host = torch.randn(3, requires_grad=True)
    y = (2 * x).to(GPU) + host.to(GPU)
    y.register_hook(lambda grad: devices.append(str(grad.device)))
    (3 * y).sum().backward()
    assert (devices, x.grad.device.index, host.grad.device.type) == ([GPU], 0, "cpu")
    assert (x.grad.tolist(), host.grad.tolist()) == ([6.0] * 3, [3.0] * 3)
