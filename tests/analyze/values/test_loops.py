"""Trip and block counts: exact where every decision is known, None with a reason where not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyze.values.support import Kernel

LOAD_N = "s_load_dword s4, s[0:1], 0x0\n"


def counted(step: int, compare: str, start: str = "s_mov_b32 s5, 0") -> str:
    return f"""{LOAD_N}{start}
.LBB0_1:
s_add_i32 s5, s5, {step}
{compare}
s_cbranch_scc1 .LBB0_1"""


def trips(kernel: Kernel) -> list[float | None]:
    found = kernel.evaluate()
    return [found.trip_count(loop.index)[0] for loop in kernel.program.loops]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 10, 63, 64, 1000, 4097, 1_000_003])
@pytest.mark.parametrize(
    ("step", "compare", "expected"),
    [
        (1, "s_cmp_lt_i32 s5, s4", lambda n: n),
        (1, "s_cmp_lg_u32 s5, s4", lambda n: n),
        (3, "s_cmp_lt_u32 s5, s4", lambda n: -(-n // 3)),
        (1, "s_cmp_gt_i32 s4, s5", lambda n: n),
    ],
)
def test_counting_up(n: int, step: int, compare: str, expected) -> None:
    assert trips(Kernel(counted(step, compare), scalars={"n": n})) == [expected(n)]


@pytest.mark.parametrize("n", [1, 2, 17, 100_000])
def test_counting_down_to_zero(n: int) -> None:
    body = counted(-1, "s_cmp_lg_u32 s5, 0", "s_mov_b32 s5, s4")
    assert trips(Kernel(body, scalars={"n": n})) == [n]


def test_a_test_at_the_top_counts_iterations_not_tests() -> None:
    body = f"""{LOAD_N}s_mov_b32 s5, 0
.LBB0_1:
s_cmp_ge_i32 s5, s4
s_cbranch_scc1 .LBB0_2
s_add_i32 s5, s5, 1
s_branch .LBB0_1
.LBB0_2:
s_nop 0"""
    assert trips(Kernel(body, scalars={"n": 500})) == [500]


def test_nested_loops_multiply() -> None:
    body = f"""{LOAD_N}s_mov_b32 s5, 0
.LBB0_1:
s_mov_b32 s6, 0
.LBB0_2:
s_add_i32 s6, s6, 1
s_cmp_lt_i32 s6, 40
s_cbranch_scc1 .LBB0_2
s_add_i32 s5, s5, 1
s_cmp_lt_i32 s5, s4
s_cbranch_scc1 .LBB0_1"""
    kernel = Kernel(body, scalars={"n": 300})
    assert trips(kernel) == [300, 40]
    inner = kernel.program.loops[1].header
    assert kernel.evaluate().block_counts[inner] == 300 * 40


def test_a_triangle_of_loops() -> None:
    body = f"""{LOAD_N}s_mov_b32 s5, 1
.LBB0_1:
s_mov_b32 s6, 0
.LBB0_2:
s_add_i32 s6, s6, 1
s_cmp_lt_i32 s6, s5
s_cbranch_scc1 .LBB0_2
s_add_i32 s5, s5, 1
s_cmp_le_i32 s5, s4
s_cbranch_scc1 .LBB0_1"""
    kernel = Kernel(body, scalars={"n": 20})
    assert kernel.evaluate().block_counts[kernel.program.loops[1].header] == 20 * 21 / 2


@pytest.mark.parametrize("mask", [1, 3, 7, 31])
def test_a_branch_on_low_bits_of_the_counter_is_not_skipped_over(mask: int) -> None:
    """A condition that comes and goes: every 2, 4, 8, 32 iterations."""
    body = f"""{LOAD_N}s_mov_b32 s5, 0
.LBB0_1:
s_and_b32 s6, s5, {mask}
s_cmp_lg_u32 s6, 0
s_cbranch_scc1 .LBB0_2
s_nop 0
.LBB0_2:
s_add_i32 s5, s5, 1
s_cmp_lt_i32 s5, s4
s_cbranch_scc1 .LBB0_1"""
    kernel = Kernel(body, scalars={"n": 1000})
    found = kernel.evaluate()
    rare = next(b.index for b in kernel.program.blocks
                if kernel.program.instructions[b.start].decoded.text == "s_nop 0")  # fmt: skip
    assert found.trip_count(0)[0] == 1000
    assert found.block_counts[rare] == -(-1000 // (mask + 1))


@settings(max_examples=60, deadline=None)
@given(
    start=st.integers(-50, 50),
    step=st.integers(1, 7),
    limit=st.integers(-60, 3000),
    special=st.integers(0, 3000),
)
def test_any_counted_loop_with_a_special_iteration(
    start: int, step: int, limit: int, special: int
) -> None:
    """One iteration, met by an equality, takes another path."""
    body = """s_load_dwordx4 s[4:7], s[0:1], 0x0
