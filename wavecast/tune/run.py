"""Tuning the autotuned kernels of a script."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from wavecast.errors import InputError, NothingAnalysed, UsageError
from wavecast.integrations.triton import CaptureFailure, capture_script
from wavecast.integrations.triton.script import NOT_COMPUTED
from wavecast.pipeline.selection import Selection
from wavecast.tune import records
from wavecast.tune.search import search
from wavecast.tune.settings import SPACES, Settings
from wavecast.tune.table import Table

Progress = Callable[[str], None]

WORKER = "wavecast.tune.worker"


@dataclass(frozen=True, slots=True)
class Tuned:
    """The table, kernels and targets that failed, and lines the user must see once."""

    table: Table
    failures: tuple[CaptureFailure, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """What is tuned: a script, its arguments, the kernels that count (a regular expression), and
    whether what it prints is shown."""

    path: Path
    arguments: tuple[str, ...] = ()
    kernels: str = ""
    quiet: bool = True


def tune(
    script: Script,
    selection: Selection,
    settings: Settings,
    progress: Progress = lambda _: None,
    *,
    resume: bool = False,
    ray: str = "",
) -> Tuned:
    """Run a script for each target and search the configurations of its autotuned calls.

    Results go to the journal `settings.journal` as they are found; `resume` goes on with what is
    there, and the journal is removed at the end. Without a path it is a temporary file. `ray` is
    the address of a Ray cluster that shares the work. Raises NothingAnalysed for a script without
    autotuned launches, UsageError for a name that is not known or an NVIDIA GPU, InputError for a
    journal that cannot be written or that an interrupted run left, MissingTool without PyTorch or
    Triton.
    """
    search(settings.search)
    if settings.space not in SPACES:
        raise UsageError(f"unknown space {settings.space!r}", hint=f"one of {', '.join(SPACES)}")
    for device in selection.devices:
        if not device.target.startswith("gfx"):
            raise UsageError(f"{device.name}: only AMD code is predicted")
    settings = replace(settings, devices=tuple(d.id for d in selection.devices))
    if not settings.journal:
        with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
            journal = Path(folder) / "journal"
            _prepare(journal, resume=False)
            here = replace(settings, journal=str(journal))
            return _tuned(script, selection, here, progress, ray)
    journal = Path(settings.journal).absolute()
    _prepare(journal, resume=resume)
    here = replace(settings, journal=str(journal))
    tuned = _tuned(script, selection, here, progress, ray)
    journal.unlink(missing_ok=True)
    return tuned


def _prepare(journal: Path, *, resume: bool) -> None:
    if not resume and journal.exists() and journal.stat().st_size:
        raise InputError(
            f"{journal} holds results of a run that was interrupted",
            hint="--resume goes on with them; remove the file to start anew",
        )
    try:
        journal.open("a").close()
    except OSError as error:
        raise InputError(f"cannot write {journal}: {error.strerror}") from None


def _tuned(
    script: Script, selection: Selection, settings: Settings, progress: Progress, ray: str
) -> Tuned:
    journal = Path(settings.journal)
    if ray:
        from wavecast.tune.ray import spread

        failures, notes = spread(ray, script, selection, settings, progress)
    else:
        failures, notes = capture(script, selection, settings, _watched(journal, progress))
    table = Table.of(records.read(journal))
    if not table.entries and not failures:
        matching = f" that matches {script.kernels!r}" if script.kernels else ""
        raise NothingAnalysed(
            f"{script.path.name} launches no autotuned kernel{matching}",
            hint="decorate the kernel with @triton.autotune, or use wavecast explain",
        )
    return Tuned(table, failures, (*selection.notes, *notes))


def capture(
    script: Script,
    selection: Selection,
    settings: Settings,
    on_poll: Callable[[], None] | None = None,
) -> tuple[tuple[CaptureFailure, ...], tuple[str, ...]]:
    """Run the script, one target after the other, tuning as `settings` say: failures, notes."""
    found = capture_script(
        script.path,
        script.arguments,
        selection.devices,
        kernels=script.kernels,
        quiet=script.quiet,
        worker=WORKER,
        settings=settings.to_json(),
        at_once=1,
        on_poll=on_poll,
    )
    return found.failures, tuple(note for note in found.notes if note != NOT_COMPUTED)


def _watched(journal: Path, progress: Progress) -> Callable[[], None]:
    """Tells how many results there are whenever that changes."""
    seen = 0

    def poll() -> None:
        nonlocal seen
        content = journal.read_bytes()
        if len(content) != seen:
            seen = len(content)
            count = content.count(b"\n")
            progress(f"{count} results")

    return poll


__all__ = ["WORKER", "Script", "Tuned", "capture", "tune"]
