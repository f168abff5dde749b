"""Logs of recorded waves: native code fills them, a full one is emptied into chunks."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from wavecast.emulate import hostmemory
from wavecast.emulate.trace import layout

_FLUSH = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)


Reduce = Callable[[np.ndarray], Any]
"""Makes of access records (u64[m, words], `record`) what is to be kept of them."""


class Logs:
    """The logs of one launch, at most `limit` bytes of them. What does not fit is dropped, from
    then on everywhere, so that what is kept of a wave is its beginning. With `reduce`, its results
    are kept instead of access records, in `reduced`."""

    def __init__(self, lanes: int, limit: int, reduce: Reduce | None = None) -> None:
        self.words = layout.record_words(lanes)
        self.reduce = reduce
        self.reduced: list[Any] = []
        self.limit = limit
        self.used = 0
        self._lock = threading.Lock()
        self._threads: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._blocks: list[list[np.ndarray]] = []
        self._accesses: list[list[np.ndarray]] = []
        self._callback = _FLUSH(self._flush)

    def attach(self, context: np.ndarray) -> None:
        """Give a resident workgroup its logs; host threads call this at the same time."""
        blocks = hostmemory.zeros(layout.BLOCK_ROOM, np.uint32)
        accesses = hostmemory.zeros(layout.ACCESS_ROOM * self.words, np.uint64)
        accesses = accesses.reshape(layout.ACCESS_ROOM, self.words)
        with self._lock:
            context[layout.THREAD] = len(self._threads)
            self._threads.append((context, blocks, accesses))
            self._blocks.append([])
            self._accesses.append([])
        context[layout.BLOCK_LOG] = blocks.ctypes.data
        context[layout.ACCESS_LOG] = accesses.ctypes.data
        context[layout.BLOCK_FILL] = context[layout.ACCESS_FILL] = 0
        context[layout.FLUSH] = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def close(self) -> None:
        """Take what the logs still hold."""
        for thread in range(len(self._threads)):
            self._flush(thread, layout.BLOCK_LOG)
            self._flush(thread, layout.ACCESS_LOG)

    def _flush(self, thread: int, log: int) -> None:
        context, blocks, accesses = self._threads[thread]
        chunks = self._blocks if log == layout.BLOCK_LOG else self._accesses
        fill = layout.BLOCK_FILL if log == layout.BLOCK_LOG else layout.ACCESS_FILL
        content = (blocks if log == layout.BLOCK_LOG else accesses)[: int(context[fill])]
        context[fill] = 0
        if log == layout.ACCESS_LOG and self.reduce is not None:
            self.reduced.append(self.reduce(content))
            return
        with self._lock:
            self.used += content.nbytes
            fits = self.used <= self.limit
        if fits:
            chunks[thread].append(content.copy())

    def blocks(self) -> dict[int, np.ndarray]:
        """Stream number -> blocks in order, u32."""
        by_stream: dict[int, list[np.ndarray]] = {}
        for chunks in self._blocks:
            entries = np.concatenate(chunks) if chunks else np.zeros(0, np.uint32)
            marks = np.flatnonzero(entries & layout.STREAM_BIT)
            # nothing is before the first mark: every log begins with one
            for part in np.split(entries, marks)[1:]:
                stream = int(part[0]) & ~layout.STREAM_BIT
                by_stream.setdefault(stream, []).append(part[1:])
        return {stream: np.concatenate(parts) for stream, parts in by_stream.items()}

    def accesses(self) -> dict[int, np.ndarray]:
        """Stream number -> records in order, u64[m, words]; the stream bits are cleared."""
        by_stream = {}
        for chunks in self._accesses:
            if not chunks:
                continue
            records = np.concatenate(chunks)
            streams = records[:, 0] >> np.uint64(32)
            records[:, 0] &= np.uint64(0xFFFFFFFF)
            for stream in np.unique(streams).tolist():
                by_stream[stream] = records[streams == stream]
        return by_stream


__all__ = ["Logs", "Reduce"]
