"""The emulator's side of what a HIP program asks for (`protocol`, `runtime/connection.c`)."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from wavecast.arch import Device
from wavecast.compile.hiprtc import compile_source
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.launch import AddressRange
from wavecast.errors import CompileError, WavecastError
from wavecast.runtimes.hip_host.arena import ArenaPart
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
    ask for; `on_error` gets errors before they are answers."""

    device: Device
    properties: Mapping[str, int | str]
    arena: ArenaPart
    launcher: Launcher
    order: ProgramOrder | None = None
    on_error: Callable[[WavecastError], None] | None = None
    modules: dict[int, LoadedModule] = field(default_factory=dict)

    def answer(self, number: int, content: bytes) -> tuple[int, bytes]:
        """The status of a request, 0 unless it failed, and the content of the answer."""
        request = HostRequest(number)
        try:
            return 0, self._answers[request](content)
        except WavecastError as error:
            if self.on_error is not None and request is not HostRequest.COMPILE:
                self.on_error(error)  # a program asks for the log of hipRTC
            failure = _NO_BINARY if request is HostRequest.LOAD else error.exit_code
            return failure, str(error).encode()

    @cached_property
    def _answers(self) -> dict[HostRequest, Callable[[bytes], bytes]]:
        return {
            HostRequest.HELLO: self._hello,
            HostRequest.LOAD: self._load,
            HostRequest.LAUNCH: self._launch,
            HostRequest.OCCUPANCY: self._occupancy,
            HostRequest.UNLOAD: self._unload,
            HostRequest.ALLOCATIONS: self._allocations,
            HostRequest.LIBRARY: self._library,
            HostRequest.COMPILE: self._compile,
            HostRequest.ORDER: self._order,
            HostRequest.EVENT: self._event,
            HostRequest.RANGE: self._range,
            HostRequest.UNSUPPORTED: self._unsupported,
            HostRequest.DEVICE: self._device_chosen,
        }

    def _hello(self, _: bytes) -> bytes:
        orders = int(self.order is not None)
        facts = {**self.properties, **self.launcher.facts(), "orders": orders}
        return "".join(f"{name} {value}\n" for name, value in facts.items()).encode()

    def _load(self, image: bytes) -> bytes:
        module = load(image, self.device.target, self.arena)
        number = max(self.modules, default=0) + 1
        self.modules[number] = module
        return struct.pack("<Q", number) + module.description()

    def _launch(self, message: bytes) -> bytes:
        (module,), (kernel,), grid, block, cluster, (dynamic_lds,), _, (size,) = LAUNCH.read(
            message
        )
        segment = message[LAUNCH.layout.size : LAUNCH.layout.size + size]
        loaded = self.modules[module]
        seconds = self.launcher.launch(
            loaded,
            loaded.kernels[kernel],
            grid,
            block,
            dynamic_lds,
            segment,
            self._data(),
            cluster,
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

    def _unsupported(self, function: bytes) -> bytes:
        name = function.decode("utf-8", "replace")
        raise Unsupported(f"{name} is not supported (docs/hip.md lists what is)")

    def _device_chosen(self, message: bytes) -> bytes:
        (number,) = struct.unpack("<Q", message)
        self.launcher.on_device(number)
        return b""

    def _event(self, _: bytes) -> bytes:
        self.launcher.on_event()
        return b""

    def _range(self, message: bytes) -> bytes:
        """First address and bytes of a tensor, zeros for none."""
        tensors = self.launcher.tensors
        (address,) = struct.unpack("<Q", message)
        tensor = tensors.at(address) if tensors is not None else None
        return struct.pack(
            "<QQ", *((tensor.first, tensor.end - tensor.first) if tensor else (0, 0))
        )

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
        return [address_range for other in self.modules.values() for address_range in other.ranges]

    def _occupancy(self, message: bytes) -> bytes:
        from wavecast.analyze.occupancy import kernel_occupancy

        (module,), (kernel,), (threads,), (dynamic_lds,) = OCCUPANCY.read(message)
        descriptor = self.modules[module].kernels[kernel].descriptor
        lds_bytes = descriptor.lds_bytes + dynamic_lds
        occupancy = kernel_occupancy(self.device, descriptor, lds_bytes, threads)
        return struct.pack("<I", occupancy.workgroups)

    def _unload(self, message: bytes) -> bytes:
        (module,) = struct.unpack("<Q", message)
        del self.modules[module]
        return b""


def serve(connection: socket.socket, session: ProgramSession) -> None:
    """Answer a program's requests until it ends."""
    try:
        while True:
            number, size = _WORDS.unpack(_receive(connection, _WORDS.size))
            status, data = session.answer(number, _receive(connection, size))
            connection.sendall(_WORDS.pack(status, len(data)) + data)
    except (Disconnected, ConnectionError):
        return


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(_RECEIVED, size - len(data)))
        if not part:
            raise Disconnected
        data += part
    return bytes(data)


__all__ = ["ProgramSession", "serve"]
