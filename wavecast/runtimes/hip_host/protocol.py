"""What the process of a HIP program and the emulator send each other. The runtime includes `header`
as `protocol.h`, so that both sides have one definition.

A request is two 64-bit words, its kind and size, and its content; an answer a status, 0 unless it
failed, and a size, and its content.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import islice
from typing import Final

SOCKET: Final = "WAVECAST_HIP_SOCKET"
"""The environment variable with the path of the socket."""
OUTPUT_BYTES: Final = 16 << 20
"""Bytes at the start of the arena for what kernels print."""
HEAP_BYTES: Final = 64 << 20
"""Bytes after them for the heap of kernels."""


class HostRequest(IntEnum):
    """What a program asks for."""

    HELLO = 1
    LOAD = 2
    LAUNCH = 3
    OCCUPANCY = 4
    UNLOAD = 5
    ALLOCATIONS = 6
    LIBRARY = 7
    COMPILE = 8
    ORDER = 9
    EVENT = 10
    """An event has been recorded: its time is that of predicted launches (in one process only)."""
    RANGE = 11
    """The memory of an address that is in no allocation (in one process only)."""
    UNSUPPORTED = 12
    """A function is called that is not supported (in one process only)."""
    DEVICE = 13
    """The calling thread chooses a device (in one process only)."""


class OrderEvent(IntEnum):
    """What a checked program tells of its streams, events and waits."""

    STREAM = 1
    """Id, flags."""
    RECORD = 2
    """Event, stream."""
    STREAM_WAITS = 3
    """Stream, event."""
    HOST_WAITS_STREAM = 4
    """Stream."""
    HOST_WAITS_EVENT = 5
    """Event."""
    HOST_WAITS_DEVICE = 6
    LAUNCHES = 7
    """Stream: the work of the next launch."""
    LAUNCHED = 8
    """It has been executed."""
    READS = 9
    """Stream, address, pitch, width, rows: of a copy."""
    WRITES = 10
    """The same."""
    FILLS = 11
    """The same."""
    FREES = 12
    """Stream, address, bytes."""
    HOST_MEMORY = 13
    """Address, bytes: memory that host and devices access."""
    HOST_ACCESS = 14
    """Address."""
    GRAIN = 15
    """Address, bytes, whether they are coarse-grained: not as memory of their kind is."""


@dataclass(frozen=True)
class HostMessage:
    """A structure without padding. `fields` are names with the format of `struct` (`I`: 32 bits,
    `Q`: 64 bits) and, where there are several, their number: `3I`."""

    name: str
    fields: Mapping[str, str]

    @cached_property
    def layout(self) -> struct.Struct:
        """The bytes."""
        return struct.Struct("<" + "".join(self.fields.values()))

    def read(self, data: bytes) -> list[tuple[int, ...]]:
        """The values of each field. Raises struct.error for less data."""
        values = iter(self.layout.unpack_from(data))
        return [tuple(islice(values, int(form[:-1] or 1))) for form in self.fields.values()]

    def declaration(self) -> str:
        """The structure in C."""
        kinds = {"I": "unsigned", "Q": "unsigned long long"}
        members = "".join(
            f"    {kinds[form[-1]]} {name}{f'[{form[:-1]}]' * bool(form[:-1])};\n"
            for name, form in self.fields.items()
        )
        return f"typedef struct __attribute__((packed)) {{\n{members}}} {self.name};\n"


LAUNCH: Final = HostMessage(
    "LaunchMessage",
    {
        "module": "Q",
        "kernel": "I",
        "grid": "3I",
        "block": "3I",
        "cluster": "3I",
        "dynamic_lds": "I",
        "device": "I",
        "segment_bytes": "I",
    },
)
"""The start of a request to launch; the argument segment follows."""
OCCUPANCY: Final = HostMessage(
    "OccupancyMessage", {"module": "Q", "kernel": "I", "threads": "I", "dynamic_lds": "I"}
)
"""A request for the workgroups that fit on a compute unit."""
ORDER: Final = HostMessage(
    "OrderMessage", {"event": "Q", "device": "Q", "caller": "Q", "words": "5Q"}
)
"""An `OrderEvent` with its words, and where the program called."""


def header() -> str:
    """`protocol.h`."""
    return "\n".join(_header())


def _header() -> Iterator[str]:
    yield "// Made of protocol.py.\n#pragma once\n"
    yield f'#define SOCKET "{SOCKET}"'
    yield f"#define OUTPUT_BYTES {OUTPUT_BYTES}u\n#define HEAP_BYTES {HEAP_BYTES}u\n"
    for kind in (HostRequest, OrderEvent):
        values = ", ".join(f"{member.name} = {member.value}" for member in kind)
        yield f"enum {kind.__name__} {{ {values} }};"
    for message in (LAUNCH, OCCUPANCY, ORDER):
        yield message.declaration()


__all__ = [
    "HEAP_BYTES",
    "LAUNCH",
    "OCCUPANCY",
    "ORDER",
    "OUTPUT_BYTES",
    "SOCKET",
    "HostMessage",
    "HostRequest",
    "OrderEvent",
    "header",
]
