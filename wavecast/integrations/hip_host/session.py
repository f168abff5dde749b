"""The emulator's side of the connection with a HIP program (`runtime/connection.c`).

A request is two 64-bit words, operation and size, and its content; an answer a status, 0 unless it
failed, and a size.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from wavecast.arch import Device
from wavecast.errors import WavecastError
from wavecast.integrations.hip_host.arena import Arena
from wavecast.integrations.hip_host.launching import Launcher
from wavecast.integrations.hip_host.modules import LoadedModule, load
from wavecast.integrations.hip_host.properties import properties

_WORDS: Final = struct.Struct("<QQ")
_LAUNCH: Final = struct.Struct("<Q12I")
_NO_BINARY: Final = 209
"""hipErrorNoBinaryForGpu."""
_RECEIVED: Final = 1 << 20
"""Bytes that are received at once."""


class Disconnected(Exception):
    """The program has closed the connection."""


@dataclass
class ProgramSession:
    """One process that uses HIP, from its first call to its end."""

    connection: socket.socket
    device: Device
    devices: int
    arena: Arena
    launcher: Launcher
    _modules: dict[int, LoadedModule] = field(default_factory=dict)
    _loaded: int = 0

    def serve(self) -> None:
        """Answer requests until the program ends."""
        operations: dict[int, Callable[[bytes], bytes]] = {
            1: self._hello,
            2: self._load,
            3: self._launch,
            4: self._occupancy,
            5: self._unload,
        }
        try:
            while True:
                operation, size = _WORDS.unpack(self._receive(_WORDS.size))
                self._answer(partial(operations[operation], self._receive(size)), operation == 2)
        except (Disconnected, ConnectionError):
            return

    def _answer(self, work: Callable[[], bytes], loads: bool) -> None:
        try:
            status, data = 0, work()
        except WavecastError as error:
            status, data = _NO_BINARY if loads else error.exit_code, str(error).encode()
        self.connection.sendall(_WORDS.pack(status, len(data)) + data)

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.connection.recv(min(_RECEIVED, size - len(data)))
            if not part:
                raise Disconnected
            data += part
        return bytes(data)

    def _hello(self, _: bytes) -> bytes:
        facts = properties(self.device, self.devices)
        facts.update(self.launcher.facts())
        return "".join(f"{name} {value}\n" for name, value in facts.items()).encode()

    def _load(self, image: bytes) -> bytes:
        module = load(image, self.device.target, self.arena)
        self._loaded += 1
        self._modules[self._loaded] = module
        return struct.pack("<Q", self._loaded) + module.described()

    def _launch(self, message: bytes) -> bytes:
        module, kernel, *numbers = _LAUNCH.unpack_from(message)
        grid, block, dynamic_lds = tuple(numbers[:3]), tuple(numbers[3:6]), numbers[6]
        changed, count, size = numbers[8:11]
        start = _LAUNCH.size
        segment = message[start : start + size]
        if changed:
            words = struct.unpack_from(f"<{2 * count}Q", message, start + size)
            self.launcher.allocations = list(zip(words[::2], words[1::2], strict=True))
        loaded = self._modules[module]
        data = [one for other in self._modules.values() for one in other.ranges]
        seconds = self.launcher.launch(
            loaded, loaded.kernels[kernel], grid, block, dynamic_lds, segment, data
        )
        return struct.pack("<d", seconds)

    def _occupancy(self, message: bytes) -> bytes:
        from wavecast.analyze.occupancy import kernel_occupancy

        module, kernel, threads, dynamic_lds = struct.unpack("<Q3I", message)
        descriptor = self._modules[module].kernels[kernel].descriptor
        lds_bytes = descriptor.lds_bytes + dynamic_lds
        found = kernel_occupancy(self.device, descriptor, lds_bytes, threads)
        return struct.pack("<I", found.workgroups)

    def _unload(self, message: bytes) -> bytes:
        (module,) = struct.unpack("<Q", message)
        del self._modules[module]
        return b""


__all__ = ["ProgramSession"]
