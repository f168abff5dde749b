"""Intervals of served models by what was measured next to them."""

from __future__ import annotations

import pytest

from wavecast import arch
from wavecast.systems.intervals import DISTANCES, RatioErrors, metric_interval, ratio_errors, table


def test_the_nearest_runs_count() -> None:
    """Of the engine on the chip, then on other chips, then of other engines, then of all."""
    rows = table()
    near = metric_interval("tpot", 0.01, arch.load("mi355x"), "atom-vllm")
    assert near.basis.endswith("atom-vllm on this chip")
    assert rows["tpot", "amd", "atom-vllm", "chip"].chips == {"mi355x"}
    other = metric_interval("tpot", 0.01, arch.load("mi325x"), "vllm")
    assert other.basis.endswith("other engines on chips of AMD")
    for found in (near, other):
        assert found.low < found.value < found.high
    assert metric_interval("tpot", 0.01, arch.load("h100_sxm"), "sglang").basis.endswith(
        "sglang on other chips of NVIDIA"
    )


def test_a_mode_without_runs_takes_the_plain_ones() -> None:
    assert metric_interval("disaggregated itl tpot", 1.0, arch.load("b200"), "vllm").basis.endswith(
        "none of them disaggregated itl"
    )
    with pytest.raises(LookupError, match="warmth"):
        metric_interval("warmth", 1.0, arch.load("b200"), "vllm")


def test_rows_are_of_known_distances_and_contain_no_error() -> None:
    for (*_, distance), row in table().items():
        assert distance in DISTANCES
        assert row.low <= row.high
        assert bool(row.chips) == (distance == "chip")


def test_errors_of_one_engine_have_more_in_common() -> None:
    same = ratio_errors("tpot", ("nvidia", "trtllm"), ("nvidia", "trtllm"))
    apart = ratio_errors("tpot", ("nvidia", "trtllm"), ("amd", "atom"))
    assert 0.0 <= same.correlation <= 1.0
    assert 0.0 < same.half < apart.half
    assert ratio_errors("warmth", ("nvidia", "trtllm"), ("amd", "atom")) == RatioErrors()
