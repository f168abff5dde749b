"""What kernels ask of the host while they run: `printf` of AMD's device library.

A wave takes a packet, fills it, puts it on the ready stack and waits until the host has answered.
The workers of a launch look at that stack between two calls of the native loop. Source: ROCm
device libraries, `ockl/src/hostcall_impl.cl` and `services.cl`; ROCclr `devhostcall.cpp`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from functools import lru_cache
from typing import Any, Final

import numpy as np
from llvmlite import binding

from wavecast.compile import digest
from wavecast.compile.cache import DiskCache
from wavecast.compile.processor import load_object, processor
from wavecast.emulate import hostmemory
from wavecast.emulate.errors import ExecutionError, Unsupported
from wavecast.emulate.lower import runtime
from wavecast.emulate.printf import MessageError, formatted, is_error

_MOST_PACKETS: Final = 1 << 12
"""More than waves that wait for the host at a time."""
_HEADERS, _PAYLOADS, _DOORBELL, _FREE, _READY, _INDEX_MASK = range(6)
"""64-bit words of the buffer."""
_SIGNAL: Final = 64
"""Byte of the doorbell: a signal whose event has no mailbox, so that a wave only adds to it."""
_FIRST_HEADER: Final = 128
_NEXT, _LANES, _SERVICE, _HEADER_WORDS = range(4)
"""64-bit words of a packet's header; the third has the service, and above it the control word."""
_SLOT_WORDS, _SLOTS = 8, 64
_PAYLOAD_WORDS: Final = _SLOTS * _SLOT_WORDS
_CONTROL: Final = 20
"""Byte of a header's control word: 1 until the host has answered."""
_PRINTF: Final = 2
_SERVICES: Final = {1: "to call a function", 3: "for memory", 4: "to report of a sanitizer"}
_BEGINS, _ENDS, _LENGTH, _NUMBER = 1, 2, 5, 8
"""Bits of a message's descriptor, and the first bits of its count of words and of its number."""
_MOST_BYTES: Final = 1 << 24
"""Of messages that have not ended."""
_CODE: Final = """
define i64 @take(ptr %stack) {
  %top = atomicrmw xchg ptr %stack, i64 0 acq_rel
  ret i64 %top
}
define void @answer(ptr %control) {
  store atomic i32 0, ptr %control release, align 4
  ret void
}
"""


class HostCallBuffer:
    """The buffer of a launch of `waves` waves; `quiet` answers without printing. `name` is the
    kernel's in errors."""

    def __init__(self, name: str, waves: int, *, quiet: bool) -> None:
        self._name, self._quiet = name, quiet
        packets = min(max(waves, 2), _MOST_PACKETS)
        payloads = _FIRST_HEADER + packets * 8 * _HEADER_WORDS
        payloads = -(-payloads // hostmemory.PAGE) * hostmemory.PAGE
        size = payloads + packets * 8 * _PAYLOAD_WORDS
        self.memory = hostmemory.zeros(size, np.uint8, align=hostmemory.PAGE)
        self._words = self.memory[:_SIGNAL].view(np.uint64)
        self._headers = (
            self.memory[_FIRST_HEADER:][: packets * 8 * _HEADER_WORDS]
            .view(np.uint64)
            .reshape(packets, _HEADER_WORDS)
        )
        self._payloads = self.memory[payloads:].view(np.uint64).reshape(packets, _SLOTS, -1)
        self._mask = (1 << (packets - 1).bit_length()) - 1
        base = self.memory.ctypes.data
        self._words[_HEADERS], self._words[_PAYLOADS] = base + _FIRST_HEADER, base + payloads
        self._words[_DOORBELL], self._words[_INDEX_MASK] = base + _SIGNAL, self._mask
        self._headers[1:, _NEXT] = np.arange(packets - 1)
        self._headers[1, _NEXT] = self._mask + 1  # packet 0: no pointer is 0
        self._words[_FREE] = packets - 1
        self._messages: dict[int, bytearray] = {}
        self._last = 0
        self._lock = threading.Lock()

    @property
    def interval(self) -> tuple[int, int]:
        """The addresses that a wave may touch."""
        first = self.memory.ctypes.data
        return first, first + self.memory.size

    def serve(self) -> bool:
        """Answer what waves have asked; whether any has. Raises Unsupported for other services than
        printing, ExecutionError for messages without a meaning."""
        if not self._words[_READY]:
            return False
        take, answer, _ = _functions()
        with self._lock:
            ready = take(self.interval[0] + 8 * _READY)
            packets = []
            while ready:
                packets.append(int(ready) & self._mask)
                ready = int(self._headers[packets[-1], _NEXT])
            for packet in reversed(packets):  # as they came
                self._answer(packet)
                header = self.interval[0] + _FIRST_HEADER + packet * 8 * _HEADER_WORDS
                answer(header + _CONTROL)
        return bool(packets)

    def _answer(self, packet: int) -> None:
        _, lanes, service = (int(word) for word in self._headers[packet])
        service &= 0xFFFFFFFF
        if service != _PRINTF:
            what = _SERVICES.get(service, f"for service {service}")
            raise Unsupported(f"{self._name}: the kernel asks the host {what}: not supported")
        for lane in range(_SLOTS):
            if lanes >> lane & 1:
                slot = self._payloads[packet, lane]
                slot[0] = self._add(int(slot[0]), slot[1:])

    def _add(self, descriptor: int, words: np.ndarray) -> int:
        """Add words to a lane's message, and print it where it ends; its descriptor from then."""
        if descriptor & _BEGINS:
            self._last += 1
            descriptor = descriptor & (1 << _NUMBER) - 1 & ~_BEGINS | self._last << _NUMBER
            self._messages[self._last] = bytearray()
        message = self._messages.get(descriptor >> _NUMBER)
        if message is None or len(message) > _MOST_BYTES:
            raise ExecutionError(f"{self._name}: a message to the host without a begin or an end")
        message += words[: descriptor >> _LENGTH & 7].tobytes()
        if descriptor & _ENDS:
            del self._messages[descriptor >> _NUMBER]
            self._show(bytes(message))
        return descriptor

    def _show(self, message: bytes) -> None:
        if self._quiet:
            return
        try:
            text = formatted(message)
        except MessageError as error:
            raise ExecutionError(f"{self._name}: {error}") from error
        stream, number = (sys.stderr, 2) if is_error(message) else (sys.stdout, 1)
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()  # what the program wrote comes first
        while text:
            text = text[os.write(number, text) :]


@lru_cache(maxsize=1)
def _functions() -> tuple[Any, Any, Any]:
    """Taking all that is on a stack, and saying that a packet is answered; and their owner."""
    key = digest.key("functions", runtime.basis(), _CODE)
    engine = load_object(runtime.load_or_make(key, _compiled, DiskCache()))
    take = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
    answer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    return (
        take(engine.get_function_address("take")),
        answer(engine.get_function_address("answer")),
        engine,
    )


def _compiled() -> bytes:
    module = binding.parse_assembly(_CODE)
    module.verify()
    return processor().machine(2).emit_object(module)


__all__ = ["HostCallBuffer"]
