"""Rules about barriers, atomics and sequences of launches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.support import assembly_subject, find, memory, the_one, with_memory
from wavecast.compile.codeobject import Argument
from wavecast.rules import Finding, rule
from wavecast.rules.finding import RuleInput
from wavecast.rules.sequences import TimedLaunch, sequence

LOOP = """
	s_mov_b32 s0, 64
.LBB0_1:
	ds_read_b32 v1, v0
	s_barrier
	{body}
	s_sub_u32 s0, s0, 1
	s_cmp_lg_u32 s0, 0
	s_cbranch_scc1 .LBB0_1
	s_endpgm
"""


def launches(number: int, seconds: float = 5e-6) -> TimedLaunch:
    return TimedLaunch("k", (8, 1, 1), None, seconds, 4e-6, number, seconds - 4e-6)


def test_a_barrier_in_a_short_loop() -> None:
    found = the_one(assembly_subject(LOOP.format(body="")), "barrier-heavy-loop")
    assert found.message.startswith("1 barrier for ")
    assert len(found.fixes) == 1


@pytest.mark.parametrize("body", ["v_add_f32 v2, v2, v1\n" * 64])
def test_a_barrier_in_a_long_loop_is_fine(body: str) -> None:
    assert not find(assembly_subject(LOOP.format(body=body)), "barrier-heavy-loop")


def test_one_wave_meets_nobody() -> None:
    assert not find(assembly_subject(LOOP.format(body=""), threads=64), "barrier-heavy-loop")


def atomics(bytes_: int) -> RuleInput:
    """A million lanes that update a tensor."""
    subject = assembly_subject("s_endpgm", grid=(64, 1, 1), threads=1024)
    assert subject.launch is not None
    tensor = Argument("x", "tensor", "float32", (bytes_ // 4,), (1,), bytes_, 1)
    found = with_memory(subject, *(memory(kind="atomic", bytes_per_lane=4) for _ in range(16)))
    return replace(found, launch=replace(subject.launch, arguments=(tensor,)))


def test_atomics_to_few_addresses() -> None:
    found = the_one(atomics(64), "contended-atomics")
    assert "16 addresses of x" in found.message
    (fix,) = found.fixes
    assert fix.advice.startswith("Add up within the workgroup first")
    assert not find(atomics(1 << 20), "contended-atomics")


def test_atomics_in_a_loop_that_depends_on_data_count_one_iteration() -> None:
    """Once per workgroup at least: 8,192 of them, in one address of four bytes."""
    body = """s_mov_b32 s5, 0
.LBB0_1:
s_nop 0
s_add_i32 s5, s5, 1
s_cmp_lt_i32 s5, s4
s_cbranch_scc1 .LBB0_1
s_endpgm"""
    subject = assembly_subject(body, grid=(8192, 1, 1), threads=256)
    assert subject.launch is not None
    assert subject.analysis.loops[0].trip_count is None
    tensor = Argument("x", "tensor", "float32", (1,), (1,), 4, 1)
    inner = with_memory(subject, memory(1, kind="atomic", bytes_per_lane=4, loop=0, lanes=1))
    inner = replace(inner, launch=replace(subject.launch, arguments=(tensor,)))
    found = the_one(inner, "contended-atomics")
    assert found.message == "at least 8,192 atomics share 1 address of x"
    assert len(found.fixes) == 2
    outside = replace(inner.analysis, executed=(None,) * len(inner.program.blocks))
    unknown = memory(0, kind="atomic", bytes_per_lane=4, lanes=1)
    outside = replace(outside, memory=(unknown,))
    assert not find(replace(inner, analysis=outside), "contended-atomics")


def test_one_atomic_of_every_workgroup_that_the_device_holds_at_once_is_fine() -> None:
    tensor = Argument("x", "tensor", "float32", (1,), (1,), 4, 1)

    def asked(grid: int) -> bool:
        subject = assembly_subject("s_nop 0\ns_endpgm", grid=(grid, 1, 1), threads=64)
        assert subject.launch is not None
        one = with_memory(subject, memory(0, kind="atomic", bytes_per_lane=4, lanes=1))
        one = replace(one, launch=replace(subject.launch, arguments=(tensor,)))
        return bool(find(one, "contended-atomics"))

    assert not asked(1024)
    assert asked(1 << 20)


def test_launches_that_only_start() -> None:
    found = sequence([launches(3), launches(2)])
    assert found is not None
    finding, now, fused = found
    assert isinstance(finding, Finding)
    assert finding.message.startswith("5 launches of k")
    assert now == pytest.approx(25e-6)
    assert fused == pytest.approx(5e-6)


def test_few_launches_and_long_ones_are_fine() -> None:
    assert sequence([launches(3)]) is None
    assert sequence([launches(30, seconds=20e-6)]) is None


def test_one_kernel_is_no_sequence() -> None:
    assert list(rule("launch-bound").check(assembly_subject("s_endpgm"))) == []
