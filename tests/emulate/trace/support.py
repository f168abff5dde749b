"""Hand-written kernels under trace mode; memory for them aligned to 256 bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.emulate.memory_support import assembly, code_of, kernel_of, pointers
from wavecast.compile.codeobject import Launch
from wavecast.emulate import engine
from wavecast.emulate.native import translate
from wavecast.emulate.trace.mode import TraceMode
from wavecast.emulate.trace.result import MemoryCounts, Trace


def aligned(dwords: int) -> np.ndarray:
    """Zeroed uint32 memory at a multiple of 256 bytes."""
    raw = np.zeros(dwords + 64, np.uint32)
    start = -raw.ctypes.data % 256 // 4
    return raw[start : start + dwords]


class Traced:
    """A kernel (see `memory_support`) translated for a trace mode, to be run again and again."""

    def __init__(
        self, target: str, body: str, mode: TraceMode, *, lds: int = 0, scratch: int = 0
    ) -> None:
        self.mode = mode
        self.code = code_of(target, assembly(target, body, lds=lds, scratch=scratch))
        self.native = translate(kernel_of(target, body, lds=lds, scratch=scratch), mode)

    def run(
        self,
        *arrays: np.ndarray,
        threads: int | None = None,
        groups: int | tuple[int, int, int] = 1,
        host_threads: int = 1,
    ) -> Trace:
        """Run it on up to four arrays; `threads` is a wave by default."""
        launch = Launch(
            code=self.code,
            grid=groups if isinstance(groups, tuple) else (groups, 1, 1),
            block=(threads or self.native.layout.lanes, 1, 1),
            kernarg=pointers(arrays),
        )
        known = [(array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays]
        engine.run(self.native, launch, known, threads=host_threads, mode=self.mode)
        return self.mode.traces[-1]


def trace(
    target: str,
    body: str,
    *arrays: np.ndarray,
    threads: int | None = None,
    groups: int | tuple[int, int, int] = 1,
    host_threads: int = 1,
    lds: int = 0,
    scratch: int = 0,
    **options: Any,
) -> Trace:
    """Run a kernel once in the trace mode with these options."""
    traced = Traced(target, body, TraceMode(**options), lds=lds, scratch=scratch)
    return traced.run(*arrays, threads=threads, groups=groups, host_threads=host_threads)


def counts(found: Trace, mnemonic: str, nth: int = 0) -> MemoryCounts:
    """The counts of the nth memory instruction whose text starts like this."""
    program = found.program
    named = [
        memory
        for index, memory in found.memory.items()
        if program.instructions[index].decoded.text.startswith(mnemonic)
    ]
    return named[nth]


def index(found: Trace, text: str) -> int:
    """The first instruction whose text starts like this."""
    return next(i.index for i in found.program.instructions if i.decoded.text.startswith(text))
