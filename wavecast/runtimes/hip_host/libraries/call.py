"""A call of a library: its arguments, and the memory they point to as arrays."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.launch import AddressRange
from wavecast.runtimes.hip_host.libraries.elements import Element

INVALID_VALUE: Final = 3
"""HIPBLAS_STATUS_INVALID_VALUE."""
INTERNAL_ERROR: Final = 6
"""HIPBLAS_STATUS_INTERNAL_ERROR: what has no result, as eigenvalues of a matrix with NaNs."""
NOT_TRANSPOSED, TRANSPOSED, CONJUGATED = 111, 112, 113
"""HIPBLAS_OP_N, HIPBLAS_OP_T and HIPBLAS_OP_C."""
LEFT, RIGHT = 141, 142
"""HIPBLAS_SIDE_LEFT and HIPBLAS_SIDE_RIGHT."""


class InvalidCall(Exception):
    """Arguments that the library refuses; `status` is what the function returns."""

    def __init__(self, status: int = INVALID_VALUE) -> None:
        super().__init__(status)
        self.status = status


@dataclass
class CalledFunction:
    """A call of `name`, `hipblas.axpy.S`: 64-bit `words` as the header packs them, read in order,
    and the ranges of addresses that it may use. `described` is its size for tables."""

    name: str
    words: Sequence[int]
    ranges: Sequence[AddressRange]
    described: str = ""
    _next: int = field(default=0)

    @property
    def kind(self) -> str:
        """The letters of the element type in the function's name, "" where it has none."""
        return self.name.split(".")[2] if self.name.count(".") > 1 else ""

    def number(self) -> int:
        """The next argument, an integer. Raises Unsupported where a program that another release
        of wavecast has compiled passes fewer."""
        self._next += 1
        if self._next > len(self.words):
            raise Unsupported(f"{self.name} of a program of another release: compile it again")
        word = self.words[self._next - 1]
        return word - (1 << 64) if word >> 63 else word

    def numbers(self, count: int) -> list[int]:
        """The next `count` integers."""
        return [self.number() for _ in range(count)]

    def real(self) -> float:
        """The next argument, a double."""
        return struct.unpack("<d", struct.pack("<q", self.number()))[0]

    def scalar(self, element: Element) -> complex:
        """The next argument, a number of an element type."""
        raw = struct.pack("<2q", self.number(), self.number())
        stored = np.frombuffer(raw, element.stored, count=1)
        return element.load(stored)[0].item()

    def vector(self, address: int, count: int, step: int, element: Element) -> np.ndarray:
        """`count` elements as they are stored, with `step` elements from one to the next; with a
        negative one the first is at the end, as in BLAS. Writable."""
        if count <= 0:
            return np.zeros(0, element.stored)
        extent = (count - 1) * abs(step) + 1
        data = self.array(address, extent, element)
        return data[::step] if step else np.broadcast_to(data, (count,))

    def matrix(
        self, address: int, rows: int, columns: int, leading: int, element: Element
    ) -> np.ndarray:
        """A column-major matrix as it is stored, [rows, columns], writable."""
        if min(rows, columns) < 0 or leading < rows:
            raise InvalidCall
        if not rows or not columns:
            return np.zeros((rows, columns), element.stored)
        extent = leading * (columns - 1) + rows
        data = self.array(address, extent, element)
        size = element.stored.itemsize
        return np.lib.stride_tricks.as_strided(data, (rows, columns), (size, leading * size))

    def stack(
        self, addresses: Sequence[int], rows: int, columns: int, leading: int, element: Element
    ) -> Iterator[np.ndarray]:
        """Column-major matrices as they are stored, [count, rows, columns], writable: one array
        where the addresses have equal distances, else one per matrix."""
        size, count = element.stored.itemsize, len(addresses)
        distance, rest = divmod(addresses[1] - addresses[0], size) if count > 1 else (0, 1)
        even = all(b - a == distance * size for a, b in pairwise(addresses))
        if rest or distance <= 0 or not even or min(rows, columns) <= 0 or leading < rows:
            for address in addresses:
                yield self.matrix(address, rows, columns, leading, element)[None]
            return
        extent = distance * (count - 1) + leading * (columns - 1) + rows
        data = self.array(addresses[0], extent, element)
        strides = (distance * size, size, leading * size)
        yield np.lib.stride_tricks.as_strided(data, (count, rows, columns), strides)

    def row_major(
        self, address: int, rows: int, columns: int, leading: int, element: Element
    ) -> np.ndarray:
        """A row-major matrix as it is stored, [rows, columns], writable."""
        return self.matrix(address, columns, rows, leading, element).T

    def batch(self, address: int, distance: int, count: int, pointers: int, size: int) -> list[int]:
        """The addresses of `count` arrays: in an array at `address`, or `distance` elements of
        `size` bytes apart."""
        if pointers:
            return [int(pointer) for pointer in self.words_at(address, count)]
        return [address + size * distance * index for index in range(count)]

    def words_at(self, address: int, count: int) -> np.ndarray:
        """uint64[count]."""
        return self._memory(address, count, np.dtype(np.uint64))

    def integers(self, address: int, count: int, dtype: type = np.int32) -> np.ndarray:
        """An array of integers, writable."""
        return self._memory(address, count, np.dtype(dtype))

    def array(self, address: int, count: int, element: Element) -> np.ndarray:
        """`count` elements as they are stored, writable. Raises Unsupported where no allocation has
        all of them."""
        return self._memory(address, count, element.stored)

    def _memory(self, address: int, count: int, dtype: np.dtype) -> np.ndarray:
        size = count * dtype.itemsize
        if not size:
            return np.zeros(0, dtype)
        for first, end in self.ranges:
            if first <= address < end:
                if address + size > end:
                    raise Unsupported(
                        f"{self.readable}: {size} bytes from {address:#x} are beyond the end of "
                        f"an allocation of {end - first} bytes"
                    )
                break
        else:
            raise Unsupported(f"{self.readable}: {address:#x} is not memory of the GPU")
        import ctypes

        raw = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
        return raw.view(dtype)

    @property
    def readable(self) -> str:
        """`hipblas axpy.S`, as tables and messages name it."""
        library, _, function = self.name.partition(".")
        return f"{library} {function}"


def check_value(value: int, *values: int) -> int:
    """The value of an enumeration. Raises InvalidCall for one that it does not have."""
    if value not in values:
        raise InvalidCall
    return value


Function = Callable[[CalledFunction], bytes | None]
"""Executes a call; what the program's result pointer gets."""


def apply_operation(matrix: np.ndarray, operation: int) -> np.ndarray:
    """A matrix, or each of a stack, as `hipblasOperation_t` says. Raises InvalidCall for another
    number."""
    check_value(operation, NOT_TRANSPOSED, TRANSPOSED, CONJUGATED)
    if operation == TRANSPOSED:
        return matrix.swapaxes(-1, -2)
    return matrix.conj().swapaxes(-1, -2) if operation == CONJUGATED else matrix


__all__ = [
    "CONJUGATED",
    "LEFT",
    "NOT_TRANSPOSED",
    "RIGHT",
    "TRANSPOSED",
    "CalledFunction",
    "Function",
    "InvalidCall",
    "apply_operation",
    "check_value",
]
