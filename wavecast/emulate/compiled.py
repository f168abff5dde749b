"""Native code of one kernel: what the cache keeps of it, and its code in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from wavecast.compile.processor import load_object
from wavecast.emulate import hostmemory
from wavecast.emulate.lower import runtime
from wavecast.emulate.lower.state import WaveLayout
from wavecast.isa.program import Kernel, KernelArgument, KernelDescriptor

FUNCTION: Final = "wave"
"""The name of the wave function in the object code."""


class NativeKernel:
    """Machine code of one kernel for this host, which better code may replace while it runs.

    `address` is that of `i32 wave(ptr state, ptr context)`.
    """

    def __init__(self, compiled: Compiled, parse: Callable[[], Kernel]) -> None:
        self.target = compiled.target
        self.descriptor = compiled.descriptor
        self.layout = compiled.layout
        self.instructions = compiled.instructions
        self.data = _relocate(compiled)
        """The data of the code object, uint8; kernels may write to it."""
        self.improvement: Improvement | None = None
        self._parse = parse
        self._owners: list[Any] = []
        self.address = 0
        self.replace_code(compiled)

    def replace_code(self, compiled: Compiled) -> None:
        """Bring code into this process; waves that start or resume use it from then on.

        Raises runtime.Missing.
        """
        runtime.provide(compiled.outlined)
        owner = load_object(compiled.code)
        self._owners.append(owner)
        self.address = owner.get_function_address(FUNCTION)

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel's program, parsed when it is first asked for."""
        return self._parse()

    def add_runtime(self, seconds: float) -> None:
        """Note how much processor time the code took."""
        improvement = self.improvement  # the thread that improves may take it away
        if improvement is not None:
            improvement.add_runtime(seconds)


class Improvement:
    """Better code for a kernel, made by a thread once the kernel has taken `after` seconds of
    processor time."""

    def __init__(
        self, native: NativeKernel, improve: Callable[[NativeKernel], None], after: float
    ) -> None:
        self._native = native
        self._improve = improve
        self._left = after
        self._lock = threading.Lock()
        self.thread: threading.Thread | None = None

    def add_runtime(self, seconds: float) -> None:
        """Note how much processor time the kernel took."""
        self._left -= seconds
        if self._left < 0 and self.thread is None:
            with self._lock:
                if self.thread is None:
                    self.thread = threading.Thread(target=self._run, name="wavecast-improvement")
                    self.thread.start()

    def _run(self) -> None:
        self._improve(self._native)
        self._native.improvement = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """What is kept of a translation: an object file that defines `wave`, the outlined functions it
    is linked against, and what a launch must know of the kernel."""

    target: str
    descriptor: KernelDescriptor
    layout: WaveLayout
    code: bytes
    outlined: tuple[str, ...]
    instructions: int
    data: bytes = b""
    addresses: tuple[tuple[int, int], ...] = ()
    """Where the data has addresses of data: (offset, offset of what it points to)."""

    def load(self, parse: Callable[[], Kernel]) -> NativeKernel:
        """Bring the code into this process. Raises runtime.Missing."""
        return NativeKernel(self, parse)

    def pack(self) -> dict[str, object]:
        """As plain values for the cache."""
        return asdict(self)

    @classmethod
    def unpack(cls, value: object) -> Compiled | None:
        """From plain values; None where they are not those of a translation."""
        if not isinstance(value, dict):
            return None
        try:
            fields = dict(value["descriptor"])
            arguments = tuple(KernelArgument(**argument) for argument in fields.pop("arguments"))
            return cls(
                value["target"],
                KernelDescriptor(arguments=arguments, **fields),
                WaveLayout(**value["layout"]),
                value["code"],
                tuple(value["outlined"]),
                int(value["instructions"]),
                value["data"],
                tuple((offset, to) for offset, to in value["addresses"]),
            )
        except (KeyError, TypeError):
            return None


def _relocate(compiled: Compiled) -> np.ndarray:
    """A kernel's data in memory, its addresses filled in."""
    data = hostmemory.zeros(len(compiled.data), np.uint8, align=hostmemory.PAGE)
    data[:] = np.frombuffer(compiled.data, np.uint8)
    for offset, to in compiled.addresses:
        data[offset : offset + 8].view(np.uint64)[0] = data.ctypes.data + to
    return data


__all__ = ["FUNCTION", "Compiled", "Improvement", "NativeKernel"]
