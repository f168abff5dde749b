"""What a wave starts with: workgroup and work-item ids, arguments, the dispatch packet."""

from __future__ import annotations

import numpy as np
import pytest

from tests.analyze.values.support import KERNARG_ONLY, Kernel
from wavecast.analyze.values.inputs import Inputs, WaveId
from wavecast.analyze.values.sample import first_samples, more_samples
from wavecast.isa.program import KernelArgument
from wavecast.isa.registers import SGPR_BASE, TTMP_BASE
from wavecast.isa.semantics import Unknown


def inputs(kernel: Kernel, grid: tuple[int, int, int] | None) -> Inputs:
    launch = kernel.launch(grid) if grid is not None else None
    return Inputs(kernel.code, kernel.descriptor, launch)


def test_workgroup_ids_follow_the_user_registers() -> None:
    directives = KERNARG_ONLY | {
        "system_sgpr_workgroup_id_x": 1,
        "system_sgpr_workgroup_id_y": 0,
        "system_sgpr_workgroup_id_z": 1,
    }
    found = inputs(Kernel("s_nop 0", directives=directives), (9, 9, 9))
    registers = found.registers(WaveId((3, 4, 5), 0))
    assert [registers[SGPR_BASE + index] for index in (2, 3)] == [3, 5]


@pytest.mark.parametrize("target", ["gfx1201", "gfx1250"])
def test_workgroup_ids_in_trap_registers(target: str) -> None:
    kernel = Kernel("s_nop 0", target=target, lanes=32, threads=128)
    registers = inputs(kernel, (9, 9, 9)).registers(WaveId((3, 4, 5), 2))
    assert registers[TTMP_BASE + 9] == 3
    assert registers[TTMP_BASE + 7] == 4 | 5 << 16
    assert registers[TTMP_BASE + 8] >> 25 == 2


def test_work_items_of_a_later_wave() -> None:
    kernel = Kernel("s_nop 0", threads=192)
    found = inputs(kernel, (1, 1, 1))
    lanes = found.registers(WaveId((0, 0, 0), 2))[0]
    assert isinstance(lanes, np.ndarray)
    assert lanes.tolist() == list(range(128, 192))
    assert found.waves == 3


def test_a_partial_last_wave() -> None:
    found = inputs(Kernel("s_nop 0", threads=100), (1, 1, 1))
    assert found.exec_mask(1) == (1 << 36) - 1


def test_hidden_arguments_follow_the_launch() -> None:
    hidden = tuple(
        KernelArgument("", offset, size, kind)
        for offset, size, kind in (
            (8, 4, "hidden_block_count_x"),
            (12, 4, "hidden_block_count_y"),
            (20, 2, "hidden_group_size_x"),
            (22, 2, "hidden_group_size_y"),
            (26, 2, "hidden_remainder_x"),
            (32, 8, "hidden_hostcall_buffer"),
        )
    )
    found = inputs(Kernel("s_nop 0", threads=256, hidden=hidden), (7, 3, 1))
    assert [found.argument_dword(offset) for offset in (8, 12, 20)] == [7, 3, 256 | 1 << 16]
    assert isinstance(found.argument_dword(32), Unknown)


def test_the_dispatch_packet() -> None:
    directives = {"user_sgpr_dispatch_ptr": 1, "user_sgpr_count": 2}
    body = """s_load_dword s4, s[0:1], 0x4
s_and_b32 s4, s4, 0xffff
s_mov_b32 s5, 0
.LBB0_1:
s_add_i32 s5, s5, 1
s_cmp_lt_i32 s5, s4
s_cbranch_scc1 .LBB0_1"""
    kernel = Kernel(body, threads=96, directives=directives)
    assert kernel.evaluate().trip_count(0)[0] == 96


def test_arguments_keep_their_alignment_where_the_value_is_missing() -> None:
    from dataclasses import replace

    kernel = Kernel("s_nop 0", scalars={"n": 5})
    code = kernel.code
    aligned = replace(code.parameters[0], attributes=("divisibility=16",))
    found = Inputs(replace(code, parameters=(aligned,)), kernel.descriptor, None)
    assert found.argument_dword(0) == Unknown(4, "argument n is not known")


def test_samples_spread_over_every_axis() -> None:
    found = inputs(Kernel("s_nop 0", threads=256), (32, 64, 1))
    first = first_samples(found)
    assert [who.workgroup for who in first] == [(0, 0, 0), (15, 31, 0), (31, 63, 0)]
    assert [who.wave for who in first] == [0, 2, 3]
    more = more_samples(found, 100)
    columns = [who.workgroup[0] for who in more if who.workgroup is not None]
    assert columns == sorted(set(columns))
    assert sum(columns) / len(columns) == pytest.approx(15.5, abs=1)
    assert more_samples(found, 2) == []


def test_one_workgroup_is_sampled_once() -> None:
    assert first_samples(inputs(Kernel("s_nop 0"), (1, 1, 1))) == [WaveId((0, 0, 0), 0)]
