"""What a program's instructions ask of memory, as tables."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import kernel_of
from wavecast import arch
from wavecast.perfmodel.cache import accesses as path
from wavecast.sampling.requests import RequestTable

BODY = """
	global_load_dwordx4 v[4:7], v1, s[8:9]
	s_load_dwordx2 s[4:5], s[10:11], 0x0
	ds_write_b32 v1, v4
	ds_read2_b32 v[8:9], v1 offset1:1
	global_atomic_add v1, v4, s[12:13]
	scratch_store_dword v1, v4, off
	v_add_u32_e32 v2, v1, v1
	global_store_short v1, v4, s[12:13]"""
ASKED = {
    "global_load_dwordx4": (path.VECTOR, path.LOAD, 16, 1),
    "s_load_dwordx2": (path.SCALAR, path.LOAD, 8, 1),
    "ds_write_b32": (path.LDS, path.STORE, 4, 1),
    "ds_read2_b32": (path.LDS, path.LOAD, 4, 2),
    "global_atomic_add": (path.VECTOR, path.ATOMIC, 4, 1),
    "scratch_store_dword": (path.PRIVATE, path.STORE, 4, 1),
    "global_store_short": (path.VECTOR, path.STORE, 2, 1),
}


@pytest.fixture(scope="module")
def program():
    return kernel_of("gfx942", BODY, lds=1024, scratch=16).program


def test_every_access_has_its_path_and_width(program) -> None:
    table = RequestTable.of(program, arch.load("mi300x"), 64)
    asked = table.asked
    found = {}
    for one in program.instructions[3:]:
        if one.memory is not None:
            at = one.index
            row = asked.path[at], asked.kind[at], asked.width[at], table.slots[at]
            found[one.mnemonic] = tuple(int(value) for value in row)
    assert found == ASKED
    idle = [one.index for one in program.instructions if one.memory is None]
    assert not table.slots[idle].any()


def test_lanes_of_lds_are_served_once_each(program) -> None:
    asked = RequestTable.of(program, arch.load("mi300x"), 64).asked
    for lanes, banks in zip(asked.lanes, asked.banks, strict=True):
        served = sorted(lanes[lanes >= 0].tolist())
        assert served == list(range(64))
        assert banks == 32


def test_a_request_counts_the_instructions_before_it(program) -> None:
    table = RequestTable.of(program, arch.load("mi300x"), 64)
    assert table.lengths.sum() == len(program.instructions)
    asking = np.repeat(np.arange(len(table.slots)), table.slots).tolist()
    clocks = table.clocks(np.zeros(1, np.int64), np.array(asking, np.int64))
    assert clocks.tolist() == asking
