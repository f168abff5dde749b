"""What a wave has in flight at its barriers, worked out by hand."""

from __future__ import annotations

import pytest

from tests.analyze.support import program
from tests.analyze.sync.test_waits import lines
from wavecast.analyze.sync import outstanding_at, unfinished_stores


def test_a_write_to_lds_without_a_wait() -> None:
    body = lines("ds_write_b32 v0, v1", "s_barrier", "ds_read_b32 v2, v3")
    assert outstanding_at(program(body, "gfx942")) == {1: (0,)}


def test_a_write_that_is_waited_for() -> None:
    body = lines("ds_write_b32 v0, v1", "s_waitcnt lgkmcnt(0)", "s_barrier")
    assert outstanding_at(program(body, "gfx942")) == {2: ()}


def test_global_memory_too_and_only_what_the_wait_leaves() -> None:
    body = lines(
        "global_store_dword v0, v1, s[0:1]",
        "global_load_dword v2, v0, s[0:1]",
        "buffer_load_dword v4, s[4:7], 0 offen lds",
        "s_waitcnt vmcnt(1)",
        "s_barrier",
    )
    assert outstanding_at(program(body, "gfx942")) == {4: (2,)}


def test_stores_of_rdna_have_a_counter_of_their_own() -> None:
    body = lines(
        "global_store_b32 v0, v1, s[0:1]",
        "ds_store_b32 v0, v1",
        "s_waitcnt vmcnt(0) lgkmcnt(0)",
        "s_barrier",
        "s_waitcnt_vscnt null, 0x0",
        "s_barrier",
    )
    assert outstanding_at(program(body, "gfx1100")) == {3: (0,), 5: ()}


def test_a_split_barrier_counts_where_the_wave_signals() -> None:
    body = lines(
        "ds_store_b32 v0, v1",
        "s_barrier_signal -1",
        "s_wait_dscnt 0x0",
        "s_barrier_wait -1",
    )
    assert outstanding_at(program(body, "gfx1201")) == {1: (0,)}


def test_one_iteration_meets_the_barrier_of_the_next() -> None:
    body = lines(
        ".Lloop:",
        "s_barrier",
        "ds_write_b32 v0, v1",
        "s_cbranch_scc1 .Lloop",
    )
    assert outstanding_at(program(body, "gfx942")) == {0: (1,)}


def test_messages_and_write_backs_are_no_accesses() -> None:
    body = lines("buffer_wbl2 sc1", "s_memtime s[2:3]", "s_barrier")
    assert outstanding_at(program(body, "gfx942")) == {2: ()}


def test_programs_without_barriers() -> None:
    assert outstanding_at(program("\tds_write_b32 v0, v1", "gfx942")) == {}


STORE_LDS = "\tds_write_b32 v0, v1\n"
LOAD_LDS = "\tds_read_b32 v2, v0\n"
WAIT_LDS = "\ts_waitcnt lgkmcnt(0)\n"
BARRIER = "\ts_barrier\n"


@pytest.mark.parametrize(
    ("body", "barriers"),
    [
        (STORE_LDS + WAIT_LDS + BARRIER + LOAD_LDS, []),
        (STORE_LDS + BARRIER + LOAD_LDS, [1]),
        (STORE_LDS + BARRIER + WAIT_LDS + LOAD_LDS, [1]),
        # The first barrier orders nothing that is read before the second one.
        (STORE_LDS + BARRIER + WAIT_LDS + BARRIER + LOAD_LDS, []),
        (LOAD_LDS + BARRIER + LOAD_LDS, []),
    ],
)
def test_stores_that_others_may_miss(body: str, barriers: list[int]) -> None:
    assert list(unfinished_stores(program(body, "gfx942"))) == barriers
