"""AdamW against `torch.optim.AdamW` over several steps, lists of tensors, what it refuses."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import wavecast  # noqa: E402
from tests.targets import thorough_beyond  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402

pytestmark = pytest.mark.torch


def test_steps_agree_with_torch() -> None:
    torch.manual_seed(0)
    right = torch.nn.Parameter(torch.randn(7, 90))
    param, low = right.detach().clone(), right.detach().bfloat16()
    master = right.detach().clone()
    optimizer = torch.optim.AdamW([right], lr=1e-2, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)
    states = [torch.zeros(7, 90) for _ in range(4)]
    options = {"lr": 1e-2, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6, "weight_decay": 0.1}
    for step in (1, 2, 3):
        grad = torch.randn(7, 90)
        right.grad = grad.clone()
        optimizer.step()
        with wavecast.device("gfx942"):
            ops.adamw(param, grad, *states[:2], step=step, **options)
            ops.adamw_master(
                low, master, grad * 4, *states[2:], step=step, grad_scale=0.25, **options
            )
    assert torch.allclose(param, right, rtol=1e-5, atol=1e-6)
    assert torch.allclose(master, right, rtol=1e-5, atol=1e-6)
    assert torch.equal(low, master.bfloat16())


def test_gradients_of_any_stride_and_empty_tensors() -> None:
    param, grad = torch.randn(6, 5), torch.randn(5, 6).t()
    mean, square = torch.zeros(6, 5), torch.zeros(6, 5)
    none = torch.zeros(0)
    with wavecast.device("gfx1100"):
        ops.adamw(param, grad, mean, square, 1, 0.1)
        ops.adamw(none, none, none.clone(), none.clone(), 1, 0.1)
    assert torch.allclose(mean, 0.1 * grad)


@pytest.mark.parametrize(
    ("arch", "master"),
    thorough_beyond(
        [("gfx942", True), ("gfx1100", False)],
        itertools.product(["gfx942", "gfx1100"], [False, True]),
    ),
)
def test_a_list_in_one_launch_bit_by_bit(arch: str, master: bool) -> None:
    torch.manual_seed(0)
    kind = torch.bfloat16 if master else torch.float32
    params = [torch.randn(n, dtype=kind) for n in (5, 0, 40_000, 513)]
    params.append(torch.randn(1030, dtype=kind)[1:])  # begins where vectors may not
    masters = [one.float() for one in params] if master else []
    grads = [torch.randn(one.shape, dtype=one.dtype) for one in params]
    states = [[torch.rand(one.shape) for one in params] for _ in range(2)]
    single = copy.deepcopy((params, masters, grads, *states))
    options = {"step": 4, "lr": 1e-2, "weight_decay": 0.1, "grad_scale": 0.5}
    with wavecast.device(arch) as device:
        ops.adamw_foreach(params, masters, grads, *states, **options)
        assert device.executed == 1
        for own in zip(*(lists for lists in single if lists), strict=True):
            (ops.adamw_master if master else ops.adamw)(*own, **options)
    for lists, others in zip((params, masters, *states), (*single[:2], *single[3:]), strict=True):
        assert all(torch.equal(*pair) for pair in zip(lists, others, strict=True))


def test_lists_of_several_dtypes_and_steps() -> None:
    torch.manual_seed(0)
    right = [torch.nn.Parameter(torch.randn(n)) for n in (30, 700)]
    optimizer = torch.optim.AdamW(right, lr=1e-2)
    params = [right[0].detach().clone(), right[1].detach().clone()]
    states = [[torch.zeros_like(one) for one in params] for _ in range(2)]
    for step in (1, 2):
        grads = [torch.randn(30), torch.randn(700).half()]
        for one, grad in zip(right, grads, strict=True):
            one.grad = grad.float()
        optimizer.step()
        with wavecast.device("gfx950") as device:
            ops.adamw_foreach(params, [], grads, *states, step=step, lr=1e-2)
        assert device.executed == 2
    for one, other in zip(params, right, strict=True):
        torch.testing.assert_close(one, other.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grads": [torch.zeros(3)]}, "2 params and 1 grads"),
        ({"masters": [torch.zeros(3)]}, "2 params and 1 masters"),
        ({"grads": [torch.zeros(3), torch.zeros(5)]}, "grad is 5, expected 4"),
        ({"exp_avgs": [torch.zeros(3), torch.zeros(4).half()]}, "exp_avg is float16"),
        ({"step": 0}, "step is 0"),
    ],
)
def test_bad_lists(change: dict[str, Any], message: str) -> None:
    names = ("params", "grads", "exp_avgs", "exp_avg_sqs")
    given: dict[str, Any] = {name: [torch.zeros(3), torch.zeros(4)] for name in names}
    with wavecast.device("gfx942"), pytest.raises(ArgumentError, match=message):
        ops.adamw_foreach(**{**given, "masters": [], "step": 1, "lr": 0.1, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": 0}, "step is 0; it counts from 1"),
        ({"beta2": 1.0}, "beta2 is 1.0"),
        ({"param": torch.zeros(4, 3).t()}, "param is not contiguous"),
        ({"exp_avg": torch.zeros(3, 4).half()}, "exp_avg is float16"),
        ({"grad": torch.zeros(4, 3)}, "grad is 4x3, expected 3x4"),
    ],
)
def test_bad_arguments(change: dict[str, object], message: str) -> None:
    names = ("param", "grad", "exp_avg", "exp_avg_sq")
    given = {name: torch.zeros(3, 4) for name in names} | {"step": 1, "lr": 0.1}
    with wavecast.device("gfx942"), pytest.raises(ArgumentError, match=message):
        ops.adamw(**{**given, **change})


def test_lists_beside_tensors_of_torch_func() -> None:
    """Where addresses lie in memory, all tensors there are may be meant, wrapped ones too."""
    kept = []

    def slope(x: Any) -> Any:
        kept.append(x)
        return (x * x).sum()

    torch.func.grad(torch.func.grad(lambda x: slope(x) * x))(torch.ones(()))
    with wavecast.device("gfx942"):
        param, grad = torch.ones(64), torch.ones(64)
        states = [torch.zeros(64), torch.zeros(64)]
        ops.adamw_foreach([param], [], [grad], [states[0]], [states[1]], step=1, lr=0.5)
    assert kept
    assert (param < 1).all()


@pytest.mark.filterwarnings("ignore:The PyTorch API of SparseSemiStructuredTensor:UserWarning")
def test_lists_beside_tensors_that_wrap_others() -> None:
    kind = torch.sparse.SparseSemiStructuredTensorCUTLASS
    packed, meta = torch.ones(32, 32).bfloat16(), torch.zeros(32, 4, dtype=torch.int16)
    kept = kind(torch.Size((32, 64)), packed, meta, None, None, None)
    with wavecast.device("gfx942"):
        param, grad = torch.ones(64), torch.ones(64)
        states = [torch.zeros(64), torch.zeros(64)]
        ops.adamw_foreach([param], [], [grad], [states[0]], [states[1]], step=1, lr=0.5)
    assert kept.packed is packed
    assert (param < 1).all()
