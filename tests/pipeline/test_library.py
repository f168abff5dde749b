"""Calls of the kernel library as surveys and tuning see them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from wavecast import arch
from wavecast.kernels import registry
from wavecast.perfmodel.profile import LevelTraffic
from wavecast.pipeline.library.library import explain_call, survey


def traffic(device: str) -> list[LevelTraffic]:
    """Of both kernels of a quantisation by the largest value of a tensor of 64 MiB."""
    sizes = {"rows": 8192, "columns": 4096, "dtype": "bfloat16"}
    found = explain_call(registry.operator("quantise_int8_tensor"), sizes, arch.load(device))
    assert [one.code.kernel for one in found] == ["largest_kernel", "quantise_tensor_kernel"]
    of = [one.predicted.profile for one in found]
    return [one.traffic for one in of if one is not None and one.traffic is not None]


@pytest.mark.operators
def test_a_kernel_finds_in_the_memory_side_cache_what_the_one_before_read() -> None:
    largest, quantised = traffic("mi300x")
    assert largest.hbm > 0.9 * 2**26
    assert quantised.hbm < 0.6 * quantised.mall, "only what it writes"
    largest, quantised = traffic("mi210")
    assert quantised.hbm == quantised.mall, "no such cache"


@pytest.mark.operators
def test_what_depends_on_values_is_sampled_with_real_ones() -> None:
    """Few pass the filters of real logits; how many of whatever lies in memory nobody knows."""
    operator = registry.operator("top_k_top_p_sample")
    sizes = {"rows": 2, "vocabulary": 1000, "dtype": "float32"}
    found = {one.code.kernel: one for one in explain_call(operator, sizes, arch.load("mi300x"))}
    prediction = found["choose_kernel"].predicted.prediction
    assert prediction is not None
    assert prediction.fidelity == "executed"


@pytest.mark.operators
def test_a_compiler_that_aborts_is_the_failure_of_that_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.runtimes.triton.test_isolation import ABORTS, moved

    def aborts(x: Any, **_: Any) -> None:
        moved[(1,)](x, x, ABORTS, 128)

    silu = registry.operator("silu_mul")
    monkeypatch.setitem(registry._added, "aborts", replace(silu, name="aborts", call=aborts))
    sizes = dict(silu.cases[0])
    calls = [("aborts", sizes, "mi300x"), ("silu_mul", sizes, "mi300x")]
    broken, whole = survey(calls)
    assert broken.failure.startswith("moved for gfx942: the compiler crashed (SIGABRT): ")
    assert not whole.failure
    assert whole.seconds
