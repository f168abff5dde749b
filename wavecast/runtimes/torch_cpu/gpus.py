"""Several emulated GPUs in one process: which of them a tensor belongs to, and which device and
stream each host thread has chosen."""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from torch._C import _functorch as functorch  # pyright: ignore[reportAttributeAccessIssue]

from wavecast.emulate.node import GpuNode, LaunchQueue, Marker
from wavecast.runtimes.patching import Patches

HOST: Final = -1
"""What `Gpus.owner` gives for memory of the host."""
_OWNER: Final = "_wavecast_gpu"
"""Attribute of a storage: PyTorch keeps the Python object of a storage as long as its memory."""


class _Chosen(threading.local):
    """The device of a host thread, and its stream on each device."""

    def __init__(self) -> None:
        self.gpu = 0
        self.streams: dict[int, int] = {}
        self.backward: list[int] = []


class Gpus:
    """The GPUs of a node as PyTorch sees them. `mode` is on in all threads of the program; threads
    that one starts run in the blocks that `followed` makes there, calls that draw random numbers in
    that of `drawing`."""

    mode: Any

    def __init__(self, node: GpuNode) -> None:
        self.node = node
        self.followed: list[Callable[[], contextlib.AbstractContextManager[Any]]] = []
        self.drawing: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
        self.untraced: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda call: call
        """Makes a function one that dynamo leaves alone, once a program compiles."""
        self._chosen = _Chosen()
        self._streams = 0
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """How many GPUs there are."""
        return self.node.count

    @property
    def current(self) -> int:
        """The device of the calling thread."""
        return self._chosen.gpu

    def select(self, gpu: int) -> int:
        """Choose a device; returns the one before. A negative number changes nothing. Raises
        RuntimeError as PyTorch does."""
        before = self._chosen.gpu
        if gpu >= 0:
            self._chosen.gpu = self.check_number(gpu)
        return before

    def check_number(self, gpu: int) -> int:
        """A device number. Raises RuntimeError for one that the node lacks, as PyTorch does."""
        if not 0 <= gpu < self.count:
            raise RuntimeError(
                f"CUDA error: invalid device ordinal: cuda:{gpu}, the node has {self.count} GPUs"
            )
        return gpu

    def index(self, device: Any = None) -> int:
        """The number of a device argument: None, a number, `"cuda:1"`, a device, or a stream."""
        if device is None:
            return self.current
        if isinstance(device, int):
            return self.current if device < 0 else self.check_number(device)
        if hasattr(device, "device_index"):
            return int(device.device_index)
        index = torch.device(device).index
        return self.current if index is None else self.check_number(index)

    def stream(self, gpu: int) -> int:
        """The number of the calling thread's stream on a device."""
        return self._chosen.streams.get(gpu, 0)

    def select_stream(self, gpu: int, stream: int) -> None:
        """Choose a stream of a device for the calling thread."""
        self._chosen.streams[gpu] = stream

    def new_stream(self) -> int:
        """The number of a new stream."""
        with self._lock:
            self._streams += 1
            return self._streams

    def queue(self, gpu: int | None = None) -> LaunchQueue:
        """The queue that the calling thread launches to on a device."""
        number = self.current if gpu is None else gpu
        return self.node.queue(number, self.stream(number))

    @contextlib.contextmanager
    def using(self, gpu: int) -> Iterator[None]:
        """A block of the calling thread with another device."""
        before = self.select(gpu)
        try:
            yield
        finally:
            self.select(before)

    @property
    def backward(self) -> bool:
        """Whether the calling thread computes gradients: PyTorch computes some on the host and
        calls nothing that could wait for launches."""
        return bool(self._chosen.backward)

    @property
    def backward_gpu(self) -> int:
        """The GPU on which the calling thread computes gradients, `HOST` where it does not."""
        return self._chosen.backward[-1] if self._chosen.backward else HOST

    def install(self, patches: Patches) -> None:
        """Let gradients, and memory that changes its size, wait for launches."""
        engine = torch.autograd.graph._engine_run_backward

        @functools.wraps(engine)
        def run_backward(
            outputs: Any, grads: Any, keep: Any, create: Any, inputs: Any, *args: Any, **kwargs: Any
        ) -> Any:
            owners = [gpu for tensor in outputs if (gpu := self._owner_of(tensor)) != HOST]
            self._chosen.backward.append(owners[0] if owners else HOST)
            try:
                results = engine(outputs, grads, keep, create, inputs, *args, **kwargs)
                for tensor, result in zip(inputs, results or (), strict=False):
                    if isinstance(result, torch.Tensor) and owner(result) is None:
                        assign(result, self._owner_of(tensor))
                return results
            finally:
                self._chosen.backward.pop()

        for module in (torch.autograd, torch.autograd.graph):
            patches.attribute(module, "_engine_run_backward", run_backward)
        resize = torch.UntypedStorage.resize_

        @functools.wraps(resize)
        def wait_and_resize(memory: Any, size: int) -> Any:
            gpu = getattr(memory, _OWNER, HOST)
            if gpu != HOST and size != memory.nbytes():
                self.node.wait_for(gpu)
            return resize(memory, size)

        patches.attribute(torch.UntypedStorage, "resize_", wait_and_resize)
        # Functions that no mode sees.
        patches.attribute(torch, "from_numpy", self._on_host(torch.from_numpy))
        group: Any = vars(torch._C)["_group_tensors_by_device_and_dtype"]
        patches.attribute(torch._C, "_group_tensors_by_device_and_dtype", self._grouping(group))

    @staticmethod
    def _on_host(function: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose tensor is the host's."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            tensor = function(*args, **kwargs)
            assign(tensor, HOST)
            return tensor

        return call

    def _grouping(self, group: Callable[..., Any]) -> Callable[..., Any]:
        """Lists of tensors by device and dtype of those of the first list, as optimisers divide
        them."""

        @functools.wraps(group)
        def by_device(lists: Any, with_indices: bool = False) -> dict[Any, Any]:
            positions: dict[int, list[int]] = {}
            for position, tensor in enumerate(lists[0] if lists else ()):
                positions.setdefault(
                    HOST if tensor is None else self.mode.index(tensor), []
                ).append(position)
            groups = {}
            for gpu, own in positions.items():
                part = [[row[position] for position in own] if row else [] for row in lists]
                for (_, dtype), (rows, indices) in group(part, True).items():
                    device = torch.device("cpu") if gpu == HOST else torch.device("cuda", gpu)
                    known = [own[index] for index in indices] if with_indices else []
                    groups[device, dtype] = rows, known
            return groups

        return by_device

    def _owner_of(self, source: Any) -> int:
        """The GPU, or the host, of what gradients are computed of: a tensor or an edge of a
        graph."""
        return self.mode.index(source) if isinstance(source, torch.Tensor) else self.backward_gpu

    def wait(self, owners: set[int], *, orders: bool = True) -> None:
        """Wait until the calling thread's streams on some GPUs have done what was launched on them;
        without `orders` for a call that would not wait on a GPU. Raises what a launch raised."""
        for gpu in sorted(owners - {HOST}):
            self.node.wait(self.queue(gpu).marker(), orders=orders)

    def has_reached(self, marker: Marker) -> bool:
        """Whether a marker is reached, without waiting; what comes after a True comes after it.
        Raises what a launch of its GPU raised."""
        if not marker.is_reached:  # asked once: it may be reached meanwhile
            return False
        self.node.wait(marker)
        return True


def storage(tensor: Any) -> Any:
    """The storage of a tensor, None for one without memory (fake, functional and sparse ones)."""
    try:
        memory = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        if functorch.is_functorch_wrapped_tensor(tensor):  # those that `vmap` and `grad` pass
            return storage(functorch.get_unwrapped(tensor))
        return None
    return memory if memory.device.type == "cpu" else None


def owner(tensor: Any) -> int | None:
    """The GPU a tensor belongs to, `HOST`, or None where nothing is known: memory made without a
    device."""
    return memory_owner(storage(tensor))


def memory_owner(memory: Any) -> int | None:
    """The same of a storage."""
    return getattr(memory, _OWNER, None)


def assign(tensor: Any, gpu: int) -> None:
    """Let the memory of a tensor belong to a GPU or the host."""
    memory = storage(tensor)
    if memory is not None:
        assign_memory(memory, gpu)


def assign_memory(memory: Any, gpu: int) -> None:
    """The same of a storage."""
    setattr(memory, _OWNER, gpu)


def owner_ranges() -> Iterator[tuple[int, int, int]]:
    """Owner, first and end address of the memory of all tensors that have an owner."""
    for item in gc.get_objects():
        if issubclass(type(item), torch.Tensor) and item.layout is torch.strided:
            gpu = owner(item)
            if gpu is not None:
                memory = item.untyped_storage()
                with contextlib.suppress(RuntimeError):  # fake tensors have no address
                    first = memory.data_ptr()
                    yield gpu, first, first + memory.nbytes()


__all__ = [
    "HOST",
    "Gpus",
    "assign",
    "assign_memory",
    "memory_owner",
    "owner",
    "owner_ranges",
    "storage",
]
