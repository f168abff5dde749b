"""cuTile: its launcher asks CUDA's driver for functions, and DLPack for where tensors are."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, Final

from wavecast.runtimes.languages.cuda_driver import CudaDriver
from wavecast.runtimes.languages.dlpack import exporting_to_cuda
from wavecast.runtimes.patching import Patches

_DRIVER: Final = "cuda.tile._load_libcuda"
"""The module that loads CUDA's driver. Source: cuda-tile 1.7.0."""
_LAUNCHERS: Final = ("launch", "launch_extended")


def prepare(patches: Patches, driver: CudaDriver) -> None:
    """Let cuTile, which a program is about to import, launch on `driver`; until `patches` are
    undone."""
    import torch

    address = ctypes.c_void_p(driver.get_function)
    module = ModuleType(_DRIVER)
    module.__dict__.update(address=address, cuGetProcAddress_v2_ptrptr=ctypes.addressof(address))
    sys.modules[_DRIVER] = module  # for the rest of the process: the launcher keeps the functions
    patches.attribute(torch._C, "_to_dlpack", exporting_to_cuda(torch._C._to_dlpack))


def watch_launches(
    patches: Patches, driver: CudaDriver, on_names: Callable[[list[str]], None]
) -> None:
    """Tell `on_names` the parameters of each launch of cuTile, which has been imported, before it,
    and raise what the driver fails with where the program launches. Until `patches` are undone."""
    tile = sys.modules["cuda.tile"]
    for name in _LAUNCHERS:
        original = getattr(tile, name, None)
        if original is not None:
            patches.attribute(tile, name, _watched(original, driver, on_names))


def _watched(
    original: Callable[..., Any], driver: CudaDriver, on_names: Callable[[list[str]], None]
) -> Callable[..., Any]:
    @functools.wraps(original)
    def launch(*args: Any, **kwargs: Any) -> Any:
        kernel, values = args[-2:] if len(args) > 1 else (None, ())
        function = getattr(kernel, "_pyfunc", None)
        if function is not None and isinstance(values, Sequence):
            on_names([*_names(function.__code__.co_varnames, values)])
        try:
            result = original(*args, **kwargs)
        except BaseException:
            driver.raise_failure()
            raise
        driver.raise_failure()
        return result

    return launch


def _names(names: Sequence[str], values: Sequence[Any]) -> Iterator[str]:
    """The parameters of the code, of arguments: an array is its address, sizes and strides."""
    for name, value in zip(names, values, strict=False):
        if hasattr(value, "shape"):
            yield name
            yield from (f"{name}.shape[{axis}]" for axis in range(len(value.shape)))
            yield from (f"{name}.stride[{axis}]" for axis in range(len(value.shape)))


__all__ = ["prepare", "watch_launches"]
