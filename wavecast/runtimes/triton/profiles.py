"""Captured launches, with the profiles of those of which a sample was executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from wavecast.compile.codeobject import Launch
from wavecast.runtimes.triton.launches import identity
from wavecast.systems.sources.calls import GraphLibraryCall, OperatorCall

if TYPE_CHECKING:
    from wavecast.arch import Device
    from wavecast.perfmodel.profile import LaunchProfile


class CapturedProfiles:
    """Profiles of executed samples, by launch and device."""

    def __init__(self) -> None:
        self._known: dict[tuple, dict[str, LaunchProfile]] = {}

    def add(self, launch: Launch, profiles: Mapping[str, LaunchProfile]) -> None:
        """Add the profiles of a launch, by the name of the device."""
        self._known.setdefault(identity(launch), {}).update(profiles)

    def update(self, other: CapturedProfiles) -> None:
        """Add the profiles of another capture."""
        for key, profiles in other._known.items():
            self._known.setdefault(key, {}).update(profiles)

    def of_launch(self, launch: Launch) -> Mapping[str, LaunchProfile]:
        """The profiles of a launch, by the name of the device; {} without a sample."""
        return self._known.get(identity(launch), {})

    def of(self, launch: Launch, device: Device) -> LaunchProfile | None:
        """The profile of a launch on a device, None without a sample."""
        return self.of_launch(launch).get(device.id)


class CapturedLaunches(list[Launch]):
    """The distinct launches of a capture, the profiles of those that were sampled, and the distinct
    calls of libraries by code that `torch.compile` generated."""

    def __init__(self) -> None:
        super().__init__()
        self.profiles = CapturedProfiles()
        self.library_calls: list[GraphLibraryCall] = []

    def add_call(self, call: OperatorCall, lines: tuple[str, ...]) -> None:
        """Add a call of a library, or count it once more."""
        for index, entry in enumerate(self.library_calls):
            if entry.lines == lines and entry.call == call:
                self.library_calls[index] = replace(entry, count=entry.count + 1)
                return
        self.library_calls.append(GraphLibraryCall(call, lines))


__all__ = ["CapturedLaunches", "CapturedProfiles"]
