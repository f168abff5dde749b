"""One kernel as a Python callable."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from wavecast import arch as devices
from wavecast.compile.codeobject import Argument, CodeObject, Launch, Parameter
from wavecast.compile.names import readable
from wavecast.compile.nvidia import descriptor
from wavecast.compile.parsing import parse_descriptor
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.clusters import LARGEST
from wavecast.emulate.errors import ExecutionError
from wavecast.errors import LaunchError, UsageError
from wavecast.runtimes.module import arguments
from wavecast.runtimes.module.memory import Memory

if TYPE_CHECKING:
    from wavecast.arch import Device
    from wavecast.emulate.launch import Emulator
    from wavecast.isa.program import KernelDescriptor
    from wavecast.perfmodel.prediction import Prediction
    from wavecast.perfmodel.profile import LaunchProfile
    from wavecast.sampling.sample import Sample

Dimensions = int | Sequence[int]

MAX_GROUPS: Final = 2**31 - 1
"""Workgroups of a grid along one axis (HIP API reference, hipModuleLaunchKernel)."""


class Function:
    """A kernel of a loaded module: `function(grid, block, *arguments)` executes it.

    `symbol` is its name in the code, `name` the one its source has, `parameters` what it takes.
    """

    def __init__(
        self, code: CodeObject, device: Device, emulator: Emulator, reports: Reports | None
    ) -> None:
        self.code = code
        self._device = device
        self._emulator = emulator
        self._reports = reports

    @property
    def symbol(self) -> str:
        return self.code.kernel

    @property
    def name(self) -> str:
        return readable(self.code.kernel)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Empty where the file does not describe them."""
        return self.code.parameters

    @cached_property
    def _descriptor(self) -> KernelDescriptor:
        return parse_descriptor(self.code) if self.code.is_amd else descriptor(self.code)

    @cached_property
    def _most_lds(self) -> int:
        return self._device.limits().lds_max_per_workgroup

    @cached_property
    def _slots(self) -> tuple[arguments.ArgumentSlot, ...]:
        return arguments.slots_of(self._descriptor.arguments, self.code.parameters)

    def __call__(
        self,
        grid: Dimensions,
        block: Dimensions,
        *values: Any,
        dynamic_lds: int = 0,
        threads: int | None = None,
        memory: Sequence[Any] = (),
        cluster: Dimensions | None = None,
    ) -> None:
        """Execute a grid of workgroups of `block` work-items; returns when all have ended.

        `grid` (workgroups) and `block` are numbers or up to three of them. A pointer takes a numpy
        array or a PyTorch tensor of the CPU, whose whole allocation the kernel may touch, None, or
        an address; what is passed by value takes a number, or bytes or a ctypes structure of its
        size. A file that does not describe arguments takes the whole argument segment as bytes.
        `dynamic_lds` are bytes of LDS, `threads` host threads (default: all), `memory` further
        arrays the kernel may touch, through pointers inside structures or arrays, `cluster` the
        workgroups of a cluster (gfx1250; default: what the kernel was compiled for).

        Raises LaunchError for arguments, a grid, or a block that do not fit, Unsupported for code
        that cannot be executed, ExecutionError for a launch that breaks off (with what checks
        found), and with checks ChecksFailed for one that went wrong.
        """
        if threads is not None and threads < 1:
            raise UsageError(f"{threads} host threads: at least one is needed")
        launch, launch_memory = self.described(grid, block, values, dynamic_lds, memory, cluster)
        if 0 in launch.grid:
            return
        try:
            self._emulator.run(launch, launch_memory.ranges, threads=threads)
        except ExecutionError as error:
            if self._reports is not None:  # they are not the next launch's
                error.reports = tuple(self._reports.take())
            raise
        launch_memory.check_unchanged()
        if self._reports is not None:
            self._reports.raise_errors()

    def predict(
        self,
        grid: Dimensions,
        block: Dimensions,
        *values: Any,
        device: str = "",
        dynamic_lds: int = 0,
        memory: Sequence[Any] = (),
        cluster: Dimensions | None = None,
        warm: bool = True,
        polluting_bytes: float = 0.0,
        what_if: bool = False,
    ) -> Prediction:
        """The time a launch with these arguments takes on a device (default: the one the module was
        loaded for), from an executed sample of its workgroups. Arrays stay as they are.

        Caches are assumed to be as an equal launch left them, with `polluting_bytes` touched by
        other launches since; with `warm=False` they are empty. With `what_if` the prediction has
        the time with each change (`wavecast.perfmodel.cu.whatif.Changes`), simulated again.

        Arguments are those of a call. Raises what a call raises, UnknownName for an unknown device,
        UsageError for one that does not run this code, MissingFact where the device lacks a number
        the prediction needs.
        """
        from wavecast.perfmodel.predict import predict

        sample = self._for(grid, block, values, device, dynamic_lds, memory, cluster)
        return predict(self._profile(sample, warm, polluting_bytes), sample[-1], what_if=what_if)

    def executed(
        self,
        grid: Dimensions,
        block: Dimensions,
        *values: Any,
        device: str = "",
        dynamic_lds: int = 0,
        memory: Sequence[Any] = (),
        warm: bool = True,
        polluting_bytes: float = 0.0,
    ) -> LaunchProfile:
        """The profile of an executed sample of a launch, for `wavecast.perfmodel.predict.predict`.
        Arguments and errors are those of `predict`."""
        sample = self._for(grid, block, values, device, dynamic_lds, memory)
        return self._profile(sample, warm, polluting_bytes)

    def sample(
        self,
        grid: Dimensions,
        block: Dimensions,
        *values: Any,
        device: str = "",
        dynamic_lds: int = 0,
        memory: Sequence[Any] = (),
    ) -> Sample:
        """An executed sample of a launch, which `wavecast.sampling.executed.replay_sample` makes a
        profile of. Arguments and errors are those of `predict`."""
        from wavecast.sampling.executed import sample_of

        return sample_of(*self._for(grid, block, values, device, dynamic_lds, memory))

    def _profile(
        self,
        sample: tuple[Launch, Sequence[tuple[int, int]], Device],
        warm: bool,
        polluting_bytes: float,
    ) -> LaunchProfile:
        from wavecast.sampling.executed import profile_of_sample

        return profile_of_sample(*sample, warm=warm, polluting_bytes=polluting_bytes)

    def _for(
        self,
        grid: Dimensions,
        block: Dimensions,
        values: Sequence[Any],
        device: str,
        dynamic_lds: int,
        memory: Sequence[Any],
        cluster: Dimensions | None = None,
    ) -> tuple[Launch, Sequence[tuple[int, int]], Device]:
        launch, launch_memory = self.described(grid, block, values, dynamic_lds, memory, cluster)
        if 0 in launch.grid:
            raise LaunchError(f"{self.name}: a grid of {grid} has no workgroup to predict")
        return launch, launch_memory.ranges, devices.load(device) if device else self._device

    def described(
        self,
        grid: Dimensions,
        block: Dimensions,
        values: Sequence[Any],
        dynamic_lds: int,
        memory: Sequence[Any],
        cluster: Dimensions | None = None,
    ) -> tuple[Launch, Memory]:
        """The launch, and the memory it may touch. Raises LaunchError as a call does."""
        launch_memory = Memory(self.name)
        groups = self._dimensions(grid, "grid", 0, MAX_GROUPS)
        items = self._dimensions(block, "block", 1, 1024)
        if not isinstance(dynamic_lds, int):
            raise LaunchError(f"{self.name}: dynamic_lds={dynamic_lds!r} is not a number of bytes")
        self._check_size(groups, items, dynamic_lds)
        segment, launch_arguments = self._segment(values, launch_memory)
        for index, array in enumerate(memory):
            launch_memory.add(array, f"memory[{index}]")
        launch = Launch(
            self.code, groups, items, launch_arguments, segment, dynamic_lds,
            cluster=self._cluster(cluster),
        )  # fmt: skip
        return launch, launch_memory

    def __repr__(self) -> str:
        parameters = ", ".join(f"{p.type} {p.name}".strip() or "?" for p in self.parameters)
        return f"<kernel {self.name}({parameters}) for {self.code.target}>"

    def _segment(self, values: Sequence[Any], memory: Memory) -> tuple[bytes, tuple[Argument, ...]]:
        size = self._descriptor.kernarg_bytes
        if self._slots or not values:
            return arguments.pack(self._slots, size, values, memory)
        raw = arguments.raw_bytes(values[0])
        if len(values) != 1 or raw is None:
            raise LaunchError(
                f"{self.name} takes no arguments that its file describes",
                hint="give the whole argument segment as bytes, arrays in it as memory=(…)",
            )
        if size and len(raw) > size:
            raise LaunchError(f"{self.name}: its argument segment has {size} bytes, not {len(raw)}")
        return raw, ()

    def _dimensions(self, value: Dimensions, what: str, least: int, most: int) -> Any:
        """Three numbers, those left out being 1."""
        try:
            sizes = value if isinstance(value, Sequence) else (value,)
            numbers = [operator.index(number) for number in sizes]
        except TypeError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise LaunchError(
                f"{self.name}: a {what} of {value!r}", hint="give one to three integers"
            )
        for number in numbers:
            if not least <= number <= most:
                raise LaunchError(
                    f"{self.name}: a {what} of {number} along one axis", hint=f"{least} to {most}"
                )
        return (*numbers, 1, 1)[:3]

    def _cluster(self, cluster: Dimensions | None) -> tuple[int, int, int]:
        """Raises LaunchError for another cluster than the kernel was compiled for."""
        compiled = self._descriptor.cluster
        if cluster is None:
            return compiled
        stated: tuple[int, int, int] = self._dimensions(cluster, "cluster", 1, LARGEST)
        if compiled not in (stated, (1, 1, 1)):
            raise LaunchError(
                f"{self.name}: a cluster of {stated}", hint=f"it was compiled for {compiled}"
            )
        return stated

    def _check_size(self, grid: Sequence[int], block: Sequence[int], dynamic_lds: int) -> None:
        descriptor = self._descriptor
        if math.prod(grid) >= 1 << 63:
            raise LaunchError(f"{self.name}: a grid of {math.prod(grid)} workgroups")
        total = math.prod(block)
        if limit := descriptor.limit_of_workgroup(total):
            raise LaunchError(f"{self.name}: a workgroup of {total} work-items", hint=limit)
        most = self._most_lds
        if dynamic_lds < 0 or descriptor.lds_bytes + dynamic_lds > most:
            raise LaunchError(
                f"{self.name}: {descriptor.lds_bytes:,} bytes of LDS and {dynamic_lds:,} dynamic",
                hint=f"a workgroup on {self._device.target} has at most {most:,}",
            )
