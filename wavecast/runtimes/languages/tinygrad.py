"""tinygrad: its HIP device is opened for `AMD`, and its HIP compiles without ROCm.

The device that tinygrad opens by itself talks to the driver of Linux. Its kernels are the same:
renderer, tensor cores and searches depend on the target alone. Source: `tinygrad/device.py`,
`runtime/ops_amd.py`, `runtime/ops_hip.py`, `runtime/support/compiler_amd.py`, tinygrad 0.14.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from wavecast.compile import hip, hip_program, toolchain
from wavecast.errors import CaptureError, MissingTool
from wavecast.runtimes.hip_host.library import runtime_folder
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
        _prepare(patches)
    except (ImportError, AttributeError) as error:
        patches.restore()
        raise CaptureError(
            f"this version of tinygrad launches in another way: {error}",
            hint="tinygrad 0.14 is known to work",
        ) from error
    del target  # tinygrad asks the runtime for it
    return patches.restore


def _prepare(patches: Patches) -> None:
    from tinygrad import helpers  # pyright: ignore[reportMissingImports]
    from tinygrad.device import Device  # pyright: ignore[reportMissingImports]
    from tinygrad.runtime import ops_amd, ops_hip  # pyright: ignore[reportMissingImports]
    from tinygrad.runtime.autogen import hip as api  # pyright: ignore[reportMissingImports]
    from tinygrad.runtime.support import compiler_amd  # pyright: ignore[reportMissingImports]

    api.dll.__init__("hip", str(runtime_folder() / hip_program.SONAME))
    compiler = compiler_amd.HIPCompiler
    patches.attribute(compiler, "__init__", _start)
    patches.attribute(compiler, "compile", _compile)
    patches.attribute(ops_amd, "AMDDevice", ops_hip.HIPDevice)
    patches.attribute(helpers.PARALLEL, "value", 0)  # compilers in processes of their own
    _forget_devices(Device)
    patches.callback(_forget_devices, Device)


def _forget_devices(devices: Any) -> None:
    """The next use of a device opens it: another GPU may answer by then."""
    kind = type(devices)
    kind.get_class.cache_clear()
    kind._Device__get_canonicalized_item.cache_clear()
    devices._opened_devices.clear()


def _start(self: Any, arch: str) -> None:
    """`HIPCompiler.__init__`. Code has a cache here: tinygrad's would hide it from explanations."""
    from tinygrad.device import Compiler  # pyright: ignore[reportMissingImports]

    self.arch = arch
    Compiler.__init__(self, None)


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


__all__ = ["prepare"]
