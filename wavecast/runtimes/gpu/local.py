"""The local GPU through torch, CUDA or ROCm, and times of work on it."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wavecast.errors import MissingTool, NothingAnalysed
from wavecast.extras import install_hint

WARM_UPS = 5
SAMPLES = 30
FLUSHED = 1 << 29
"""Bytes written between samples, so that no input is left in a cache: twice the largest there is
(256 MiB, the memory-side cache of MI300)."""


@dataclass(frozen=True, slots=True)
class LocalGpu:
    """One GPU. `target` is `gfx942` or `sm_90`, `units` its compute units as torch counts them,
    `library` torch and what it runs on, `runtime` the latter. `uuid` and `bus` (`0000:3b:00`) tell
    it from others of its kind, "" where torch does not say; `l2_bytes` is its L2 and `memory_bytes`
    its memory, 0 likewise."""

    name: str
    target: str
    units: int
    library: str
    runtime: str = ""
    uuid: str = ""
    bus: str = ""
    l2_bytes: int = 0
    memory_bytes: int = 0

    def seconds(self, work: Callable[[], object]) -> float:
        """Median device time of `work`, from events around it, caches flushed before."""
        import torch

        for _ in range(WARM_UPS):
            work()
        flushed = torch.empty(FLUSHED, dtype=torch.int8, device="cuda")
        pairs: list[tuple[Any, Any]] = []
        for _ in range(SAMPLES):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flushed.zero_()  # also keeps the GPU busy while the host comes to the work
            start.record()
            work()
            end.record()
            pairs.append((start, end))
        torch.cuda.synchronize()
        return statistics.median(start.elapsed_time(end) for start, end in pairs) * 1e-3


def local_gpu() -> LocalGpu:
    """The GPU torch would use. Raises MissingTool without torch, NothingAnalysed without a GPU."""
    try:
        import torch
    except ImportError:
        hint = install_hint("torch")
        raise MissingTool("measuring needs PyTorch", hint=hint) from None
    if not torch.cuda.is_available():
        raise NothingAnalysed("no GPU that PyTorch can use", hint="measuring needs CUDA or ROCm")
    properties = torch.cuda.get_device_properties(None)  # the current one
    if torch.version.hip:
        target, runtime = properties.gcnArchName.split(":")[0], f"ROCm {torch.version.hip}"
    else:
        target, runtime = f"sm_{properties.major}{properties.minor}", f"CUDA {torch.version.cuda}"
    return LocalGpu(
        name=properties.name,
        target=target,
        units=properties.multi_processor_count,
        library=f"torch {torch.__version__}, {runtime}",
        runtime=runtime,
        uuid=str(getattr(properties, "uuid", "")),
        bus=_bus(properties),
        l2_bytes=int(getattr(properties, "L2_cache_size", 0)),
        memory_bytes=int(getattr(properties, "total_memory", 0)),
    )


def _bus(properties: Any) -> str:
    """`0000:3b:00` as PCI tools write it; torch has it since 2.6."""
    try:
        parts = properties.pci_domain_id, properties.pci_bus_id, properties.pci_device_id
    except AttributeError:
        return ""
    return f"{parts[0]:04x}:{parts[1]:02x}:{parts[2]:02x}"
