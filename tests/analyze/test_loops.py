"""Nested loops, known trip counts, and access patterns that cost more than contiguous ones."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest

from tests.analyze.support import program
from wavecast import arch
from wavecast.analyze.charges import Charges
from wavecast.analyze.loops import loops
from wavecast.analyze.memory import charge_patterns, memory_instructions
from wavecast.analyze.pipes import Residency, tally
from wavecast.analyze.result import CodeAnalysis, LoopAnalysis
from wavecast.analyze.weights import UNKNOWN_TRIPS, main_loop, weights
from wavecast.arch import Device

NESTED = """
	s_mov_b32 s0, 0
.LBB0_1:
	v_mul_f32_e32 v5, v6, v7
.LBB0_2:
	v_add_f32_e32 v1, v1, v2
	ds_read_b32 v3, v4
	global_load_dword v8, v9, s[2:3]
	s_cbranch_scc1 .LBB0_2
	s_cbranch_scc0 .LBB0_1
"""
RESIDENCY = Residency(waves=2.0, simds=4, period=4)


@dataclass(frozen=True)
class KnownAccess:
    pattern: str = "strided"
    stride: int | None = 128
    argument: str = "x"
    touched: int | None = None
    ways: float | None = None
    offsets: tuple[int | None, ...] | None = (0, 128)
    lanes: int | None = 64
    row_bytes: int | None = None
    width: int = 4

    def lines(self, line_bytes: int) -> int | None:
        return self.touched

    def ideal_lines(self, line_bytes: int) -> int | None:
        return 64 * 4 // line_bytes

    def conflict_ways(self, device: Device) -> float | None:
        return self.ways


@dataclass(frozen=True)
class KnownAccesses:
    access: KnownAccess

    def memory(self, instruction: int) -> KnownAccess:
        return self.access


def analysed(trips: dict[int, float], access: KnownAccess | None = None) -> list[LoopAnalysis]:
    found = program(NESTED)
    rates = Charges(arch.load("mi300x"), 64)
    charges = [rates.of(instruction.decoded) for instruction in found.instructions]
    blocks = [tally(charges[block.start : block.stop]) for block in found.blocks]
    if access is not None:
        memory = memory_instructions(found, rates, KnownAccesses(access))
        charge_patterns(found, memory, charges, rates, blocks)

    def trip_count(loop: int) -> tuple[float | None, str]:
        return trips.get(loop), "" if loop in trips else "not known here"

    return list(loops(found, blocks, charges, RESIDENCY, (), trip_count))


def test_an_outer_loop_leaves_out_an_inner_one_of_unknown_length() -> None:
    outer, inner = analysed({})
    assert (outer.depth, inner.depth) == (1, 2)
    assert outer.instructions == {"valu": 1, "branch": 1}
    assert inner.instructions == {"valu": 1, "lds": 1, "vmem_load": 1, "branch": 1}
    assert not outer.includes_inner
    assert outer.trip_note == "not known here"


def test_an_outer_loop_includes_an_inner_one_of_known_length() -> None:
    outer, inner = analysed({1: 10.0})
    assert outer.includes_inner
    assert outer.cycles["valu"] == 4 * 2 * (1 + 10)
    assert outer.bytes_global == 10 * inner.bytes_global
    assert outer.instructions["lds"] == 10


def test_bank_conflicts_multiply_the_time_on_the_lds() -> None:
    plain = analysed({}, KnownAccess(ways=1.0))[1].cycles["lds"]
    conflicted = analysed({}, KnownAccess(ways=4.0))[1].cycles["lds"]
    # 64 lanes of 4 bytes at 128 bytes per clock: 2 clocks per way for each of 8 waves.
    assert conflicted - plain == 3 * 2 * 8


def test_every_cache_line_takes_a_clock() -> None:
    plain = analysed({}, KnownAccess(touched=2))[1].cycles["vmem"]
    scattered = analysed({}, KnownAccess(touched=64))[1].cycles["vmem"]
    assert scattered - plain == pytest.approx((64 - 2) * 8)


def test_memory_instructions_say_what_is_known_of_their_address() -> None:
    found = program(NESTED)
    rates = Charges(arch.load("mi300x"), 64)
    lds, load = memory_instructions(
        found, rates, KnownAccesses(KnownAccess("contiguous", 4, "x", 2))
    )
    assert (lds.space, lds.kind, lds.bytes_per_lane, lds.lines) == ("lds", "load", 4, None)
    assert (load.space, load.argument, load.pattern, load.stride) == (
        "global",
        "x",
        "contiguous",
        4,
    )
    assert (load.lines, load.transactions_ideal, load.loop) == (2, 2, 1)


def kernel_of(found: list[LoopAnalysis], **straight: float) -> CodeAnalysis:
    """A kernel with these loops: what `weights` reads of it."""
    return cast("CodeAnalysis", SimpleNamespace(loops=tuple(found), straight=straight))


def test_the_body_of_a_loop_has_no_inner_loop() -> None:
    outer, inner = analysed({1: 10.0})
    assert outer.body.cycles["valu"] == 4 * 2
    assert outer.body.instructions == {"valu": 1, "branch": 1}
    assert inner.body is inner
    assert inner.parent == outer.index


def test_the_weight_of_a_loop_is_its_time_in_a_launch() -> None:
    found = analysed({0: 3.0, 1: 10.0})
    known = weights(kernel_of(found, valu=100.0))
    each = [max(*loop.body.cycles.values(), loop.body.critical_path) for loop in found]
    assert known.own == {0: 3 * each[0], 1: 3 * 10 * each[1]}
    assert known.total == {0: 3 * each[0] + 30 * each[1], 1: 30 * each[1]}
    assert known.share(None) == 100 / (100 + known.total[0])
    unknown = weights(kernel_of(analysed({})))
    assert unknown.own[1] == UNKNOWN_TRIPS**2 * each[1]


def test_the_main_loop_is_the_one_that_takes_the_time() -> None:
    found = analysed({0: 3.0, 1: 10.0})
    assert main_loop(kernel_of(found)) is found[1]
    rare = analysed({0: 3.0, 1: 0.01})
    assert main_loop(kernel_of(rare)) is rare[0]
    assert main_loop(kernel_of([])) is None
