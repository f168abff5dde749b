"""Launches that the laboratory searches when a script makes them."""

from __future__ import annotations

from tests.lab.conftest import Captured
from wavecast.errors import CompileError
from wavecast.lab.evaluation import LabSubject
from wavecast.lab.live import LiveSampler


class Search:
    """Keeps the launches of a search, and refuses those of `refused`."""

    def __init__(self, refused: str = "") -> None:
        self.subjects: list[LabSubject] = []
        self._refused = refused

    def search(self, subject: LabSubject) -> None:
        if self._refused:
            raise CompileError(f"{subject.launch.code.kernel}: {self._refused}")
        self.subjects.append(subject)


def test_launches_through_hip_are_searched_in_their_memory(captured: Captured) -> None:
    subject, notes = captured.subject, []
    search = Search()
    sampler = LiveSampler(subject.devices, search, notes.append)
    assert sampler.sample_ranges(subject.launch, subject.ranges) == {}
    assert search.subjects == [subject]
    refusing = LiveSampler(subject.devices, Search("no loop"), notes.append)
    refusing.sample_ranges(subject.launch, subject.ranges)
    assert notes == ["scaled: not searched: no loop"]
