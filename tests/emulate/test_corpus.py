"""Whole Triton kernels on every target against torch: sizes with masks and tails."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import triton.language as tl  # noqa: E402

import wavecast  # noqa: E402
from tests.targets import swept  # noqa: E402

kernels = pytest.importorskip("tests.emulate.corpus_kernels")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:.*:UserWarning")]
TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(1)


@pytest.mark.parametrize("target", swept(TARGETS))
def test_arithmetic(target: str) -> None:
    n = 777
    x = torch.randn(n)
    i = torch.randint(0, 100000, (n,), dtype=torch.int32)
    y, sums, before = torch.zeros(n), torch.zeros(1), i.clone()
    with wavecast.device(target):
        kernels.arithmetic[(4,)](x, y, sums, i, n, BLOCK=256)
    want = torch.exp(x) + x.abs().sqrt() - torch.sin(x) / (x * x + 1)
    want = torch.where(before % 3 == 0, want, -want)
    torch.testing.assert_close(y, want, rtol=2e-6, atol=2e-6)
    torch.testing.assert_close(sums[0], x.sum(), rtol=1e-5, atol=1e-4)
    assert torch.equal(i, (before * 7919) // 13 + (before >> 2) - (before ^ 5))


@pytest.mark.parametrize("target", swept(TARGETS))
def test_rows(target: str) -> None:
    x = torch.randn(3, 200)
    soft, scan, order = (torch.zeros_like(x) for _ in range(3))
    best = torch.zeros(3, dtype=torch.int32)
    with wavecast.device(target):
        kernels.rows[(3,)](x, soft, scan, order, best, 200, BLOCK=256)
    torch.testing.assert_close(soft, torch.softmax(x, -1), rtol=2e-6, atol=1e-7)
    torch.testing.assert_close(scan, torch.cumsum(x, -1), rtol=1e-5, atol=1e-4)
    assert torch.equal(order, x.sort(-1).values)
    assert torch.equal(best, x.argmax(-1).int())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8"])
@pytest.mark.parametrize("target", swept(TARGETS))
def test_matmul(target: str, dtype: str) -> None:
    m, n, depth = 70, 50, 90
    kind = getattr(torch, dtype)
    a = torch.randint(-4, 5, (m, depth)).to(kind)
    b = torch.randint(-4, 5, (depth, n)).to(kind)
    whole = kind is torch.int8
    c = torch.full((m, n), 7, dtype=torch.int32 if whole else torch.float32)
    with wavecast.device(target):
        kernels.matmul[(3, 2)](
            a, b, c, m, n, depth, BM=32, BN=32, BK=32, ACC=tl.int32 if whole else tl.float32
        )
    # whole numbers this small are exact in every type
    assert torch.equal(c.double(), a.double() @ b.double())
