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
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.cu.simulation import timing
from wavecast.perfmodel.scratch import scratch_requests
from wavecast.perfmodel.static import profile_of_code
from wavecast.perfmodel.streams import L2, MALL

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


HALVES = (
    """
 v_cmp_gt_u32_e32 vcc, {first}, v0
 s_and_saveexec_b64 s[2:3], vcc
 s_cbranch_execz .Lboth
 s_barrier
.Lboth:
 s_or_b64 exec, exec, s[2:3]
 s_mov_b32 s0, 0
.Lloop:
"""
    + "".join(
        f" v_mfma_f32_16x16x16_bf16 v[{n}:{n + 3}], v[2:3], v[4:5], v[{n}:{n + 3}]\n"
        for n in range(8, 72, 4)
    )
    + " s_barrier\n"
    + "".join(f" ds_read_b128 v[{n}:{n + 3}], v1 offset:{16 * n}\n" for n in range(80, 112, 4))
    + """ s_waitcnt lgkmcnt(0)
 s_barrier
 s_add_u32 s0, s0, 1
 s_cmp_lt_u32 s0, 0x400
 s_cbranch_scc1 .Lloop
.Lend:
 v_add_f32_e32 v3, v3, v3"""
)


def halves(first: int) -> tuple[list[int], float]:
    """Barriers that each wave passes before the loop, and clocks, where the threads below `first`
    of 512 wait at one."""
    body, given = HALVES.format(first=first), Launch(code(), (304, 1, 1), (512, 1, 1))
    analysis = read(body, launch=given)
    profile = profile_of_code(given, analysis, kernel(body), DEVICE)
    names = np.array([i.mnemonic for i in profile.program.instructions])
    each = np.split(profile.streams.steps, profile.streams.start[1:-1])
    before = [int((names[steps[: np.argmax(steps == 5)]] == "s_barrier").sum()) for steps in each]
    return before, timing(profile, DEVICE).clocks


def test_a_half_that_waits_at_a_barrier_more_takes_turns_with_the_other() -> None:
    (together, alike), (apart, turns) = halves(512), halves(256)
    assert together == [1] * 8
    assert apart == [1] * 4 + [0] * 4
    assert turns < 0.8 * alike


def of_uneven_trips(workgroups: int) -> float:
    """Every workgroup runs 1,000 iterations and as many as its number."""
    body = LOOP.format(trips="s7").replace(
        "s_mov_b32 s0, 0", "s_add_u32 s7, s0, 0x3e8\n s_mov_b32 s0, 0"
    )
    given = launch(workgroups)
    return profile_of_code(given, read(body, launch=given), kernel(body), DEVICE).longest


def test_a_launch_of_one_round_lasts_as_long_as_its_longest_workgroup() -> None:
    assert of_uneven_trips(304) == pytest.approx((1000 + 303) / (1000 + 303 / 2), rel=0.01)
    assert of_uneven_trips(304 * 80) == 1.0


@pytest.mark.parametrize(("scratch", "beyond"), [(4, 0.0), (4096, 1.0)])
def test_scratch_memory_beyond_a_cache_comes_from_the_next(scratch: int, beyond: float) -> None:
    """Of 512 lanes a unit: 2 KiB and 2 MiB, with 32 KiB of L1, and 4 MiB of L2 for 38 units."""
    body, given = "\n scratch_load_dword v2, off, s0\n scratch_store_dword off, v2, s0", launch(608)
    values = descriptor(scratch_bytes=scratch)
    analysis = read(body, launch=given, scratch_bytes=scratch)
    program_of_scratch = Kernel("k", program(body), values)
    placement = profile_of_code(given, analysis, program_of_scratch, DEVICE)
    assert placement.placement.resident == 8
    rows = scratch_requests(program(body), Chip.of(DEVICE), placement.placement, scratch)
    load, store = rows[0], rows[1]
    assert store[L2] == 256.0
    assert load[L2] / 256 == pytest.approx(beyond, abs=0.1)
    assert store[MALL] / 256 == pytest.approx(beyond, abs=0.1)
