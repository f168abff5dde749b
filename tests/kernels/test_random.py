"""The counter-based generator in plain torch against the machine code of Triton's own."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from wavecast.kernels import random  # noqa: E402
from wavecast.runtimes.triton import device  # noqa: E402

pytestmark = pytest.mark.torch


@triton.jit
def rand_kernel(offsets_ptr, out_ptr, seed, N: tl.constexpr):
    place = tl.arange(0, N)
    offsets = tl.load(offsets_ptr + place)
    one = tl.rand(seed, offsets)
    _, second, third, fourth = tl.rand4x(seed, offsets)
    tl.store(out_ptr + place, one)
    tl.store(out_ptr + N + place, second)
    tl.store(out_ptr + 2 * N + place, third)
    tl.store(out_ptr + 3 * N + place, fourth)


@pytest.mark.parametrize("seed", [0, 1, 1234, -7, 2**31 + 5, 2**40 + 3, 2**63 - 1])
@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_bit_by_bit(seed: int, kind: torch.dtype) -> None:
    offsets = torch.randint(0, 2**31 - 1, (128,), dtype=kind)
    offsets[:4] = torch.tensor([0, 1, 2, 2**31 - 1], dtype=kind)
    if kind == torch.int64:
        offsets[4:64] += 5 * 2**32
    out = torch.empty((4, 128), dtype=torch.float32)
    with device("gfx942"):
        rand_kernel[(1,)](offsets, out, seed, N=128)
    assert torch.equal(random.uniform(seed, offsets), out[0])
    words = random.philox(seed, offsets)
    assert torch.equal(torch.stack([random._fraction(word) for word in words]), out)


def test_distribution() -> None:
    drawn = random.uniform(42, torch.arange(100_000))
    assert float(drawn.min()) >= 0.0
    assert float(drawn.max()) < 1.0
    assert abs(float(drawn.mean()) - 0.5) < 0.005
    assert abs(float(drawn.var()) - 1 / 12) < 0.002


def test_any_shape_and_fake_tensors() -> None:
    offsets = torch.arange(60).reshape(3, 4, 5)
    assert torch.equal(random.uniform(3, offsets).flatten(), random.uniform(3, offsets.flatten()))
    assert random.uniform(3, torch.empty(0, 2, dtype=torch.int32)).shape == (0, 2)
    with FakeTensorMode():
        assert random.uniform(3, torch.empty(6, dtype=torch.int64)).shape == (6,)
    with pytest.raises(TypeError, match="int32 or int64"):
        random.uniform(3, torch.zeros(4))
