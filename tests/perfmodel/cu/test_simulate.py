"""The compute-unit simulator against times worked out by hand from the issue rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.perfmodel.cu.support import compiled, flattened, machine, simulate
from wavecast.arch import resolve
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.cu.machine import ComputeUnit
from wavecast.perfmodel.fold import FIRST, LAST, fold
from wavecast.perfmodel.simulation.causes import BARRIER_WAIT, CAUSES, HBM_BANDWIDTH, MATRIX_BUSY

ADD = "v_add_f32_e32 v{0}, v{0}, v1"
MFMA = "v_mfma_f32_32x32x8_bf16 a[{0}:{1}], v[2:3], v[4:5], a[{0}:{1}]"
MFMA_CYCLES = 32  # of the gfx942 instruction, AMD matrix instruction calculator
END = 4  # the slot of s_endpgm


def test_a_wave_issues_every_fourth_clock() -> None:
    body = "\n".join(ADD.format(10 + n) for n in range(20))
    assert simulate(body).clocks == 20 * 4 + END


def test_vector_instructions_that_depend_on_each_other_do_not_wait_on_cdna() -> None:
    body = "\n".join([ADD.format(10)] * 20)
    assert simulate(body).clocks == 20 * 4 + END


def test_dependent_vector_instructions_wait_on_rdna() -> None:
    apart = simulate("\n".join(ADD.format(10 + n) for n in range(20)), device="rx7900xtx")
    chained = simulate("\n".join([ADD.format(10)] * 20), device="rx7900xtx")
    assert apart.clocks == 20 + 1
    assert chained.clocks == 19 * 5 + 1 + 1


def test_four_waves_share_no_simd_and_eight_waves_share_four() -> None:
    body = "\n".join(ADD.format(10 + n) for n in range(50))
    one, four, eight = (simulate(body, waves=waves).clocks for waves in (1, 4, 8))
    assert four <= one + 4
    assert eight == pytest.approx(2 * one, rel=0.05)


def test_matrix_instructions_fill_their_pipe() -> None:
    body = "\n".join(MFMA.format(16 * (n % 4), 16 * (n % 4) + 15) for n in range(32))
    alone = simulate(body, waves=4)
    assert alone.clocks == pytest.approx(32 * MFMA_CYCLES, rel=0.05)
    assert alone.busy["matrix"] == 4 * 32 * MFMA_CYCLES
    assert alone.stalls[:, MATRIX_BUSY].sum() > 0.7 * alone.stalls.sum()


def test_vector_work_of_another_wave_hides_behind_the_matrix_pipe() -> None:
    matrix = "\n".join(MFMA.format(16 * (n % 4), 16 * (n % 4) + 15) for n in range(16))
    vector = "\n".join(ADD.format(10 + n % 50) for n in range(16 * 4))
    oldest_first = simulate(f"{matrix}\n{vector}", waves=8)
    matrix_first = simulate(f"s_setprio 1\n{matrix}\ns_setprio 0\n{vector}", waves=8)
    assert matrix_first.clocks < oldest_first.clocks
    least = 2 * 16 * MFMA_CYCLES + 64 * 4
    assert matrix_first.clocks == pytest.approx(least, rel=0.05)


def test_a_load_is_waited_for_as_long_as_its_level_takes() -> None:
    body = "global_load_dword v1, v[2:3], off\n s_waitcnt vmcnt(0)\n v_add_f32_e32 v1, v1, v1"
    on = machine()
    near = simulate(body, requests=[(0, (2, 0, 0, 0))], on=on)
    far = simulate(body, requests=[(0, (2, 256, 256, 256))], on=on)
    assert near.clocks == pytest.approx(on.latency_l1, abs=24)
    assert far.clocks == pytest.approx(on.latency_hbm + 256 / on.hbm, abs=24)


def test_a_load_waits_for_levels_by_their_share() -> None:
    body = "global_load_dword v1, v[2:3], off\n s_waitcnt vmcnt(0)\n v_add_f32_e32 v1, v1, v1"
    on = machine()
    found = simulate(body, requests=[(0, (2, 256, 64, 0))], on=on)
    wait = on.latency_l2 + (on.latency_mall - on.latency_l2) / 4 + 256 / on.l2 + 64 / on.mall
    assert found.clocks == pytest.approx(wait, abs=24)


def test_streaming_waves_reach_the_bandwidth_of_their_share() -> None:
    loads = "\n".join(f"global_load_dword v{10 + n}, v[2:3], off" for n in range(32))
    body = f"{loads}\n s_waitcnt vmcnt(0)"
    asked = [(n, (2, 256, 256, 256)) for n in range(32)]
    on = machine()
    found = simulate(body, waves=8, workgroups=8, resident=2, requests=asked, on=on)
    least = 8 * 8 * 32 * 256 / on.hbm
    assert least < found.clocks < 1.1 * least + on.latency_hbm
    assert found.stalls[:, HBM_BANDWIDTH].sum() > 0.5 * found.stalls.sum()


@pytest.mark.parametrize(("width", "clocks"), [("dword", 4), ("dwordx4", 16)])
def test_a_load_of_one_line_takes_as_long_as_its_registers(width: str, clocks: int) -> None:
    """64 lanes of 16 bytes return over 16 clocks, even if all lanes read the same line."""
    registers = "v[4:7]" if width == "dwordx4" else "v4"
    body = "\n".join(f"global_load_{width} {registers}, v[2:3], off" for _ in range(32))
    asked = [(n, (1, 0, 0, 0)) for n in range(32)]
    found = simulate(body, waves=4, requests=asked, on=machine(tag=1.0, returned=64.0))
    assert found.busy["address path"] == pytest.approx(4 * 32 * clocks)


def test_stores_move_to_the_l2_at_a_rate_below_that_of_loads() -> None:
    asked = [(0, (8, 1024, 0, 0))]
    load, store = (
        simulate(f"global_{kind}_dwordx4 {operands}, off", requests=asked).busy["L2"]
        for kind, operands in (("load", "v[4:7], v[2:3]"), ("store", "v[2:3], v[4:7]"))
    )
    assert store == pytest.approx(2 * load)


def test_a_wgp_has_the_paths_of_two_compute_units() -> None:
    chip = Chip.of(resolve("rx7900xtx").device)
    cu, wgp = (ComputeUnit.of(chip, simds=simds, active=48) for simds in (2, 4))
    assert wgp.lds_bytes == 2 * cu.lds_bytes
    assert wgp.returned == 2 * cu.returned
    assert wgp.tag == cu.tag / 2


def test_a_chip_without_a_memory_side_cache_never_waits_for_one() -> None:
    body = "global_load_dword v1, v[2:3], off\n s_waitcnt vmcnt(0)"
    asked = [(0, (2, 256, 256, 256))]
    found = simulate(body, requests=asked, device="mi210", on=machine("mi210"))
    assert found.busy["memory-side cache"] == 0
    assert found.busy["memory"] > 0
    of_cache = [number for number, cause in enumerate(CAUSES) if "memory-side" in cause]
    assert found.stalls[:, of_cache].sum() == 0


def test_a_wait_for_the_older_of_two_loads_ends_before_the_younger_arrives() -> None:
    def body(left: int) -> str:
        return (
            "global_load_dword v10, v[2:3], off\n global_load_dword v11, v[2:3], off\n"
            f" s_waitcnt vmcnt({left})"
        )

    asked = [(0, (1, 128, 0, 0)), (1, (1, 128, 128, 128))]
    older, both = (simulate(body(left), requests=asked) for left in (1, 0))
    assert older.clocks + 100 < both.clocks


def test_waves_meet_at_a_barrier() -> None:
    body = "s_barrier\n v_add_f32_e32 v1, v1, v1"
    found = simulate(body, waves=8)
    assert found.counts[0] == 8
    assert found.stalls[1, BARRIER_WAIT] >= 8 * (machine().barrier - 4)


def test_lds_conflicts_cost_their_passes() -> None:
    reads = "\n".join(f"ds_read_b128 v[{10 + 4 * n}:{13 + 4 * n}], v1" for n in range(8))
    body = f"{reads}\n s_waitcnt lgkmcnt(0)"

    def clocks(passes: float) -> float:
        asked = [(n, (0, 0, 0, 0, passes)) for n in range(8)]
        return simulate(body, waves=4, workgroups=4, requests=asked, on=machine()).clocks

    free, fourfold = clocks(8), clocks(32)
    assert fourfold - free == pytest.approx(4 * 4 * 8 * 24, rel=0.15)


def test_a_higher_priority_goes_first() -> None:
    body = "s_setprio 3\n" + "\n".join(ADD.format(10 + n % 50) for n in range(100))
    code = compiled(body)
    assert code.priority[0] == 3
    assert simulate(body, waves=8).counts[0] == 8


def test_charges_add_up_to_the_lives_of_the_waves() -> None:
    body = "global_load_dword v1, v[2:3], off\n s_waitcnt vmcnt(0)\n s_barrier\n s_nop 7"
    found = simulate(body, waves=4, requests=[(0, (2, 256, 256, 256))])
    assert found.stalls.sum() == pytest.approx(4 * found.clocks, rel=0.02)
    assert found.stalls.shape[1] == len(CAUSES)


LOOP = """
 s_mov_b32 s0, 0
