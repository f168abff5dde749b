"""A smaller input that fails the same way: pieces are left out as long as it still does."""

from __future__ import annotations

import time
from collections.abc import Callable

_SECONDS = 20.0


def minimize(data: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """`data` without the lines (or byte ranges) the failure does not need. Bounded in time."""
    end = time.monotonic() + _SECONDS
    separator = b"\n" if b"\0" not in data else b""
    pieces = data.split(b"\n") if separator else [data[i : i + 1] for i in range(len(data))]
    size = max(1, len(pieces) // 2)
    while True:
        at = 0
        while at < len(pieces) and time.monotonic() < end:
            fewer = pieces[:at] + pieces[at + size :]
            if fails(separator.join(fewer)):
                pieces = fewer
            else:
                at += size
        if size == 1 or time.monotonic() >= end:
            return separator.join(pieces)
        size //= 2
