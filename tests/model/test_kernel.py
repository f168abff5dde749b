"""Predictions of launches: parts add up, changes bring what they must, bounds are floors."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests.analyze.support import code as code_object
from tests.model.cu.support import compiled, flattened
from wavecast.arch import resolve
from wavecast.model.chip import Chip
from wavecast.model.kernel import predicted
from wavecast.model.launch import Grid, Launched, Traffic, timing
from wavecast.model.whatif import Changes
from wavecast.report import prediction as shown
from wavecast.report import terminal_prediction
from wavecast.report.perfetto_unit import Timeline, dumps

BODY = """
 global_load_dwordx4 v[4:7], v[2:3], off
 s_waitcnt vmcnt(0)
 v_mfma_f32_32x32x8_bf16 a[0:15], v[4:5], v[6:7], a[0:15]
 v_mfma_f32_32x32x8_bf16 a[0:15], v[4:5], v[6:7], a[0:15]
 s_barrier
 ds_write_b128 v1, v[4:7]
 s_waitcnt lgkmcnt(0)
 global_store_dwordx4 v[2:3], v[4:7], off"""


def launched(workgroups: int = 1216, resident: int = 2, device: str = "mi300x") -> Launched:
    chip = Chip.of(resolve(device).device)
    code = compiled(BODY, device)
    asked = (8, 1024, 1024, 1024)
    streams = flattened(code, 4, [(0, asked), (5, (0, 0, 0, 0, 32)), (7, asked)])
    moved = workgroups * 4 * 2048.0
    grid = Grid(workgroups, 4, resident, chip.units, chip.dies, chip.simds)
    return Launched(chip, code, streams, grid, Traffic(moved, moved, moved), "bf16", ())


@pytest.mark.parametrize("workgroups", [1, 300, 304, 305, 5000])
def test_every_kind_of_share_adds_up_to_the_time(workgroups: int) -> None:
    given = launched(workgroups)
    found = predicted(given, given.code.program, "static")
    for kind in ("line", "stall", "top-down"):
        parts = [share.seconds for share in found.lines if share.kind == kind]
        assert min(parts) >= 0
        assert sum(parts) == pytest.approx(found.seconds, rel=1e-6)
    assert found.low <= found.seconds <= found.high
    assert found.bounds[found.limiter] == max(found.bounds.values())


def test_more_work_takes_longer_and_never_less_than_a_bound() -> None:
    times = []
    for workgroups in (1, 304, 608, 3040, 30400):
        found = timing(launched(workgroups))
        assert found.seconds >= max(found.bounds.values())
        times.append(found.seconds)
    assert times == sorted(times)
    assert times[-1] > 5 * times[-2] > 5 * 2 * times[0] / 2


def test_steady_pace_stands_for_workgroups_not_simulated() -> None:
    few, many = timing(launched(304 * 40)), timing(launched(304 * 400))
    assert many.clocks == pytest.approx(10 * few.clocks, rel=0.05)


def test_changes_are_simulations_of_something_else() -> None:
    given = launched(6080)
    changes = Changes(given)
    now = timing(given)
    found = {change.change: change for change in changes.all(now)}
    conflicting = changes.launched.code.lds_bytes > 0
    assert (
        timing(launched(6080)).unit.busy["LDS"] > changes.contiguous(conflicting).unit.busy["LDS"]
    )
    assert found["memory bandwidth free"].gain > 0
    assert all(change.seconds > 0 for change in found.values())
    for change in found.values():
        assert change.gain == pytest.approx(1 - change.seconds / now.seconds)
    assert min(change.gain for name, change in found.items() if name.endswith("free")) > 0
    slower = changes.at(given.chip.clock / 2)
    assert slower.seconds > now.seconds
    assert changes.on(Chip.of(resolve("mi325x").device)).seconds < now.seconds


def test_every_chip_with_these_instructions_has_a_time() -> None:
    for device in ("mi300a", "mi300x", "mi325x", "mi355x"):
        assert timing(launched(device=device)).seconds > 0


def test_reports_show_it() -> None:
    given = launched()
    found = predicted(given, given.code.program, "static", what_if=True)
    entry = shown.entry(found)
    assert entry is not None
    assert json.loads(json.dumps(entry, allow_nan=False))["limiter"] == found.limiter
    out = StringIO()
    console = Console(file=out, width=80)
    for part in terminal_prediction.sections(found, code_object(), 80, full=True):
        console.print(part)
    assert "what if" in out.getvalue()
    assert max(len(line) for line in out.getvalue().splitlines()) <= 80


def test_the_timeline_holds_every_instruction_of_a_unit() -> None:
    given = launched(1, 1)
    found = timing(given, events=1000)
    document = json.loads(dumps([Timeline(code_object(), given.code.program, found)]))
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == 4 * len(given.code.program.instructions)
    assert all(event["dur"] > 0 for event in slices)
    end = max(event["ts"] + event["dur"] for event in slices) * 1e-6
    assert end == pytest.approx(found.clocks / found.clock, rel=0.05)


def test_a_chip_overlay_changes_the_time() -> None:
    given = launched(6080)
    wider = replace(given.chip, hbm=given.chip.hbm * 2, mall_bandwidth=None, mall_bytes=0.0)
    assert timing(replace(given, chip=wider)).seconds < timing(given).seconds
