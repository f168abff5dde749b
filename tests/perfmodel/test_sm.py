"""Predictions of NVIDIA launches: times, accounts and what-ifs of small PTX kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.perfmodel import sm_code
from tests.perfmodel.interval import interval_of
from wavecast import arch
from wavecast.analyze import analyze_nvidia, sass_program
from wavecast.compile.codeobject import Launch
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.launches import changes_of, launch_timing
from wavecast.perfmodel.notes import Note
from wavecast.perfmodel.predict import predict, subject_of
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.perfmodel.sm.profile import profile_of_sass
from wavecast.perfmodel.sm.requests import passes, repeats, sectors
from wavecast.pipeline.explain.prediction import predict_launch

DEVICES = {"sm_80": "a100_80g_sxm", "sm_90": "h100_sxm", "sm_100": "b200"}
FULL = 4 << 20
"""Threads that take every element of an array of 16 MiB."""

SHARED = """
 mul.lo.u32 %r6, %r1, {stride}; and.b32 %r6, %r6, 8188; mov.u32 %r7, room;
 add.u32 %r6, %r6, %r7; mov.u32 %r5, 0; mov.f32 %f2, 0f00000000;
NEXT: ld.volatile.shared.f32 %f1, [%r6]; add.f32 %f2, %f2, %f1;
 add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r9; @%p1 bra NEXT;
 mul.wide.u32 %d3, %r4, 4; add.s64 %d5, %d2, %d3; st.global.f32 [%d5], %f2; ret;
