"""Tuning of the autotuned kernels of a script."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from wavecast.errors import InputError, NothingAnalysed, UsageError
from wavecast.pipeline.explain.selection import Selection
from wavecast.runtimes.triton import CaptureFailure
from wavecast.tuning import records
from wavecast.tuning.script import TuneScript, capture
from wavecast.tuning.search import strategy
from wavecast.tuning.settings import SPACES, TuneSettings
from wavecast.tuning.table import TuningTable

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TuneResult:
    """The table, the kernels and targets that failed, and notes for the user."""

    table: TuningTable
    failures: tuple[CaptureFailure, ...]
    notes: tuple[str, ...]


def tune(
    script: TuneScript,
    selection: Selection,
    settings: TuneSettings,
    progress: Progress = lambda _: None,
    *,
    resume: bool = False,
    ray: str = "",
) -> TuneResult:
    """Run a script for each target and search the configurations of its autotuned calls.

    Every result goes to the journal `settings.journal` when it is found. With `resume` the search
    continues from the results there. The journal is deleted at the end; without a path it is a
    temporary file. `ray` is the address of a Ray cluster that searches first, in parts.

    Raises NothingAnalysed for a script without autotuned launches, UsageError for an unknown name
    or an NVIDIA GPU, InputError for a journal that cannot be written or that an interrupted run
    left, MissingTool without PyTorch or Triton.
    """
    strategy(settings.search)
    if settings.space not in SPACES:
        raise UsageError(f"unknown space {settings.space!r}", hint=f"one of {', '.join(SPACES)}")
    for device in selection.devices:
        if device.vendor != "amd":
            raise UsageError(f"{device.name}: only AMD code is predicted")
    settings = replace(settings, devices=tuple(d.id for d in selection.devices))
    if not settings.journal:
        with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
            journal = Path(folder) / "journal"
            _prepare(journal, resume=False)
            here = replace(settings, journal=str(journal))
            return _run_tuning(script, selection, here, progress, ray)
    journal = Path(settings.journal).absolute()
    _prepare(journal, resume=resume)
    here = replace(settings, journal=str(journal))
    tuned = _run_tuning(script, selection, here, progress, ray)
    journal.unlink(missing_ok=True)
    return tuned


def _prepare(journal: Path, *, resume: bool) -> None:
    if not resume and journal.exists() and journal.stat().st_size:
        raise InputError(
            f"{journal} has results of an interrupted run",
            hint="continue it with --resume, or delete the file to start again",
        )
    try:
        journal.open("a").close()
    except OSError as error:
        raise InputError(f"cannot write {journal}: {error.strerror}") from None
    for _ in records.read(journal):  # a damaged one is refused before the script runs
        pass


def _run_tuning(
    script: TuneScript, selection: Selection, settings: TuneSettings, progress: Progress, ray: str
) -> TuneResult:
    journal = Path(settings.journal)
    before: tuple[str, ...] = ()
    if ray:
        from wavecast.tuning.parts import search_parts

        settings, before = search_parts(ray, script, selection, settings, progress)
    failures, notes = capture(script, selection, settings, _reporting(journal, progress))
    table = TuningTable.of(records.read(journal))
    if not table.entries and not failures:
        matching = f" that matches {script.kernels!r}" if script.kernels else ""
        raise NothingAnalysed(
            f"{script.path.name} launches no autotuned kernel{matching}",
            hint="decorate the kernel with @triton.autotune (flydsl.autotune in FlyDSL), or use "
            "wavecast explain",
        )
    return TuneResult(table, failures, (*selection.notes, *before, *notes))


def _reporting(journal: Path, progress: Progress) -> Callable[[], None]:
    """A function that reports the number of results whenever it has changed."""
    seen = 0

    def poll() -> None:
        nonlocal seen
        content = journal.read_bytes()
        if len(content) != seen:
            seen = len(content)
            count = content.count(b"\n")
            progress(f"{count} results")

    return poll


__all__ = ["TuneResult", "tune"]