s_mov_b32 s8, s4
.LBB0_1:
s_cmp_lg_u32 s8, s7
s_cbranch_scc1 .LBB0_2
s_nop 0
.LBB0_2:
s_add_i32 s8, s8, s5
s_cmp_lt_i32 s8, s6
s_cbranch_scc1 .LBB0_1"""
    scalars = {"start": start, "step": step, "limit": limit, "special": special}
    kernel = Kernel(body, scalars=scalars)
    found = kernel.evaluate()
    expected, met, counter = 0, 0, start
    while True:
        expected += 1
        met += counter == special
        counter += step
        if counter >= limit:
            break
    rare = next(b.index for b in kernel.program.blocks
                if kernel.program.instructions[b.start].decoded.text == "s_nop 0")  # fmt: skip
    assert found.trip_count(0)[0] == expected
    assert found.block_counts[rare] == met


def test_a_loop_on_loaded_data_is_unknown_and_says_so() -> None:
    body = """.loc 1 7 0
s_load_dwordx2 s[4:5], s[0:1], 0x0
s_load_dword s4, s[4:5], 0x0
s_mov_b32 s6, 0
.LBB0_1:
s_add_i32 s6, s6, 1
s_cmp_lt_i32 s6, s4
s_cbranch_scc1 .LBB0_1
s_cmp_lt_i32 s6, 5
s_cbranch_scc1 .LBB0_2
s_nop 0
.LBB0_2:
global_store_dword v0, v1, s[4:5]"""
    kernel = Kernel('.file 1 "a" "b.py"\n' + body, pointers=("lengths",))
    found = kernel.evaluate()
    count, note = found.trip_count(0)
    assert count is None
    assert "depends on data loaded at line 7" in note
    header = kernel.program.loops[0].header
    assert found.block_counts[header] is None
    # what only one side of the later branch executes depends on the same data
    assert None in found.block_counts[header + 1 :]
    assert found.block_counts[-1] == 1


def test_an_argument_that_is_not_given_is_named() -> None:
    kernel = Kernel(counted(1, "s_cmp_lt_i32 s5, s4"), scalars={"n": 5})
    count, note = kernel.evaluate(grid=None).trip_count(0)
    assert (count, note) == (None, "argument n is not known")


def test_lanes_that_leave_a_loop_one_by_one() -> None:
    """A divergent loop: lane l stays l + 1 iterations, the wave as long as its last lane."""
    body = """v_mov_b32_e32 v1, 0
s_mov_b64 s[4:5], 0
.LBB0_1:
v_cmp_ge_u32_e32 vcc, v1, v0
v_add_u32_e32 v1, 1, v1
s_or_b64 s[4:5], vcc, s[4:5]
s_andn2_b64 exec, exec, s[4:5]
s_cbranch_execnz .LBB0_1"""
    assert trips(Kernel(body)) == [64]


def test_masked_blocks_run_where_some_lane_is_active() -> None:
    body = f"""{LOAD_N}v_cmp_gt_i32_e32 vcc, s4, v0
s_and_saveexec_b64 s[6:7], vcc
s_cbranch_execz .LBB0_1
v_mov_b32_e32 v1, 0
.LBB0_1:
s_or_b64 exec, exec, s[6:7]"""
    assert Kernel(body, scalars={"n": 5}).evaluate().block_counts[1] == 1
    assert Kernel(body, scalars={"n": 0}).evaluate().block_counts[1] == 0
    unknown = Kernel(body, scalars={"n": 0}).evaluate(grid=None)
    assert unknown.block_counts[1] == 1
    assert any("argument n is not known" in note for note in unknown.notes)


def test_counts_are_averaged_over_workgroups() -> None:
    """Workgroup i iterates i + 1 times, as in causal attention."""
    body = """s_mov_b32 s5, 0
.LBB0_1:
s_add_i32 s5, s5, 1
s_cmp_le_i32 s5, s2
s_cbranch_scc1 .LBB0_1"""
    found = Kernel(body).evaluate(grid=(101, 7, 1))
    assert found.trip_count(0)[0] == pytest.approx(51, abs=0.5)
    assert any("average" in note for note in found.notes)


@pytest.mark.parametrize(
    ("number", "waves", "expected"), [(0, 4, 1 / 4), (3, 4, 1 / 4), (0, 16, 1 / 16)]
)
def test_what_one_wave_of_a_workgroup_executes_counts_once_per_workgroup(
    number: int, waves: int, expected: float
) -> None:
    """Other waves skip it, and are followed less often or more often than the first."""
    body = f"""v_readfirstlane_b32 s5, v0
