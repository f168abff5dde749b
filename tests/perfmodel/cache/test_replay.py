"""Requests through caches of known shapes, against counts by hand."""

from __future__ import annotations

import numpy as np

from wavecast.perfmodel.cache import accesses as a
from wavecast.perfmodel.cache import replay as r
from wavecast.perfmodel.cache.accesses import Accesses, MemoryTable
from wavecast.perfmodel.cache.geometry import Cache, DieCaches

ASKED = MemoryTable(
    path=np.array([a.VECTOR, a.VECTOR, a.VECTOR, a.SCALAR, a.VECTOR], np.int8),
    kind=np.array([a.LOAD, a.STORE, a.ATOMIC, a.LOAD, a.STORE], np.int8),
    width=np.full(5, 4, np.int32),
    phases=np.zeros(5, np.int32),
    lanes=np.full((1, 1, 1), -1, np.int32),
    banks=np.ones(1, np.int32),
)
LOAD, STORE, ATOMIC, SCALAR, LATER_STORE = range(5)
GEOMETRY = DieCaches(
    vector=Cache(128, 1, 4, 0),
    scalar=Cache(64, 1, 2, 0),
    scalar_units=2,
    l2=Cache(128, 4, 2, 2),
)


def replay(
    requests: list[tuple[int, list[int]]],
    units: list[int] | None = None,
    passes: int = 1,
    streams: list[int] | None = None,
    clock: list[float] | None = None,
):
    """Requests of (instruction, sectors), one after the other unless `clock` says when."""
    sectors = [request[1] for request in requests]
    number = len(requests)
    accesses = Accesses(
        stream=np.array(streams or [0] * number, np.int64),
        instruction=np.array([request[0] for request in requests], np.int64),
        array=np.zeros(number, np.int64),
        passes=np.zeros(number),
        lanes=np.full(number, 64),
        start=np.concatenate([[0], np.cumsum([len(s) for s in sectors])]).astype(np.int64),
        sectors=np.array([s for request in sectors for s in request], np.uint32),
    )
    unit = np.array(units or [0] * number, np.int64)
    moments = np.arange(number, dtype=float) if clock is None else np.array(clock)
    return r.replay(accesses, ASKED, unit, moments, GEOMETRY, passes)


def test_lines_are_filled_by_loads() -> None:
    found = replay([(LOAD, [0, 1, 2]), (LOAD, [3]), (LOAD, [4])])
    assert found[:, r.TAGS].tolist() == [2, 1, 1]
    assert found[:, r.L2].tolist() == [256, 0, 128]
    assert found[:, r.MISSED].tolist() == [256, 0, 128]


def test_each_unit_has_an_l1_and_all_share_the_l2() -> None:
    found = replay([(LOAD, [0]), (LOAD, [0])], units=[0, 1])
    assert found[:, r.L2].tolist() == [128, 128]
    assert found[:, r.MISSED].tolist() == [128, 0]


def test_the_line_used_longest_ago_goes() -> None:
    lines = [(LOAD, [2 * n]) for n in (0, 1, 2, 3, 0, 4, 0, 1)]
    assert replay(lines)[:, r.L2].tolist() == [128] * 4 + [0, 128, 0, 128]


def test_stores_pass_the_l1_and_stay_in_the_l2() -> None:
    found = replay([(STORE, [0, 1]), (STORE, [1]), (LOAD, [0])])
    assert found[:, r.L2].tolist() == [128, 64, 128]
    assert found[:, r.WRITTEN].tolist() == [128, 0, 0]
    assert found[:, r.MISSED].tolist() == [0, 0, 0]


def test_what_was_loaded_and_changed_is_written_too() -> None:
    found = replay([(LOAD, [0]), (STORE, [0]), (STORE, [0, 1])])
    assert found[:, r.WRITTEN].tolist() == [0, 64, 64]
    again = replay([(LOAD, [0]), (STORE, [0])], passes=2)
    assert again[:, r.WRITTEN].tolist() == [0, 64]


def test_what_was_read_before_is_updated() -> None:
    found = replay([(LOAD, [0]), (STORE, [0, 1]), (STORE, [8]), (STORE, [0])])
    assert found[:, r.UPDATED].tolist() == [0, 128, 0, 0]
    assert found[:, r.WRITTEN].tolist() == [0, 128, 64, 0]


def test_pieces_of_a_line_that_a_wave_writes_meet_in_the_l2() -> None:
    """Three waves write two halves of a sector of lines that share a set of two ways, in step: but
    a wave's stores come as one burst, unless it loads between them."""
    lines = [[2 * 4 * n] for n in range(3)]
    pieces = [(store, line) for line in lines for store in (STORE, LATER_STORE)]
    waves, steps = [0, 0, 1, 1, 2, 2], [0.0, 1.0] * 3
    assert replay(pieces, streams=waves, clock=steps)[:, r.WRITTEN].tolist() == [64, 0] * 3
    apart = [part for line in lines for part in ((STORE, line), (LOAD, line), (LATER_STORE, line))]
    found = replay(apart, streams=sorted([*waves, 0, 1, 2]), clock=[0.0, 1.0, 2.0] * 3)
    assert found[::3, r.WRITTEN].tolist() == found[2::3, r.WRITTEN].tolist() == [64] * 3


def test_stores_of_a_loop_are_bursts_of_their_iterations() -> None:
    """Two waves write two halves of each of three sectors, in a loop in step: they meet."""
    halves = [(STORE, [2 * 4 * n]) for n in range(3)]
    found = replay(halves * 2, streams=[0] * 3 + [1] * 3, clock=[0.0, 1.0, 2.0] * 2)
    assert found[:, r.WRITTEN].sum() == 3 * 64


def test_atomics_fetch_what_they_change() -> None:
    found = replay([(ATOMIC, [0]), (ATOMIC, [0])])
    assert found[:, r.MISSED].tolist() == [128, 0]
    assert found[:, r.WRITTEN].tolist() == [64, 0]


def test_units_share_a_scalar_cache() -> None:
    found = replay([(SCALAR, [0]), (SCALAR, [0]), (SCALAR, [0])], units=[0, 1, 2])
    assert found[:, r.L2].tolist() == [64, 0, 64]


def test_a_second_launch_finds_the_l2_of_the_first() -> None:
    found = replay([(LOAD, [0]), (LOAD, [2])], passes=2)
    assert found[:, r.L2].tolist() == [128, 128]
    assert found[:, r.MISSED].tolist() == [0, 0]


def test_channels_follow_from_addresses() -> None:
    """Lines four apart share a set of two ways: the third one misses again, others do not."""
    same = [(LOAD, [2 * 4 * n]) for n in range(3)] + [(LOAD, [0])]
    far = [(LOAD, [2 * n]) for n in range(3)] + [(LOAD, [0])]
    own = [0, 1, 2, 3]
    assert replay(same, own)[-1, r.MISSED] == 128
    assert replay(far, own)[-1, r.MISSED] == 0


def test_a_part_of_the_die_finds_a_part_of_the_ways() -> None:
    assert GEOMETRY.share(0.5).l2 == Cache(128, 4, 1, 2)
    assert GEOMETRY.share(0.01).l2.ways == 1
