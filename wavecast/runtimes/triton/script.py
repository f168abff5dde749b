"""`capture_script`: the launches of an ordinary Python script, for several targets at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.kinds import HIP_SUFFIXES
from wavecast.compile.parsing import parse_kernel
from wavecast.errors import CaptureError, InputError, MissingTool, NothingAnalysed
from wavecast.extras import hint_for
from wavecast.runtimes.devices import DeviceFacts, facts_of
from wavecast.runtimes.triton import capture_process, wire
from wavecast.runtimes.triton.capture_cache import (
    Caching,
    CaptureCache,
    StoredCapture,
    cache_of,
)
from wavecast.runtimes.triton.dependencies import RunDependencies
from wavecast.runtimes.triton.job import (
    OBSERVE,
    SAMPLE,
    STATUS_FILE,
    Job,
    crash_file,
    frames_file,
)
from wavecast.runtimes.triton.profiles import CapturedProfiles
from wavecast.runtimes.triton.program import crash_line
from wavecast.runtimes.triton.recorder import CaptureFailure, Configurations, Recorder
from wavecast.systems.sources.calls import GraphLibraryCall

if TYPE_CHECKING:
    from wavecast.arch import Device
    from wavecast.isa.program import Program

NOT_COMPUTED = (
    "launches were recorded, not executed: outputs have whatever their memory contained, "
    "so a script's own checks may fail"
)
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Capture:
    """What a script launched: per target its distinct launches, in order of first appearance.

    `failures` are kernels the compiler refused and targets whose run broke off; `notes` are lines
    the user must see once. `profiles` has the launches of which a sample was executed,
    `library_calls` per target the distinct calls of libraries by code of `torch.compile`.
    """

    launches: Mapping[str, tuple[Launch, ...]]
    failures: tuple[CaptureFailure, ...]
    notes: tuple[str, ...]
    profiles: CapturedProfiles
    library_calls: Mapping[str, tuple[GraphLibraryCall, ...]] = field(default_factory=dict)

    @property
    def all_launches(self) -> list[Launch]:
        """The launches on all targets."""
        return [launch for launches in self.launches.values() for launch in launches]


def capture_script(
    path: str | Path,
    args: Sequence[str],
    devices: Sequence[Device | DeviceFacts],
    *,
    kernels: str = "",
    configs: Configurations = "first",
    timeout: float | None = None,
    quiet: bool = False,
    on_launch: Callable[[Launch], None] | None = None,
    worker: str = "",
    settings: Mapping[str, Any] | None = None,
    at_once: int | None = None,
    on_poll: Callable[[], None] | None = None,
    sample: bool = False,
    caching: Caching = "off",
) -> Capture:
    """Run a script once per target, on CPU tensors, and record what it launches.

    `kernels` is a regular expression on kernel names, `configs` says whether autotuned kernels
    give their first configuration or all, `timeout` (seconds) bounds each target's run. The
    script's output goes to stderr, of the first target only, unless `quiet`. `on_launch` is called
    as launches arrive. `worker` and `settings` replace the usual worker's `main` by another
    module's; `at_once` limits the targets that run together; `on_poll` is called while they
    run, some times a second. With `sample` a sample of every new AMD launch is executed for each
    device, in the memory the script has made. `caching` says whether the capture of an earlier run
    is used, with a note, where nothing that the run depended on has changed, and whether this one
    is stored; not with a sample, another worker or output.

    Raises InputError when there is no such script, CaptureError when it ended before any launch,
    NothingAnalysed when it ran well but launched nothing that `kernels` wants, MissingTool without
    PyTorch or Triton.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"no such script: {path}")
    if path.suffix in HIP_SUFFIXES:
        raise InputError(f"{path} is not a Python script, but a source of HIP or C++")
    facts: dict[str, DeviceFacts] = {}
    for device in devices:
        entry = device if isinstance(device, DeviceFacts) else facts_of(device)
        facts.setdefault(entry.target, entry)
    Recorder("", kernels=kernels, configurations=configs)  # refuses a bad pattern early
    job = Job(
        script=str(path),
        arguments=tuple(args),
        devices=tuple(facts.values()),
        kernels=kernels,
        configurations=configs,
        timeout=timeout,
        quiet=quiet,
        jobs=max(1, min(len(facts), at_once or os.cpu_count() or 1)),
    )
    if worker:
        job = replace(job, worker=worker)
    if sample:
        settings = {**(settings or {}), SAMPLE: _by_target(devices)}
    job = replace(job, settings=settings or {})
    cache = None if worker or job.settings else cache_of(job, caching)
    if cache is not None:
        entry = cache.load() if caching == "use" else None
        if entry is not None:
            return _replay(path, facts, entry, on_launch, kernels)
        job = replace(job, settings={OBSERVE: True})
    with tempfile.TemporaryDirectory(prefix="wavecast-") as folder:
        root = Path(folder)
        job.save(root)
        runs = {target: _Run(target, root, on_launch) for target in facts}
        _supervise(root, job.worker, runs, on_poll)
        capture = _conclude(path, runs, kernels, timeout)
        if cache is not None:
            _store(cache, path, runs)
        return capture


