"""A search of the alternatives of the kernels of a script, or of a file of code."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from msgspec import structs

from wavecast import files
from wavecast.compile import FileKind, hip, kind_of, map_file
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
    """Search alternatives of every kernel that a script launches, or that a HIP file, assembly or a
    code object has.

    Raises UsageError for an NVIDIA GPU and for code whose launch is not stated,
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
    """Raise UsageError for a file without decisions that can be changed."""
    if path.suffix == ".py" or not path.is_file():
        return
    kind = kind_of(map_file(path), path)
    if kind not in _KINDS:
        raise UsageError(f"{path.name} is {kind.value}: only AMD code is searched")


_KINDS: Final = (FileKind.HIP, FileKind.CUDA, FileKind.ASSEMBLY, FileKind.AMD_OBJECT)
_NOT_IN_A_NAME: Final = re.compile(r"[^\w.-]")


def save_settings(lab_entries: Sequence[LabEntry], path: Path) -> int:
    """Write the best settings to a file that `wavecast.lab.load` reads, and next to it changed LLVM
    IR, and changed assembly with its code object; the number of settings. Raises InputError where a
    file cannot be written, CompileError where the assembler refuses the code."""
    saved: list[SavedSetting] = []
    try:
        for setting, result in settings_of(lab_entries):
            if result.llir:
                file = path.with_name(f"{path.stem}.{setting.kernel}.{setting.target}.llir")
                files.write_atomic(file, result.llir, durable=True)
                setting = structs.replace(setting, ir=str(file))
            if result.assembly:
                name = f"{path.stem}.{setting.kernel}.{setting.device}"
                text = path.with_name(_NOT_IN_A_NAME.sub("_", f"{name}.s"))
                code = text.with_suffix(".co")
                files.write_atomic(text, result.assembly, durable=True)
                binary = hip.assemble_program(result.assembly, setting.target)
                files.write_atomic(code, binary, durable=True)
                setting = structs.replace(setting, assembly=str(text), code=str(code))
            saved.append(setting)
        document = dumps(LabSettingsDocument(saved), indent=1) + "\n"
        files.write_atomic(path, document, durable=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    return len(saved)


__all__ = ["LabOptions", "LabTuning", "save_settings", "tune"]