"""


def profile(launch: Launch) -> LaunchProfile:
    device = arch.load(DEVICES[launch.code.target])
    program = sass_program(launch.code)
    analysis = analyze_nvidia(launch.code, device, launch, program)
    return profile_of_sass(launch, analysis, program, device)


def seconds(launch: Launch) -> float:
    return launch_timing(profile(launch), arch.load(DEVICES[launch.code.target])).seconds


@pytest.mark.parametrize("target", DEVICES)
def test_a_copy_takes_its_bytes_over_the_bandwidth(target: str) -> None:
    given = sm_code.launch(sm_code.COPY, target, grid=FULL // 256, threads=256)
    device = arch.load(DEVICES[target])
    found = launch_timing(profile(given), device)
    least = 2 * (16 << 20) / Chip.of(device).hbm
    assert found.bounds["memory"] == pytest.approx(least, rel=0.01)
    assert least + found.launch <= found.seconds < 1.5 * least + found.launch + 3e-6


def test_a_loop_takes_as_long_as_its_trips() -> None:
    """Each trip waits for a load; a long loop is folded, which changes little."""
    times = [
        seconds(sm_code.launch(sm_code.LOOP, grid=1, threads=32, number=n)) for n in (8, 64, 512)
    ]
    per_trip = np.diff(times) / (56, 448)
    assert per_trip[1] == pytest.approx(per_trip[0], rel=0.25)
    assert per_trip[0] > 50e-9


def test_more_workgroups_than_fit_run_in_rounds() -> None:
    """Twice the workgroups of a full device take twice as long, less what rounds overlap."""
    body = SHARED.format(stride=4)
    one, two = (
        seconds(sm_code.launch(body, grid=132 * 16 * n, threads=128, number=2000)) for n in (1, 2)
    )
    launch = Chip.of(arch.load("h100_sxm")).launch
    assert (two - launch) / (one - launch) == pytest.approx(2.0, rel=0.15)


def test_bank_conflicts_cost_their_passes_and_a_what_if_says_so() -> None:
    plain, conflicted = (
        sm_code.launch(SHARED.format(stride=stride), grid=132 * 8, threads=256, number=500)
        for stride in (4, 128)
    )
    assert seconds(conflicted) > 8 * seconds(plain)
    device = arch.load("h100_sxm")
    found = predict(profile(conflicted), device, what_if=True)
    saved = {entry.change: entry.time_saved for entry in found.what_if}
    assert saved["LDS without bank conflicts"] > 0.8
    assert found.limiter == "LDS"


def test_the_account_adds_up_to_the_time() -> None:
    found = predict(profile(sm_code.launch(sm_code.LOOP, number=20)), arch.load("h100_sxm"))
    for kind in ("line", "stall", "top-down"):
        total = sum(share.seconds for share in found.lines if share.kind == kind)
        assert total == pytest.approx(found.seconds, rel=1e-6)
    subject = subject_of(profile(sm_code.launch(sm_code.LOOP, number=20)))
    ends = interval_of(found, subject, arch.load("h100_sxm"))
    assert (found.low, found.high) == pytest.approx(ends)
    assert found.fidelity == "static"


def test_what_depends_on_data_has_a_reason_instead_of_a_time() -> None:
    given = sm_code.launch(sm_code.DATA_LOOP)
    device = arch.load("h100_sxm")
    program = sass_program(given.code)
    analysis = analyze_nvidia(given.code, device, given, program)
    found = predict_launch(given, analysis, program, device)
    assert found.prediction is None
    assert "depends on data" in found.why_not


def test_addresses_from_data_count_as_contiguous_with_a_note() -> None:
    found = profile(sm_code.launch(sm_code.GATHER))
    assert Note.UNKNOWN_ADDRESSES in found.notes


def test_scattered_lanes_move_more_sectors_than_contiguous_ones() -> None:
    order = np.arange(FULL, dtype=np.uint32)
    scattered = (order * np.uint32(2654435761)) % np.uint32(FULL)
    found = [
        profile(sm_code.launch(sm_code.GATHER, grid=1024, content=indices.tobytes())).traffic
        for indices in (order, scattered)
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert found[1].l2 > 3 * found[0].l2


def test_a_profile_runs_on_another_device_of_its_target_only() -> None:
    from wavecast.errors import UsageError

    own = profile(sm_code.launch(sm_code.COPY))
    assert launch_timing(own, arch.load("h200")).seconds > 0
    with pytest.raises(UsageError, match="not for"):
        changes_of(own, arch.load("b200"))


def test_an_opcode_without_a_cost_is_refused_by_name() -> None:
    given = sm_code.launch(sm_code.COPY)
    text = given.code.stages["sass"]
    assert isinstance(text, str)
    odd = replace(given.code, stages={**given.code.stages, "sass": text.replace("S2R", "XYZZY")})
    device = arch.load("h100_sxm")
    program = sass_program(odd)
    changed = replace(given, code=odd)
    found = predict_launch(changed, analyze_nvidia(odd, device, changed, program), program, device)
    assert found.prediction is None
    assert "XYZZY" in found.why_not


ALL = np.ones((1, 32), bool)


@pytest.mark.parametrize(
    ("stride", "width", "expected"),
    [(4, 4, 1), (128, 4, 32), (8, 4, 2), (0, 4, 1), (8, 8, 2), (16, 16, 4), (64, 16, 16)],
)
def test_passes_are_the_words_of_the_fullest_bank(stride: int, width: int, expected: int) -> None:
    addresses = (np.arange(32, dtype=np.uint64) * np.uint64(stride))[None, :]
    assert passes(addresses, ALL, width).tolist() == [expected]


def test_sectors_and_lines_of_requests() -> None:
    addresses = np.arange(32, dtype=np.uint64)[None, :] * np.uint64(4) + np.uint64(16)
    found, start, lines = sectors(addresses, ALL, 4)
    assert found.tolist() == [0, 1, 2, 3, 4]
    assert start.tolist() == [0, 5]
    assert lines.tolist() == [2]


def test_lanes_of_an_atomic_with_one_address_wait_for_each_other() -> None:
    addresses = np.repeat(np.arange(8, dtype=np.uint64), 4)[None, :]
    assert repeats(addresses, ALL).tolist() == [24]
