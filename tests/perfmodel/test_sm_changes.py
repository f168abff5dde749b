"""What rules simulate of NVIDIA launches: instructions without work, wide, in fewer iterations."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.perfmodel import sm_code
from tests.perfmodel.test_sm import profile
from wavecast import arch
from wavecast.perfmodel.launches import changes_of
from wavecast.perfmodel.reshaping import finer, split_loop
from wavecast.perfmodel.sm.whatif import SmChanges
from wavecast.rules.fix import Array

H100 = "h100_sxm"

NARROW = """
 mul.wide.u32 %d3, %r4, 16; add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
 ld.global.f32 %f1, [%d4]; ld.global.f32 %f2, [%d4+4];
 ld.global.f32 %f3, [%d4+8]; ld.global.f32 %f4, [%d4+12];
 add.f32 %f1, %f1, %f2; add.f32 %f3, %f3, %f4; add.f32 %f1, %f1, %f3;
 st.global.f32 [%d5], %f1; ret;
"""
BARRIERS = """
 mov.u32 %r5, 0;
NEXT: bar.sync 0; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r9; @%p1 bra NEXT; ret;
"""


@cache
def changes(body: str, **launch: Any) -> SmChanges:
    found = changes_of(profile(sm_code.launch(body, **launch)), arch.load(H100))
    assert isinstance(found, SmChanges)
    return found


def chosen(of: SmChanges, *names: str) -> Array:
    """The instructions whose mnemonics begin with one of `names`."""
    program = of.simulation.code.program
    found = np.array([i.mnemonic.startswith(names) for i in program.instructions])
    assert found.any()
    return found


def test_loads_without_work_leave_their_issue_slots() -> None:
    own = changes(sm_code.LOOP, grid=132, number=64)
    now, without = own.simulation.run(), own.free(chosen(own, "LDG"))
    assert 0 < without.seconds - now.launch < 0.5 * (now.seconds - now.launch)


def test_narrow_loads_joined_into_one_take_less() -> None:
    own = changes(NARROW, grid=132 * 64, threads=256, number=4 << 20)
    now = own.simulation.run()
    wide = own.widen(chosen(own, "LDG"))
    assert wide.unit.busy["address path"] < 0.5 * now.unit.busy["address path"]
    assert wide.seconds <= now.seconds


def test_instructions_that_are_gone_are_not_executed() -> None:
    own = changes(sm_code.LOOP, grid=132, number=64)
    part = chosen(own, "FADD")
    assert own.without(part).unit.counts[part].sum() == 0


def test_a_loop_without_barriers_waits_for_none() -> None:
    own = changes(BARRIERS, grid=132, threads=512, number=200)
    assert own.without_barriers(chosen(own, "BAR")).seconds < own.simulation.run().seconds


@pytest.mark.parametrize("number", [64, 4096])
def test_a_loop_divided_among_workgroups_takes_its_part_of_the_time(number: int) -> None:
    """Four times the workgroups, on units that were idle, with a quarter of the iterations each."""
    own = changes(sm_code.LOOP, grid=8, threads=32, number=number)
    start = own.simulation.chip.launch
    split = split_loop(own.simulation, _analysis(), 0, 4, 0.0, has_addition=False).seconds - start
    assert split == pytest.approx((own.simulation.run().seconds - start) / 4, rel=0.2)


def test_half_tiles_fill_the_last_round() -> None:
    own = changes(sm_code.LOOP, grid=132 * 64 + 1, threads=1024, number=8)
    placement = own.simulation.profile.placement
    assert placement.most_per_unit == 65
    assert finer(own.simulation, 2).seconds < own.simulation.run().seconds


def test_iterations_of_scoreboards_are_not_counted() -> None:
    own = changes(sm_code.COPY)
    with pytest.raises(ValueError, match="scoreboards"):
        own.later_waits(chosen(own, "LDG"), 1)


def _analysis() -> Any:
    """What SASS needs none of: iterations are those of its streams."""
    return None
