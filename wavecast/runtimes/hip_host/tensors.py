"""Memory of PyTorch's tensors, which the kernels of a process reach by bare addresses."""

from __future__ import annotations

import ctypes
import gc
import struct
from dataclasses import dataclass
from typing import Any, Final

from wavecast.compile.codeobject import Argument
from wavecast.emulate.launch import AddressRange

_LOWEST, _HIGHEST = 1 << 16, 1 << 47
"""Addresses of a process on Linux."""
_PAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class AddressedTensor:
    """The storage of a tensor, from `first` to before `end`, and what the tensor that asked for an
    address last looks like; its strides are in elements."""

    first: int
    end: int
    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    storage: Any

    def argument(self, name: str, address: int) -> Argument:
        """The argument that has an address of the storage."""
        if address == self.address:
            shape, strides = self.shape, self.strides
        else:
            shape, strides = ((self.end - address) // max(1, _itemsize(self.dtype)),), (1,)
        size = self.end - self.first
        return Argument(name, "tensor", self.dtype, shape, strides, size, self.first)


class AddressedTensors:
    """The storages of tensors whose address a program has asked for, while they are there. An
    address that came another way (DLPack's C functions) is looked for among all tensors, once."""

    def __init__(self) -> None:
        self._tensors: dict[int, AddressedTensor] = {}
        self._foreign: set[int] = set()
        self._libc = ctypes.CDLL(None)

    def add(self, tensor: Any) -> None:
        """A program asks for the address of a tensor. Tensors of subclasses have no memory that
        kernels get, or have it in others (`FakeTensor`, `DTensor`)."""
        import torch
        from torch.multiprocessing.reductions import StorageWeakRef

        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return

        with torch._C.DisableTorchFunction():
            try:
                storage = tensor.untyped_storage()
                first, size, address = storage.data_ptr(), storage.nbytes(), tensor.data_ptr()
            except (RuntimeError, NotImplementedError):  # of a transform, or of no memory
                return
            if storage.device.type != "cpu" or not size:
                return
            dtype = str(tensor.dtype).removeprefix("torch.")
            shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        before = self._tensors.get(first)
        reference = StorageWeakRef(storage) if before is None else before.storage
        if before is not None and (before.storage.expired() or before.end != first + size):
            reference = StorageWeakRef(storage)
        self._tensors[first] = AddressedTensor(
            first, first + size, address, dtype, shape, strides, reference
        )
        self._foreign.clear()

    def ranges(self, segment: bytes) -> list[AddressRange]:
        """The memory a launch with this argument segment may touch: pointers in memory lead only
        to tensors whose address was asked for, too."""
        self._drop_freed()
        for word in struct.unpack_from(f"<{len(segment) // 8}Q", segment):
            if self.at(word) is None and word not in self._foreign and self._is_mapped(word):
                self._search(word)
        return [(tensor.first, tensor.end) for tensor in self._tensors.values()]

    def at(self, address: int) -> AddressedTensor | None:
        """The tensor that has an address."""
        exact = self._tensors.get(address)
        if exact is not None:
            return exact
        for tensor in self._tensors.values():
            if tensor.first <= address < tensor.end:
                return tensor
        return None

    def _drop_freed(self) -> None:
        freed = [first for first, tensor in self._tensors.items() if tensor.storage.expired()]
        for first in freed:
            del self._tensors[first]

    def _is_mapped(self, word: int) -> bool:
        """Whether a word may be an address of this process: other arguments are in the segment."""
        if not _LOWEST <= word < _HIGHEST:
            return False
        page = ctypes.c_void_p(word // _PAGE * _PAGE)
        return self._libc.mincore(page, ctypes.c_size_t(_PAGE), ctypes.create_string_buffer(1)) == 0

    def _search(self, address: int) -> None:
        """Look for the tensor of an address among all that the garbage collector follows."""
        import torch

        with torch._C.DisableTorchFunction():
            for item in gc.get_objects():
                kind = type(item)
                if kind in (torch.Tensor, torch.nn.Parameter) and item.layout is torch.strided:
                    try:
                        storage = item.untyped_storage()
                        first = storage.data_ptr()
                    except (RuntimeError, NotImplementedError):
                        continue
                    if first <= address < first + storage.nbytes():
                        self.add(item)
                        return
        self._foreign.add(address)


def _itemsize(dtype: str) -> int:
    from wavecast.runtimes.module.types import itemsize

    return itemsize(dtype)


__all__ = ["AddressedTensor", "AddressedTensors"]
