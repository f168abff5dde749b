"""Limits of compilers from the environment, and memory of arrays."""

from __future__ import annotations

import pytest

from wavecast import limits
from wavecast.errors import UsageError


def test_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(limits.SECONDS, raising=False)
    monkeypatch.setenv(limits.GIB, "")
    found = limits.of_compilers()
    assert (found.seconds, found.memory) == (limits.DEFAULT_SECONDS, limits.DEFAULT_GIB * 2**30)
    assert found.clock_seconds == limits.CLOCK * limits.DEFAULT_SECONDS
    assert found.memory_text == "8 GiB"


def test_limits_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.SECONDS, "2.5")
    monkeypatch.setenv(limits.GIB, " 0.5 ")
    assert limits.of_compilers() == limits.ProcessLimits(2.5, 25.0, 1 << 29)


@pytest.mark.parametrize("variable", [limits.SECONDS, limits.GIB])
@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e300", "ten", "9" * 5000])
def test_a_limit_that_is_not_a_number(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(UsageError, match=f"{variable} must be a positive number"):
        limits.of_compilers()


def test_memory_that_the_machine_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.available_memory() > 1 << 20
    monkeypatch.setattr(limits, "available_memory", lambda: 1000)
    limits.check_memory(1000, "an array")
    with pytest.raises(UsageError, match="an array needs"):
        limits.check_memory(1001, "an array")
