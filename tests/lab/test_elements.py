"""Numbers of every floating-point dtype."""

from __future__ import annotations

import numpy as np
import pytest

from wavecast.dtypes import lookup
from wavecast.lab import elements

NAMES = (
    "float16", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_word_has_the_number_that_torch_gives_it(name: str) -> None:
    torch = pytest.importorskip("torch")
    dtype = lookup(name)
    words = np.arange(1 << dtype.bits).astype(np.uint8 if dtype.bits == 8 else np.uint16)
    tensor = torch.from_numpy(words.copy().view(np.uint8)).view(getattr(torch, name))
    expected = tensor.to(torch.float64).numpy()
    np.testing.assert_array_equal(elements.numbers(words.view(np.uint8), dtype), expected)


@pytest.mark.parametrize("name", [*NAMES, "float32", "float64"])
def test_random_elements_are_finite_and_repeat(name: str) -> None:
    dtype = lookup(name)
    one = elements.random(1000, dtype, 7)
    assert one.dtype == np.uint8
    assert one.size == 1000 * int(dtype.bytes)
    values = elements.numbers(one, dtype)
    assert np.isfinite(values).all()
    assert values.std() > 0.5
    np.testing.assert_array_equal(one, elements.random(1000, dtype, 7))
    assert not np.array_equal(one, elements.random(1000, dtype, 8))
