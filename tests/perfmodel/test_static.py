"""Launches read off their code: counts, refusals, what caches pass on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.analyze.support import code, descriptor, program, read
from wavecast import arch
from wavecast.compile.codeobject import Launch
from wavecast.errors import Unpredictable
from wavecast.isa.program import Kernel
from wavecast.perfmodel.cu.simulation import timing
from wavecast.perfmodel.static import profile_of_code

DEVICE = arch.load("mi300x")
LOOP = """
 s_mov_b32 s0, 0
.Lloop:
 v_add_f32_e32 v1, v1, v1
 v_mul_f32_e32 v2, v2, v2
 s_add_u32 s0, s0, 1
 s_cmp_lt_u32 s0, {trips}
 s_cbranch_scc1 .Lloop
.Lend:
 v_add_f32_e32 v3, v3, v3"""


def kernel(body: str) -> Kernel:
    return Kernel("k", program(body), descriptor())


def launch(workgroups: int) -> Launch:
    return Launch(code(), (workgroups, 1, 1), (256, 1, 1))


def seconds(trips: int, workgroups: int = 304) -> float:
    body = LOOP.format(trips=trips)
    given = launch(workgroups)
    analysis = read(body, launch=given)
    found = profile_of_code(given, analysis, kernel(body), DEVICE)
    steps = found.streams.weights[: len(found.streams.steps) // 4]
    assert steps.sum() == pytest.approx(1 + 5 * trips + 2)
    result = timing(found, DEVICE)
    return result.seconds - result.launch


def test_trips_are_counted_and_folded() -> None:
    short, long = seconds(1000), seconds(100_000)
    assert long == pytest.approx(100 * short, rel=0.05)


def test_a_second_round_takes_as_long_again() -> None:
    one, many = seconds(20_000, 304 * 8), seconds(20_000, 304 * 80)
    assert many == pytest.approx(10 * one, rel=0.2)


def test_without_a_grid_or_with_unknown_trips_it_is_refused() -> None:
    body = LOOP.format(trips="s5")
    given = launch(304)
    with pytest.raises(Unpredictable, match=r"unknown number of times|depends on"):
        profile_of_code(given, read(body, launch=given), kernel(body), DEVICE)
    bare, known = replace(given, grid=(0, 0, 0)), LOOP.format(trips=5)
    analysis = read(known, launch=given)
    with pytest.raises(Unpredictable, match="grid"):
        profile_of_code(bare, analysis, kernel(known), DEVICE)


def test_a_kernel_too_long_to_follow_is_not_blamed_on_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wavecast.analyze.values.evaluation.BUDGET", 0)
    body, given = "\n v_add_f32_e32 v1, v1, v1\n.Lend:\n v_add_f32_e32 v3, v3, v3", launch(304)
    with pytest.raises(Unpredictable, match=r"is not known: the walk .* too many instructions"):
        profile_of_code(given, read(body, launch=given), kernel(body), DEVICE)


def test_the_same_launch_is_the_same_prediction() -> None:
    assert seconds(500) == seconds(500)
    assert np.isfinite(seconds(1))


@pytest.mark.parametrize(
    ("power", "store", "each"),
    [(7, "dword v0, v4", 64.0), (7, "dwordx4 v0, v[4:7]", 64.0), (4, "dwordx4 v0, v[4:7]", 16.0)],
)
def test_a_store_moves_the_sectors_it_writes(power: int, store: str, each: float) -> None:
    """Lanes that lie a line apart, and side by side."""
    body = f" v_lshlrev_b32_e32 v0, {power}, v0\n global_store_{store}, s[0:1]"
    given = launch(304)
    found = profile_of_code(given, read(body, launch=given), kernel(body), DEVICE).traffic
    assert found is not None
    assert found.l2 == 304 * 256 * each
    assert found.written == found.mall <= found.l2
