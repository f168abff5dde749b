"""`torch.distributed` on emulated GPUs: ranks are threads of one process, collectives are kernels
of `wavecast.ops.distributed` (docs/multi-gpu.md)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wavecast.runtimes.distributed.ranks import RankThreads
    from wavecast.runtimes.torch_cpu.gpus import Gpus


@contextlib.contextmanager
def emulated_ranks(gpus: Gpus) -> Iterator[RankThreads]:
    """A block in which threads may be ranks of `torch.distributed`, one per GPU."""
    from wavecast.runtimes.distributed.installation import install
    from wavecast.runtimes.patching import Patches

    patches = Patches()
    try:
        yield install(patches, gpus)
    finally:
        patches.restore()


__all__ = ["emulated_ranks"]
