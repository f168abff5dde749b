"""The loop-carried chain of loops whose chain is plain to see."""

from __future__ import annotations

import pytest

from tests.analyze.support import DEVICES, program
from wavecast import arch
from wavecast.analyze.charges import Charges
from wavecast.analyze.critical_path import critical_path
from wavecast.analyze.loops import own_blocks


def chain(body: str, target: str = "gfx942") -> float:
    lines = "\n".join(f"\t{line.strip()}" for line in body.split(";"))
    text = f"\ts_nop 0\n.LBB0_1:\n{lines}\n\ts_cbranch_scc1 .LBB0_1"
    found = program(text, target)
    rates = Charges(arch.load(DEVICES[target]), 64 if target == "gfx942" else 32)
    charges = [rates.of(instruction.decoded) for instruction in found.instructions]
    return critical_path(found, own_blocks(found)[0], charges)


def latency(cost_class: str, target: str = "gfx942") -> float:
    found = arch.load(DEVICES[target]).cost(cost_class).latency_cycles
    assert found is not None
    return found


def test_no_value_is_carried() -> None:
    assert chain("v_add_f32 v0, v1, v2; v_mul_f32 v3, v0, v0") == 0


def test_a_sum_is_carried_through_one_addition() -> None:
    assert chain("v_mul_f32 v1, v2, v3; v_add_f32 v0, v0, v1") == latency("valu")


def test_a_chain_of_three() -> None:
    body = "v_add_f32 v0, v0, v1; v_mul_f32 v0, v0, v1; v_sub_f32 v0, v0, v2"
    assert chain(body) == 3 * latency("valu")
    assert chain(body, "gfx1100") == 3 * latency("valu", "gfx1100")


def test_the_longest_of_several_chains() -> None:
    body = "s_add_i32 s0, s0, 1; v_exp_f32 v0, v0; v_add_f32 v1, v1, v2"
    assert chain(body) == latency("trans")


def test_a_long_latency_off_the_chain_does_not_count() -> None:
    body = "global_load_dword v3, v0, s[0:1]; v_mul_f32 v4, v3, v3; v_add_u32 v0, v0, v1"
    assert chain(body) == latency("valu")


def test_a_pointer_chase_takes_the_load() -> None:
    assert chain("global_load_dword v0, v0, s[0:1]") == pytest.approx(latency("vmem_load"))


def test_a_chain_through_two_registers_is_halved() -> None:
    body = "v_mul_f32 v2, v0, v3; v_mov_b32 v0, v1; v_mov_b32 v1, v2"
    # v0 -> v2 -> v1 -> v0: three instructions in two iterations.
    assert chain(body) == 1.5 * latency("valu")


def test_accumulating_matrix_instructions_follow_each_other_closely() -> None:
    device = arch.load("mi300x")
    cost = device.matrix_cost("v_mfma_f32_32x32x8_bf16")
    one = "v_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15]"
    assert chain(one) == cost.accumulate_cycles
    assert chain(f"{one}; {one}") == 2 * (cost.accumulate_cycles or 0)


def test_a_matrix_result_read_by_a_vector_instruction_takes_its_full_latency() -> None:
    cost = arch.load("mi300x").matrix_cost("v_mfma_f32_32x32x8_bf16")
    body = "v_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15];v_mul_f32 v0, v0, v20"
    assert cost.latency_cycles is not None
    assert chain(body) == cost.latency_cycles + latency("valu")


def test_both_halves_of_a_dual_instruction_carry() -> None:
    body = "v_dual_mul_f32 v1, v1, v2 :: v_dual_add_f32 v0, v0, v3"
    assert chain(body, "gfx1100") == latency("valu", "gfx1100")
