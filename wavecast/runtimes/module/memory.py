"""Arrays and tensors as memory of a launch: where they start, and what may be touched.

A pointer goes to the first element; the memory that belongs to it is the whole allocation, so
that kernels reach what strides and offsets of a view refer to.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavecast.compile.codeobject import Argument
from wavecast.errors import LaunchError

ACCEPTED = "a numpy array, a PyTorch tensor, an address or None"


@dataclass(frozen=True, slots=True)
class HostArray:
    """Host memory from `first` to before `end`, and the dtype, shape, and strides (in elements) of
    the array at `address` in it."""

    address: int
    first: int
    end: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def argument(self, name: str) -> Argument:
        """The array as an argument of a launch."""
        return Argument(
            name, "tensor", self.dtype, self.shape, self.strides, self.end - self.first, self.first
        )


@dataclass(slots=True)
class Memory:
    """The memory of one launch.

    Read-only arrays are lent as copies: that a kernel writes to one is found by comparison after
    the launch, and neither faults nor changes what must not change.
    """

    kernel: str
    ranges: list[tuple[int, int]] = field(default_factory=list)
    _lent: dict[int, tuple[str, np.ndarray, np.ndarray]] = field(default_factory=dict)

    def add(self, value: Any, what: str) -> HostArray:
        """Let the launch touch the memory of an array. `what` names it in errors.

        Raises LaunchError for anything that is not an array in this machine's memory.
        """
        region = self._array(value, what) if isinstance(value, np.ndarray) else None
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            with torch._C.DisableTorchFunction():
                region = self._tensor(torch, value, what)
        if region is None:
            raise LaunchError(
                f"{self.kernel}: {what} takes a pointer, not {describe(value)}",
                hint=f"give {ACCEPTED}",
            )
        if region.first < region.end:
            self.ranges.append((region.first, region.end))
        return region

    def check_unchanged(self) -> None:
        """After the launch. Raises LaunchError when it wrote to a read-only array."""
        for what, original, copy in self._lent.values():
            if not np.array_equal(original, copy):
                raise LaunchError(
                    f"{self.kernel}: the kernel writes to {what}, a read-only array",
                    hint="the array is unchanged; pass a writable one",
                )

    def _array(self, array: np.ndarray, what: str) -> HostArray:
        dtype = array.dtype
        if dtype.hasobject:
            raise LaunchError(f"{self.kernel}: {what} is an array of Python objects")
        if not dtype.isnative:
            raise LaunchError(
                f"{self.kernel}: {what} is not in this machine's byte order",
                hint="give array.astype(array.dtype.newbyteorder('='))",
            )
        first, end = _bounds(_owner(array))
        address = array.__array_interface__["data"][0]
        if not array.flags.writeable and first < end:
            copied = self._lend(first, end, what)
            address, first, end = address + copied - first, copied, copied + end - first
        strides = tuple(step // max(1, dtype.itemsize) for step in array.strides)
        return HostArray(address, first, end, dtype.name, array.shape, strides)

    def _lend(self, first: int, end: int, what: str) -> int:
        """The address of the launch's copy of read-only memory; one copy per allocation."""
        loan = self._lent.get(first)
        if loan is None:
            original = _bytes_at(first, end)
            loan = self._lent[first] = (what, original, original.copy())
        return loan[2].__array_interface__["data"][0]

    def _tensor(self, torch: Any, tensor: Any, what: str) -> HostArray:
        if tensor.device.type != "cpu":
            raise LaunchError(
                f"{self.kernel}: {what} lies on {tensor.device}",
                hint="the emulator reads tensors of the CPU",
            )
        if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
            raise LaunchError(
                f"{self.kernel}: {what} is a tensor whose memory does not contain its elements",
                hint="give a dense one: to_dense(), resolve_conj(), resolve_neg()",
            )
        try:
            storage = tensor.untyped_storage()
            first, size, address = storage.data_ptr(), storage.nbytes(), tensor.data_ptr()
        except RuntimeError as error:  # tensors of torch.compile and vmap
            raise LaunchError(f"{self.kernel}: {what} is a tensor without memory") from error
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        last = sum((count - 1) * step for count, step in zip(shape, strides, strict=True))
        extent = (tensor.storage_offset() + last + 1) * tensor.element_size()
        if tensor.numel() and extent > size:
            raise LaunchError(
                f"{self.kernel}: {what} was freed: its storage has {size:,} of {extent:,} bytes"
            )
        dtype = str(tensor.dtype).removeprefix("torch.")
        return HostArray(address, first, first + size, dtype, shape, strides)


def describe(value: Any) -> str:
    """A value in an error: what kind of thing it is, and it itself where that is short."""
    if isinstance(value, (bool, int, float)):
        return repr(value)
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"


def _owner(array: np.ndarray) -> np.ndarray:
    """The array that spans the allocation a view lies in."""
    owner, base = array, array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            owner = base
        base = getattr(base, "base", None)  # numpy.lib.stride_tricks puts others in between
    return owner


def _bounds(array: np.ndarray) -> tuple[int, int]:
    """Addresses of the first byte of an array and after its last, whatever its strides."""
    address = array.__array_interface__["data"][0]
    if not array.size:
        return address, address
    reach = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    below, above = sum(min(0, step) for step in reach), sum(max(0, step) for step in reach)
    return address + below, address + above + array.itemsize


def _bytes_at(first: int, end: int) -> np.ndarray:
    """Memory of this process as bytes."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * (end - first)).from_address(first))
