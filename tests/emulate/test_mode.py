"""The MODE register: denormals by field, as the program changes them, and what it reads back."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import TARGETS, assembly, run
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower.mode import machine_of, word_of
from wavecast.isa.assembly_metadata import descriptors_from_assembly

TINY = 3  # a denormal in every format

_ADD = "\tv_add_f32_e32 v4, 0, v2\n\tv_add_f16_e32 v5, 0, v2\n"


def _stores(target: str) -> str:
    return "".join(
        f"\tglobal_store_dword v1, v{4 + index}, s[8:9] offset:{256 * index}\n"
        for index in range(3)
    )


def _name(target: str) -> str:
    return "HW_REG_WAVE_MODE" if target.startswith("gfx12") else "HW_REG_MODE"


def _results(target: str, body: str) -> list[int]:
    """v4, v5 and v6 of lane 0; v2 holds a denormal."""
    out = np.zeros(192, np.uint32)
    run(target, f"\tv_mov_b32_e32 v2, {TINY}\n\tv_mov_b32_e32 v6, 0\n{body}{_stores(target)}", out)
    return [int(out[64 * index]) for index in range(3)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("field", "kept"), [(3, (TINY, 0)), (12, (0, TINY)), (15, (TINY, TINY))])
def test_denormals_follow_setreg(target: str, field: int, kept: tuple[int, int]) -> None:
    body = f"\ts_setreg_imm32_b32 hwreg({_name(target)}, 4, 4), {field}\n{_ADD}"
    assert tuple(_results(target, body)[:2]) == kept


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_denormals_follow_their_own_instruction(target: str) -> None:
    body = f"\ts_denorm_mode 12\n\ts_round_mode 0\n{_ADD}"
    assert _results(target, body)[:2] == [0, TINY]


@pytest.mark.parametrize(("bit", "wanted"), [(1, 0), (0, 0x7FC00000)])
def test_clamp_keeps_nan_without_dx10_clamp(bit: int, wanted: int) -> None:
    body = (
        f"\ts_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 1), {bit}\n\tv_mov_b32_e32 v3, 0x7fc00000\n"
        "\tv_add_f32_e64 v4, v3, v3 clamp\n\tv_mov_b32_e32 v5, -1.0\n"
        "\tv_add_f32_e64 v5, v5, v5 clamp\n\tv_add_f32_e64 v6, 1.0, 1.0 clamp\n"
    )
    assert _results("gfx942", body) == [wanted, 0, 0x3F800000]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("operand", ["hwreg(1, 4, 4)", "0x1901", "6401"])
def test_inline_assembly_may_give_the_register_as_a_number(target: str, operand: str) -> None:
    # 0x1901: width - 1 = 3 in bits 15:11, first bit 4 in 10:6, register 1 (MODE) in 5:0
    assert _results(target, f"\ts_setreg_imm32_b32 {operand}, 3\n{_ADD}")[:2] == [TINY, 0]


def test_zero_may_be_written_next_to_fp16_overflow() -> None:
    # 0xdc1: two bits from 23, as the quick all-reduce of vLLM and AITER sets FP16_OVFL
    body = (
        "\tv_mov_b32_e32 v3, 0x7bff\n\tv_add_f16_e32 v4, v3, v3\n\ts_setreg_imm32_b32 0xdc1, 1\n"
        "\tv_add_f16_e32 v5, v3, v3\n\ts_setreg_imm32_b32 0xdc1, 0\n\tv_add_f16_e32 v6, v3, v3\n"
    )
    assert _results("gfx942", body) == [0x7C00, 0x7BFF, 0x7C00]


def test_each_instruction_has_the_mode_it_stands_in() -> None:
    body = (
        "\ts_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0\n\tv_add_f32_e32 v4, 0, v2\n"
        "\ts_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\n\tv_add_f32_e32 v5, 0, v2\n"
        "\ts_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 1\n\tv_add_f32_e32 v6, 0, v2\n"
    )
    assert _results("gfx942", body) == [0, TINY, 0]


@pytest.mark.parametrize("target", TARGETS)
def test_mode_reads_what_was_written(target: str) -> None:
    name = _name(target)
    body = (
        f"\ts_setreg_imm32_b32 hwreg({name}, 4, 2), 1\n"
        f"\ts_getreg_b32 s4, hwreg({name}, 4, 4)\n\tv_mov_b32_e32 v4, s4\n"
        f"\ts_mov_b32 s5, 1\n\ts_setreg_b32 hwreg({name}, 23, 1), s5\n"
        f"\ts_getreg_b32 s4, hwreg({name}, 23, 1)\n\tv_mov_b32_e32 v5, s4\n"
    )
    assert _results(target, body)[:2] == [0b1101, 1]


def test_unchanged_mode_reads_as_the_descriptor_has_it() -> None:
    body = "\ts_getreg_b32 s4, hwreg(HW_REG_MODE)\n\tv_mov_b32_e32 v4, s4\n\tv_mov_b32_e32 v5, 0\n"
    assert _results("gfx942", body)[0] == 0x3F0


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_a_descriptor_that_says_nothing_is_what_llvm_assembles(target: str) -> None:
    text = assembly(target, "").replace("\t\t.amdhsa_float_denorm_mode_32 3\n", "")
    silent = descriptors_from_assembly(text, target)["k"]
    assert not [name for name in silent.directives if "denorm" in name]
    # COMPUTE_PGM_RSRC1 bits 19:12 as llvm-mc 22 writes them: flushed in f32, kept in f16 and f64
    assert word_of(machine_of(target, silent)) & 0xFF == 0xC0


def test_one_way_changes_mode() -> None:
    body = (
        "\ts_cmp_eq_u32 s2, 0\n\ts_cbranch_scc1 .Lon\n"
        "\ts_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0\n.Lon:\n" + _ADD
    )
    with pytest.raises(Unsupported, match="MODE depends on the way taken"):
        _results("gfx942", body)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 5", "rounding"),
        ("s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), s2", "computed value of MODE"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_STATUS, 0, 1), 0", "a write of STATUS"),
        ("s_setreg_imm32_b32 0x802, 0", "a write of 2"),
        ("s_setreg_imm32_b32 0xdc1, 3", "a write of MODE bits 0x1000000"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1", "a write of MODE bits"),
        ("s_getreg_b32 s4, hwreg(HW_REG_TRAPSTS)", "a read of TRAPSTS"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        _results("gfx942", f"\t{text}\n")
