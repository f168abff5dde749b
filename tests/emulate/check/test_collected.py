"""What the argument `check` of a device or a module may be."""

from typing import Any

import pytest

import wavecast
from wavecast.emulate.check.collected import Reports, gathering
from wavecast.errors import UsageError


def test_true_false_or_reports() -> None:
    mine = Reports()
    assert gathering(mine) is mine
    assert gathering(False) is None
    assert isinstance(gathering(True), Reports)


@pytest.mark.parametrize("check", ["determinism", None, 1])
def test_another_value_is_an_error(check: object) -> None:
    with pytest.raises(UsageError, match="check takes True, False or a Reports"):
        gathering(check)


@pytest.mark.torch
def test_a_device_takes_no_words() -> None:
    word: Any = "determinism"
    with pytest.raises(UsageError, match=word), wavecast.device("gfx942", check=word):
        pass
