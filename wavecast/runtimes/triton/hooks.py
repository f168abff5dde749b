"""Triton's own entry points, watched for the time of a capture.

What is replaced: `JITFunction.run` (name filter), `JITFunction._do_compile` (a kernel that does not
compile is skipped and reported), `CompiledKernel._init_handles` (tells the driver which kernel it
loads), the autotuner's benchmarking, and `triton.testing`'s timers, which have nothing to time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wavecast import arch
from wavecast.compile.codeobject import Launch
from wavecast.compile.triton import code_object, segment_bytes, slots
from wavecast.emulate.launch import Emulator
from wavecast.errors import WavecastError
from wavecast.launch import gpu, graph_capture, recording
from wavecast.runtimes.devices import DeviceFacts
from wavecast.runtimes.hip_host.arena import ArenaPart
from wavecast.runtimes.hip_host.in_process import HipInProcess
from wavecast.runtimes.hip_host.tensors import AddressedTensors
from wavecast.runtimes.imported import PALLAS, when_imported
from wavecast.runtimes.languages.watch import refuse, watch
from wavecast.runtimes.model_lines import model_lines
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton import benchmarks, complaints, isolation
from wavecast.runtimes.triton.autotuning import AutotunerWatch
from wavecast.runtimes.triton.claim import claim
from wavecast.runtimes.triton.driver import CaptureDriver
from wavecast.runtimes.triton.hip_modules import HipLaunchListener, RecordingLauncher
from wavecast.runtimes.triton.launches import build_launch
from wavecast.runtimes.triton.recorder import Recorder

if TYPE_CHECKING:
    from wavecast.runtimes.triton.sampling import Sampler


class Hooks:
    """Installed from `install` to `remove`; one at a time in a process.

    `torch_device` is what Triton programs are told to put their tensors on.
    """

    def __init__(self, recorder: Recorder, facts: DeviceFacts, *, torch_device: str) -> None:
        self.recorder = recorder
        self.driver = CaptureDriver(facts, torch_device, self._on_launch)
        self.autotuners = AutotunerWatch(recorder)
        self.sampler: Sampler | None = None
        """Executes samples of new launches and what makes indices, where that is asked for."""
        self.tensors = AddressedTensors()
        self._device = arch.nearest(facts.name, facts.target)
        self._hip = HipInProcess(self._device, self._launcher)
        self._patches = Patches()
        self._refused: set[tuple[int, str]] = set()
        self._codes: dict[int, tuple] = {}
        self.on_hip_launch: HipLaunchListener | None = None
        """Called with a launch through HIP that an autotuner tries, instead of recording it."""

    def install(self) -> None:
        """Make the capture driver Triton's active one. Raises UsageError inside a capture."""
        from triton.compiler.compiler import CompiledKernel
        from triton.runtime.driver import driver
        from triton.runtime.jit import JITFunction

        patches = self._patches
        claim(patches)
        isolation.install(patches)
        when_imported(patches, PALLAS, "wavecast.frameworks.jax.pallas")
        patches.attribute(driver, "_active", self.driver)
        patches.attribute(gpu, "emulated", self._device)
        patches.attribute(gpu, "trying", self.autotuners.on_trial)
        recording.start_blocking()  # a capture sees what Triton is asked to run
        patches.callback(recording.stop_blocking)
        patches.attribute(JITFunction, "run", self._watched_run(JITFunction.run))
        compiling = self._watched_compile(JITFunction._do_compile)
        patches.attribute(JITFunction, "_do_compile", compiling)
        loading = self._watched_load(CompiledKernel._init_handles)
        patches.attribute(CompiledKernel, "_init_handles", loading)
        self.autotuners.install(patches)
        benchmarks.install(patches, self.recorder)
        if self.driver.facts.is_amd:
            timer = benchmarks.timer_without_times(self.recorder)
            watch(patches, self._hip, self._device.target, timer)
        else:
            refuse(patches, self._device.target)

    def _launcher(self, arena: ArenaPart) -> RecordingLauncher:
        return RecordingLauncher(
            Emulator(), self._device, arena,
            tensors=self.tensors, recorder=self.recorder, sampler=self.sampler,
            tried=lambda: self.on_hip_launch,
        )  # fmt: skip

    def remove(self) -> None:
        """Put everything back."""
        self._patches.restore()
        self.driver.close()

    def _watched_run(self, original: Callable) -> Callable:
        @functools.wraps(original)
        def run(function: Any, *args: Any, **kwargs: Any) -> Any:
            is_recorded = self.recorder.wants(function.fn.__name__) or self.autotuners.trying
            if not is_recorded:
                self.recorder.filtered[function.fn.__name__] = None
                if self.sampler is None or not self.sampler.runs((*args, *kwargs.values())):
                    return None
            return original(function, *args, **kwargs)

        return run

    def _watched_compile(self, original: Callable) -> Callable:
        @functools.wraps(original)
        def _do_compile(function: Any, key: str, *rest: Any, **kwargs: Any) -> Any:
            identity = (id(function), key)
            if identity in self._refused:
                return None
            try:
                return original(function, key, *rest, **kwargs)
            except complaints.Refused:
                raise
            except Exception as error:
                complaint = complaints.explain(error, function)
                if self.autotuners.trying:
                    raise complaints.Refused(complaint) from error
                self._refused.add(identity)
                self.recorder.fail(function.fn.__name__, "compile", complaint)
                return None

        return _do_compile

    def _watched_load(self, original: Callable) -> Callable:
        from triton.runtime.errors import OutOfResources

        @functools.wraps(original)
        def _init_handles(kernel: Any) -> None:
            self.driver.loading(kernel)
            try:
                original(kernel)
            except OutOfResources as error:
                if self.autotuners.trying:
                    raise
                # Recorded all the same: what it needs is what the reader wants to see.
                kernel._run = self.driver.launcher_cls(kernel.src, kernel.metadata)
                self.recorder.fail(kernel.name, "launch", str(error))

        return _init_handles

    def _on_launch(self, kernel: Any, grid: tuple[int, int, int], values: tuple) -> None:
        configuration, trial = self.autotuners.configuration()
        if trial and self.recorder.configurations == "first":
            return
        if 0 in grid:
            self.recorder.note(f"{kernel.name} was launched with an empty grid {grid}: skipped")
            return
        try:
            launch = self.described(kernel, grid, values, configuration)
        except WavecastError as error:
            self.recorder.fail(kernel.name, "launch", error.message, error.hint)
            return
        is_recorded = self.recorder.wants(kernel.name)
        if self.sampler is not None:
            layout = self._code(kernel)[1]
            if is_recorded and not self.recorder.knows(launch):
                profiles = self.sampler.sample(launch, kernel, layout, values)
                self.recorder.launches.profiles.add(launch, profiles)
            if not trial:
                self.sampler.run(launch, kernel, layout, values)
        if is_recorded:
            self.recorder.record(launch, trial=trial)
            if (calls := graph_capture.current()) is not None:
                replays = itertools.count()  # the first one is recorded already
                calls.append(lambda: next(replays) and self.recorder.record(launch))

    def described(
        self, kernel: Any, grid: tuple[int, int, int], values: tuple, configuration: str = ""
    ) -> Launch:
        """A launch of a compiled kernel. Raises LaunchError, CompileError."""
        code, layout, segment = self._code(kernel)
        launch = build_launch(
            code, layout, segment, kernel.src.signature, grid, values, configuration
        )
        return replace(launch, model_lines=model_lines())

    def _code(self, kernel: Any) -> tuple:
        if id(kernel) not in self._codes:
            import triton

            code = code_object(kernel, triton.__version__)
            # The kernel is kept so that its id stays its own.
            self._codes[id(kernel)] = (code, slots(kernel), segment_bytes(kernel), kernel)
        return self._codes[id(kernel)][:3]
