"""Memory of one host thread, apart from that of the others: what one thread writes must not share
cache lines with what another uses, or both wait for each other at every access."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator
from typing import Final

import numpy as np

from wavecast import limits
from wavecast.errors import UsageError

APART: Final = 128
"""Bytes: a pair of cache lines, which processors fetch together. Source: Intel 64 and IA-32
Architectures Optimization Reference Manual, "Data Prefetch to L2" (spatial prefetcher)."""


PAGE: Final = 4096
"""Bytes of a page: samples of launches depend on addresses within one."""

_SPARSE: Final = 1 << 20
"""Bytes from which on memory is mapped for itself."""
_DENSE: Final = 1 << 26
"""Bytes up to which an array may have large pages."""
_LARGE_PAGE: Final = 1 << 21
"""Bytes of a large page of x86-64, and of AArch64 with small ones of 4 KiB."""
_SCANNED: Final = 1 << 28
"""Bytes up to which an array is read whole."""
_ENTRIES: Final = 1 << 20
"""Pages whose entries are read at once."""
_NO_RESERVE: Final = 0x4000
"""MAP_NORESERVE of Linux on x86-64 and AArch64."""


def zeros(count: int, dtype: type, align: int = APART) -> np.ndarray:
    """`count` zeros at a multiple of `align` bytes, a multiple of `APART`, in cache lines that
    nothing else uses. Pages nobody touches take no memory."""
    size = count * np.dtype(dtype).itemsize
    raw = np.zeros(-(-size // APART) * APART + align, np.uint8)
    start = -raw.ctypes.data % align
    return raw[start : start + size].view(dtype)


def fits_large_pages(size: int, together: int) -> bool:
    """Whether an array of `size` bytes, one of several with `together` bytes, may have large pages
    though few may be touched: clearing all of it takes milliseconds and memory that is there."""
    return size <= _DENSE and together <= limits.available_memory() // 2


def sparse_zeros(count: int, dtype: type, *, huge: bool = False) -> np.ndarray:
    """`count` zeros of which few are touched: only the pages of these take memory, and the others
    do not count against what the machine has. With `huge` these are the large pages of the host,
    of which a dense array takes fewer faults. Raises UsageError where the address space ends."""
    size = count * np.dtype(dtype).itemsize
    if size < _SPARSE:
        return np.zeros(count, dtype)
    room = size if not huge else (-(-size // _LARGE_PAGE) + 1) * _LARGE_PAGE
    try:
        pages = mmap.mmap(-1, room, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    except OSError as error:
        raise UsageError(
            f"{room / 2**30:,.3g} GiB of addresses cannot be reserved: {error}"
        ) from error
    with contextlib.suppress(OSError):  # a kernel without huge pages
        pages.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
    memory = np.frombuffer(pages, np.uint8)
    start = -memory.ctypes.data % _LARGE_PAGE if huge else 0
    return memory[start : start + size].view(dtype)


def nonzero(array: np.ndarray) -> np.ndarray:
    """The indices (int64) of the elements of a 1-D contiguous array that are not 0. Of a large
    one only the pages that have been touched are read: it may record the memory of a GPU."""
    if array.nbytes < _SCANNED:
        return np.flatnonzero(array)
    indices = [np.flatnonzero(array[first:end]) + first for first, end in _touched(array)]
    return np.concatenate(indices) if indices else np.zeros(0, np.int64)


def _touched(array: np.ndarray) -> Iterator[tuple[int, int]]:
    """The runs of elements, first and end, in pages that memory or swap has: Linux's
    Documentation/admin-guide/mm/pagemap.rst, bits 63 and 62 of an entry."""
    page, size = mmap.PAGESIZE, array.itemsize
    address = array.ctypes.data
    first_page, end_page = address // page, -(-(address + array.nbytes) // page)
    with open("/proc/self/pagemap", "rb", buffering=0) as file:
        for start in range(first_page, end_page, _ENTRIES):
            file.seek(8 * start)
            count = min(_ENTRIES, end_page - start)
            entries = np.frombuffer(file.read(8 * count), np.uint64)
            there = np.flatnonzero(entries >> np.uint64(62))
            for run in np.split(there, np.flatnonzero(np.diff(there) != 1) + 1):
                if len(run):
                    first = (start + int(run[0])) * page - address
                    end = (start + int(run[-1]) + 1) * page - address
                    yield max(0, first // size), min(len(array), -(-end // size))


__all__ = ["APART", "PAGE", "fits_large_pages", "nonzero", "sparse_zeros", "zeros"]
