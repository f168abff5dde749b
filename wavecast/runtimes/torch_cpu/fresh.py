"""Memory that PyTorch allocates without filling it, marked so that reads of it can be detected.

`torch.empty` and similar functions return memory filled with the pattern `CANARY`, and so is what
`resize_` adds. The bytes of narrow dtypes are followed one by one (`host_writes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch.overrides import TorchFunctionMode

from wavecast.emulate.written_bytes import WrittenBytes, fill

_ALLOCATING = (
    *("empty", "empty_like", "empty_permuted", "empty_strided"),
    *("new_empty", "new_empty_strided"),
)


class FreshMemory(TorchFunctionMode):
    """Fills what `torch.empty`, `Tensor.new_empty` and their relatives allocate, and what
    `Tensor.resize_` adds, and keeps in `written` what has been written of it."""

    def __init__(self, written: WrittenBytes | None = None) -> None:
        super().__init__()
        import torch

        from wavecast.runtimes.torch_cpu.host_writes import HostWrites

        self.written = WrittenBytes() if written is None else written
        self.host = HostWrites(self.written)
        self._torch = torch
        self._makers = {
            torch.empty,
            torch.empty_like,
            torch.empty_permuted,
            torch.empty_strided,
            torch.Tensor.new,
            torch.Tensor.new_empty,
            torch.Tensor.new_empty_strided,
            *_overloads(torch, *_ALLOCATING),
        }
        self._resizers = {
            torch.Tensor.resize_,
            torch.Tensor.resize_as_,
            *_overloads(torch, "resize_", "resize_as_"),
        }

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple = (),
        kwargs: dict | None = None,
    ) -> Any:
        del types
        keywords = kwargs or {}
        if self._torch.compiler.is_compiling():  # Dynamo traces this method
            return func(*args, **keywords)
        if func in self._resizers:
            with self._torch._C.DisableTorchFunction():
                return self._resize(func, args, keywords)
        result = func(*args, **keywords)
        if func in self._makers and keywords.get("out") is None:
            with self._torch._C.DisableTorchFunction():
                if not _has_content(func, args):
                    self._fill(result)
        elif self.written:
            with self._torch._C.DisableTorchFunction():
                self.host.on_call(func, args, keywords)
        return result

    def _fill(self, tensor: Any) -> None:
        """Fill the storage of a new tensor."""
        storage = _storage(tensor)
        if storage is not None and not self.host.on_allocation(tensor):
            fill(storage.data_ptr(), storage.nbytes())

    def _resize(self, func: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
        """Resize a tensor, and fill what its storage has more than before."""
        storage = _storage(args[0])
        if storage is None:
            return func(*args, **kwargs)
        marks = self.host.marks(storage).copy()
        result = func(*args, **kwargs)
        storage = args[0].untyped_storage()
        growth = storage.nbytes() - marks.size
        if growth > 0 and not self.host.on_allocation(args[0], marks):
            fill(storage.data_ptr() + marks.size, growth)
        return result


def _overloads(torch: Any, *names: str) -> Iterator[Any]:
    """The operators of PyTorch's own library that a program may call by name."""
    for name in names:
        packet = getattr(torch.ops.aten, name)
        yield packet
        yield from (getattr(packet, overload) for overload in packet.overloads())


def _has_content(func: Callable[..., Any], args: tuple) -> bool:
    """Whether `Tensor.new` was called with the elements of the new tensor."""
    return func.__name__ == "new" and any(not isinstance(arg, int) for arg in args[1:])


def _storage(tensor: Any) -> Any:
    """The memory of a tensor of the CPU; None for other tensors. Tensors of `torch.vmap` and fake
    tensors have no storage."""
    if tensor.is_sparse or tensor.is_quantized:
        return None
    try:
        storage = tensor.untyped_storage()
    except NotImplementedError:
        return None
    return storage if storage.device.type == "cpu" else None


__all__ = ["FreshMemory"]
