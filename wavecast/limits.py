"""What a run may take of this machine: time and memory of compilers, memory of arrays, processors.

    WAVECAST_COMPILE_SECONDS   seconds of processor time of a compiler
    WAVECAST_COMPILE_GIB       GiB of memory a compiler may allocate, and of files it may write

An input can make a compiler run without end or allocate all memory, so every compiler has limits
(`wavecast.processes` applies them). Time is that of the processor, so that other processes do not
count; a compiler that waits and computes nothing ends at a limit of the clock, which is `CLOCK`
times higher.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wavecast.errors import UsageError

SECONDS: Final = "WAVECAST_COMPILE_SECONDS"
GIB: Final = "WAVECAST_COMPILE_GIB"
DEFAULT_SECONDS: Final = 180.0
DEFAULT_GIB: Final = 8.0
CLOCK: Final = 10
"""Seconds of the clock per second of the processor: a machine may run so many compilers at once."""
_RESERVED: Final = 8
"""One part in so many of the available memory stays free: host threads look only now and then."""
_MOST: Final = 1e9
"""Seconds or GiB: more than any machine has, and it fits in an integer of 64 bits."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of a process: `seconds` of the processor, `clock_seconds` from start to end, and
    `memory` in bytes that it may allocate in addition to what it starts with, which also limits
    each file it writes."""

    seconds: float
    clock_seconds: float
    memory: int

    @property
    def memory_text(self) -> str:
        """`8 GiB`."""
        return f"{self.memory / 2**30:g} GiB"


def of_compilers() -> ProcessLimits:
    """The limits of a compiler. Raises UsageError for a variable that is not a positive number."""
    memory = _number(GIB, DEFAULT_GIB) * 2**30
    seconds = _number(SECONDS, DEFAULT_SECONDS)
    return ProcessLimits(seconds, CLOCK * seconds, max(1, int(memory)))


def _number(variable: str, default: float) -> float:
    text = os.environ.get(variable, "").strip()
    try:
        number = float(text) if text else default
    except ValueError:
        number = 0.0
    if not 0 < number <= _MOST:
        raise UsageError(f"{variable} must be a positive number, not {text!r}")
    return number


def check_memory(size: float, what: str) -> None:
    """Raises UsageError where `size` bytes, for `what`, are more than this machine can give."""
    available = available_memory()
    if size > available:
        raise UsageError(
            f"{what} needs {_text(size)} of memory, this machine has {_text(available)} available"
        )


@dataclass(frozen=True, slots=True)
class MemoryReserve:
    """The bytes of memory that work which grows as it runs must leave; `what` needs it."""

    size: int
    what: str

    @classmethod
    def now(cls, what: str) -> MemoryReserve:
        """A share of what is available when the work begins."""
        return cls(available_memory() // _RESERVED, what)

    def check(self) -> None:
        """Raises UsageError where less is left."""
        available = available_memory()
        if available < self.size:
            raise UsageError(
                f"{self.what} needs more memory than this machine has: {_text(available)} "
                "of it are left"
            )


def available_processors() -> int:
    """Processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> int:
    """Bytes of memory that processes can still allocate; on systems that do not tell, 2^47, the
    address space of a process."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 1 << 47


def _text(size: float) -> str:
    return f"{size / 2**30:,.3g} GiB" if size < 2**60 else f"{size / 2**60:,.3g} EiB"


__all__ = [
    "CLOCK",
    "DEFAULT_GIB",
    "DEFAULT_SECONDS",
    "GIB",
    "SECONDS",
    "MemoryReserve",
    "ProcessLimits",
    "available_memory",
    "available_processors",
    "check_memory",
    "of_compilers",
]
