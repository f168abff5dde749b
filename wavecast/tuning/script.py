"""The script of a tuning, and the capture that runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wavecast.pipeline.explain.selection import Selection
from wavecast.runtimes.triton import CaptureFailure, capture_script
from wavecast.runtimes.triton.script import NOT_COMPUTED
from wavecast.tuning.settings import TuneSettings

WORKER = "wavecast.tuning.worker"
"""The module of the capturing process."""


@dataclass(frozen=True, slots=True)
class TuneScript:
    """A script with autotuned kernels: its path and arguments, a regular expression of the kernels
    to tune ("" for all), and whether its output is hidden."""

    path: Path
    arguments: tuple[str, ...] = ()
    kernels: str = ""
    quiet: bool = True


def capture(
    script: TuneScript,
    selection: Selection,
    settings: TuneSettings,
    on_poll: Callable[[], None] | None = None,
) -> tuple[tuple[CaptureFailure, ...], tuple[str, ...]]:
    """Run the script, one target after the other, and tune its autotuned calls.

    Results go to the journal of `settings`; `on_poll` is called several times a second. Returns
    failures and notes. Raises InputError, CaptureError, and MissingTool without PyTorch or Triton.
    """
    result = capture_script(
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
    return result.failures, tuple(note for note in result.notes if note != NOT_COMPUTED)


__all__ = ["WORKER", "TuneScript", "capture"]
