"""`torch.cuda` answering for a GPU that is not there: queries, streams, events, seeds."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from wavecast.errors import CaptureError
from wavecast.integrations.devices import DeviceFacts
from wavecast.integrations.patching import Patches

HIP_VERSION = "6.4.0"
CUDA_VERSION = "12.8"
"""Releases that know every target of the package, for scripts that compare versions."""


class Event:
    """Times nothing: `elapsed_time` is not a number."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.cuda_event = 0

    def record(self, stream: Any = None) -> None:
        del stream

    def wait(self, stream: Any = None) -> None:
        del stream

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nothing is ever in flight."""

    def elapsed_time(self, end: Any) -> float:
        del end
        return math.nan


class Stream:
    """A stream on which everything has already happened; also its own context manager."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.cuda_stream = 0
        self.device_index = 0
        self.priority = 0

    @property
    def device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def wait_stream(self, stream: Any) -> None:
        del stream

    def wait_event(self, event: Any) -> None:
        del event

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nothing is ever in flight."""

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        """Leaving the default stream changes nothing."""


class NoGraph:
    """CUDA graphs replay recorded work; there is none to replay."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise CaptureError(
            "CUDA graphs cannot be captured without a GPU",
            hint="run the script without graph capture",
        )


def install(patches: Patches, facts: DeviceFacts) -> None:
    """Replace what `torch.cuda`, `torch.accelerator` and `torch.version` say."""
    import torch

    for name, value in _cuda(facts).items():
        patches.attribute(torch.cuda, name, value)
    patches.attribute(torch.version, "hip", HIP_VERSION if facts.is_amd else None)
    patches.attribute(torch.version, "cuda", None if facts.is_amd else CUDA_VERSION)
    if hasattr(torch, "accelerator"):
        for name, value in _accelerator().items():
            patches.attribute(torch.accelerator, name, value)
    nvtx = getattr(torch.cuda, "nvtx", None)
    if nvtx is not None:
        for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
            patches.attribute(nvtx, name, lambda *_, **__: 0)
    autocast = torch.amp.autocast_mode.autocast
    init = autocast.__init__

    def on_cpu_instead(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        init(self, "cpu" if device_type == "cuda" else device_type, *args, **kwargs)

    patches.attribute(autocast, "__init__", on_cpu_instead)


def properties(facts: DeviceFacts) -> SimpleNamespace:
    """`torch.cuda.get_device_properties`, as far as the facts go."""
    major, minor = facts.capability
    found: dict[str, Any] = {
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
        found["total_memory"] = facts.memory_bytes
    if facts.is_amd:
        found["gcnArchName"] = facts.target
    return SimpleNamespace(**found)


def _cuda(facts: DeviceFacts) -> dict[str, Any]:
    """Replacements by name, each an object of its own: `torch.compile` tells them apart."""
    stream = Stream()
    memory = facts.memory_bytes or 0
    constants: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": True,
        "is_current_stream_capturing": False,
        "can_device_access_peer": False,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": facts.name,
        "get_device_capability": facts.capability,
        "get_device_properties": properties(facts),
        "get_arch_list": [facts.target],
        "mem_get_info": (memory, memory),
        "current_stream": stream,
        "default_stream": stream,
        "memory_stats": {},
        "memory_summary": "",
        **dict.fromkeys(_NOTHING_TO_DO),
        **dict.fromkeys(_NO_BYTES, 0),
    }
    return {
        **{name: _always(value) for name, value in constants.items()},
        **{name: _context() for name in ("stream", "device", "device_of")},
        **{name: type(name, (Stream,), {}) for name in ("Stream", "ExternalStream")},
        "Event": Event,
        **{name: type(name, (NoGraph,), {}) for name in ("CUDAGraph", "graph")},
    }


def _always(value: Any) -> Callable[..., Any]:
    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


def _context() -> type:
    class Here(contextlib.nullcontext):
        """A device or stream entered; there is only one."""

        def __init__(self, *_: Any, **__: Any) -> None:
            super().__init__()

    return Here


_NOTHING_TO_DO = (
    *("init", "_lazy_init", "synchronize", "set_device", "set_stream", "empty_cache"),
    *("ipc_collect", "manual_seed", "manual_seed_all", "seed", "seed_all"),
    *("reset_peak_memory_stats", "reset_max_memory_allocated", "set_per_process_memory_fraction"),
)
_NO_BYTES = (
    *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
)


def _accelerator() -> dict[str, Any]:
    import torch

    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_accelerator": lambda *_, **__: torch.device("cuda"),
        "current_device_index": lambda: 0,
        "set_device_index": lambda *_: None,
        "synchronize": lambda *_: None,
        "current_stream": lambda *_: Stream(),
    }
