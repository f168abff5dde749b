"""A search of the alternatives of a script's kernels."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wavecast.documents.base import dumps
from wavecast.documents.lab import LabSettingsDocument, SavedSettingJson
from wavecast.errors import InputError, NothingAnalysed, UsageError
from wavecast.integrations.triton import CaptureFailure, capture_script
from wavecast.integrations.triton.script import NOT_COMPUTED
from wavecast.lab import journal
from wavecast.lab.table import LabEntry, entries, settings_of
from wavecast.pipeline.selection import Selection

WORKER = "wavecast.lab.worker"
"""The module of the capturing process."""
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LabOptions:
    """How a search runs. `jobs` processes at once; of each device the `verify` fastest settings are
    executed. Results go to the file `journal`, "" for a temporary one; `resume` continues it."""

    jobs: int = 1
    verify: int = 4
    journal: str = ""
    resume: bool = False
    kernels: str = ""
    quiet: bool = True
    device_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabTuning:
    """The entries of a search, the kernels and targets that failed, and notes for the user."""

    entries: tuple[LabEntry, ...]
    failures: tuple[CaptureFailure, ...]
    notes: tuple[str, ...]


def tune(
    script: Path,
    arguments: Sequence[str],
    selection: Selection,
    options: LabOptions,
    progress: Progress = lambda _: None,
) -> LabTuning:
    """Run a script for each target and search alternatives of every kernel it launches.

    Raises UsageError for an NVIDIA GPU, InputError for a journal that an interrupted run left,
    NothingAnalysed for a script that launches no matching kernel, CaptureError, MissingTool.
    """
    for device in selection.devices:
        if device.vendor != "amd":
            raise UsageError(f"{device.name}: only AMD code has alternatives here")
    if not options.journal:
        with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
            here = replace(options, journal=str(Path(folder) / "journal"))
            return tune(script, arguments, selection, here, progress)
    path = Path(options.journal).absolute()
    if not options.resume and path.exists() and path.stat().st_size:
        raise InputError(
            f"{path} has results of an interrupted run",
            hint="continue it with --resume, or delete the file to start again",
        )
    try:
        path.open("a").close()
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    seen = 0

    def poll() -> None:
        nonlocal seen
        size = path.stat().st_size
        if size != seen:
            seen = size
            count = path.read_bytes().count(b"\n")
            progress(f"{count} results")

    captured = capture_script(
        script,
        arguments,
        selection.devices,
        kernels=options.kernels,
        quiet=options.quiet,
        worker=WORKER,
        settings={
            "devices": [device.id for device in selection.devices],
            "device_files": list(options.device_files),
            "journal": str(path),
            "jobs": options.jobs,
            "verify": options.verify,
        },
        at_once=1,
        on_poll=poll,
    )
    notes = tuple(note for note in captured.notes if note != NOT_COMPUTED)
    found = tuple(entries(journal.read(path)))
    if not found and not captured.failures:
        raise NothingAnalysed(f"{script.name}: no kernel was searched", hint="; ".join(notes))
    path.unlink(missing_ok=True)
    return LabTuning(found, captured.failures, (*selection.notes, *notes))


def save_settings(found: Sequence[LabEntry], path: Path) -> int:
    """Write the best settings to a file that `wavecast.lab.load` reads, and changed LLVM IR next to
    it; the number of settings. Raises InputError where a file cannot be written."""
    saved: list[SavedSettingJson] = []
    try:
        for setting, llir in settings_of(found):
            ir = ""
            if llir:
                file = path.with_name(f"{path.stem}.{setting.kernel}.{setting.target}.llir")
                _write(file, llir)
                ir = str(file)
            saved.append(SavedSettingJson.of(setting, ir=ir))
        _write(path, dumps(LabSettingsDocument(saved), indent=1) + "\n")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    return len(saved)


def _write(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


__all__ = ["WORKER", "LabOptions", "LabTuning", "save_settings", "tune"]
