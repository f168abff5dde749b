"""What the laboratory shows of the kernels that a script launches, or that a file has: passes, or
code generators."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from wavecast import files
from wavecast.arch import Device
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.kinds import kind_of
from wavecast.compile.names import readable
from wavecast.errors import InputError, NothingAnalysed, UsageError, WavecastError
from wavecast.lab.pass_sources import PassSource, planned, sources_of, unstated
from wavecast.pipeline.explain.selection import Selection
from wavecast.pipeline.plan import Plan
from wavecast.runtimes.triton import capture_script
from wavecast.runtimes.triton.script import NOT_COMPUTED

Report = TypeVar("Report")


@dataclass(frozen=True, slots=True)
class ScriptReports(Generic[Report]):
    """One report per compiled kernel and device, and notes for the user."""

    reports: tuple[Report, ...]
    notes: tuple[str, ...]


def reports_of_script(
    script: Path,
    arguments: Sequence[str],
    selection: Selection,
    report: Callable[[Launch, Device], Report],
    *,
    kernels: str = "",
    quiet: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> ScriptReports[Report]:
    """Run a script for each target and report every kernel it launches, each compiled kernel once.
    A kernel for which `report` raises a WavecastError is a note.

    Raises UsageError for an NVIDIA GPU and for code other than scripts, and as `capture_script`.
    """
    for device in selection.devices:
        if device.vendor != "amd":
            raise UsageError(f"{device.name}: only AMD code is shown")
    if script.suffix != ".py":
        _refuse_code(script)
    progress(f"running {script.name} for {', '.join(selection.targets)}")
    captured = capture_script(script, arguments, selection.devices, kernels=kernels, quiet=quiet)
    notes = [note for note in captured.notes if note != NOT_COMPUTED]
    notes += [
        f"{failure.kernel} for {failure.target}: {failure.message}" for failure in captured.failures
    ]
    reports: list[Report] = []
    identities: set[tuple[str, str]] = set()
    for target, launches in captured.launches.items():
        for launch in launches:
            for device in selection.on(target):
                identity = launch.code.digest, device.id
                if identity in identities:
                    continue
                identities.add(identity)
                progress(f"{launch.code.kernel} on {device.name}")
                try:
                    reports.append(report(launch, device))
                except WavecastError as error:
                    notes.append(_refusal(launch.code.kernel, device, error))
    if not reports and notes:
        raise NothingAnalysed(f"{script.name}: nothing to show", hint="; ".join(notes))
    return ScriptReports(tuple(reports), (*selection.notes, *notes))


def _refusal(kernel: str, device: Device, error: WavecastError) -> str:
    """Why a kernel has no report, as a line."""
    message = error.message.removeprefix(f"{kernel}: ")
    return f"{readable(kernel)} on {device.id}: {message}"


def _refuse_code(path: Path) -> None:
    with contextlib.suppress(InputError):
        kind = "LLVM IR" if path.suffix == ".ll" else kind_of(files.read(path), path).value
        raise UsageError(
            f"{path.name} is {kind}: only kernels that a script launches are compared",
            hint="`wavecast lab tune` compares options of compilers for other code",
        )


def reports_of_file(
    path: Path,
    flags: Sequence[str],
    selection: Selection,
    report: Callable[[PassSource], Report],
    *,
    plan: Plan,
    kernels: str = "",
    progress: Callable[[str], None] = lambda _: None,
) -> ScriptReports[Report]:
    """Report every kernel of a HIP file or of LLVM IR whose name matches, in the launch
    that the plan states. `flags` are options of the compiler. A kernel for
    which `report` raises a WavecastError is a note.

    Raises UsageError for an NVIDIA GPU, NothingAnalysed where no kernel matches, and as
    `sources_of`.
    """
    reports: list[Report] = []
    notes: list[str] = []
    names: list[str] = []
    for device in selection.devices:
        if device.vendor != "amd":
            raise UsageError(f"{device.name}: only AMD code is shown")

        def launch_of(code: CodeObject, device: Device = device) -> Launch:
            wanted = re.search(kernels, code.kernel)
            return planned(code, plan, device) if wanted else unstated(code)

        for source in sources_of(path, device, tuple(flags), launch_of):
            name = source.launch.code.kernel
            names.append(name)
            if not re.search(kernels, name):
                continue
            progress(f"{name} on {device.name}")
            try:
                reports.append(report(source))
            except WavecastError as error:
                notes.append(_refusal(name, device, error))
    if not reports and not notes:
        kernel_names = ", ".join(dict.fromkeys(names))
        raise NothingAnalysed(
            f"{path.name}: no kernel matches {kernels!r}", hint=f"it has {kernel_names}"
        )
    return ScriptReports(tuple(reports), (*selection.notes, *notes))


__all__ = ["ScriptReports", "reports_of_file", "reports_of_script"]
