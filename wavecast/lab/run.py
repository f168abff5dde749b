"""A search of the alternatives of a script's kernels, or of a HIP file's."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from wavecast import files
from wavecast.compile import FileKind, kind_of, map_file
from wavecast.errors import InputError, UsageError
from wavecast.json_objects import dumps
from wavecast.lab.journal import LabResult
from wavecast.lab.saved import LabSettingsDocument, SavedSetting
from wavecast.lab.searching import LabSource, Progress, run_search
from wavecast.lab.table import LabEntry, entries, settings_of
from wavecast.pipeline.explain.selection import Selection
from wavecast.runtimes.triton import CaptureFailure


@dataclass(frozen=True, slots=True)
class LabOptions:
    """How a search runs. `jobs` processes at once; of each device the `verify` fastest settings are
    executed. Results go to the file `journal`, "" for a temporary one; `resume` continues it."""

    jobs: int = 1
    verify: int = 4
    journal: str = ""
    resume: bool = False


@dataclass(frozen=True, slots=True)
class LabTuning:
    """The entries of a search, the kernels and targets that failed, and notes for the user."""

    entries: tuple[LabEntry, ...]
    failures: tuple[CaptureFailure, ...]
    notes: tuple[str, ...]


def tune(
    source: LabSource,
    selection: Selection,
    options: LabOptions,
    progress: Progress = lambda _: None,
) -> LabTuning:
    """Search alternatives of every kernel that a script launches, or that a HIP file has.

    Raises UsageError for an NVIDIA GPU, for assembly and for HIP code whose launch is not stated,
    InputError for a journal that an interrupted run left, NothingAnalysed where no kernel was
    searched, CaptureError, CompileError, MissingTool.
    """
    if not options.journal:
        with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
            here = replace(options, journal=str(Path(folder) / "journal"))
            return tune(source, selection, here, progress)
    _check_source(source.path)
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
    values = {"jobs": options.jobs, "verify": options.verify}
    run = run_search(source, selection, "tune", values, path, LabResult.from_json, progress)
    path.unlink(missing_ok=True)
    return LabTuning(tuple(entries(run.results)), run.failures, run.notes)


def _check_source(path: Path) -> None:
    """Raise UsageError for a file that no compiler makes decisions for."""
    if path.suffix == ".py" or not path.is_file():
        return
    kind = kind_of(map_file(path), path)
    if kind not in (FileKind.HIP, FileKind.CUDA):
        raise UsageError(
            f"{path.name} is {kind.value}: its compiler has decided, and there is no source to "
            "compile otherwise",
            hint="wavecast lab schedule searches its order, waits and no-ops",
        )


def save_settings(lab_entries: Sequence[LabEntry], path: Path) -> int:
    """Write the best settings to a file that `wavecast.lab.load` reads, and changed LLVM IR next to
    it; the number of settings. Raises InputError where a file cannot be written."""
    saved: list[SavedSetting] = []
    try:
        for setting, llir in settings_of(lab_entries):
            ir = ""
            if llir:
                file = path.with_name(f"{path.stem}.{setting.kernel}.{setting.target}.llir")
                files.write_atomic(file, llir, durable=True)
                ir = str(file)
            saved.append(structs.replace(setting, ir=ir))
        text = dumps(LabSettingsDocument(saved), indent=1) + "\n"
        files.write_atomic(path, text, durable=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    return len(saved)


__all__ = ["LabOptions", "LabTuning", "save_settings", "tune"]
