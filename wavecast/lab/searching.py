"""A search of the kernels that a script launches, or of a file of code whose launch is stated.

Launches of a script are searched in the process that captures them, when they happen; those of code
in this one. Either way results go to a journal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from wavecast import compile as compilers
from wavecast import files
from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.names import readable
from wavecast.compile.parsing import parse_descriptor
from wavecast.errors import InputError, NothingAnalysed, UsageError, WavecastError
from wavecast.lab.evaluation import LabSubject, check_lds
from wavecast.lab.journal import LabProblem, records
from wavecast.lab.searches import SEARCHES
from wavecast.pipeline.explain.code_launches import CodeLaunches
from wavecast.pipeline.explain.selection import Selection
from wavecast.pipeline.plan import Plan
from wavecast.runtimes.triton import CaptureFailure, capture_script
from wavecast.runtimes.triton.script import NOT_COMPUTED

WORKER = "wavecast.lab.worker"
"""The module of the capturing process."""

Result = TypeVar("Result")
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LabSource:
    """Where the kernels whose names match `kernels` are from: a Python script with its `arguments`,
    or a HIP file, assembly or a code object, launched as `plan` says and compiled with
    `compiler_options`. `quiet` hides the output of a script."""

    path: Path
    arguments: tuple[str, ...] = ()
    kernels: str = ""
    quiet: bool = True
    device_files: tuple[str, ...] = ()
    plan: Plan = field(default_factory=Plan)
    compiler_options: tuple[str, ...] = ()


@dataclass(frozen=True)
class SearchRun(Generic[Result]):
    """The results of a search in the order they were found, the kernels and targets that failed,
    and notes for the user."""

    results: tuple[tuple[LabProblem, Result], ...]
    failures: tuple[CaptureFailure, ...]
    notes: tuple[str, ...]


def run_search(
    source: LabSource,
    selection: Selection,
    search: str,
    values: Mapping[str, Any],
    journal: Path,
    convert: Callable[[Mapping[str, Any]], Result],
    progress: Progress,
) -> SearchRun[Result]:
    """Run a search of `wavecast.lab.searches` on every launch of a source, with JSON `values`. What
    is in the journal, which must exist, is known.

    Raises UsageError for an NVIDIA GPU and for code whose launch is not stated, InputError for a
    file that is missing and for a journal of something else, NothingAnalysed where no kernel
    matches or was searched, and as `capture_script` and `wavecast.compile.load`.
    """
    files.check_regular(source.path)
    for device in selection.devices:
        if device.vendor != "amd":
            raise UsageError(f"{device.name}: only AMD code is searched")
    of = _of_script if source.path.suffix == ".py" else _of_code
    failures, notes = of(source, selection, search, values, journal, progress)
    results = tuple(records(journal, convert))
    if not results and not failures:
        raise NothingAnalysed(
            f"{source.path.name}: no kernel was searched", hint="; ".join(dict.fromkeys(notes))
        )
    return SearchRun(results, failures, (*selection.notes, *notes))


def _of_script(
    source: LabSource,
    selection: Selection,
    search: str,
    values: Mapping[str, Any],
    journal: Path,
    progress: Progress,
) -> tuple[tuple[CaptureFailure, ...], tuple[str, ...]]:
    progress(f"running {source.path.name} for {', '.join(selection.targets)}")
    seen = 0

    def poll() -> None:
        nonlocal seen
        size = journal.stat().st_size
        if size != seen:
            seen = size
            count = journal.read_bytes().count(b"\n")
            progress(f"{count} results")

    captured = capture_script(
        source.path,
        source.arguments,
        selection.devices,
        kernels=source.kernels,
        quiet=source.quiet,
        worker=WORKER,
        settings={
            "devices": [device.id for device in selection.devices],
            "device_files": list(source.device_files),
            "search": search,
            "journal": str(journal),
            "values": dict(values),
        },
        at_once=1,
        on_poll=poll,
    )
    return captured.failures, tuple(note for note in captured.notes if note != NOT_COMPUTED)


def _of_code(
    source: LabSource,
    selection: Selection,
    search: str,
    values: Mapping[str, Any],
    journal: Path,
    progress: Progress,
) -> tuple[tuple[CaptureFailure, ...], tuple[str, ...]]:
    if source.arguments:
        raise UsageError(f"{source.path.name} is not a script", hint="it takes no arguments")
    failures: list[CaptureFailure] = []
    notes: list[str] = []
    searcher = SEARCHES[search](journal, values, notes.append)
    for target in selection.targets:
        devices = selection.on(target)
        code_launches = _file_launches(source, target, devices[0], failures)
        for launch in code_launches.launches:
            ranges, _ = code_launches.memory[id(launch)]
            progress(f"{launch.code.kernel} for {target}")
            try:
                check_lds(launch, devices[0])
                searcher.search(LabSubject(launch, tuple(ranges), tuple(devices)))
            except WavecastError as error:
                message = error.message.removeprefix(f"{launch.code.kernel}: ")
                notes.append(f"{readable(launch.code.kernel)}: not searched: {message}")
    return tuple(failures), tuple(notes)


def _file_launches(
    source: LabSource, target: str, device: Device, failures: list[CaptureFailure]
) -> CodeLaunches:
    """The launches of a file's kernels for a target; kernels that cannot be launched are added to
    `failures`."""
    path, launches = source.path, CodeLaunches()
    try:
        codes = compilers.load(path, target, source.compiler_options, kernels=source.kernels)
    except WavecastError as error:
        failures.append(CaptureFailure(path.name, target, "compile", error.message))
        return launches
    code_objects = [code for code in codes if re.search(source.kernels, code.kernel)]
    if codes and not code_objects:
        names = ", ".join(readable(code.kernel) for code in codes)
        raise NothingAnalysed(
            f"{path.name}: no kernel matches {source.kernels!r}", hint=f"it has {names}"
        )
    _check_stated(source, code_objects)
    launches.add(code_objects, source.plan, device)
    for refused in launches.refused:
        message = refused.message + (f" ({refused.hint})" if refused.hint else "")
        if len(code_objects) > 1:
            message += f"; -k REGEX chooses one of {len(code_objects)} kernels"
        failures.append(CaptureFailure(refused.kernel, refused.target, refused.stage, message))
    return launches


def _check_stated(source: LabSource, codes: Sequence[CodeObject]) -> None:
    """Raises UsageError where a part of the launch of a file's kernels is not stated."""
    plan = source.plan
    missing = [name for name in ("grid", "block") if getattr(plan, name) is None]
    missing = [f"--{name}" for name in missing]
    of_plan = [code for code in codes if plan.is_of(code.kernel, readable(code.kernel))]
    if not plan.arguments and any(map(_takes_arguments, of_plan)):
        missing.append("--arg NAME=VALUE")
    if missing:
        raise UsageError(
            f"{source.path.name} makes no launch, and versions are compared by executing one: "
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing",
            hint="--args FILE states all of a launch"
            + ("; -k REGEX chooses kernels" if len(of_plan) > 1 else ""),
        )


def _takes_arguments(code: CodeObject) -> bool:
    """Whether a kernel takes arguments; not for one without a descriptor, which is refused."""
    try:
        return parse_descriptor(code).takes_arguments
    except InputError:
        return False


__all__ = ["WORKER", "LabSource", "SearchRun", "run_search"]
