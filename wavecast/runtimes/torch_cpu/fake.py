"""What fake tensors say of their device while a GPU is emulated.

Compilers such as Helion trace with their own fake tensors and compare devices. A fake tensor has
a Python property for its device, which function modes do not see. In graphs of dynamo and inductor
tensors are the CPU's (`compiling`), so there the property is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from wavecast.runtimes.patching import Patches

if TYPE_CHECKING:
    from wavecast.runtimes.torch_cpu.gpus import Gpus


def install(patches: Patches, gpus: Gpus | None = None) -> None:
    """Have fake tensors of the CPU say `cuda:0`, or the current one of several GPUs, wherever
    PyTorch compiles no graph."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    devices = [torch.device("cuda", index) for index in range(gpus.count if gpus else 1)]
    original: Any = vars(FakeTensor)["device"]

    def device(tensor: Any) -> torch.device:
        storage_device = original.fget(tensor)
        if storage_device.type != "cpu" or in_compiled_graph():
            return storage_device
        return devices[gpus.current if gpus else 0]

    normalize: Any = FakeTensor._normalize_fake_device

    def on_cpu(named: Any) -> torch.device:
        """What results of fake tensors are made for: these say the GPU, of which PyTorch's C++ code
        looks for a guard that builds without GPUs lack."""
        own = normalize(torch.device(named))
        return torch.device("cpu") if own.type == "cuda" else own

    patches.attribute(FakeTensor, "device", property(device, original.fset))
    patches.attribute(FakeTensor, "_normalize_fake_device", staticmethod(on_cpu))
    if gpus is not None:
        patches.attribute(FakeTensorMode, "cache", _CachePerGpu(gpus))


def in_compiled_graph() -> bool:
    """Whether the calling thread compiles a graph, whose tensors are the CPU's."""
    from torch._guards import CompileContext, TracingContext

    return CompileContext.try_get() is not None or TracingContext.try_get() is not None


class _CachePerGpu(MutableMapping[Any, Any]):
    """PyTorch's cache of results of fake tensors, which have devices, one per current device."""

    def __init__(self, gpus: Gpus) -> None:
        self._gpus = gpus
        self._caches: list[dict[Any, Any]] = [{} for _ in range(gpus.count)]

    @property
    def _current_cache(self) -> dict[Any, Any]:
        return self._caches[self._gpus.current]

    def __getitem__(self, key: Any) -> Any:
        return self._current_cache[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._current_cache[key] = value

    def __delitem__(self, key: Any) -> None:
        del self._current_cache[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._current_cache)

    def __len__(self) -> int:
        return len(self._current_cache)


__all__ = ["in_compiled_graph", "install"]
