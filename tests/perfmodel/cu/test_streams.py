"""What recordings stand for: every wave executes what its launch says, however it was recorded."""

from __future__ import annotations

import numpy as np
import pytest

from tests.perfmodel.cu.support import compiled
from wavecast.perfmodel.cu.recorded import streams
from wavecast.perfmodel.streams import REQUEST, Streams, Wave

BODY = """
 v_mov_b32_e32 v0, 0
.Lloop:
 v_add_f32_e32 v1, v1, v1
 s_cmp_lt_u32 s0, s1
 s_cbranch_scc1 .Lloop
.Lend:
 v_add_f32_e32 v3, v3, v3"""
START, LOOP, END = 0, 1, 2


def wave(turns: int, *, complete: bool) -> Wave:
    blocks = [START, *[LOOP] * turns, *([END] if complete else [])]
    none = np.zeros((0, REQUEST), np.float32)
    return Wave(np.array(blocks, np.uint32), np.zeros(0, np.uint32), none, complete)


def executed(found: Streams, code_length: int) -> np.ndarray:
    """Executions per instruction of every wave."""
    spans = list(zip(found.start, found.start[1:], strict=False))
    return np.array(
        [np.bincount(found.steps[a:b], found.weights[a:b], code_length) for a, b in spans]
    )


@pytest.mark.parametrize("turns", [60, 5000])
def test_what_a_cut_recording_lacks_is_its_own(turns) -> None:
    """A recording to the end counts as it is; the others go on to theirs, the end included."""
    code = compiled(BODY)
    of_launch = np.array([3.0, 3.0 * turns, 3.0])
    recorded = [[wave(turns, complete=True)], *[[wave(20, complete=False)]] * 2]
    found = executed(streams(code, recorded, of_launch), len(code.slots))
    add = code.program.blocks[LOOP].start
    last = code.program.blocks[END].start
    assert found[:, add] == pytest.approx([turns] * 3, rel=1e-5)
    assert found[:, last] == pytest.approx([1, 1, 1])


def test_where_none_is_cut_all_stand_for_the_average() -> None:
    code = compiled(BODY)
    found = streams(code, [[wave(20, complete=True)]] * 2, np.array([2.0, 100.0, 2.0]))
    add = code.program.blocks[LOOP].start
    assert executed(found, len(code.slots))[:, add] == pytest.approx([50, 50])
