"""The capturing process: imports PyTorch and Triton once, then forks one child per target.

Started by `capture_script` as `python -c "… main(folder)"`. A child runs the script and
appends frames to its file as launches happen; this process only watches, enforces the time limit,
and reports how each child ended. Nothing here writes to the stdout of the command.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from pkgutil import resolve_name
from types import FrameType
from typing import TYPE_CHECKING

from wavecast import processes
from wavecast.compile.codeobject import Launch
from wavecast.errors import WavecastError
from wavecast.runtimes.devices import DeviceFacts
from wavecast.runtimes.languages.registry import unseen_launches
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton import wire
from wavecast.runtimes.triton.capture_cache import ignored_folders
from wavecast.runtimes.triton.job import (
    OBSERVE,
    PREPARE,
    SAMPLE,
    STATUS_FILE,
    Job,
    crash_file,
    frames_file,
)
from wavecast.runtimes.triton.observed_run import RunObserver
from wavecast.runtimes.triton.processes import fork_always
from wavecast.runtimes.triton.program import ending, run_as_main
from wavecast.runtimes.triton.recorder import CaptureFailure, Recorder

if TYPE_CHECKING:
    from wavecast.runtimes.triton.autotuning import Choose
    from wavecast.runtimes.triton.hooks import Hooks

_POLL_SECONDS = 0.01
_COUNT_SECONDS = 0.5


Choosing = Callable[[Job, "Hooks"], "Choose"]
"""Makes what picks configurations of autotuned kernels in one run of a job."""


def main(folder: str, choosing: Choosing | None = None) -> None:
    """Run the job described in `folder`."""
    root = Path(folder)
    job = Job.load(root)
    status = wire.FrameWriter(root / STATUS_FILE)
    try:
        import_once()
    except ImportError as error:
        status.write({"missing": str(error.name or error), "message": str(error)})
        return
    _Children(job, root, status, choosing).run()


def import_once() -> None:
    """Import what every child needs. Modules live until the process ends, with 100,000 objects:
    the collector looks at them neither meanwhile nor later. Raises ImportError where one is
    missing."""
    gc.disable()
    import torch  # noqa: F401
    import triton  # noqa: F401

    from wavecast.runtimes.triton import hooks  # noqa: F401

    gc.freeze()
    gc.enable()


class _Children:
    """The children of one job: at most `jobs` at a time, each ended at the time limit."""

    def __init__(
        self, job: Job, folder: Path, status: wire.FrameWriter, choosing: Choosing | None
    ) -> None:
        self._job = job
        self._choosing = choosing
        self._folder = folder
        self._status = status
        self._running: dict[int, tuple[DeviceFacts, float]] = {}
        self._late: set[int] = set()
        self._parent = os.getppid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def run(self) -> None:
        waiting = list(self._job.devices)
        while waiting or self._running:
            while waiting and len(self._running) < self._job.jobs:
                self._start(waiting.pop(0))
            self._collect()
            self._enforce_limit()
            if os.getppid() != self._parent:
                self._stop(signal.SIGTERM, None)
            time.sleep(_POLL_SECONDS)

    def _start(self, facts: DeviceFacts) -> None:
        loud = not self._job.quiet and facts is self._job.devices[0]
        child = processes.fork(
            lambda: _run_child(self._job, self._folder, facts, self._choosing, loud=loud),
            own_group=True,
        )
        self._running[child] = (facts, time.monotonic())

    def _collect(self) -> None:
        for child in list(self._running):
            status = processes.poll(child)
            if status is None:
                continue
            facts, _ = self._running.pop(child)
            late = child in self._late
            self._status.write({"target": facts.target, **asdict(status), "late": late})
            processes.kill_group(child)  # what the script left running

    def _enforce_limit(self) -> None:
        limit = self._job.timeout
        for child, (_, started) in self._running.items():
            if limit is not None and time.monotonic() - started > limit:
                self._late.add(child)
                processes.kill_group(child)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        for child in self._running:
            processes.kill_group(child)
        if os.getppid() != self._parent:  # nobody is left to remove it
            shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(1)


def _run_child(
    job: Job, folder: Path, facts: DeviceFacts, choosing: Choosing | None, *, loud: bool
) -> None:
    """Run the script for one device; never returns."""
    frames = wire.FrameWriter(frames_file(folder, facts.target))
    try:
        _redirect(loud)
        with crash_file(folder, facts.target).open("w") as dump:
            faulthandler.enable(dump)
            _capture(job, folder, facts, frames, choosing)
    except BaseException as error:
        frames.write({"internal": f"{type(error).__name__}: {error}"})
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)


def _redirect(loud: bool) -> None:
    """No stdin; output to stderr for the first target, nowhere for the others."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2 if loud else nothing, 1)
    if not loud:
        os.dup2(nothing, 2)


