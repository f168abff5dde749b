"""`torch.cuda` answering for a GPU that is not there: queries, memory, random numbers."""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from wavecast.errors import MissingFact
from wavecast.launch import graph_capture
from wavecast.runtimes.devices import DeviceFacts
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu import allocators, comm, graphs, random, streams

if TYPE_CHECKING:
    from wavecast.runtimes.torch_cpu.gpus import Gpus

HIP_VERSION = "6.4.0"
CUDA_VERSION = "12.8"
"""Releases that know every target of the package, for scripts that compare versions."""


def install(
    patches: Patches,
    facts: DeviceFacts,
    clock: Callable[[], float] | None,
    gpus: Gpus | None = None,
) -> None:
    """Replace what `torch.cuda`, `torch.accelerator` and `torch.version` say.

    `clock` gives events their time in seconds; None where launches are not executed. `gpus` are
    those of a node, where there are several.
    """
    import torch

    replaced = {
        **_queries(facts),
        **streams.replacements(clock),
        **random.replacements(),
    }
    bindings, accelerator = {**_bindings(), **comm.bindings()}, {}
    comm.install(patches)
    if gpus is not None:
        from wavecast.runtimes.torch_cpu import gpus_api

        replaced |= gpus_api.replacements(gpus)
        replaced["default_generators"] *= gpus.count
        bindings |= gpus_api.bindings(gpus)
        accelerator = gpus_api.accelerator(gpus)
    for name, value in replaced.items():
        patches.attribute(torch.cuda, name, value)
    for name, value in bindings.items():
        patches.attribute(torch._C, name, value)
    for name in ("CUDAGraph", "is_current_stream_capturing"):
        patches.attribute(torch.cuda.graphs, name, getattr(torch.cuda, name))
    patches.attribute(torch.cuda.graph, "default_capture_stream", None)
    pools = itertools.count(1)
    patches.attribute(torch.cuda.graphs, "_graph_pool_handle", lambda: (0, next(pools)))
    allocators.install(patches)
    patches.attribute(torch.version, "hip", HIP_VERSION if facts.is_amd else None)
    patches.attribute(torch.version, "cuda", None if facts.is_amd else CUDA_VERSION)
    if hasattr(torch, "accelerator"):
        for name, value in (_accelerator() | accelerator).items():
            patches.attribute(torch.accelerator, name, value)
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        patches.attribute(torch.cuda.nvtx, name, _always(0))
    for name in ("start", "stop"):
        patches.attribute(torch.cuda.profiler, name, _always(None))
    autocast = torch.amp.autocast_mode.autocast
    init = autocast.__init__

    @functools.wraps(init)
    def on_cpu_instead(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        init(self, "cpu" if device_type == "cuda" else device_type, *args, **kwargs)

    patches.attribute(autocast, "__init__", on_cpu_instead)
    bound: Any = torch.UntypedStorage._new_shared
    new_shared = bound.__func__

    def shared_on_host(cls: Any, size: int, *, device: Any = "cpu") -> Any:
        """Batches that the workers of a DataLoader send: their device is a name of the host's."""
        stated = torch.device(device)
        return new_shared(cls, size, device="cpu" if stated.type == "cuda" else stated)

    patches.attribute(torch.UntypedStorage, "_new_shared", classmethod(shared_on_host))


def properties(facts: DeviceFacts) -> SimpleNamespace:
    """`torch.cuda.get_device_properties`, from the known facts."""
    major, minor = facts.capability
    fields: dict[str, Any] = {
        "name": facts.name,
        "major": major,
        "minor": minor,
        "multi_processor_count": facts.multiprocessors,
        "warp_size": facts.lanes,
        "is_integrated": False,
        "is_multi_gpu_board": False,
        "max_threads_per_block": 1024,
        "max_threads_per_multi_processor": facts.resident_threads,
        "shared_memory_per_block": facts.shared_bytes if facts.is_amd else 48 << 10,
        "shared_memory_per_block_optin": facts.shared_bytes,
        "shared_memory_per_multiprocessor": facts.shared_bytes,
        "regs_per_multiprocessor": 65536,
    }
    if facts.memory_bytes is not None:
        fields["total_memory"] = facts.memory_bytes
    if facts.l2_bytes is not None:
        fields["L2_cache_size"] = facts.l2_bytes
    if facts.is_amd:
        fields["gcnArchName"] = facts.target
    return SimpleNamespace(**fields)


def _queries(facts: DeviceFacts) -> dict[str, Any]:
    """Replacements by name, each a distinct object: `torch.compile` tells them apart."""
    constants: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": True,
        "can_device_access_peer": False,
        "device_count": 1,
        **dict.fromkeys(("current_device", "_exchange_device", "_maybe_exchange_device"), 0),
        "get_device_name": facts.name,
        "get_device_capability": facts.capability,
        "get_device_properties": properties(facts),
        "get_arch_list": [facts.target],
        "memory_stats": defaultdict(int),
        "memory_summary": "",
        **dict.fromkeys(_NOTHING_TO_DO),
        **dict.fromkeys(_NO_BYTES, 0),
    }
    replacements = {name: _always(value) for name, value in constants.items()}
    replacements["mem_get_info"] = _memory(facts)
    replacements["CUDAGraph"] = type("CUDAGraph", (graphs.EmulatedGraph,), {})
    replacements["is_current_stream_capturing"] = _alias(graphs.is_capturing)
    replacements["synchronize"] = _alias(graph_capture.check_may_wait)
    # The profiler is switched on and off; there is nothing to switch.
    replacements["cudart"] = _always(
        SimpleNamespace(cudaProfilerStart=_always(0), cudaProfilerStop=_always(0))
    )
    return replacements


