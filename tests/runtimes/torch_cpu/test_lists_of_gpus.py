"""Tensors of several GPUs in one call: lists of parameters, files, generators, indices."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

from torch.cuda import comm  # noqa: E402
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, rnn  # noqa: E402

import wavecast  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::UserWarning")]
DEVICES: Final = ("cuda:0", "cuda:1", "cuda:1")
NAMES: Final = ("SGD", "Adagrad", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD")


@pytest.fixture(scope="module", autouse=True)
def node() -> Iterator[Any]:
    with wavecast.device("gfx942", count=2) as node:
        yield node


def _devices(tensors: Any) -> list[str]:
    return [str(tensor.device) for tensor in tensors]


def _parameters(devices: Any = DEVICES) -> list[Any]:
    parameters = [torch.nn.Parameter(torch.full((3,), 2.0, device=device)) for device in devices]
    for number, parameter in enumerate(parameters):
        parameter.grad = torch.full_like(parameter, 1.0 + number)
    return parameters


def _trained(name: str, devices: Any, **options: Any) -> list[list[float]]:
    parameters = _parameters(devices)
    optimizer = getattr(torch.optim, name)(parameters, lr=0.1, **options)
    for _ in range(2):
        optimizer.step()
    assert _devices(parameters) == list(devices)
    for parameter, state in optimizer.state.items():
        assert {str(x.device) for x in state.values() if torch.is_tensor(x) and x.dim()} <= {
            str(parameter.device)
        }
    return [parameter.tolist() for parameter in parameters]


@pytest.mark.parametrize(
    "options", [{}, {"foreach": True}, {"fused": True}, {"amsgrad": True}], ids=str
)
def test_an_optimizer_of_two_gpus(options: dict[str, bool]) -> None:
    alone = _trained("AdamW", ["cuda:0"] * 3, **options)
    assert _trained("AdamW", DEVICES, **options) == alone


@pytest.mark.parametrize("name", NAMES)
def test_optimizers_that_take_lists(name: str) -> None:
    alone = _trained(name, ["cuda:0"] * 3, foreach=True)
    assert _trained(name, DEVICES, foreach=True) == alone
    for own, other in zip(_trained(name, DEVICES, foreach=False), alone, strict=True):
        assert own == pytest.approx(other)


def test_gradients_of_two_gpus_are_clipped_together() -> None:
    parameters = _parameters([*DEVICES, "cpu"])
    norm = clip_grad_norm_(parameters, 1.0)
    assert norm.item() == pytest.approx((3 * (1 + 4 + 9 + 16)) ** 0.5)
    assert _devices([norm]) == ["cuda:0"]
    assert _devices(parameter.grad for parameter in parameters) == [*DEVICES, "cpu"]
    clip_grad_value_(parameters, 0.1)
    assert all(parameter.grad.max().item() == pytest.approx(0.1) for parameter in parameters)
    scaler, parameters = torch.amp.GradScaler("cuda"), _parameters()
    optimizer = torch.optim.SGD(parameters, 0.1)
    scaler.scale(torch.ones((), device="cuda:1"))
    scaler.step(optimizer)
    assert parameters[1].grad[0].item() == 2 / 65536


def test_lists_are_computed_tensor_by_tensor() -> None:
    a, b, h = (torch.ones(4, device=device) for device in ("cuda:0", "cuda:1", "cpu"))
    for results in (
        torch._foreach_add([a, b, h], [a, b, h]),
        torch._foreach_norm([a, b, h]),
        torch._foreach_mul([a, b, h], 2.0),
        torch._foreach_mul([a, b, h], torch.tensor(2.0)),
        torch.ops.aten._foreach_add.List([a, b, h], [a, b, h]),
        torch.atleast_2d(a, b, h),
    ):
        assert _devices(results) == ["cuda:0", "cuda:1", "cpu"]
    torch._foreach_copy_([torch.zeros_like(a), torch.zeros_like(b)], [b, h])
    assert _devices(torch._utils._unflatten_dense_tensors(torch.ones(8, device="cuda:0"), [a, b]))
    assert _devices([rnn.pad_sequence([a, b[:2]])]) == ["cuda:0"]
    for call in (
        lambda: torch._foreach_add([a], [b]),
        lambda: torch._foreach_mul([a, b], torch.tensor(2.0, device="cuda:0")),
        lambda: torch._utils._flatten_dense_tensors([a, b]),
        lambda: torch._fused_sgd_(
            [a, b], [a, b], [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0,
            nesterov=False, maximize=False, is_first_step=True,
        ),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="same device"):
            call()


def _file(values: Any, **options: Any) -> Any:
    file = io.BytesIO()
    torch.save(values, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("zip_file", [True, False])
def test_files_keep_devices(zip_file: bool) -> None:
    saved = [torch.arange(3.0, device=device) for device in ("cuda:0", "cuda:1", "cpu")]

    def load(**options: Any) -> list[str]:
        file = _file(saved, _use_new_zipfile_serialization=zip_file)
        values = torch.load(file, **options)
        assert all(value.tolist() == [0.0, 1.0, 2.0] for value in values)
        return _devices(values)

    assert load() == ["cuda:0", "cuda:1", "cpu"]
    assert load(map_location="cpu") == ["cpu"] * 3
    assert load(map_location="cuda:1") == ["cuda:1"] * 3
    assert load(map_location=torch.device("cuda")) == ["cuda:0"] * 3
    assert load(map_location={"cuda:1": "cuda:0"}) == ["cuda:0", "cuda:0", "cpu"]
    assert load(map_location=lambda memory, _: memory) == ["cpu"] * 3
    assert load(map_location=lambda memory, _: memory.cuda(1)) == ["cuda:1"] * 3
    with pytest.raises(RuntimeError, match=r"CUDA device 7 but torch.cuda.device_count.. is 2"):
        load(map_location="cuda:7")


def test_arrays_are_made_of_tensors_of_the_host() -> None:
    x = torch.ones(2, device="cuda:1")
    for convert in (torch.Tensor.numpy, np.asarray):
        with pytest.raises(TypeError, match="can't convert cuda:1 device type tensor to numpy"):
            convert(x)
        assert convert(x.cpu()).tolist() == [1.0, 1.0]


def test_generators_are_of_the_kind_of_device_that_they_fill() -> None:
    ours, hosts, x = torch.Generator("cuda:1"), torch.Generator(), torch.ones(4, device="cuda:1")
    assert str(ours.device) == str(ours.clone_state().device) == "cuda:1"
    assert _devices([torch.randn(2, generator=ours, device="cuda:1")]) == ["cuda:1"]
    assert _devices([x.normal_(generator=ours), torch.randperm(3, generator=hosts)])
    for call in (
        lambda: torch.randn(2, generator=hosts, device="cuda:1"),
        lambda: torch.randn(2, generator=ours),
        lambda: torch.multinomial(x.abs(), 2, generator=hosts),
        lambda: torch.ones(4).normal_(generator=ours),
    ):
        with pytest.raises(RuntimeError, match="device type for generator but found"):
            call()


def test_elements_are_assigned_where_they_are_indexed() -> None:
    a, b, h = (torch.ones(4, device=device) for device in ("cuda:0", "cuda:1", "cpu"))
    there, own, hosts = (torch.tensor([0, 1], device=x.device) for x in (b, a, h))
    a[own] = a[hosts] = 5.0
    a[own] = b[0]
    a[:2], a[0], a[there[0]] = b[:2], b[0], 3.0
    assert a.tolist() == [3.0, 1.0, 1.0, 1.0]
    assert a[there[1]].device == a.device
    for target, index in ((a, there), (a, b > 0), (h, own)):
        with pytest.raises(RuntimeError, match="either on cpu or on the same device"):
            target[index] = 5.0
    for value in (h[:2], b[:2]):
        for index in (own, hosts, [0, 1]):
            with pytest.raises(RuntimeError, match="same device"):
                a[index] = value
        with pytest.raises(RuntimeError, match="same device"):
            a.index_put((hosts,), value)


def test_parts_are_exchanged_by_comm() -> None:
    a, both = torch.arange(8.0, device="cuda:0"), [0, 1]
    outs = [torch.empty(4, device=device) for device in ("cuda:0", "cuda:1")]
    assert _devices(comm.broadcast(a, both)) == ["cuda:0", "cuda:1"]
    assert comm.broadcast(a[:4], out=outs)[1].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert comm.reduce_add([a, a.to("cuda:1")], 1).tolist() == (2 * a).tolist()
    parts = comm.scatter(a, both, [3, 5])
    assert [len(part) for part in parts] == [3, 5]
    assert _devices(parts) == ["cuda:0", "cuda:1"]
    assert comm.scatter(a, out=outs)[1].tolist() == [4.0, 5.0, 6.0, 7.0]
    assert _devices([comm.gather(parts, destination=1)]) == ["cuda:1"]
    assert comm.gather(parts, out=torch.empty(8, device="cuda:1")).tolist() == a.tolist()
