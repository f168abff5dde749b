"""Executed instructions without a documented result, and what their values decide."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.emulate.trace.support import aligned, trace
from wavecast.emulate.trace.fidelity import open_instructions
from wavecast.emulate.trace.result import Trace
from wavecast.isa.semantics.open_behaviour import OpenBehaviour, open_behaviours
from wavecast.isa.table import by_mnemonic
from wavecast.report.execution.fidelity import document

HARDWARE = Path(__file__).parents[3] / "docs" / "hardware.md"


def traced(body: str, *, lds: int = 0) -> Trace:
    return trace("gfx942", body, aligned(256), memory=False, values=True, lds=lds)


def decisions(body: str, **fields: int) -> dict[str, list[tuple[str, str]]]:
    """By mnemonic what its value decides, as kind and mnemonic."""
    found = open_instructions(traced(body, **fields))
    return {
        one.instruction.mnemonic: [(d.kind, d.instruction.mnemonic) for d in one.decisions]
        for one in found
    }


def test_every_row_is_a_row_of_the_documentation() -> None:
    cells = {
        line.split(" | ")[0].removeprefix("| ").strip()
        for line in HARDWARE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    }
    for behaviour in open_behaviours():
        assert behaviour.name in cells, behaviour.name
        assert behaviour.status in ("approximated", "undocumented")


@pytest.mark.parametrize("behaviour", open_behaviours(), ids=lambda one: one.pattern[:24])
def test_every_pattern_is_of_instructions_that_exist(behaviour: OpenBehaviour) -> None:
    targets = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
    names = {name for target in targets for name in by_mnemonic(target)}
    assert any(re.fullmatch(behaviour.pattern, name) for name in names)


def test_a_value_that_is_only_stored_decides_nothing() -> None:
    body = """	v_cvt_f32_u32_e32 v2, v0
	v_exp_f32_e32 v2, v2
	v_add_f32_e32 v2, 1.0, v2
	v_lshlrev_b32_e32 v3, 2, v0
	global_store_dword v3, v2, s[8:9]
"""
    assert decisions(body) == {"v_exp_f32_e32": []}


def test_an_address() -> None:
    body = """	v_cvt_f32_u32_e32 v2, v0
	v_exp_f32_e32 v2, v2
	v_cvt_u32_f32_e32 v3, v2
	v_and_b32_e32 v3, 60, v3
	global_store_dword v3, v0, s[8:9]
"""
    assert decisions(body) == {"v_exp_f32_e32": [("address", "global_store_dword")]}


def test_a_branch_and_the_barrier_that_it_decides() -> None:
    body = """	v_mov_b32_e32 v2, 1.0
	v_rcp_f32_e32 v2, v2
	v_readfirstlane_b32 s20, v2
	s_cmp_eq_u32 s20, 1.0
	s_cbranch_scc0 out
	s_barrier
out:
	s_barrier
"""
    found = decisions(body)
    assert found == {"v_rcp_f32_e32": [("branch", "s_cbranch_scc0"), ("barrier", "s_barrier")]}


def test_lanes_do_not_carry_the_value_to_what_they_compute() -> None:
    """The store is executed by lanes that the value chose; its address and data are others."""
    body = """	v_cvt_f32_u32_e32 v2, v0
	v_log_f32_e32 v2, v2
	v_cmp_gt_f32_e32 vcc, 1.0, v2
	s_and_saveexec_b64 s[20:21], vcc
	s_cbranch_execz out
	v_lshlrev_b32_e32 v3, 2, v0
	global_store_dword v3, v0, s[8:9]
out:
	s_mov_b64 exec, s[20:21]
"""
    found = decisions(body)["v_log_f32_e32"]
    assert ("lanes", "s_and_saveexec_b64") in found
    assert ("branch", "s_cbranch_execz") in found
    assert not [kind for kind, _ in found if kind == "address"]


def test_saved_lanes_are_not_the_value() -> None:
    """The lanes after an if are those before it: a loop that follows is not decided by it."""
    body = """	v_cvt_f32_u32_e32 v2, v0
	v_exp_f32_e32 v2, v2
	v_cmp_gt_f32_e32 vcc, 1.0, v2
	s_and_saveexec_b64 s[20:21], vcc
	v_mov_b32_e32 v3, 1
	s_or_b64 exec, exec, s[20:21]
	v_cmp_gt_u32_e32 vcc, 40, v0
	s_and_saveexec_b64 s[22:23], vcc
	s_cbranch_execz out
	v_mov_b32_e32 v3, 2
	s_barrier
out:
	s_mov_b64 exec, s[22:23]
"""
    assert decisions(body) == {"v_exp_f32_e32": [("lanes", "s_and_saveexec_b64")]}


@pytest.mark.parametrize("exchange", ["ds_bpermute_b32 v3, v4, v2", "ds_swizzle_b32 v3, v2"])
def test_lane_exchanges_carry_the_value(exchange: str) -> None:
    body = f"""	v_cvt_f32_u32_e32 v2, v0
	v_exp_f32_e32 v2, v2
	v_mov_b32_e32 v4, 0
	{exchange}
	s_waitcnt lgkmcnt(0)
	v_cvt_u32_f32_e32 v3, v3
	v_and_b32_e32 v3, 60, v3
	global_store_dword v3, v0, s[8:9]
"""
    assert decisions(body) == {"v_exp_f32_e32": [("address", "global_store_dword")]}


def test_halves_of_a_pair_do_not_mix() -> None:
    """On RDNA one instruction of two: the address is that of the other half."""
    body = """	v_cvt_f32_u32_e32 v5, v0
	v_exp_f32_e32 v5, v5
	v_mov_b32_e32 v4, v0
	v_mov_b32_e32 v2, 1.0
	v_dual_mul_f32 v1, v5, v2 :: v_dual_lshlrev_b32 v6, 2, v4
	global_store_b32 v6, v1, s[8:9]
	v_dual_mov_b32 v8, v0 :: v_dual_mov_b32 v9, v1
	v_and_b32_e32 v9, 60, v9
	global_store_b32 v9, v8, s[8:9]
"""
    launch = trace("gfx1100", body, aligned(256), memory=False)
    (entry,) = open_instructions(launch)
    lines = [decision.instruction.decoded.text for decision in entry.decisions]
    assert lines == ["global_store_b32 v9, v8, s[8:9]"]


def test_what_is_not_executed_is_not_listed() -> None:
    body = """	s_cmp_eq_u32 0, 1
	s_cbranch_scc0 out
	v_exp_f32_e32 v2, v2
out:
	v_mov_b32_e32 v3, 1
"""
    assert decisions(body) == {}


def test_the_document_counts_wave_instructions() -> None:
    body = """	v_rcp_f32_e32 v2, v0
	v_rcp_f32_e32 v3, v0
	v_mov_b32_e32 v4, 1
"""
    launch = traced(body)
    (kernel,) = document([launch])
    assert kernel.instructions == launch.instructions
    assert kernel.instructions - kernel.documented == 2
    (line,) = kernel.open
    assert (line.mnemonic, line.executions, line.status) == ("v_rcp_f32", 2, "approximated")
    assert (kernel.target, kernel.launches) == ("gfx942", 1)
