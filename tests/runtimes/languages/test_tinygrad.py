"""tinygrad's programs, unmodified, on a GPU that is not there. The expected values are PyTorch's
and numpy's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import wavecast

pytest.importorskip("tinygrad", reason="needs tinygrad")
from tinygrad import Device, Tensor, TinyJit, dtypes, nn
from tinygrad.helpers import Context

functional = torch.nn.functional
TARGETS = ["gfx942", "gfx1201"]


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest):
    with wavecast.device(request.param):
        yield request.param


@pytest.fixture
def normal():
    generator = np.random.default_rng(7)
    return lambda *shape: generator.standard_normal(shape, dtype=np.float32)


def close(result: Tensor, expected: torch.Tensor, tolerance: float = 1e-5) -> bool:
    values = expected.detach().float().numpy()
    return bool(np.abs(result.numpy() - values).max() <= tolerance * np.abs(values).max())


def test_the_device_is_the_emulated_gpu(target: str) -> None:
    device = Device[Device.DEFAULT]
    assert (Device.DEFAULT, device.arch) == ("AMD", target)


@pytest.mark.parametrize(
    ("kind", "torch_type", "tolerance"),
    [("half", torch.float16, 2e-3), ("bfloat16", torch.bfloat16, 1e-2), ("float", None, 1e-5)],
)
def test_products(target: str, normal, kind: str, torch_type, tolerance: float) -> None:
    a, b = normal(64, 128), normal(128, 64)
    x, y = (Tensor(item).cast(getattr(dtypes, kind)) for item in (a, b))
    p, q = (torch.tensor(item).to(torch_type or torch.float32).float() for item in (a, b))
    assert close((x @ y).float(), p @ q, tolerance)


def test_layers(target: str, normal) -> None:
    x, w = normal(2, 8, 10, 10), normal(8, 8, 3, 3) / 8
    convolution = functional.conv2d(torch.tensor(x), torch.tensor(w), padding=1).relu()
    y = Tensor(x).conv2d(Tensor(w), padding=1).relu().max_pool2d()
    assert close(y, functional.max_pool2d(convolution, 2))
    z = normal(16, 300)
    assert close(Tensor(z).layernorm(), functional.layer_norm(torch.tensor(z), (300,)))
    assert close(Tensor(z).log_softmax(), torch.tensor(z).log_softmax(-1))
    q, k, v = (normal(1, 2, 32, 16) for _ in range(3))
    attention = functional.scaled_dot_product_attention(*map(torch.tensor, (q, k, v)))
    assert close(Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v)), attention)


def test_training_and_replayed_kernels(target: str, normal) -> None:
    x, w = normal(16, 20), normal(20, 8)
    ours, theirs = Tensor(w.copy()), torch.tensor(w.copy(), requires_grad=True)
    optimizer, reference = nn.optim.SGD([ours], lr=0.1), torch.optim.SGD([theirs], lr=0.1)
    data = Tensor(x).realize()

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = (data @ ours).tanh().square().mean()
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    with Context(TRAINING=1):
        for _ in range(4):
            step()
            reference.zero_grad()
            (torch.tensor(x) @ theirs).tanh().square().mean().backward()
            reference.step()
    assert close(ours, theirs)


def test_a_search_compares_predicted_times_and_executes_none(normal) -> None:
    with wavecast.device("gfx942") as device:
        a, b = Tensor(normal(64, 64)).realize(), Tensor(normal(64, 64)).realize()
        before = device.executed
        with Context(BEAM=1):
            product = (a @ b).realize()
        assert device.executed == before + 1
        assert close(product, torch.tensor(a.numpy()) @ torch.tensor(b.numpy()))


SCRIPT = """
from tinygrad import Tensor
print((Tensor([*range(64)]).float() * 2 + 1).sum().item(), Tensor.arange(4).sum().item())
"""


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (("run", "--check"), ["4096.0 6", "check: nothing found"]),
        (("explain",), ["gfx942", "gfx1201", "*(data0"]),
    ],
)
def test_scripts(tmp_path: Path, command: tuple[str, ...], output: list[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    verb, *options = command
    targets = "gfx1201" if verb == "run" else "gfx942,gfx1201"
    finished = subprocess.run(
        [sys.executable, "-m", "wavecast", verb, *options, str(script), "--arch", targets],
        capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if name != "DEV"},
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    text = finished.stdout + finished.stderr
    assert [line for line in output if line not in text] == []
