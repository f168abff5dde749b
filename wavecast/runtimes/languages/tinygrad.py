"""tinygrad: its HIP device is opened for `AMD`, and its HIP compiles without ROCm.

The device that tinygrad opens by itself talks to the driver of Linux. Its kernels are the same:
renderer, tensor cores and searches depend on the target alone. Times that it waits for, as its
search (BEAM) does, are predictions. Source: `tinygrad/device.py`,
`runtime/ops_amd.py`, `runtime/ops_hip.py`, `runtime/support/compiler_amd.py`, tinygrad 0.14.
"""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final

from wavecast.compile import hip, hip_program, toolchain
from wavecast.errors import CaptureError, MissingTool
from wavecast.runtimes.hip_host.in_process import serving
from wavecast.runtimes.hip_host.library import runtime_folder
from wavecast.runtimes.languages.rocm_folder import rocm_folder
from wavecast.runtimes.patching import Patches

_KERNEL: Final = re.compile(r"__attribute__\(\(global\)\).*?(\w+)\(\w+[*&]? ")
_OPTIONS: Final = ("-std=c++14", "-mcumode", "-Wno-unused-command-line-argument")
"""What tinygrad gives its compiler, `comgr`, besides ROCm's headers."""
_MATH: Final = "__ocml_"
"""How functions of AMD's math library begin."""


def prepare(target: str) -> Callable[[], None]:
    """Let tinygrad's devices `AMD` and `HIP` be the GPU of HIP's runtime, until what is returned
    is called. Raises CaptureError for a version of tinygrad without what this needs."""
    patches = Patches()
    try:
        _prepare(patches, target)
    except (ImportError, AttributeError) as error:
        patches.restore()
        raise CaptureError(
            f"this version of tinygrad launches in another way: {error}",
            hint="tinygrad 0.14 is known to work",
        ) from error
    return patches.restore


def _module(name: str) -> Any:
    """A module of tinygrad, which the program has imported."""
    return import_module(f"tinygrad.{name}")


def _prepare(patches: Patches, target: str) -> None:
    helpers, device = _module("helpers"), _module("device")
    ops_amd, ops_hip = _module("runtime.ops_amd"), _module("runtime.ops_hip")
    api, compiler_amd = _module("runtime.autogen.hip"), _module("runtime.support.compiler_amd")
    compiler_cpu = _module("runtime.support.compiler_cpu")
    search = _module("codegen.opt.search")
    api.dll.__init__("hip", str(runtime_folder() / hip_program.SONAME))
    compiler = compiler_amd.HIPCompiler
    patches.attribute(compiler, "__init__", _start)
    patches.attribute(compiler, "compile", _compile)
    patches.attribute(ops_amd, "AMDDevice", ops_hip.HIPDevice)
    timed, search_timer = _timed(ops_hip.HIPProgram.__call__), _timed_search(search.time_call)
    patches.attribute(ops_hip.HIPProgram, "__call__", timed)
    patches.attribute(search, "time_call", search_timer)
    if not shutil.which(helpers.getenv(_HOST_COMPILER, "clang")):
        clang = str(rocm_folder(target) / "llvm" / "bin" / "clang")
        patches.attribute(compiler_cpu, "getenv", functools.partial(_setting, clang))
    patches.attribute(helpers.PARALLEL, "value", 0)  # its compilers would be other processes
    _forget_devices(device.Device)
    patches.callback(_forget_devices, device.Device)


def _forget_devices(devices: Any) -> None:
    """The next use of a device opens it: another GPU may answer by then."""
    kind = type(devices)
    kind.get_class.cache_clear()
    kind._Device__get_canonicalized_item.cache_clear()
    devices._opened_devices.clear()


def _start(self: Any, arch: str) -> None:
    """`HIPCompiler.__init__`. Code has a cache here: tinygrad's would hide it from explanations."""
    self.arch = arch
    _module("device").Compiler.__init__(self, None)


def _compile(self: Any, source: str) -> bytes:
    """`HIPCompiler.compile`. Raises MissingTool without a linker, or without the math library where
    the source calls it, and CompileError."""
    target = self.arch.split(":", 1)[0]
    tools = toolchain.find(target)
    if not tools.linker:
        raise MissingTool("linking device code needs ld.lld", hint="install lld")
    if _MATH in source and tools.own_headers and tools.library is None:
        raise MissingTool(
            "kernels of tinygrad call AMD's math library, which Triton's package has",
            hint="pip install triton",
        )
    kernel = _KERNEL.search(source)
    name = f"{kernel[1]}.hip" if kernel is not None else "tinygrad.hip"
    codes = hip.compile(source, target, _OPTIONS, name=name, program=True, generated=True)
    binary = codes[0].stages["hsaco"]
    assert isinstance(binary, bytes)
    return binary


_HOST_COMPILER: Final = "CC"
"""The variable with the compiler of tinygrad's device `CPU`, which computes constants."""


def _setting(clang: str, name: str, default: Any = 0) -> Any:
    """`getenv` of the compiler of the host, which is `clang`."""
    return clang if name == _HOST_COMPILER else _module("helpers").getenv(name, default)


_searching = [False]
"""Whether a search compares kernels: their launches have times and no results."""


def _timed(original: Callable[..., Any]) -> Callable[..., Any]:
    """`HIPProgram.__call__`, whose seconds are predicted where a caller waits for them."""

    @functools.wraps(original)
    def launch(self: Any, *args: Any, wait: bool = False, **kwargs: Any) -> float | None:
        runtime = serving()
        launcher = runtime.launcher if runtime is not None else None
        if not wait or launcher is None:
            return original(self, *args, wait=wait, **kwargs)
        seconds = launcher.measure(lambda: original(self, *args, **kwargs))
        if not _searching[0]:
            original(self, *args, **kwargs)
        return seconds

    return launch


def _timed_search(original: Callable[..., Any]) -> Callable[..., Any]:
    """`time_call` of the search: a predicted time is always the same, and caches are cold."""

    @functools.wraps(original)
    def time_call(*args: Any, clear_l2: bool = False, **kwargs: Any) -> Iterator[float]:
        del clear_l2
        before, _searching[0] = _searching[0], True
        try:
            seconds = next(original(*args, **kwargs))
        finally:
            _searching[0] = before
        while True:
            yield seconds

    return time_call


__all__ = ["prepare"]
