"""Numbers with their nouns."""

from __future__ import annotations

import pytest

from wavecast.emulate.tensors import LaunchTensor
from wavecast.wording import count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (count(1, "byte"), "1 byte"),
        (count(0, "byte"), "0 bytes"),
        (count(1024, "access", "accesses"), "1,024 accesses"),
        (LaunchTensor("x", 64, 64, 65).extent, "1 byte"),
        (LaunchTensor("x", 64, 64, 68, "float32", 4).extent, "1 element"),
    ],
)
def test_counts(text: str, expected: str) -> None:
    assert text == expected