def _replay(
    script: Path,
    targets: Iterable[str],
    stored_capture: StoredCapture,
    on_launch: Callable[[Launch], None] | None,
    kernels: str,
) -> Capture:
    """The capture that a stored run gives."""
    runs = {target: _Run(target, Path(), on_launch) for target in targets}
    for target, run in runs.items():
        for frame in stored_capture.frames[target]:
            run.take(frame)
    capture = _conclude(script, runs, kernels, None)
    return replace(capture, notes=(stored_capture.note, *capture.notes))


def _store(cache: CaptureCache, script: Path, runs: Mapping[str, _Run]) -> None:
    """Store runs that all ended well, and of which is known what they depend on."""
    dependencies = [run.dependencies for run in runs.values() if run.dependencies is not None]
    well = all(not run.failures and run.complaint(script, None) is None for run in runs.values())
    if well and len(dependencies) == len(runs):
        cache.store({target: run.frames for target, run in runs.items()}, dependencies)


def _by_target(devices: Sequence[Device | DeviceFacts]) -> dict[str, list[str]]:
    """The AMD devices of each target, by name."""
    ids: dict[str, list[str]] = {}
    for device in devices:
        if not isinstance(device, DeviceFacts) and device.vendor == "amd":
            ids.setdefault(device.target, []).append(device.id)
    return ids


@dataclass
class _Run:
    """What is known so far about the run for one target."""

    target: str
    folder: Path
    on_launch: Callable[[Launch], None] | None
    launches: list[Launch] = field(default_factory=list)
    failures: list[CaptureFailure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ended: bool = False
    raised: str | None = None
    broke: str = ""
    filtered: Sequence[str] = ()
    status: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, CodeObject] = field(default_factory=dict)
    counts: Sequence[int] = ()
    library_calls: tuple[GraphLibraryCall, ...] = ()
    indices: list[int] = field(default_factory=list)
    programs: dict[str, Program] = field(default_factory=dict)
    profiles: CapturedProfiles = field(default_factory=CapturedProfiles)
    frames: list[Mapping[str, Any]] = field(default_factory=list)
    dependencies: RunDependencies | None = None

    def __post_init__(self) -> None:
        self._reader = wire.FrameReader(frames_file(self.folder, self.target))

    def poll(self) -> None:
        for frame in self._reader.poll():
            self.take(frame)

    def take(self, frame: Mapping[str, Any]) -> None:
        """Add what a frame tells."""
        if "dependencies" in frame:
            self.dependencies = RunDependencies.unpack(frame["dependencies"])
            return
        self.frames.append(frame)
        if "code" in frame:
            code = wire.decode_code(frame["code"])
            self.codes[code.digest] = code
        elif "launch" in frame:
            launch = wire.decode_launch(frame["launch"], self.codes)
            self.launches.append(launch)
            self.indices.append(frame["index"])
            self._take_profiles(launch, frame.get("profiles", {}))
            if self.on_launch:
                self.on_launch(self.launches[-1])
        elif "failure" in frame:
            kernel, stage, message, hint = frame["failure"]
            self.failures.append(CaptureFailure(kernel, self.target, stage, message, hint))
        elif "counts" in frame:
            self.counts = frame["counts"]
            self.library_calls = tuple(map(wire.decode_call, frame["library_calls"]))
        elif "internal" in frame:
            self.broke = frame["internal"]
        elif "end" in frame:
            self.ended = True
            self.raised, self.filtered = frame["end"], frame["filtered"]
            self.notes.extend(frame["notes"])

    def _take_profiles(self, launch: Launch, documents: Mapping[str, bytes]) -> None:
        if not documents:
            return
        from wavecast.sampling.document import decode

        digest = launch.code.digest
        if digest not in self.programs:
            self.programs[digest] = parse_kernel(launch.code, link=True).program
        program = self.programs[digest]
        profiles = {name: decode(data, program) for name, data in documents.items()}
        self.profiles.add(launch, profiles)

    def finish(self) -> tuple[Launch, ...]:
        """The launches with their counts."""
        counts = dict(enumerate(self.counts))
        return tuple(
            replace(launch, count=counts.get(index, launch.count))
            for launch, index in zip(self.launches, self.indices, strict=True)
        )

    def complaint(self, script: Path, timeout: float | None) -> str | None:
        """How the run broke off; None for a run that ended well."""
        if self.status.get("late"):
            return f"stopped after {timeout:g} s"
        number = self.status.get("signal", 0)
        if number:
            name = signal.Signals(number).name
            dump = crash_file(self.folder, self.target)
            text = dump.read_text(errors="replace") if dump.exists() else ""
            where = crash_line(text, script)
            return f"the script's process died of {name}" + (f" ({where})" if where else "")
        if self.broke:
            return self.broke
        if not self.ended:
            return f"the script left through os._exit({self.status.get('code', '?')})"
        return self.raised


