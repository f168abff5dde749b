"""What PyTorch writes to memory whose bytes are followed one by one (`WrittenBytes`).

Seen are assignments to elements, methods and functions whose name ends with `_`, operators such as
`+=`, and `out=`. Other writes leave memory that does not have the pattern where it should, and it
then counts as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from wavecast.emulate.written_bytes import WrittenBytes

_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_NARROW = (torch.int16, torch.uint16)
_MOVES = ("set_", "__set__")
"""What gives a tensor other memory."""
_OPERATORS = frozenset(
    f"__i{name}__"
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
        *("and", "or", "xor", "lshift", "rshift"),
    )
)


class HostWrites:
    """Marks in `written` what calls of PyTorch write."""

    def __init__(self, written: WrittenBytes) -> None:
        self.written = written
        self._shadows: dict[int, torch.Tensor] = {}

    def marks(self, storage: torch.UntypedStorage) -> np.ndarray:
        """For every byte of a storage, 1 where it has been written; all that is not followed
        has."""
        block = self.written.at(storage.data_ptr())
        return np.ones(storage.nbytes(), np.uint8) if block is None else block.written

    def on_allocation(self, tensor: torch.Tensor, before: np.ndarray | None = None) -> bool:
        """Follow the new storage of a tensor of single bytes or 16-bit integers. False for others:
        wider values and 16-bit floats are told from the pattern. Bytes from `before` the storage
        grew keep their marks."""
        storage = tensor.untyped_storage()
        first = storage.data_ptr()
        self.written.forget(first)
        if not storage.nbytes() or not (tensor.itemsize == 1 or tensor.dtype in _NARROW):
            return False
        reference, size = StorageWeakRef(storage), storage.nbytes()

        def is_there() -> bool:
            """Whether the storage still has this memory: it moves when it grows."""
            now = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
            return now is not None and (now.data_ptr(), now.nbytes()) == (first, size)

        bytes_ = self.written.add(first, size, is_there, before)
        self._shadows[first] = torch.from_numpy(bytes_)
        return True

    def on_call(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """A call has ended. What cannot be followed counts as written."""
        if func is torch.Tensor.__setitem__:
            self._mark(args[0], args[1])
            return
        name = getattr(func, "__name__", "")
        for tensor in written_tensors(name, func, args, kwargs):
            if name in _MOVES:
                self.written.forget(tensor.untyped_storage().data_ptr())
            else:
                self._mark(tensor)

    def _mark(self, tensor: torch.Tensor, index: Any = ...) -> None:
        """Elements of a tensor have been written."""
        try:
            first = tensor.untyped_storage().data_ptr()
        except (NotImplementedError, RuntimeError):  # of a transform, or of no memory
            return
        if self.written.at(first) is None:
            return
        word = _WORDS.get(tensor.itemsize)
        shadow = self._shadows[first]
        if word is None or shadow.numel() % tensor.itemsize:
            self.written.forget(first)
            return
        view = shadow.view(word).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        view[index] = int("01" * tensor.itemsize, 16)


def written_tensors(
    name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[torch.Tensor]:
    """The tensors that a call of a name may write."""
    yield from _tensors([kwargs.get("out")])
    arguments = [*args, *kwargs.values()]
    updates = name.endswith("_") and not name.endswith("__")
    if updates or name in _OPERATORS or name in _MOVES:
        yield from _tensors(arguments[:1])
    elif isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        yield from _tensors(arguments)


def _tensors(values: Sequence[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


__all__ = ["HostWrites", "written_tensors"]
