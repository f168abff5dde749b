"""Hazards of RDNA 3 and 4, planted by hand after LLVM's descriptions of them."""

from __future__ import annotations

import pytest

from tests.analyze.support import program
from tests.analyze.sync.test_waits import lines
from wavecast.analyze.sync import hazards
from wavecast.errors import MissingFact

EXP = "v_exp_f32_e32 v1, v0"
USE = "v_add_f32_e32 v2, 1.0, v1"
OTHER = "v_mov_b32_e32 v9, 0"
WAIT = "s_waitcnt_depctr depctr_va_vdst(0)"


def found(target: str, *body: str) -> list[tuple[int, int, str]]:
    """(instruction, cause, counter) of every hazard."""
    return [(v.instruction, v.cause, v.counter) for v in hazards(program(lines(*body), target))]


@pytest.mark.parametrize(
    ("between", "hazardous"),
    [
        ((), True),
        ((WAIT,), False),
        (("s_waitcnt_depctr 0xfff",), False),
        (("s_waitcnt_depctr 0x1fff",), True),
        (("s_waitcnt_depctr depctr_sa_sdst(0)",), True),
        ((OTHER,) * 5, True),
        ((OTHER,) * 6, False),
        (("v_log_f32_e32 v8, v7",), True),
        (("v_log_f32_e32 v8, v7",) * 2, False),
        (("s_nop 7",) * 3, True),
        (("ds_load_b32 v8, v7",), False),
        (("global_store_b32 v7, v6, s[0:1]",), False),
        (("v_mov_b32_e32 v1, 0",), True),
    ],
)
def test_a_transcendental_read_too_early(between: tuple[str, ...], hazardous: bool) -> None:
    expected = [(len(between) + 1, 0, "va_vdst")] if hazardous else []
    assert found("gfx1100", EXP, *between, USE) == expected


def test_later_generations_interlock_transcendentals() -> None:
    assert found("gfx1151", EXP, USE) == []
    assert found("gfx1201", EXP, USE) == []


def test_one_path_without_the_wait() -> None:
    body = (EXP, "s_cbranch_scc1 .L", WAIT, ".L:", USE)
    assert found("gfx1100", *body) == [(3, 0, "va_vdst")]


def test_both_halves_of_a_pair_read() -> None:
    pair = "v_dual_mov_b32 v4, v5 :: v_dual_add_f32 v7, v1, v2"
    assert found("gfx1100", EXP, pair) == [(1, 0, "va_vdst")]


WMMA = "v_wmma_f32_16x16x16_f16 v[{d}:{e}], v[{a}:{b}], v[{f}:{g}], v[40:47]"


def wmma(target: str, result: int, a: int) -> str:
    wide = 7 if target == "gfx1100" else 3
    return WMMA.format(d=result, e=result + 7, a=a, b=a + wide, f=60, g=60 + wide)


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_a_matrix_result_as_multiplicand(target: str) -> None:
    first = wmma(target, 0, 20)
    assert found(target, first, wmma(target, 80, 0)) == [(1, 0, "VALU instructions")]
    assert found(target, first, "v_nop", wmma(target, 80, 0)) == []
    assert found(target, first, "s_nop 1", wmma(target, 80, 0)) == [(2, 0, "VALU instructions")]
    assert found(target, first, wmma(target, 80, 20), wmma(target, 90, 0)) == []
    assert found(target, first, first) == []


def test_a_permutation_after_v_cmpx() -> None:
    compare, permute = "v_cmpx_gt_i32_e32 v0, v1", "v_permlane16_b32 v2, v3, s0, s1"
    assert found("gfx1100", compare, permute) == [(1, 0, "VALU instructions")]
    assert found("gfx1100", compare, "v_nop", permute) == [(2, 0, "VALU instructions")]
    assert found("gfx1100", compare, "v_mov_b32_e32 v3, v3", permute) == []


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_registers_are_freed_after_a_no_op(target: str) -> None:
    message = "s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)"
    assert found(target, OTHER, "s_nop 0", message) == []
    assert found(target, OTHER, message) == [(1, 0, "wait states")]
    assert found(target, OTHER, "s_sendmsg sendmsg(MSG_INTERRUPT)") == []