.Lloop:
 {0}
 s_add_u32 s0, s0, 1
 s_cmp_lt_u32 s0, s1
 s_cbranch_scc1 .Lloop
.Lend:
 v_add_f32_e32 v1, v1, v1"""


@settings(max_examples=15, deadline=None)
@given(st.integers(200, 3000), st.integers(1, 4))
def test_a_folded_loop_takes_as_long_as_the_whole(turns: int, waves: int) -> None:
    body = LOOP.format("\n".join(ADD.format(10 + n) for n in range(12)))
    code = compiled(body)
    path = [0, *[1] * turns, 2]
    folded = flattened(code, waves, (), path)
    assert folded.weights.sum() == pytest.approx(waves * (1 + 15 * turns + 2), abs=waves)
    assert len(folded.steps) < waves * 16 * (FIRST + LAST + 2)
    found = simulate(body, waves=waves, path=path)
    turn = 14 * 4 + machine().branch
    assert found.clocks == pytest.approx(turns * turn, rel=0.03)


def test_loops_within_loops_fold() -> None:
    inner = [1] * 60 + [2]
    blocks = np.array([0, *(inner * 50), 3])
    lengths = np.array([1, 40, 10, 1])
    found = fold(blocks, lengths)
    assert found.weights[found.kept].sum() == pytest.approx(len(blocks))
    per_block = np.bincount(blocks[found.kept], found.weights[found.kept])
    assert per_block.tolist() == pytest.approx([1, 3000, 50, 1])
    assert found.kept.sum() < 0.2 * len(blocks)
