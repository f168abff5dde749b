"""Tuning the kernel library: what a call takes in one configuration."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.targets import thorough_beyond
from wavecast import arch
from wavecast.kernels import registry
from wavecast.tuning.library import trial

OPERATORS = ("attention_varlen", "moe_experts", "silu_mul")


@pytest.mark.parametrize("name", thorough_beyond(["attention_varlen", "silu_mul"], OPERATORS))
def test_every_call_has_a_time_also_where_data_decides(name: str) -> None:
    operator = registry.operator(name)
    found = trial(operator, operator.cases[1], arch.load("mi300x"), {})
    assert math.isfinite(found.seconds)
    assert found.decisions
    assert found.spills == 0
