"""A Triton driver whose device records launches instead of running them.

Needs neither a GPU nor libcuda, libamdhip64, or a C compiler: Triton asks a driver for the target,
a loader for compiled code and a launcher, and all three are answered here.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from wavecast.arch import capabilities
from wavecast.errors import LaunchError, UsageError
from wavecast.launch import graph_capture
from wavecast.runtimes.devices import DeviceFacts
from wavecast.runtimes.triton import compat

MAX_THREADS = 1024
"""Threads of the largest workgroup, on every target here (HIP and CUDA programming guides)."""

REGISTERS_PER_BLOCK = 65536
"""32-bit registers a block may have (CUDA programming guide, compute capability table)."""

_MAX_PROGRAMS = 2**31 - 1
"""Along one axis of a grid (Triton's launchers take signed numbers of 32 bits)."""

_device_numbers = itertools.count(4096)

OnLaunch = Callable[[Any, tuple[int, int, int], tuple], None]
"""Called with the CompiledKernel, the grid, and the values of all parameters."""


def gpu_target(facts: DeviceFacts) -> GPUTarget:
    """Triton's name for the device. Raises UsageError for one that Triton has no target for."""
    if facts.is_amd:
        if not capabilities(facts.target).triton:
            raise UsageError(
                f"Triton has no target {facts.target}", hint="HIP programs run there: docs/hip.md"
            )
        return GPUTarget("hip", facts.target, facts.lanes)
    major, minor = facts.capability
    return GPUTarget("cuda", 10 * major + minor, facts.lanes)


class CaptureDriver(DriverBase):
    """The active driver of a capture.

    Each driver has its own device number because Triton keeps compiled kernels per device
    number for the life of the process; a second capture must not find the first one's.
    """

    def __init__(self, facts: DeviceFacts, torch_device: str, on_launch: OnLaunch) -> None:
        super().__init__()
        self.facts = facts
        self.number = next(_device_numbers)
        self.utils = CaptureUtils(facts)
        self.on_launch = on_launch
        self.launcher_cls = self._launcher
        self._torch_device = torch_device
        self._loading: Any = None
        self._loaded: list[weakref.ref[Any]] = []
        self.scratch: Any = None
        """Global scratch memory of the launch in progress, None where its kernel takes none."""

    @classmethod
    def is_active(cls) -> bool:  # type: ignore[override]
        return True

    def get_current_target(self) -> GPUTarget:  # type: ignore[override]
        return gpu_target(self.facts)

    def get_current_device(self) -> int:
        return self.number

    def set_current_device(self, device: int) -> None:
        del device  # there is only one

    def get_current_stream(self, device: int | None = None) -> int:
        del device
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        del device
        return self.facts.capability

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device(self._torch_device)

    def get_device_interface(self) -> Any:
        import torch

        return torch.cuda

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_benchmarker(self) -> Any:
        import triton.testing

        return triton.testing.do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        import torch

        return torch.empty(0)

    def clear_cache(self, cache: Any) -> None:
        del cache

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        del tensormaps_info
        return args

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream: Any) -> Any:
        import torch

        del alignment, stream
        return torch.zeros(size, dtype=torch.int8)

    def loading(self, kernel: Any) -> None:
        """Name the kernel whose launcher and code are loaded next."""
        self._loading = self.utils.loading = kernel
        self._loaded.append(weakref.ref(kernel))

    def close(self) -> None:
        """Let go of the kernels loaded: when they end, this driver is not there to unload them."""
        for kernel in (reference() for reference in self._loaded):
            if kernel is not None:
                kernel.module = None
        self._loaded.clear()

    def _launcher(self, source: Any, details: Any) -> CaptureLauncher:
        del source
        return CaptureLauncher(self._loading, details, self)


class CaptureUtils:
    """What Triton takes from a driver's C extension."""

    def __init__(self, facts: DeviceFacts) -> None:
        self.facts = facts
        self.loading: Any = None

    def load_binary(self, name: str, code: bytes, shared: int, device: int) -> tuple:
        """(module, function, registers, spilled registers, threads) as a GPU's loader returns."""
        del code, shared, device
        registers, spills = compat.register_usage(self.loading)
        return name, name, registers, spills, MAX_THREADS

    def unload_module(self, module: Any) -> None:
        del module

    def get_device_properties(self, device: Any = None) -> dict[str, Any]:
        """The properties that Triton's own drivers give; unknown ones are left out."""
        del device
        properties: dict[str, Any] = {
            "max_shared_mem": self.facts.shared_bytes,
            "max_num_regs": REGISTERS_PER_BLOCK,
            "multiprocessor_count": self.facts.multiprocessors,
            "warpSize": self.facts.lanes,
            "max_threads_per_sm": self.facts.resident_threads,
            "cooperativeLaunch": 1,
        }
        rates = {
            "sm_clock_rate": self.facts.clock_hz,
            "mem_clock_rate": self.facts.memory_clock_hz,
        }
        properties |= {name: round(hertz / 1e3) for name, hertz in rates.items() if hertz}  # kHz
        if self.facts.memory_bits is not None:
            properties["mem_bus_width"] = self.facts.memory_bits
        if self.facts.is_amd:
            properties["arch"] = self.facts.target
        return properties

    def set_printf_fifo_size(self, size: int) -> None:
        del size

    def is_stream_capturing(self, stream: int) -> bool:
        del stream
        return graph_capture.current() is not None


class CaptureLauncher:
    """One loaded kernel; a call is a launch."""

    def __init__(self, kernel: Any, details: Any, driver: CaptureDriver) -> None:
        self._kernel = kernel
        self._scratch = int(getattr(details, "global_scratch_size", 0) or 0)
        self._scratch_align = int(getattr(details, "global_scratch_align", 1) or 1)
        self._clusters = int(getattr(details, "num_ctas", 1) or 1)
        self._driver = driver

    def __call__(
        self, x: int, y: int, z: int, stream: int, function: Any, packed: Any, launch: Any,
        enter_hook: Any, exit_hook: Any, *values: Any,
    ) -> None:  # fmt: skip
        """Triton's launcher protocol; `values` holds every parameter, constants included."""
        del function, packed
        name = self._kernel.name
        grid = (_dimension(name, x), _dimension(name, y), _dimension(name, z))
        if self._scratch and all(grid):
            # A program that set no allocator fails here, as it would on a GPU.
            size = grid[0] * grid[1] * grid[2] * self._clusters * self._scratch
            self._driver.scratch = compat.allocator()(size, self._scratch_align, stream)
        if enter_hook is not None:
            enter_hook(launch)
        self._driver.on_launch(self._kernel, grid, values)
        if exit_hook is not None:
            exit_hook(launch)


def _dimension(kernel: str, value: Any) -> int:
    """One number of a grid. Raises LaunchError where the launchers of Triton's own drivers refuse
    it."""
    number = operator.index(value)
    if not -_MAX_PROGRAMS - 1 <= number <= _MAX_PROGRAMS:
        raise LaunchError(f"{kernel}: a grid of {number} programs (0 to {_MAX_PROGRAMS} per axis)")
    return max(0, number)
