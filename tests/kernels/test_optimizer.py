"""AdamW against `torch.optim.AdamW` over several steps; what it refuses."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.kernels.checks import ArgumentError  # noqa: E402

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
