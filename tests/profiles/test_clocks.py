"""Profiles whose devices have other clocks than the host, or none that is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wavecast.profiles.answer import profiles
from wavecast.profiles.clocks import align
from wavecast.profiles.profile import Profile, ProfiledKernel
from wavecast.profiles.reading import read
from wavecast.profiles.summary import summarise

_HOUR = 3600 * 10**9


def _run(shift: int, calls: int = 3) -> Profile:
    """A kernel and a copy 10 µs after their calls, on a clock that is `shift` ahead."""
    profile = Profile("test")
    kernel, copy = profile.kernels.number(ProfiledKernel("k")), profile.copy_names.number("HtoD")
    name = profile.call_names.number("hipLaunchKernel")
    for number in range(calls):
        start = number * 100_000
        profile.calls.add(name, 0, start, 5_000, 2 * number)
        profile.calls.add(name, 0, start + 20_000, 5_000, 2 * number + 1)
        profile.launches.add(kernel, 0, 0, start + 10_000 + shift, 7_000, 2 * number)
        profile.copies.add(copy, 0, 0, start + 30_000 + shift, 4_000, 2 * number + 1)
    return profile


@pytest.mark.parametrize("shift", [_HOUR, -_HOUR, -5_000_000])
def test_a_shifted_clock_is_moved_to_that_of_the_host(shift: int) -> None:
    moved, plain = _run(shift), _run(0)
    align(moved)
    (note,) = moved.notes
    assert ("after" if shift > 0 else "before") in note
    for table in (moved.launches, moved.copies):
        starts = [start - table.start[0] for start in table.start]
        assert starts == [0, 100_000, 200_000]
    assert moved.launches.start[0] == moved.calls.start[0]
    assert moved.copies.start[0] == moved.calls.start[1]
    (device,), (expected,) = summarise(moved).devices, summarise(plain).devices
    assert (device.span, device.busy) == (expected.span, expected.busy)
    assert set(device.idle) == {"the host launched late"}


@pytest.mark.parametrize("shift", [0, 5_000_000, -900_000, 59 * 10**9])
def test_what_one_clock_can_have_stays(shift: int) -> None:
    profile = _run(shift)
    align(profile)
    assert profile.launches.start == _run(shift).launches.start
    assert profile.notes == []


def test_devices_are_moved_one_by_one() -> None:
    profile = _run(0)
    name = profile.call_names.number("hipLaunchKernel")
    profile.calls.add(name, 0, 500_000, 5_000, 99)
    profile.launches.add(0, 1, 0, 500_000 + _HOUR, 1_000, 99)
    align(profile)
    assert list(profile.launches.start) == [10_000, 110_000, 210_000, 500_000]
    (note,) = profile.notes
    assert "device 1 differ" in note
    assert "3,600 s after" in note


def _trace(path: Path, **more: Any) -> Path:
    kernel = {
        "ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 0, "ts": 1, "dur": 2,
        "args": {"device": 0, "stream": 0, "correlation": 1},
    }  # fmt: skip
    path.write_text(json.dumps({"traceEvents": [kernel], **more}))
    return path


@pytest.mark.parametrize(("version", "notes"), [(1, 0), (2, 1), ("1.0", 1)])
def test_another_version_of_the_schema_is_a_note(
    tmp_path: Path, version: object, notes: int
) -> None:
    profile = read(_trace(tmp_path / "t.json", schemaVersion=version))
    assert len(profile.launches) == 1
    assert [f"schemaVersion is {version!r}" in note for note in profile.notes] == [True] * notes


def test_a_chip_without_facts_is_described(tmp_path: Path) -> None:
    gpu = {"id": 0, "name": "Radeon 1234", "numSms": 77, "totalGlobalMem": 48 * 10**9}
    (answer,) = profiles(_trace(tmp_path / "t.json", deviceProperties=[gpu]))
    (note,) = answer.notes
    assert note.startswith("device 0, Radeon 1234 with 77 compute units or SMs and 48 GB, is none")
    assert answer.predicted is None
