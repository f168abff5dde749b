"""The emulator's side of the connection with a HIP program (`protocol`, `runtime/connection.c`)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from wavecast.arch import Device
from wavecast.compile.hiprtc import compile_source
from wavecast.emulate.launch import AddressRange
from wavecast.errors import CompileError, WavecastError
from wavecast.runtimes.hip_host.arena import Arena
from wavecast.runtimes.hip_host.launching import Launcher
from wavecast.runtimes.hip_host.modules import LoadedModule, load
from wavecast.runtimes.hip_host.ordering import ProgramOrder
from wavecast.runtimes.hip_host.protocol import LAUNCH, OCCUPANCY, HostRequest

_WORDS: Final = struct.Struct("<QQ")
_NO_BINARY: Final = 209
"""hipErrorNoBinaryForGpu."""
_RECEIVED: Final = 1 << 20
"""Bytes that are received at once."""


class Disconnected(Exception):
    """The program has closed the connection."""


@dataclass
class ProgramSession:
    """One process that uses HIP, from its first call to its end. `properties` are those that it may
    ask for."""

    connection: socket.socket
    device: Device
    properties: Mapping[str, int | str]
    arena: Arena
    launcher: Launcher
    order: ProgramOrder | None = None
    _modules: dict[int, LoadedModule] = field(default_factory=dict)
    _loaded: int = 0

    def serve(self) -> None:
        """Answer requests until the program ends."""
        answers: dict[HostRequest, Callable[[bytes], bytes]] = {
            HostRequest.HELLO: self._hello,
            HostRequest.LOAD: self._load,
            HostRequest.LAUNCH: self._launch,
            HostRequest.OCCUPANCY: self._occupancy,
            HostRequest.UNLOAD: self._unload,
            HostRequest.ALLOCATIONS: self._allocations,
            HostRequest.LIBRARY: self._library,
            HostRequest.COMPILE: self._compile,
            HostRequest.ORDER: self._order,
        }
        try:
            while True:
                number, size = _WORDS.unpack(self._receive(_WORDS.size))
                request = HostRequest(number)
                work = partial(answers[request], self._receive(size))
                self._answer(work, _NO_BINARY if request is HostRequest.LOAD else None)
        except (Disconnected, ConnectionError):
            return

    def _answer(self, work: Callable[[], bytes], failure: int | None) -> None:
        """Send the result of `work`; `failure` is the status of an error, its exit code where there
        is none."""
        try:
            status, data = 0, work()
        except WavecastError as error:
            status, data = failure or error.exit_code, str(error).encode()
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
        facts = {**self.properties, **self.launcher.facts()}
        return "".join(f"{name} {value}\n" for name, value in facts.items()).encode()

    def _load(self, image: bytes) -> bytes:
        module = load(image, self.device.target, self.arena)
        self._loaded += 1
        self._modules[self._loaded] = module
        return struct.pack("<Q", self._loaded) + module.description()

    def _launch(self, message: bytes) -> bytes:
        (module,), (kernel,), grid, block, (dynamic_lds,), _, (size,) = LAUNCH.read(message)
        segment = message[LAUNCH.layout.size : LAUNCH.layout.size + size]
        loaded = self._modules[module]
        seconds = self.launcher.launch(
            loaded, loaded.kernels[kernel], grid, block, dynamic_lds, segment, self._data()
        )
        return struct.pack("<d", seconds)

    def _allocations(self, message: bytes) -> bytes:
        words = struct.unpack(f"<{len(message) // 8}Q", message)
        self.launcher.allocations = list(zip(words[::2], words[1::2], strict=True))
        if self.order is not None:
            self.order.on_allocations(self.launcher.allocations)
        return b""

    def _order(self, message: bytes) -> bytes:
        return b"" if self.order is None else self.order.tell(message)

    def _library(self, message: bytes) -> bytes:
        name, _, rest = message.partition(b"\0")
        words = struct.unpack(f"<{len(rest) // 8}Q", rest)
        status, result = self.launcher.call_library(name.decode(), words, self._data())
        return struct.pack("<q", status) + result

    def _compile(self, message: bytes) -> bytes:
        """Source of hipRTC (`hiprtc.c`): symbols of expressions, the log, and the code."""
        counts = struct.unpack_from("<4I", message)
        texts = iter(part.decode("utf-8", "replace") for part in message[16:].split(b"\0"))
        (name, source), headers, expressions, options = (
            [next(texts) for _ in range(count)] for count in counts
        )
        includes = dict(zip(headers[::2], headers[1::2], strict=True))
        try:
            code, symbols = compile_source(
                source, self.device.target, options, name=name, headers=includes,
                expressions=expressions, checked=self.launcher.checks,
            )  # fmt: skip
        except CompileError as error:
            raise CompileError(error.log or str(error)) from error
        return b"".join(text.encode() + b"\0" for text in (*symbols, "")) + code

    def _data(self) -> list[AddressRange]:
        """The data of all modules."""
        return [address_range for other in self._modules.values() for address_range in other.ranges]

    def _occupancy(self, message: bytes) -> bytes:
        from wavecast.analyze.occupancy import kernel_occupancy

        (module,), (kernel,), (threads,), (dynamic_lds,) = OCCUPANCY.read(message)
        descriptor = self._modules[module].kernels[kernel].descriptor
        lds_bytes = descriptor.lds_bytes + dynamic_lds
        occupancy = kernel_occupancy(self.device, descriptor, lds_bytes, threads)
        return struct.pack("<I", occupancy.workgroups)

    def _unload(self, message: bytes) -> bytes:
        (module,) = struct.unpack("<Q", message)
        del self._modules[module]
        return b""


__all__ = ["ProgramSession"]
