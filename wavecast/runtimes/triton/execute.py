"""Triton's entry points while its launches are executed on the emulator.

What is replaced: the active driver, `CompiledKernel._init_handles` (tells the driver which kernel
it loads), `JITFunction.run` (name filter) and `triton.testing`'s timers, which give predictions
(`timers`). Compiling, autotuning and errors of both stay Triton's own, but that compilers run in
forks (`isolation`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.triton import Slot, code_object, scratch_offsets, segment_bytes, slots
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.launch import AddressRange, Emulator
from wavecast.emulate.trace.result import Trace
from wavecast.errors import CompileError, UsageError
from wavecast.launch import gpu, graph_capture, recording
from wavecast.launch.callers import launch_caller
from wavecast.patterns import regex
from wavecast.runtimes.devices import DeviceFacts
from wavecast.runtimes.hip_host.arena import ArenaPart
from wavecast.runtimes.hip_host.in_process import HipInProcess
from wavecast.runtimes.hip_host.tensors import AddressedTensors
from wavecast.runtimes.imported import PALLAS, when_imported
from wavecast.runtimes.languages.watch import watch
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu.profiling import ProfiledKernels
from wavecast.runtimes.triton import isolation
from wavecast.runtimes.triton.claim import claim
from wavecast.runtimes.triton.driver import CaptureDriver
from wavecast.runtimes.triton.hip_modules import ExecutingLauncher
from wavecast.runtimes.triton.launches import build_launch, in_workgroups, pack
from wavecast.runtimes.triton.reach import makes_pointers, reachable
from wavecast.runtimes.triton.shared_allocations import with_allocations
from wavecast.runtimes.triton.timers import PredictedTimers

if TYPE_CHECKING:
    from wavecast.arch import Device


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """What every launch of one compiled kernel needs. `kernel` is kept so that its id stays."""

    kernel: Any
    code: CodeObject
    layout: tuple[Slot, ...]
    segment: int
    scratch: tuple[int, ...]
    makes_pointers: bool


class ExecutingHooks:
    """Installed from `install` to `remove`; one at a time in a process.

    `kernels` is a regular expression searched in kernel names; launches of others are left out.
    `reports` gathers what a checking emulator finds, `traces` what a tracing one saw, `notes` what
    the user must see once. Launches that are timed are predicted for `device`. Raises UsageError
    for a bad expression, or for a device that is not AMD's.
    """

    def __init__(
        self,
        facts: DeviceFacts,
        device: Device,
        emulator: Emulator,
        reports: Reports | None = None,
        *,
        kernels: str = "",
    ) -> None:
        if not facts.is_amd:
            raise UsageError(f"only AMD GPUs can be executed, not {facts.target}")
        self._pattern = regex(kernels, "-k")
        self.emulator = emulator
        self.reports = Reports() if reports is None else reports
        self.traces: list[Trace] = []
        self.driver = CaptureDriver(facts, "cuda:0", self._on_launch)
        self._executed = 0
        self.notes: dict[str, None] = {}
        self._device = device
        self.timers = PredictedTimers(device, self.notes.setdefault)
        self.tensors = AddressedTensors()
        self.profiled = ProfiledKernels()
        self.hip = HipInProcess(device, self._launcher)
        self._patches = Patches()
        self._loaded: dict[int, LoadedKernel] = {}

    def install(self) -> None:
        """Make the emulator Triton's device. Raises UsageError inside another capture or device."""
        from triton.compiler.compiler import CompiledKernel
        from triton.runtime.driver import driver
        from triton.runtime.jit import JITFunction

        patches = self._patches
        claim(patches)
        isolation.install(patches)
        when_imported(patches, PALLAS, "wavecast.frameworks.jax.pallas")
        patches.attribute(driver, "_active", self.driver)
        patches.attribute(gpu, "emulated", self._device)
        loading = self._watched_load(CompiledKernel._init_handles)
        patches.attribute(CompiledKernel, "_init_handles", loading)
        if self._pattern.pattern:
            patches.attribute(JITFunction, "run", self._filtered_run(JITFunction.run))
            recording.start_blocking()  # replayed launches have no function to filter by
            patches.callback(recording.stop_blocking)
        self.timers.install(patches)
        watch(patches, self.hip, self._device.target, self.timers.measure_second)

    @property
    def checks_more(self) -> bool:
        """Whether more than launches was checked."""
        return False

    @property
    def executed(self) -> int:
        """The launches that were executed."""
        launcher = self.hip.launcher
        return self._executed + (
            launcher.executed if isinstance(launcher, ExecutingLauncher) else 0
        )

    def _launcher(self, arena: ArenaPart) -> ExecutingLauncher:
        return ExecutingLauncher(
            self.emulator, self._device, arena, checks=self.emulator.mode is not None,
            tensors=self.tensors, timers=self.timers, pattern=self._pattern,
            profiled=self.profiled,
        )  # fmt: skip

    def pause(self) -> None:
        """Put everything back but what was compiled and translated, which a later `install` has."""
        self._patches.restore()

    def remove(self) -> None:
        """Put everything back."""
        self.pause()
        self.driver.close()

    def _watched_load(self, original: Callable) -> Callable:
        @functools.wraps(original)
        def _init_handles(kernel: Any) -> None:
            self.driver.loading(kernel)
            original(kernel)

        return _init_handles

    def _filtered_run(self, original: Callable) -> Callable:
        @functools.wraps(original)
        def run(function: Any, *args: Any, **kwargs: Any) -> Any:
            if self._pattern.search(function.fn.__name__):
                return original(function, *args, **kwargs)
            return None

        return run

    def _on_launch(self, kernel: Any, grid: tuple[int, int, int], values: tuple) -> None:
        if 0 in grid:
            return
        import torch

        with torch._C.DisableTorchFunction():
            loaded = self._load(kernel)
            ranges = reachable(
                loaded.code.kernel, loaded.layout, values, everything=loaded.makes_pointers
            )
            launch = self._make_launch(kernel, loaded, grid, values)
            if loaded.scratch:
                data, more = self._with_scratch(kernel, loaded, launch.kernarg)
                launch, ranges = replace(launch, kernarg=data), ranges + more
        if (calls := graph_capture.current()) is not None and not self.timers.timing:
            kept = values, self.driver.scratch
            calls.append(lambda: self._perform(launch, ranges, kept[0]))
            return
        self._perform(launch, ranges, values)

    def _perform(self, launch: Launch, ranges: list[AddressRange], values: tuple) -> None:
        """Run a launch, with its time where something waits for it; what is timed is predicted."""
        if self.timers.timing:
            self.timers.on_launch(launch, ranges)
            return
        if self.timers.has_events or self.profiled.watched:
            seconds = self.timers.seconds(launch, ranges)
            self.timers.on_executed(seconds)
            self.profiled.add(launch.code.kernel, seconds)
        self._execute(launch, ranges, values)
        self._executed += 1

    def _execute(self, launch: Launch, ranges: list[AddressRange], values: tuple) -> None:
        """Run a launch; `values` are its parameters."""
        del values
        if self.emulator.mode is not None:
            launch = replace(launch, caller=launch_caller())
        self.emulator.run(launch, ranges)

    def _make_launch(
        self, kernel: Any, loaded: LoadedKernel, grid: tuple[int, int, int], values: tuple
    ) -> Launch:
        """The launch; its arguments are described for predictions and for checks."""
        code, layout, segment = loaded.code, loaded.layout, loaded.segment
        predicted = self.timers.describes or self.profiled.watched
        later = graph_capture.current() is not None
        if predicted or later or self.emulator.mode is not None:
            return build_launch(code, layout, segment, kernel.src.signature, grid, values)
        data = pack(code.kernel, layout, segment, values)
        workgroups, cluster = in_workgroups(code, grid)
        return Launch(
            code, workgroups, (code.workgroup_size, 1, 1), (), data, code.dynamic_lds,
            cluster=cluster,
        )  # fmt: skip

    def _load(self, kernel: Any) -> LoadedKernel:
        loaded_kernel = self._loaded.get(id(kernel))
        if loaded_kernel is None:
            import triton

            code = code_object(kernel, triton.__version__)
            if self.emulator.mode is not None:
                code = self._with_allocations(code, kernel)
            loaded_kernel = LoadedKernel(
                kernel,
                code,
                slots(kernel),
                segment_bytes(kernel),
                scratch_offsets(kernel),
                makes_pointers(code.stages),
            )
            self._loaded[id(kernel)] = loaded_kernel
        return loaded_kernel

    def _with_allocations(self, code: CodeObject, kernel: Any) -> CodeObject:
        """The code with what checks compare accesses of shared memory with."""
        try:
            return with_allocations(code, kernel)
        except CompileError as error:
            self.notes[error.message] = None
            return code

    def _with_scratch(
        self, kernel: Any, loaded: LoadedKernel, data: bytes
    ) -> tuple[bytes, list[AddressRange]]:
        """The argument segment with the address of global scratch where the kernel uses any."""
        size = int(getattr(kernel.metadata, "global_scratch_size", 0) or 0)
        if not size:
            return data, []
        buffer = self.driver.scratch
        address = buffer.data_ptr()
        filled = bytearray(data)
        filled[loaded.scratch[0] : loaded.scratch[0] + 8] = address.to_bytes(8, "little")
        return bytes(filled), [(address, address + buffer.nbytes)]