def _memory(facts: DeviceFacts) -> Callable[..., tuple[int, int]]:
    """All of the memory is free. Raises MissingFact when it is asked for and not known."""

    def answer(*_: Any, **__: Any) -> tuple[int, int]:
        if facts.memory_bytes is None:
            raise MissingFact(
                f"{facts.name}: the size of its memory is not known",
                hint="give it with --arch-file",
            )
        return facts.memory_bytes, facts.memory_bytes

    return answer


def _bindings() -> dict[str, Any]:
    """Functions of PyTorch's C++ side that generated and foreign code calls: there is one device,
    whose only stream is 0."""
    constants: dict[str, Any] = {
        **dict.fromkeys(("_cuda_getDevice", "_cuda_getCurrentRawStream"), 0),
        **dict.fromkeys(("_cuda_exchangeDevice", "_cuda_maybeExchangeDevice"), 0),
        "_cuda_getDeviceCount": 1,
        **dict.fromkeys(("_cuda_setDevice", "_cuda_synchronize", "_host_emptyCache")),
        "_cuda_isInBadFork": False,
        "_cuda_cudaCachingAllocator_is_enabled": False,  # graphs of compiled code need it
    }
    return {name: _always(value) for name, value in constants.items()}


def _always(value: Any) -> Callable[..., Any]:
    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


_STATISTICS = ("peak_memory_stats", "accumulated_memory_stats")


def _alias(original: Any) -> Any:
    """The same under another name, a distinct object (`_queries`)."""
    if isinstance(original, type):
        return original

    @functools.wraps(original)
    def same(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    return same


_NOTHING_TO_DO = (
    *("init", "_lazy_init", "set_device", "set_stream", "empty_cache"),
    *("ipc_collect", "_sleep", "set_per_process_memory_fraction", "set_sync_debug_mode"),
    *(f"reset_{name}" for name in _STATISTICS),
    *("reset_max_memory_allocated", "reset_max_memory_cached"),
)
_NO_BYTES = (
    *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
    *("memory_cached", "max_memory_cached", "device_memory_used"),
)


def _accelerator() -> dict[str, Any]:
    """Replacements of `torch.accelerator`; to be made once those of `torch.cuda` are in place."""
    import torch

    constants: dict[str, Any] = {
        "is_available": True,
        "device_count": 1,
        "current_accelerator": torch.device("cuda"),
        **dict.fromkeys(("current_device_index", "current_device_idx"), 0),
        **dict.fromkeys(("set_device_index", "set_device_idx", "set_stream")),
    }
    replacements = {name: _always(value) for name, value in constants.items()}
    for name, ours in _SAME.items():
        if hasattr(torch.accelerator, name):
            replacements[name] = _alias(getattr(torch.cuda, ours))
    return replacements


_SAME = {
    **{name: name for name in (*_NO_BYTES, "synchronize", "current_stream", "empty_cache")},
    **{f"reset_{name}": f"reset_{name}" for name in _STATISTICS},
    "memory_stats": "memory_stats",
    "get_memory_info": "mem_get_info",
    "device_index": "device",
    "Graph": "CUDAGraph",
}
"""Names of `torch.accelerator` and of what does the same in `torch.cuda`."""
