"""The passes of the kernels that a script launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wavecast.errors import UsageError, WavecastError
from wavecast.integrations.triton import capture_script
from wavecast.integrations.triton.script import NOT_COMPUTED
from wavecast.lab.passes import PassReport, passes_of
from wavecast.pipeline.selection import Selection


@dataclass(frozen=True, slots=True)
class ScriptPasses:
    """One report per kernel text and device, and notes for the user."""

    reports: tuple[PassReport, ...]
    notes: tuple[str, ...]


def passes_of_script(
    script: Path,
    arguments: Sequence[str],
    selection: Selection,
    *,
    kernels: str = "",
    without: bool = True,
    quiet: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> ScriptPasses:
    """Run a script for each target and show the passes of every kernel it launches, each compiled
    kernel once. A kernel that cannot be shown is a note.

    Raises UsageError for an NVIDIA GPU, and as `capture_script`.
    """
    for device in selection.devices:
        if device.vendor != "amd":
            raise UsageError(f"{device.name}: only passes for AMD code are shown")
    progress(f"running {script.name} for {', '.join(selection.targets)}")
    captured = capture_script(script, arguments, selection.devices, kernels=kernels, quiet=quiet)
    notes = [note for note in captured.notes if note != NOT_COMPUTED]
    notes += [f"{one.kernel} for {one.target}: {one.message}" for one in captured.failures]
    reports: list[PassReport] = []
    seen: set[tuple[str, str]] = set()
    for target, launches in captured.launches.items():
        for launch in launches:
            for device in selection.on(target):
                identity = launch.code.digest, device.id
                if identity in seen:
                    continue
                seen.add(identity)
                progress(f"{launch.code.kernel} on {device.name}")
                try:
                    reports.append(passes_of(launch, device, without=without))
                except WavecastError as error:
                    notes.append(f"{launch.code.kernel} on {device.id}: {error.message}")
    return ScriptPasses(tuple(reports), (*selection.notes, *notes))


__all__ = ["ScriptPasses", "passes_of_script"]
