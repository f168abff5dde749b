"""Estimates of launches: from code, from a sample, and why there is none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import assembly, pointers
from wavecast import arch
from wavecast.compile.assembly import load
from wavecast.compile.codeobject import Launch
from wavecast.errors import UsageError
from wavecast.sampling.estimate import CodeEstimate, estimate, simulate

COPY = """
	global_load_dword v4, v1, s[8:9]
	s_waitcnt vmcnt(0)
	global_store_dword v1, v4, s[10:11]"""
BY_DATA = """
	s_load_dword s20, s[8:9], 0x0
	s_waitcnt lgkmcnt(0)
.LBB0_1:
	s_add_i32 s20, s20, -1
	s_cmp_lg_u32 s20, 0
	s_cbranch_scc1 .LBB0_1
	global_store_dword v1, v1, s[10:11]"""


def launched(body: str, trips: int = 64, groups: int = 1216) -> tuple[CodeEstimate, np.ndarray]:
    given, out = np.full(64, trips, np.uint32), np.zeros(64, np.uint32)
    launch, ranges = prepared(body, given, out, groups)
    return estimate(launch, ranges, arch.load("mi300x")), out


def prepared(body: str, given: np.ndarray, out: np.ndarray, groups: int):
    (code,) = load(assembly("gfx942", "\ts_waitcnt lgkmcnt(0)\n" + body), "gfx942")
    launch = Launch(code, (groups, 1, 1), (64, 1, 1), (), pointers((given, out)))
    ranges = [(array.ctypes.data, array.ctypes.data + array.nbytes) for array in (given, out)]
    return launch, ranges


def test_code_that_says_enough_is_not_executed() -> None:
    found, out = launched(COPY)
    assert found.prediction is not None
    assert found.prediction.fidelity == "static"
    assert found.why_not == ""
    assert not out.any()
    resources = found.resources
    assert (resources.spills, resources.lds_bytes, resources.matrix) == (0, 0, False)
    assert resources.registers == 64


def test_trips_that_data_decides_are_sampled() -> None:
    times = []
    for trips in (64, 6400):
        found, out = launched(BY_DATA, trips)
        assert found.prediction is not None
        assert found.prediction.fidelity == "executed"
        assert not out.any(), "the sample ran on copies"
        times.append(found.prediction.seconds)
    assert times[1] > 5 * times[0]


def test_another_target_is_refused() -> None:
    launch, ranges = prepared(COPY, np.zeros(64, np.uint32), np.zeros(64, np.uint32), 4)
    with pytest.raises(UsageError, match="gfx942"):
        simulate(launch, ranges, arch.load("mi355x"))


def test_a_sample_that_reads_elsewhere_says_so() -> None:
    launch, ranges = prepared(COPY, np.zeros(64, np.uint32), np.zeros(64, np.uint32), 4)
    found = simulate(launch, ranges[1:], arch.load("mi300x"))
    assert isinstance(found, str)
    assert found
