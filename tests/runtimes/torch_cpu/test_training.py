"""Training steps on an emulated device: PyTorch's optimizers, scaled gradients, clipping."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import wavecast  # noqa: E402
from wavecast import ops  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::UserWarning")]

FOREACH = ({}, {"foreach": True}, {"foreach": False})
CAPTURABLE = ({"capturable": True}, {"capturable": True, "foreach": True})
FUSED = ({"fused": True},)
OPTIMIZERS = {
    "AdamW": FOREACH + CAPTURABLE + FUSED,
    "Adam": FOREACH[:1] + CAPTURABLE[:1] + FUSED,
    "SGD": FOREACH + FUSED,
    "RMSprop": FOREACH + CAPTURABLE,
    "Adafactor": FOREACH[:2],
}


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, options) for name, all_of in OPTIMIZERS.items() for options in all_of],
    ids=lambda value: "+".join(value) or "plain" if isinstance(value, dict) else value,
)
def test_optimizers_step_as_on_the_cpu(name: str, options: dict[str, bool]) -> None:
    torch.manual_seed(0)
    kind: Any = getattr(torch.optim, name)
    start = [torch.randn(5, 7), torch.randn(9)]
    slopes = [[torch.randn_like(one) for one in start] for _ in range(3)]

    def trained(**options: Any) -> list[torch.Tensor]:
        parameters = [torch.nn.Parameter(one.clone()) for one in start]
        optimizer = kind(parameters, lr=1e-2, **options)
        for slope in slopes:
            for parameter, grad in zip(parameters, slope, strict=True):
                parameter.grad = grad.clone()
            optimizer.step()
            optimizer.zero_grad()
        return parameters

    expected = trained()
    with wavecast.device("gfx942"):
        got = trained(**options)
    for one, other, before in zip(got, expected, start, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
        assert not torch.equal(one, before)


@pytest.mark.operators
def test_a_training_loop_with_scaled_and_clipped_gradients() -> None:
    torch.manual_seed(0)
    batches = [torch.randn(6, 16) for _ in range(3)]
    start = torch.rand(16)

    def trained(norm: Any, place: str) -> tuple[list[float], torch.Tensor]:
        weight = torch.nn.Parameter(start.to(place, copy=True))
        optimizer = torch.optim.AdamW([weight], lr=0.1)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
        scaler = torch.amp.GradScaler(place, init_scale=8.0)
        losses = []
        for x in batches:
            loss = norm(x.to(place), weight).square().sum()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([weight], 1.0)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return losses, weight.detach()

    losses, right = trained(lambda x, w: torch.nn.functional.rms_norm(x, (16,), w, 1e-6), "cpu")
    with wavecast.device("gfx942") as device:
        found, weight = trained(ops.rms_norm, "cuda")
    assert device.executed >= 6
    assert found == pytest.approx(losses, rel=1e-4)
    assert all(earlier > later for earlier, later in itertools.pairwise(losses))
    torch.testing.assert_close(weight, right, rtol=1e-3, atol=1e-4)


def test_the_accelerator_answers_as_cuda_does() -> None:
    with wavecast.device("gfx942"):
        assert torch.accelerator.current_accelerator() == torch.device("cuda")
        assert isinstance(torch.accelerator.current_stream(), torch.cuda.Stream)
        assert not torch.accelerator.current_stream().is_capturing()
        assert torch.accelerator.memory_allocated() == torch.cuda.memory_allocated()
        assert torch.accelerator.get_memory_info() == torch.cuda.mem_get_info()
        with torch.accelerator.device_index(0):
            torch.accelerator.synchronize()
