"""Where tensors are that `torch.load` reads: on the device they were saved from, or that of
`map_location`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu.mode import is_cuda

if TYPE_CHECKING:
    from wavecast.runtimes.torch_cpu.gpus import Gpus

_FIRST = 0
"""The priority of what PyTorch asks first."""


def install(patches: Patches, gpus: Gpus | None) -> None:
    """Let PyTorch save and load memory of emulated GPUs: of several as theirs, of one as the
    host's, which it is."""
    entry = _FIRST, _Tagger(gpus), _Restorer(gpus)
    registry = torch.serialization._package_registry
    patches.attribute(torch.serialization, "_package_registry", [entry, *registry])

    def move(memory: Any, device: Any = None, non_blocking: bool = False) -> Any:
        """A storage on a GPU, as functions that are given as `map_location` return it."""
        del non_blocking
        if gpus is None:
            return memory
        from wavecast.runtimes.torch_cpu.gpus import assign_memory

        copy = memory.clone()
        assign_memory(copy, gpus.index(device))
        return copy

    patches.attribute(torch.UntypedStorage, "cuda", move)


class _Tagger:
    """The device that a file names for memory, None for that of the host."""

    def __init__(self, gpus: Gpus | None) -> None:
        self._gpus = gpus

    def __call__(self, memory: Any) -> str | None:
        if self._gpus is None:
            return None
        from wavecast.runtimes.torch_cpu.gpus import HOST, memory_owner

        owner = memory_owner(getattr(memory, "_untyped_storage", memory))
        return None if owner in (None, HOST) else f"cuda:{owner}"


class _Restorer:
    """Memory of a file on the device that it names, None for devices other than GPUs. Raises
    RuntimeError for a GPU that is not there, as PyTorch does."""

    def __init__(self, gpus: Gpus | None) -> None:
        self._gpus = gpus

    def __call__(self, memory: Any, location: str) -> Any:
        number = self._number(location)
        if self._gpus is not None and (number is not None or location == "cpu"):
            from wavecast.runtimes.torch_cpu.gpus import HOST, assign_memory

            assign_memory(
                getattr(memory, "_untyped_storage", memory), HOST if number is None else number
            )
        return None if number is None else memory

    def _number(self, location: str) -> int | None:
        if not is_cuda(location):
            return None
        count = 1 if self._gpus is None else self._gpus.count
        current = 0 if self._gpus is None else self._gpus.current
        index = torch.device(location).index
        number = current if index is None else index
        if number >= count:
            raise RuntimeError(
                f"Attempting to deserialize object on CUDA device {number} but "
                f"torch.cuda.device_count() is {count}. Please use torch.load with map_location to "
                "map your storages to an existing device."
            )
        return number


__all__ = ["install"]
