"""Launches through HIP's modules by the programs whose Triton launches are executed or recorded."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wavecast.compile.codeobject import Launch
from wavecast.emulate.launch import AddressRange
from wavecast.launch import graph_capture
from wavecast.runtimes.hip_host.launching import LaunchedKernel, Launcher
from wavecast.runtimes.hip_host.modules import LoadedModule
from wavecast.runtimes.torch_cpu.profiling import ProfiledKernels
from wavecast.runtimes.triton.recorder import Recorder
from wavecast.runtimes.triton.timers import PredictedTimers

if TYPE_CHECKING:
    from wavecast.runtimes.triton.sampling import Sampler


HipLaunchListener = Callable[[Launch, Sequence[AddressRange]], None]
"""Called with a launch and the memory that it may touch."""


@dataclass(kw_only=True)
class ExecutingLauncher(Launcher):
    """Executes launches of kernels whose names `pattern` matches; those that `timers` wait for are
    predicted, and those that `profiled` watches too. `executed` counts."""

    timers: PredictedTimers
    profiled: ProfiledKernels
    pattern: re.Pattern[str] = field(default_factory=lambda: re.compile(""))
    executed: int = 0

    def facts(self) -> dict[str, int]:
        return {**super().facts(), "predicts": 1}

    def on_event(self) -> None:
        self.timers.on_event()

    @property
    def keeps_for_replay(self) -> bool:
        return not self.timers.timing

    @property
    def predicts_now(self) -> bool:
        """Whether a launch now is predicted."""
        return self.timers.describes or self.profiled.watched

    @property
    def describes(self) -> bool:
        return super().describes or self.predicts_now

    def perform(
        self,
        module: LoadedModule,
        launch: Launch,
        ranges: Sequence[AddressRange],
        entry: LaunchedKernel,
    ) -> float:
        if not self.pattern.search(launch.code.kernel):
            return 0.0
        seconds = 0.0
        if self.predicts_now:
            self.share_with_sample(module, launch)
            with self.arena.private():
                seconds = self.timers.seconds(launch, ranges)
            if self.timers.timing:
                self.timers.add(seconds)
                return 0.0
            self.timers.on_executed(seconds)
            self.profiled.add(launch.code.kernel, seconds)
        self.executed += 1
        super().perform(module, launch, ranges, entry)
        return seconds


@dataclass(kw_only=True)
class RecordingLauncher(Launcher):
    """Records launches; `sampler` executes samples of new ones. What `tried` returns is called with
    launches that an autotuner tries, which are not recorded."""

    recorder: Recorder = field(default_factory=lambda: Recorder(""))
    sampler: Sampler | None = None
    tried: Callable[[], HipLaunchListener | None] = lambda: None

    @property
    def describes(self) -> bool:
        return True

    @property
    def keeps_for_replay(self) -> bool:
        return False

    def perform(
        self,
        module: LoadedModule,
        launch: Launch,
        ranges: Sequence[AddressRange],
        entry: LaunchedKernel,
    ) -> float:
        del entry
        recorder, name = self.recorder, launch.code.kernel
        if not recorder.wants(name):
            recorder.filtered[name] = None
            return 0.0
        if (tried := self.tried()) is not None:
            self.share_with_sample(module, launch)
            with self.arena.private():
                tried(launch, ranges)
            return 0.0
        if self.sampler is not None and not recorder.knows(launch):
            self.share_with_sample(module, launch)
            with self.arena.private():
                profiles = self.sampler.sample_ranges(launch, ranges)
            recorder.launches.profiles.add(launch, profiles)
        recorder.record(launch)
        if (calls := graph_capture.current()) is not None:
            replays = itertools.count()  # the first one is recorded already
            calls.append(lambda: next(replays) and recorder.record(launch))
        return 0.0


__all__ = ["ExecutingLauncher", "HipLaunchListener", "RecordingLauncher"]
