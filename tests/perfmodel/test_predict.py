"""Predictions of launches: parts add up, changes bring what they must, bounds are floors."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import msgspec
import pytest
from rich.console import Console

from tests.analyze.support import code as code_object
from tests.perfmodel.cu.support import compiled, flattened
from tests.perfmodel.interval import interval_of
from wavecast.arch import resolve
from wavecast.errors import UsageError
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.cu.simulation import Simulation, timing
from wavecast.perfmodel.cu.whatif import Changes
from wavecast.perfmodel.notes import NOT_SIMULATED, Note, text
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.predict import predict, subject_of
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.profile import LaunchProfile, LevelTraffic, ProfileSource, SampleCoverage
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.report.execution.perfetto_unit import Timeline, dumps
from wavecast.report.explain import prediction as shown
from wavecast.report.explain import terminal_prediction, words

BODY = """
 global_load_dwordx4 v[4:7], v[2:3], off
 s_waitcnt vmcnt(0)
 v_mfma_f32_32x32x8_bf16 a[0:15], v[4:5], v[6:7], a[0:15]
 v_mfma_f32_32x32x8_bf16 a[0:15], v[4:5], v[6:7], a[0:15]
 s_barrier
 ds_write_b128 v1, v[4:7]
 s_waitcnt lgkmcnt(0)
 global_store_dwordx4 v[2:3], v[4:7], off"""


def profile(workgroups: int = 1216, resident: int = 2, device: str = "mi300x") -> LaunchProfile:
    chip = Chip.of(resolve(device).device)
    code = compiled(BODY, device)
    asked = (8, 1024, 1024, 1024)
    streams = flattened(code, 4, [(0, asked), (5, (0, 0, 0, 0, 32)), (7, asked)])
    moved = workgroups * 4 * 2048.0
    placement = LaunchPlacement(
        workgroups, 4, 64, "CU", resident, chip.units, chip.dies, chip.simds
    )
    return LaunchProfile(
        program=code.program,
        target=chip.device.target,
        source=ProfileSource.CODE,
        placement=placement,
        streams=streams,
        traffic=LevelTraffic(moved, moved, moved),
        dtype="bf16",
        notes=(Note.WAVES_ALIKE,),
    )


def timed(given: LaunchProfile, device: str = "mi300x") -> LaunchTiming:
    return timing(given, resolve(device).device)


def predicted(given: LaunchProfile, *, what_if: bool = False) -> Prediction:
    return predict(given, resolve("mi300x").device, what_if=what_if)


def test_dies_write_back_what_a_launch_updated() -> None:
    """Lines that were read and written wait for the end; one die has nothing to write back."""
    before = profile(304)
    assert before.traffic is not None
    moved = before.traffic.mall
    written = replace(before, traffic=replace(before.traffic, written=moved / 2))
    updated = replace(before, traffic=replace(before.traffic, written=moved / 2, updated=moved / 2))
    chip = Chip.of(resolve("mi300x").device)
    least = moved / 2 / (chip.dies * chip.coefficient("cache", "die_writes"))
    assert timed(written).seconds == pytest.approx(timed(before).seconds)
    assert timed(updated).seconds == pytest.approx(timed(written).seconds + least, rel=0.05)


@pytest.mark.parametrize("workgroups", [1, 300, 304, 305, 5000])
def test_every_kind_of_share_adds_up_to_the_time(workgroups: int) -> None:
    found = predicted(profile(workgroups))
    for kind in ("line", "stall", "top-down"):
        parts = [share.seconds for share in found.lines if share.kind == kind]
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(found.seconds, rel=1e-6)
    assert (found.low, found.high) == pytest.approx(
        interval_of(found, subject_of(profile(workgroups)), resolve("mi300x").device)
    )
    assert found.bounds[found.limiter] == max(found.bounds.values())


def test_more_work_takes_longer_and_never_less_than_a_bound() -> None:
    times = []
    for workgroups in (1, 304, 608, 3040, 30400):
        found = timed(profile(workgroups))
        assert found.seconds >= max(found.bounds.values())
        times.append(found.seconds)
    assert times == sorted(times)
    assert times[-1] > 5 * times[-2] > 5 * 2 * times[0] / 2


def test_steady_pace_stands_for_workgroups_not_simulated() -> None:
    few, many = timed(profile(304 * 40)), timed(profile(304 * 400))
    assert many.clocks == pytest.approx(10 * few.clocks, rel=0.05)


def test_changes_are_simulations_of_something_else() -> None:
    given = Simulation.of(profile(6080), resolve("mi300x").device)
    changes = Changes(given)
    now = given.run()
    found = {change.change: change for change in changes.all(now)}
    conflicting = given.code.lds_bytes > 0
    assert now.unit.busy["LDS"] > changes.contiguous(conflicting).unit.busy["LDS"]
    assert found["memory bandwidth free"].time_saved > 0
    assert all(change.seconds > 0 for change in found.values())
    for change in found.values():
        assert change.time_saved == pytest.approx(1 - change.seconds / now.seconds)
    assert min(change.time_saved for name, change in found.items() if name.endswith("free")) > 0
    slower = changes.at(given.chip.clock / 2)
    assert slower.seconds > now.seconds


def test_a_profile_is_predicted_on_other_devices_of_its_target() -> None:
    """An MI300A has fewer units on fewer dies, an MI325X has faster memory."""
    given = profile(6080)
    here, smaller, faster = (timed(given, name) for name in ("mi300x", "mi300a", "mi325x"))
    placement = smaller.placement
    assert (placement.units, placement.dies, placement.resident) == (228, 6, 2)
    assert faster.seconds < here.seconds < smaller.seconds
    with pytest.raises(UsageError, match="gfx942"):
        timed(given, "mi355x")


def test_notes_become_words_in_the_prediction() -> None:
    found = predicted(profile())
    assert found.fidelity == "static"
    assert found.not_modelled == tuple(map(text, (Note.WAVES_ALIKE, *NOT_SIMULATED)))


def test_a_sample_that_covers_little_widens_the_interval_and_says_so() -> None:
    coverages = SampleCoverage(4, 4, 0.0), SampleCoverage(3, 4, 0.0), SampleCoverage(4, 4, 0.5)
    given = replace(profile(), source=ProfileSource.SAMPLE)
    full, partial, uneven = (predicted(replace(given, coverage=c)) for c in coverages)
    assert full.fidelity == "executed"
    assert "3 of the 4 workgroups of a compute unit were executed" in partial.notes
    assert "workgroups execute 50% more or less than each other" in uneven.notes
    assert not {*partial.notes, *uneven.notes} <= {*full.notes}
    assert full.low > partial.low > uneven.low
    assert full.seconds == partial.seconds == uneven.seconds


def test_every_chip_with_these_instructions_has_a_time() -> None:
    for device in ("mi300a", "mi300x", "mi325x", "mi355x"):
        assert timed(profile(device=device), device).seconds > 0


def test_reports_show_it() -> None:
    found = predicted(profile(), what_if=True)
    entry = shown.entry(found)
    assert entry is not None
    assert msgspec.json.decode(msgspec.json.encode(entry))["limiter"] == found.limiter
    out = StringIO()
    console = Console(file=out, width=80)
    for part in terminal_prediction.sections(
        found, code_object(), 80, words.of(resolve("mi300x").device), full=True
    ):
        console.print(part)
    assert "what if" in out.getvalue()
    assert max(len(line) for line in out.getvalue().splitlines()) <= 80


def test_the_timeline_holds_every_instruction_of_a_unit() -> None:
    given = profile(1, 1)
    found = timing(given, resolve("mi300x").device, events=1000)
    document = json.loads(dumps([Timeline(code_object(), given.program, found)]))
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == 4 * len(given.program.instructions)
    assert all(event["dur"] > 0 for event in slices)
    end = max(event["ts"] + event["dur"] for event in slices) * 1e-6
    assert end == pytest.approx(found.clocks / found.clock, rel=0.05)


def test_a_chip_overlay_changes_the_time() -> None:
    given = Simulation.of(profile(6080), resolve("mi300x").device)
    wider = replace(given.chip, hbm=given.chip.hbm * 2, mall_bandwidth=None, mall_bytes=0.0)
    assert replace(given, chip=wider).run().seconds < given.run().seconds
