"""A captured launch whose memory is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.runtimes.conftest import fp_fusion
from wavecast import arch
from wavecast.compile.codeobject import Launch
from wavecast.lab.evaluation import LabSubject


@dataclass(frozen=True)
class Captured:
    """A launch of `scaled(x, out, n)`, and the tensors, which keep its memory alive."""

    launch: Launch
    subject: LabSubject
    tensors: Any


@pytest.fixture(scope="session")
def captured() -> Captured:
    """`out = x * 3 + 1` over 1000 elements in blocks of 256, for gfx942, not executed."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    from tests.lab.kernels import scaled
    from wavecast.runtimes.triton import capture

    x, out = torch.randn(1000), torch.zeros(1000)
    with capture("gfx942") as launches:
        scaled[(4,)](x, out, 1000, BLOCK=256)  # pyright: ignore[reportArgumentType]
    ranges = tuple((t.data_ptr(), t.data_ptr() + t.untyped_storage().nbytes()) for t in (x, out))
    (launch,) = launches
    subject = LabSubject(launch, ranges, (arch.load("mi300x"),))
    return Captured(launch, subject, (x, out))


__all__ = ["Captured", "captured", "fp_fusion"]
