"""Starts HIP's runtime in this process as soon as a program needs it, or refuses what needs it on
GPUs without HIP."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ExtensionFileLoader
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

from wavecast.errors import CaptureError
from wavecast.runtimes.hip_host.in_process import HipInProcess, is_loaded
from wavecast.runtimes.hip_host.rocm_libraries import provide_missing
from wavecast.runtimes.imported import call_when_imported
from wavecast.runtimes.languages.registry import (
    AMD_ONLY,
    LANGUAGES,
    SEEN_ON_NVIDIA,
    TIMERS,
    WATCHED,
)
from wavecast.runtimes.patching import Patches

if TYPE_CHECKING:
    from wavecast.runtimes.devices import DeviceFacts
    from wavecast.runtimes.languages.cuda_driver import CudaLaunch

_LIBRARIES: Final = ("libamdhip64", "libhiprtc")


def watch(
    patches: Patches, runtime: HipInProcess, target: str, measure: Callable[..., Any]
) -> None:
    """Start `runtime`, for a GPU of `target`, where a program imports a language of the registry,
    or loads HIP's library or what depends on it; `measure` replaces the timers of languages. Until
    `patches` are undone, which stops it."""

    def start(function: str = "") -> None:
        runtime.start()
        if function:
            undo = resolve_name(function)(target)
            if undo is not None:
                patches.callback(undo)

    for module, function in LANGUAGES.items():
        call_when_imported(patches, module, functools.partial(start, function), before=True)
    for module, function in WATCHED.items():
        call_when_imported(patches, module, functools.partial(start, function))
    for module, names in TIMERS.items():
        call_when_imported(
            patches, module, functools.partial(_replace, patches, module, names, measure)
        )
    refuse_cuda(patches, target)
    patches.callback(runtime.stop)
    if is_loaded():
        start()
    load, create = ctypes.CDLL.__init__, ExtensionFileLoader.create_module
    patches.attribute(ctypes.CDLL, "__init__", _loading(load, start))
    patches.attribute(ExtensionFileLoader, "create_module", _loading(create, start))


def watch_cuda(
    patches: Patches,
    facts: DeviceFacts,
    on_names: Callable[[list[str]], None],
    on_launch: Callable[[CudaLaunch], None],
) -> None:
    """Give launches by CUDA's driver, on the NVIDIA GPU of `facts`, to `on_launch`, and names of
    their parameters to `on_names` before. Until `patches` are undone."""
    from wavecast.runtimes.languages import cutile
    from wavecast.runtimes.languages.cuda_driver import CudaDriver

    driver = CudaDriver(facts, on_launch)
    call_when_imported(patches, "cuda.tile", lambda: cutile.prepare(patches, driver), before=True)
    call_when_imported(
        patches, "cuda.tile", lambda: cutile.watch_launches(patches, driver, on_names)
    )


def refuse_cuda(patches: Patches, target: str) -> None:
    """Raise CaptureError where a language for NVIDIA GPUs is imported for another target. Until
    `patches` are undone."""

    def begin(language: str) -> None:
        raise CaptureError(f"{language} compiles for NVIDIA GPUs only, not for {target}")

    for module, language in SEEN_ON_NVIDIA.items():
        if module not in sys.modules:
            call_when_imported(patches, module, functools.partial(begin, language), before=True)


def refuse(patches: Patches, target: str) -> None:
    """Raise CaptureError where a language that has code for AMD GPUs only compiles for another
    target. Until `patches` are undone."""

    def begin(module: str, language: str, function: str) -> None:
        owner, _, name = function.rpartition(".")

        def compiles(*args: Any, **kwargs: Any) -> Any:
            del args, kwargs
            raise CaptureError(f"{language} compiles for AMD GPUs only, not for {target}")

        patches.attribute(resolve_name(f"{module}:{owner}"), name, compiles)

    for module, (language, function) in AMD_ONLY.items():
        call_when_imported(patches, module, functools.partial(begin, module, language, function))


def _replace(patches: Patches, module: str, names: Sequence[str], value: Any) -> None:
    for name in names:
        patches.attribute(sys.modules[module], name, value)


def _loading(original: Callable[..., Any], start: Callable[[], None]) -> Callable[..., Any]:
    """A function that loads a library, tried again as long as what is missing can be loaded."""

    @functools.wraps(original)
    def load(*args: Any, **kwargs: Any) -> Any:
        messages = set()
        while True:
            try:
                return original(*args, **kwargs)
            except (ImportError, OSError) as error:
                message = str(error)
                if message in messages:
                    raise
                messages.add(message)
                if any(name in message for name in _LIBRARIES) and not is_loaded():
                    start()
                elif not provide_missing(message):
                    raise

    return load


__all__ = ["refuse", "refuse_cuda", "watch", "watch_cuda"]
