"""What calls of PyTorch touch on the host, told to the checks of several GPUs.

A call computes on the host, behind the current streams of its tensors' GPUs. A copy with
`non_blocking=True` to or from pinned memory is done here at once, and counts as under way until the
host waits for its stream.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import torch

from wavecast.emulate.check.gpus.host_accesses import HostAccess, HostAccesses, PendingCopy
from wavecast.emulate.tensors import AddressInterval
from wavecast.launch.script_lines import script_line
from wavecast.runtimes.torch_cpu.gpus import HOST, Gpus, owner, storage
from wavecast.runtimes.torch_cpu.host_writes import written_tensors

_COPIES: Final = "_wavecast_copies"
"""Attribute of a storage of the host: copies that may be under way."""
_PINNED: Final = "_wavecast_pinned"
_MOST_ROWS: Final = 1 << 12
"""Rows of a tensor that is not contiguous; one with more is not compared."""
_NO_ACCESS: Final = frozenset(
    {
        *("set_", "__set__", "detach_", "resize_", "resize_as_", "squeeze_", "unsqueeze_", "t_"),
        *("transpose_", "swapaxes_", "share_memory_", "rename_", "as_strided_", "swapdims_"),
        *("register_hook", "register_post_accumulate_grad_hook", "backward", "retain_grad"),
        *("record_stream", "requires_grad_", "__dlpack__"),
    }
)
"""Functions that read and write no elements, or whose accesses are those of other calls."""


class HostWatch:
    """Tells `accesses` what calls touch."""

    def __init__(self, gpus: Gpus, accesses: HostAccesses) -> None:
        self._gpus, self._accesses = gpus, accesses

    def on_call(
        self,
        name: str,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        tensors: Iterable[torch.Tensor],
    ) -> None:
        """A call is about to compute: what it writes, and what else it reads of `tensors`."""
        if name in _NO_ACCESS or is_of_other_library(func):
            return
        with torch._C.DisableTorchFunction():
            if func is torch.Tensor.__setitem__:
                written = _part(args[0], args[1])
                base = args[0]
            else:
                is_operator = isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket))
                written = [] if is_operator else list(written_tensors(name, func, args, kwargs))
                base = None
            skipped = {id(tensor) for tensor in written} | {id(base)}
            for tensor in written:
                self._touch(name, tensor, stores=True)
            for tensor in tensors:
                if id(tensor) not in skipped:
                    self._touch(name, tensor, stores=False)

    def on_copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """A copy is submitted to the current stream of the GPU of one of its tensors; the other one
        is pinned memory of the host. Its data are there."""
        host, stores = (target, True) if owner(target) == HOST else (source, False)
        gpu = owner(source if stores else target)
        assert gpu is not None
        self._accesses.are_followed = True
        queue = self._gpus.queue(gpu)
        streams = self._accesses.order.streams
        before = streams.host().join(streams.stream(queue))
        with torch._C.DisableTorchFunction():
            device = source if stores else target
            self._compare("copy_", device, gpu, not stores, before)
            access = self._access("copy_", host, gpu, stores, before)
        queue.submit(_nothing)
        marker = queue.marker()
        if access is None:
            return
        pending = PendingCopy(access, lambda before: streams.has_ended(marker, before))
        memory = storage(host)
        now = streams.host()
        copies = [copy for copy in getattr(memory, _COPIES, ()) if not copy.has_ended(now)]
        setattr(memory, _COPIES, [*copies, pending])

    def _touch(self, name: str, tensor: torch.Tensor, *, stores: bool) -> None:
        before = self._accesses.order.streams.host()
        gpu = owner(tensor)
        if storage(tensor) is None:
            return
        if gpu != HOST:
            self._accesses.are_followed |= gpu is not None
            self._compare(name, tensor, gpu, stores, before)
            return
        copies = getattr(storage(tensor), _COPIES, None)
        if copies:
            access = self._access(name, tensor, None, stores, before)
            if access is not None:
                self._accesses.compare_copies(access, copies)

    def _compare(
        self, name: str, tensor: torch.Tensor, gpu: int | None, stores: bool, before: Any
    ) -> None:
        memory = storage(tensor)
        interval = None if memory is None else _interval(memory)
        if interval is None or not self._accesses.is_followed(interval):
            return
        access = self._access(name, tensor, gpu, stores, before)
        if access is not None:
            self._accesses.compare(access)

    @staticmethod
    def _access(
        name: str, tensor: torch.Tensor, gpu: int | None, stores: bool, before: Any
    ) -> HostAccess | None:
        memory = storage(tensor)
        interval = None if memory is None else _interval(memory)
        rows = [] if interval is None else _rows(tensor)
        if interval is None or not rows:
            return None
        return HostAccess(name, script_line(), gpu, interval, rows, stores, before)


def is_of_other_library(func: Callable[..., Any]) -> bool:
    """Whether an operator is not PyTorch's own: those of collectives and of libraries launch, or
    pass on what others have started."""
    name = getattr(func, "_qualified_op_name", None) or getattr(func, "_name", None)
    is_operator = isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket))
    return is_operator and not str(name).startswith("aten::")


def is_pinned(tensor: torch.Tensor) -> bool:
    """Whether a tensor's memory is pinned."""
    return bool(getattr(storage(tensor), _PINNED, False))


def pin(tensor: torch.Tensor) -> None:
    """Let the memory of a tensor be pinned."""
    memory = storage(tensor)
    if memory is not None:
        setattr(memory, _PINNED, True)


def _nothing() -> None:
    """The work of a copy that is done."""


def _interval(memory: Any) -> AddressInterval | None:
    """The addresses of a storage, None for that of a fake tensor."""
    try:
        first = memory.data_ptr()
    except RuntimeError:
        return None
    return first, first + memory.nbytes()


def _part(tensor: torch.Tensor, index: Any) -> list[torch.Tensor]:
    """The view that an assignment to elements writes, [] where it is none."""
    with contextlib.suppress(IndexError, TypeError, RuntimeError):
        view = tensor[index]
        if storage(view) is storage(tensor):
            return [view]
    return []


def _rows(tensor: torch.Tensor) -> list[AddressInterval]:
    """The bytes of a tensor as intervals of addresses; [] for none and for too many."""
    if not tensor.numel() or tensor.layout is not torch.strided:
        return []
    size, first = tensor.itemsize, tensor.data_ptr()
    sizes = zip(tensor.stride(), tensor.shape, strict=True)
    dims = sorted((stride * size, count) for stride, count in sizes if count > 1 and stride)
    block = size
    while dims and dims[0][0] == block:
        block *= dims.pop(0)[1]
    if prod(count for _, count in dims) > _MOST_ROWS:
        return []
    return [(start, start + block) for start in _starts(first, dims)]


def _starts(first: int, dims: Sequence[tuple[int, int]]) -> Iterator[int]:
    for numbers in product(*(range(count) for _, count in dims)):
        yield first + sum(n * stride for n, (stride, _) in zip(numbers, dims, strict=True))


__all__ = ["HostWatch", "is_of_other_library", "is_pinned", "pin"]