s_lshr_b32 s5, s5, 6
s_cmp_lg_u32 s5, {number}
s_cbranch_scc1 .LBB0_2
s_nop 0
.LBB0_2:
s_nop 0"""
    found = Kernel(body, threads=64 * waves).evaluate(grid=(100, 1, 1))
    assert found.block_counts[1] == expected


def test_an_early_return_is_taken_as_not_taken() -> None:
    body = """s_load_dwordx2 s[4:5], s[0:1], 0x0
s_load_dword s4, s[4:5], 0x0
s_cmp_eq_u32 s4, 0
s_cbranch_scc1 .LBB0_2
v_mov_b32_e32 v1, 0
v_mov_b32_e32 v2, 0
.LBB0_2:"""
    found = Kernel(body, pointers=("valid",)).evaluate()
    assert found.block_counts[1] == 1
    assert any("depends on data loaded" in note for note in found.notes)


def test_masks_that_take_too_long_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask that is different every iteration keeps a loop from being skipped ahead."""
    body = f"""{LOAD_N}s_mov_b32 s5, 0
.LBB0_1:
v_mul_lo_u32 v1, v0, s5
v_and_b32_e32 v1, 7, v1
v_cmp_eq_u32_e32 vcc, 0, v1
s_and_saveexec_b64 s[6:7], vcc
s_cbranch_execz .LBB0_2
v_mov_b32_e32 v2, 0
.LBB0_2:
s_or_b64 exec, exec, s[6:7]
s_add_i32 s5, s5, 1
s_cmp_lt_i32 s5, s4
s_cbranch_scc1 .LBB0_1"""
    kernel = Kernel(body, scalars={"n": 700})
    exact = kernel.evaluate()
    assert exact.trip_count(0)[0] == 700
    assert not exact.notes
    monkeypatch.setattr("wavecast.analyze.values.evaluation.BUDGET", 500)
    light = kernel.evaluate()
    assert light.trip_count(0)[0] == 700
    assert any("too long" in note for note in light.notes)


def test_a_walk_that_is_cut_short_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wavecast.analyze.values.evaluation.BUDGET", 10)
    kernel = Kernel(counted(1, "s_cmp_lt_i32 s5, s4"), scalars={"n": 500})
    count, note = kernel.evaluate().trip_count(0)
    assert count is None
    assert "cut short" in note


SWAP = """s_load_dwordx2 s[2:3], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
s_mov_b64 s[4:5], 0
s_waitcnt lgkmcnt(0)
global_load_dword v3, v1, s[2:3]
.LBB0_1:
s_waitcnt vmcnt(0)
v_add_f32_e32 v2, 1.0, v3
global_atomic_{swap} v4, v1, {data}, s[2:3] sc0
s_waitcnt vmcnt(0)
v_cmp_eq_u32_e32 vcc, v4, v3
s_or_b64 s[4:5], vcc, s[4:5]
v_mov_b32_e32 v3, v4
s_andn2_b64 exec, exec, s[4:5]
s_cbranch_execnz .LBB0_1
s_mov_b64 exec, -1"""


def test_a_compare_and_swap_is_counted_once() -> None:
    kernel = Kernel(SWAP.format(swap="cmpswap", data="v[2:3]"), pointers=("p",))
    assert trips(kernel) == [1]
    assert "retries of the compare-and-swap loop are not counted" in kernel.evaluate().notes


def test_another_atomic_that_decides_is_unknown() -> None:
    kernel = Kernel(SWAP.format(swap="swap", data="v2"), pointers=("p",))
    assert trips(kernel) == [None]


@pytest.mark.parametrize(("relation", "expected"), [("u", 500), ("o", 1), ("lt", None)])
def test_loops_that_end_at_a_nan_are_counted_without_any(relation: str, expected) -> None:
    """Compilers leave loops over fmaxf at the first NaN that is loaded."""
    body = f"""s_load_dwordx2 s[6:7], s[0:1], 0x0
s_load_dword s4, s[0:1], 0x8
s_mov_b32 s5, 0
v_mov_b32_e32 v0, 0
.LBB0_1:
global_load_dword v1, v0, s[6:7]
s_add_i32 s5, s5, 1
v_cmp_{relation}_f32_e32 vcc, v1, v1
s_cbranch_vccnz .LBB0_2
s_cmp_lt_i32 s5, s4
s_cbranch_scc1 .LBB0_1
.LBB0_2:
s_nop 0"""
    found = Kernel(body, pointers=("x",), scalars={"n": 500}).evaluate()
    assert found.block_counts[1] == expected
    assert ("floats from memory are taken not to be NaN" in found.notes) == (expected is not None)
