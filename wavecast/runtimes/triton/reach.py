"""The memory a launch may touch: its arguments' storages, or every tensor there is.

Kernels that make pointers from numbers they load (lists of matrices in a grouped product), or are
given bare addresses, can reach any tensor. For those all CPU tensors alive in Python count.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from wavecast.compile.triton import Slot
from wavecast.emulate.launch import AddressRange
from wavecast.errors import LaunchError
from wavecast.runtimes.triton.launches import value_at

_FROM_NUMBERS = "tt.int_to_ptr"
"""Triton's operation (`Triton_IntToPtrOp`) behind `.to(tl.pointer_type(...))` of an integer."""


def makes_pointers(stages: Mapping[str, Any]) -> bool:
    """Whether a kernel's Triton IR converts integers to pointers."""
    return any(_FROM_NUMBERS in str(stages.get(stage, "")) for stage in ("ttir", "ttgir"))


def only_indices(arguments: Iterable[Any]) -> bool:
    """Whether the tensors among a kernel's arguments are all of integers of more than 8 bits, which
    may be indices."""
    tensors = [argument.dtype for argument in arguments if hasattr(argument, "untyped_storage")]
    return bool(tensors) and all(
        not kind.is_floating_point and not kind.is_complex and kind.itemsize > 1 for kind in tensors
    )


def reachable(
    kernel: str, layout: Sequence[Slot], values: Sequence[Any], *, everything: bool
) -> list[AddressRange]:
    """The host memory that a launch with these parameters may touch: that of the arguments in their
    order, then what pointers in memory may reach, from small to large.

    The order decides the addresses of a prediction (`ArrayMap`), so it does not follow the host's.
    Raises LaunchError for an argument that lies on another device.
    """
    ranges: dict[AddressRange, None] = {}
    for slot in layout:
        if not slot.type.startswith("*"):
            continue
        value = value_at(values, slot.path)
        if slot.part == "base":
            value = value.base
        value = getattr(value, "base", value)  # triton.reinterpret wraps the tensor
        if hasattr(value, "untyped_storage"):
            ranges[_storage(kernel, slot, value)] = None
        elif value is not None and value != 0:
            everything = True
    if everything:
        ranges |= dict.fromkeys(
            sorted(_live(), key=lambda address_range: address_range[1] - address_range[0])
        )
    return list(ranges)


def _storage(kernel: str, slot: Slot, tensor: Any) -> AddressRange:
    storage = tensor.untyped_storage()
    if storage.device.type != "cpu":
        raise LaunchError(
            f"{kernel}: argument {slot.path[0]} lies on {storage.device}",
            hint="the emulator reads tensors of the CPU",
        )
    first = storage.data_ptr()
    return first, first + storage.nbytes()


def _live() -> Iterator[AddressRange]:
    """The storages of all CPU tensors that the garbage collector tracks. Wrappers of torch.func
    and of subclasses (sparse weights, DTensors) have no storage; those of the tensors in them
    count, which are tracked where a subclass has them as attributes."""
    import torch
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    wrappers: Any = importlib.import_module("torch._C._functorch")
    for item in gc.get_objects():
        if issubclass(type(item), torch.Tensor) and item.layout is torch.strided:
            while wrappers.is_functorch_wrapped_tensor(item):
                item = wrappers.get_unwrapped(item)
            if is_traceable_wrapper_subclass(item):
                continue
            storage = item.untyped_storage()
            if storage.device.type == "cpu" and storage.nbytes():
                yield storage.data_ptr(), storage.data_ptr() + storage.nbytes()
