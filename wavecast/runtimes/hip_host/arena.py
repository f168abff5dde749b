"""The memory of the GPUs of a HIP program: one shared mapping, at the same addresses in the process
of the program and in that of the emulator, so that pointers mean the same in both."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from collections.abc import Iterator
from typing import Final

import numpy as np

from wavecast.errors import UsageError
from wavecast.runtimes.hip_host.protocol import HEAP_BYTES, OUTPUT_BYTES

PROGRAM_BASE: Final = 0x1400_0000_0000
"""Where the arena of programs begins: far from where Linux puts programs, libraries, heaps and
stacks. TCMalloc spreads its heaps over all addresses by a tag in bits 42 to 44, which in Mojo's
programs is 0, 3 or 4: those bits of the arena are 5."""
PROCESS_BASE: Final = 0x3400_0000_0000
"""Where that of HIP's runtime in this process begins, which may run programs, too."""
SIZE: Final = 1 << 42
"""Bytes of addresses. Pages that nobody touches take no memory."""
SYSTEM: Final = OUTPUT_BYTES + HEAP_BYTES
"""Bytes at the start for what kernels print, and for their heap."""
FIRST_ALLOCATION: Final = 1 << 32
"""Offset of the allocations; the data of modules is between."""
PROCESSES: Final = 8
"""Processes of a program that use HIP at once: each has a part of the arena."""
_NO_RESERVE, _FIXED_NO_REPLACE, _FIXED = 0x4000, 0x100000, 0x10
"""MAP_NORESERVE, MAP_FIXED_NOREPLACE and MAP_FIXED of Linux on x86-64 and AArch64."""
_REMOVE: Final = 9
"""MADV_REMOVE of Linux."""
_FAILED: Final = ctypes.c_void_p(-1).value


class ArenaPart:
    """`size` bytes from `base` on of a mapping: those of one process that uses HIP. `mapping` makes
    what forks write private while they are made."""

    def __init__(self, base: int, size: int, mapping: Arena) -> None:
        self.base, self.size, self._mapping = base, size, mapping
        self._next = SYSTEM

    def facts(self) -> dict[str, int]:
        """Where it is, and the mapping, as the runtime reads it."""
        return {
            "arena": self.base,
            "arena_bytes": self.size,
            "mapping": self._mapping.base,
            "mapping_bytes": SIZE,
            "first_allocation": FIRST_ALLOCATION,
        }

    def reset(self) -> None:
        """Drop all content, for the next process that uses it."""
        self._mapping.clear(self.base, self.size)
        self._next = SYSTEM

    def reserve(self, size: int, align: int) -> int:
        """The address of `size` bytes for the data of a module. Raises UsageError without room."""
        start = -(-self._next // align) * align
        if start + size > FIRST_ALLOCATION:
            raise UsageError(f"the program's modules have more than {FIRST_ALLOCATION >> 30} GiB")
        self._next = start + size
        return self.base + start

    def bytes_at(self, address: int, size: int) -> np.ndarray:
        """Memory of the arena, uint8[size]."""
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))

    def private(self) -> contextlib.AbstractContextManager[None]:
        """Forks made in the block have the arena to themselves: their writes stay in them."""
        return self._mapping.keep_forks_private()


class Arena:
    """The mapping in this process, from `base` on. Raises UsageError where it cannot be made."""

    def __init__(self, base: int = PROGRAM_BASE) -> None:
        self.base = base
        self.file = os.memfd_create("wavecast-hip")
        os.ftruncate(self.file, SIZE)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = [
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
            ctypes.c_long,
        ]  # fmt: skip
        self._map(mmap.MAP_SHARED | _FIXED_NO_REPLACE)

    def close(self) -> None:
        """Give memory and addresses back."""
        self._libc.munmap(ctypes.c_void_p(self.base), ctypes.c_size_t(SIZE))
        os.close(self.file)

    def part(self, number: int = 0, parts: int = 1) -> ArenaPart:
        """One of equal parts."""
        size = SIZE // parts
        return ArenaPart(self.base + number * size, size, self)

    def clear(self, first: int, size: int) -> None:
        """Drop the content of addresses."""
        self._libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), _REMOVE)

    def keep_private(self) -> None:
        """In a fork: what it writes stays in it."""
        self._map(mmap.MAP_PRIVATE | _FIXED)

    @contextlib.contextmanager
    def keep_forks_private(self) -> Iterator[None]:
        """Forks made in the block have the arena to themselves: their writes stay in them."""
        self._map(mmap.MAP_PRIVATE | _FIXED)
        try:
            yield
        finally:
            self._map(mmap.MAP_SHARED | _FIXED)

    def _map(self, flags: int) -> None:
        access = mmap.PROT_READ | mmap.PROT_WRITE
        mapped = self._libc.mmap(self.base, SIZE, access, flags | _NO_RESERVE, self.file, 0)
        if mapped != self.base:
            if mapped != _FAILED:
                self._libc.munmap(ctypes.c_void_p(mapped), ctypes.c_size_t(SIZE))
            reason = os.strerror(ctypes.get_errno()) if mapped == _FAILED else "they are in use"
            raise UsageError(f"the addresses of GPU memory cannot be mapped: {reason}")


__all__ = [
    "FIRST_ALLOCATION",
    "PROCESSES",
    "PROCESS_BASE",
    "PROGRAM_BASE",
    "SIZE",
    "SYSTEM",
    "Arena",
    "ArenaPart",
]
