"""The resources a cubin states for its kernels: the `.nv.info` attributes and symbols of the ELF.

The attribute numbers are those `cuobjdump -elf` prints by name; entries are a format byte, an
attribute byte, and either a 16-bit value or a 16-bit size followed by that many bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wavecast.errors import InputError
from wavecast.isa.elf import Elf

_TEXT: Final = ".text."
_INFO: Final = ".nv.info."

_FORMAT_SIZED: Final = 4
_MAX_THREADS: Final = 0x05  # EIATTR_MAX_THREADS: three 32-bit sizes
_REQUIRED_THREADS: Final = 0x10  # EIATTR_REQNTID: three 32-bit sizes
_PARAMETER: Final = 0x17  # EIATTR_KPARAM_INFO: index, ordinal, offset, flags with the size
_SIZED_PARAMETER: Final = 0x45  # its successor (CUDA 13): index, ordinal, offset, size, flags
_FRAME: Final = 0x11  # EIATTR_FRAME_SIZE: symbol, bytes
_REGISTERS: Final = 0x2F  # EIATTR_REGCOUNT: symbol, count
_NUM_BARRIERS: Final = 0x4C  # EIATTR_NUM_BARRIERS


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What `.nv.info.KERNEL` says. Zero where an attribute is absent.

    `parameters` holds (offset, size) in bytes, in order.
    """

    name: str
    required_threads: int
    max_threads: int
    barriers: int
    parameters: tuple[tuple[int, int], ...]


def kernels(image: Elf) -> list[KernelInfo]:
    """Every kernel of a cubin. Raises InputError for damaged attributes."""
    attributes = {
        section.name.removeprefix(_INFO): section.data
        for section in image.sections
        if section.name.startswith(_INFO)
    }
    names = [
        section.name.removeprefix(_TEXT)
        for section in image.sections
        if section.name.startswith(_TEXT)
    ]
    try:
        return [_kernel(name, attributes[name]) for name in names if name in attributes]
    except struct.error as error:
        raise InputError("cubin is truncated or damaged", hint="build it again") from error


def usage(image: Elf) -> tuple[int, int]:
    """(registers, bytes of local memory) per thread: the most of any function of a cubin.

    Local memory is what the compiler keeps there for want of registers, and arrays that it cannot
    keep in any.
    """
    section = image.section(".nv.info")
    most = {_REGISTERS: 0, _FRAME: 0}
    for attribute, _, content in _attributes(section.data if section else b""):
        if attribute in most:
            most[attribute] = max(most[attribute], *struct.unpack_from("<4xI", content))
    return most[_REGISTERS], most[_FRAME]


def _kernel(name: str, data: bytes) -> KernelInfo:
    required = most = barriers = 0
    parameters: dict[int, tuple[int, int]] = {}
    for attribute, value, content in _attributes(data):
        if attribute == _REQUIRED_THREADS:
            x, y, z = struct.unpack_from("<III", content)
            required = x * y * z
        elif attribute == _MAX_THREADS:
            x, y, z = struct.unpack_from("<III", content)
            most = x * y * z
        elif attribute == _NUM_BARRIERS:
            barriers = value & 0xFF
        elif attribute == _PARAMETER:
            _, ordinal, offset, flags = struct.unpack_from("<IHHI", content)
            parameters[ordinal] = (offset, flags >> 18)
        elif attribute == _SIZED_PARAMETER:
            _, ordinal, offset, size, _ = struct.unpack_from("<IHHHH", content)
            parameters[ordinal] = (offset, size)
    ordered = tuple(parameters[ordinal] for ordinal in sorted(parameters))
    return KernelInfo(name, required, most, barriers, ordered)


def _attributes(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(attribute, 16-bit value, content) of each entry."""
    position = 0
    while position + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, position)
        position += 4
        content = b""
        if form == _FORMAT_SIZED:
            content = data[position : position + value]
            position += value
        yield attribute, value, content