def _capture(
    job: Job,
    folder: Path,
    facts: DeviceFacts,
    frames: wire.FrameWriter,
    choosing: Choosing | None,
) -> None:
    import torch

    from wavecast.runtimes.torch_cpu import emulated_cuda
    from wavecast.runtimes.triton.hooks import Hooks

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // job.jobs))
    sender = _Sender(frames)
    recorder = Recorder(
        facts.target,
        kernels=job.kernels,
        configurations=job.configurations,  # type: ignore[arg-type]
        on_launch=sender.launch,
        on_failure=sender.failure,
    )
    sender.recorder = recorder
    hooks = Hooks(recorder, facts, torch_device="cuda:0")
    if choosing is not None:
        hooks.autotuners.choose = choosing(job, hooks)
    if device_ids := job.settings.get(SAMPLE, {}).get(facts.target):
        from wavecast.runtimes.triton.sampling import Sampler

        hooks.sampler = Sampler(device_ids, recorder.note)
    path = Path(job.script)
    if function := job.settings.get(PREPARE):
        resolve_name(function)(recorder.note)
    hooks.install()
    fork_always(Patches())
    raised: str | None = None
    observed = Patches()
    observer = _observer(path, folder, observed) if job.settings.get(OBSERVE) else None
    launches = recorder.launches
    try:
        with emulated_cuda(
            facts,
            recorder.note,
            lambda: bool(launches or recorder.filtered or recorder.failures),
            heard=launches.add_call,
            on_address=hooks.tensors.add,
        ):
            run_as_main(path, job.arguments)
    except WavecastError as error:
        raised = str(error)
    except BaseException as error:
        raised = ending(error, path)
        if not launches and (text := unseen_launches(facts.is_amd)):
            raised = f"{raised}; {text}"
    finally:
        observed.restore()
        hooks.remove()
        sender.counts()
    if raised is None and not launches and (text := unseen_launches(facts.is_amd)):
        recorder.note(text)
    if sender.is_copy:  # the script forked, and the copy came back here as well
        return
    dependencies = observer.dependencies() if observer is not None and raised is None else ""
    if not isinstance(dependencies, str):
        frames.write({"dependencies": dependencies.pack()})
    frames.write(
        {"end": raised, "notes": list(recorder.notes), "filtered": list(recorder.filtered)}
    )


def _observer(script: Path, folder: Path, patches: Patches) -> RunObserver:
    """Observes the script from now on."""
    from triton import knobs

    observer = RunObserver(script, ignored_folders(folder, knobs.cache.dir))
    observer.install(patches)
    return observer


class _Sender:
    """Writes launches as they are recorded: each code object once, counts now and then.

    A process the script forks has a copy of it; what that launches is written too, not counted.
    """

    def __init__(self, frames: wire.FrameWriter) -> None:
        self._frames = frames
        self._sent: set[str] = set()
        self._counted = time.monotonic()
        self._process = os.getpid()
        self.recorder: Recorder | None = None

    @property
    def is_copy(self) -> bool:
        """Whether this is a process the script forked."""
        return os.getpid() != self._process

    def launch(self, launch: Launch) -> None:
        if launch.code.digest not in self._sent:
            self._sent.add(launch.code.digest)
            self._frames.write({"code": wire.encode_code(launch.code)})
        assert self.recorder is not None
        index = -1 if self.is_copy else len(self.recorder.launches) - 1
        profiles = self.recorder.launches.profiles.of_launch(launch)
        frame = {"launch": wire.encode_launch(launch), "index": index}
        if profiles:
            from wavecast.sampling.document import encode

            frame["profiles"] = {name: encode(profile) for name, profile in profiles.items()}
        self._frames.write(frame)
        if time.monotonic() - self._counted > _COUNT_SECONDS:
            self.counts()

    def failure(self, failure: CaptureFailure) -> None:
        self._frames.write(
            {"failure": [failure.kernel, failure.stage, failure.message, failure.hint]}
        )

    def counts(self) -> None:
        """Repeated launches so far, by the index of the launch, and calls of libraries."""
        if self.is_copy:
            return
        assert self.recorder is not None
        self._counted = time.monotonic()
        launches = self.recorder.launches
        self._frames.write(
            {
                "counts": [launch.count for launch in launches],
                "library_calls": [wire.encode_call(call) for call in launches.library_calls],
            }
        )
