"""Starts HIP's runtime in this process as soon as a program needs it."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from pkgutil import resolve_name
from typing import Any, Final

from wavecast.runtimes.hip_host.in_process import HipInProcess, is_loaded
from wavecast.runtimes.imported import call_when_imported
from wavecast.runtimes.languages.registry import LANGUAGES
from wavecast.runtimes.patching import Patches

_LIBRARIES: Final = ("libamdhip64", "libhiprtc")


def watch(patches: Patches, runtime: HipInProcess, target: str) -> None:
    """Start `runtime`, for a GPU of `target`, where a program imports a language of the registry,
    or loads HIP's library or one that depends on it; until `patches` are undone, which stops it."""

    def start(function: str = "") -> None:
        runtime.start()
        if function:
            undo = resolve_name(function)(target)
            if undo is not None:
                patches.callback(undo)

    for module, function in LANGUAGES.items():
        call_when_imported(patches, module, functools.partial(start, function))
    patches.callback(runtime.stop)
    if is_loaded():
        start()
    load, create = ctypes.CDLL.__init__, ExtensionFileLoader.create_module
    patches.attribute(ctypes.CDLL, "__init__", _loading(load, start))
    patches.attribute(ExtensionFileLoader, "create_module", _loading(create, start))


def _loading(original: Callable[..., Any], start: Callable[[], None]) -> Callable[..., Any]:
    """A function that loads a library, tried again with the runtime where that is missing."""

    @functools.wraps(original)
    def load(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except (ImportError, OSError) as error:
            if not any(name in str(error) for name in _LIBRARIES):
                raise
            start()
            return original(*args, **kwargs)

    return load


__all__ = ["watch"]