def _supervise(
    root: Path, worker: str, runs: Mapping[str, _Run], on_poll: Callable[[], None] | None
) -> None:
    process = capture_process.start(worker, root)
    status = wire.FrameReader(root / STATUS_FILE)
    try:
        while True:
            running = process.poll() is None
            for frame in status.poll():
                if "missing" in frame:
                    raise _missing(frame["missing"], frame["message"])
                runs[frame["target"]].status = dict(frame)
            for run in runs.values():
                run.poll()
            if on_poll:
                on_poll()
            if not running:
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_POLL_SECONDS)
    finally:
        if process.poll() is None:
            process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
    if any(not run.status for run in runs.values()):
        raise CaptureError(f"the capturing process ended early (exit code {process.returncode})")


def _missing(module: str, message: str) -> MissingTool:
    return MissingTool(message, hint=hint_for(module) or f"pip install {module}")


def _conclude(
    script: Path, runs: Mapping[str, _Run], kernels: str, timeout: float | None
) -> Capture:
    launches = {target: run.finish() for target, run in runs.items()}
    failures = [failure for run in runs.values() for failure in run.failures]
    notes = dict.fromkeys(note for run in runs.values() for note in run.notes)
    complaints = {target: run.complaint(script, timeout) for target, run in runs.items()}
    for target, complaint in complaints.items():
        if complaint and not launches[target]:
            failures.append(CaptureFailure(script.name, target, "capture", complaint))
    if not any(launches.values()) and not any(run.failures for run in runs.values()):
        raise _nothing(script, runs, kernels, complaints)
    soft = dict.fromkeys(
        complaint for target, complaint in complaints.items() if complaint and launches[target]
    )
    for complaint in soft:
        where = [target for target in runs if complaints[target] == complaint]
        scope = "" if len(where) == len(runs) else f" for {', '.join(where)}"
        notes[f"{script.name} did not finish{scope}: {complaint}; launches before it are shown"] = (
            None
        )
    if any(launches.values()):
        notes[NOT_COMPUTED] = None
    profiles = CapturedProfiles()
    for run in runs.values():
        profiles.update(run.profiles)
    calls = {target: run.library_calls for target, run in runs.items()}
    return Capture(launches, tuple(failures), tuple(notes), profiles, calls)


def _nothing(
    script: Path, runs: Mapping[str, _Run], kernels: str, complaints: Mapping[str, str | None]
) -> CaptureError | NothingAnalysed:
    complaint = next(filter(None, complaints.values()), None)
    if any(run.filtered for run in runs.values()):
        suffix = f" before it ended: {complaint}" if complaint else ""
        names = sorted({name for run in runs.values() for name in run.filtered})
        return NothingAnalysed(
            f"{script.name}: no launched kernel matches {kernels!r}{suffix}",
            hint=f"launched: {', '.join(names)}",
        )
    if complaint:
        return CaptureError(f"{script.name} launched no kernel before it ended: {complaint}")
    notes = dict.fromkeys(note for run in runs.values() for note in run.notes)
    if notes:
        return NothingAnalysed(f"{script.name} launched no kernel: {'; '.join(notes)}")
    return NothingAnalysed(
        f"{script.name} finished without launching a kernel",
        hint="call the kernel in the script, for example kernel[grid](...)",
    )
