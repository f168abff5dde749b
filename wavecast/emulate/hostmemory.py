"""Memory of one host thread, apart from that of the others: what one thread writes must not share
cache lines with what another uses, or both wait for each other at every access."""

from __future__ import annotations

from typing import Final

import numpy as np

APART: Final = 128
"""Bytes: a pair of cache lines, which processors fetch together. Source: Intel 64 and IA-32
Architectures Optimization Reference Manual, "Data Prefetch to L2" (spatial prefetcher)."""


PAGE: Final = 4096
"""Bytes of a page: samples of launches depend on addresses within one."""


def zeros(count: int, dtype: type, align: int = APART) -> np.ndarray:
    """`count` zeros at a multiple of `align` bytes, a multiple of `APART`, in cache lines that
    nothing else uses. Pages nobody touches take no memory."""
    size = count * np.dtype(dtype).itemsize
    raw = np.zeros(-(-size // APART) * APART + align, np.uint8)
    start = -raw.ctypes.data % align
    return raw[start : start + size].view(dtype)


__all__ = ["APART", "PAGE", "zeros"]