READ, AGAIN = "v_mov_b32_e32 v0, s4", "v_mov_b32_e32 v1, s4"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # s4 was read by a vector instruction, written by a scalar one, and is read again
        ((READ, "s_mov_b32 s4, 0", AGAIN), [(2, 1, "sa_sdst")]),
        ((READ, "s_mov_b32 s4, 0", "s_wait_alu depctr_sa_sdst(0)", AGAIN), []),
        ((READ, "s_mov_b32 s4, 0", "s_wait_alu depctr_va_sdst(0)", AGAIN), [(3, 1, "sa_sdst")]),
        ((READ, "s_mov_b32 s4, 0", "s_wait_alu 0xfffe", AGAIN), []),
        # a memory instruction waits, a global one does not
        ((READ, "s_mov_b32 s4, 0", "s_load_b32 s9, s[0:1], 0x0", AGAIN), []),
        ((READ, "s_mov_b32 s4, 0", "global_load_b32 v9, v8, s[0:1]", AGAIN), [(3, 1, "sa_sdst")]),
        # registers are kept in pairs
        ((READ, "s_mov_b32 s5, 0", "v_mov_b32_e32 v1, s5"), [(2, 1, "sa_sdst")]),
        ((READ, "s_mov_b32 s6, 0", "v_mov_b32_e32 v1, s6"), []),
        # never read by a vector instruction before: safe
        (("s_mov_b32 s4, 0", AGAIN), []),
        # a scalar instruction reads it
        ((READ, "s_mov_b32 s4, 0", "s_add_co_u32 s9, s4, 1"), [(2, 1, "sa_sdst")]),
        # written by a vector instruction: scalar reads wait by themselves
        ((READ, "v_readfirstlane_b32 s4, v7", AGAIN), [(2, 1, "va_sdst")]),
        ((READ, "v_readfirstlane_b32 s4, v7", "s_add_co_u32 s9, s4, 1"), []),
        ((READ, "v_readfirstlane_b32 s4, v7", "s_add_co_u32 s9, s4, 1", AGAIN), []),
        # VCC has a counter of its own
        (
            (
                "v_cndmask_b32_e32 v0, v1, v2, vcc_lo",
                "v_cmp_eq_u32_e32 vcc_lo, v3, v4",
                "v_cndmask_b32_e32 v0, v1, v2, vcc_lo",
            ),
            [(2, 1, "va_vcc")],
        ),
        (
            (
                "v_cndmask_b32_e32 v0, v1, v2, vcc_lo",
                "v_cmp_eq_u32_e32 vcc_lo, v3, v4",
                "s_wait_alu depctr_va_vcc(0)",
                "v_cndmask_b32_e32 v0, v1, v2, vcc_lo",
            ),
            [],
        ),
        # the read of one path and the write of another
        ((READ, ".L:", AGAIN, "s_mov_b32 s4, 0", "s_cbranch_scc1 .L"), [(1, 2, "sa_sdst")]),
    ],
)
def test_scalar_registers_read_again(
    body: tuple[str, ...], expected: list[tuple[int, int, str]]
) -> None:
    assert found("gfx1201", *body) == expected


def test_rdna3_keeps_no_copies_of_scalar_registers() -> None:
    assert found("gfx1100", READ, "s_mov_b32 s4, 0", AGAIN) == []


def test_gfx1250_is_refused() -> None:
    with pytest.raises(MissingFact, match="gfx1250"):
        hazards(program(OTHER, "gfx1250"))


@pytest.mark.parametrize(
    ("between", "found"),
    [
        ((), 1),
        (("s_nop 1",), 1),
        (("s_nop 2",), 0),
        (("v_mov_b32_e32 v9, 0",), 0),
        (("s_waitcnt_vscnt null, 0x0",), 0),
    ],
)
def test_the_mode_of_denormals_after_a_float_atomic(between: tuple[str, ...], found: int) -> None:
    atomic = "global_atomic_fmax v0, v1, s[0:1]"
    text = lines(atomic, *between, "s_denorm_mode 0x3")
    assert len(hazards(program(text, "gfx1030"))) == found
    plain = lines(atomic.replace("fmax", "add"), *between, "s_denorm_mode 0x3")
    assert not hazards(program(plain, "gfx1030"))
