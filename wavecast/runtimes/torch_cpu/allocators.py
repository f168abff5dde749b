"""Allocators that programs give to `torch.cuda.memory`: emulated GPUs use none. Their memory is the
host's, which all GPUs see alike, as memory that allocators ask for (fine-grained, uncached)."""

from __future__ import annotations

import ctypes
from typing import Any

from wavecast.runtimes.patching import Patches


class ProgramAllocator:
    """A library with functions that allocate and free. Raises OSError without the library, and
    AttributeError without a function, as PyTorch's class."""

    def __init__(self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str) -> None:
        library = ctypes.CDLL(str(path_to_so_file))
        for name in (alloc_fn_name, free_fn_name):
            getattr(library, name)

    def allocator(self) -> ProgramAllocator:
        """Itself, for pools of memory."""
        return self


def install(patches: Patches) -> None:
    """Let programs name an allocator, which is not used."""
    import torch

    def change_current_allocator(allocator: Any) -> None:
        del allocator

    for owner in (torch.cuda, torch.cuda.memory):
        patches.attribute(owner, "CUDAPluggableAllocator", ProgramAllocator)
        patches.attribute(owner, "change_current_allocator", change_current_allocator)


__all__ = ["ProgramAllocator", "install"]
