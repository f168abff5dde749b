"""Code objects inside containers: clang offload bundles, plain or compressed, and fat binaries.

Layout: LLVM "Clang Offload Bundler" documentation, sections "Bundled Code Object Layout" and
"Compressed Offload Bundle".
"""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wavecast.errors import InputError, MissingTool
from wavecast.isa import elf
from wavecast.isa.metadata import processor_of_triple

MAGIC: Final = b"__CLANG_OFFLOAD_BUNDLE__"
MAGIC_COMPRESSED: Final = b"CCOB"
FAT_SECTION: Final = ".hip_fatbin"

_COUNT = struct.Struct("<Q")
_ENTRY = struct.Struct("<QQQ")
_COMPRESSED_HEAD = struct.Struct("<4sHH")
_COMPRESSED_SIZES: Final = {1: struct.Struct("<I8x"), 2: struct.Struct("<II8x")}
_COMPRESSED_SIZES_V3: Final = struct.Struct("<QQ8x")
_MAX_ENTRIES: Final = 4096
_MAX_BYTES: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class Member:
    """One device code object of a bundle, and the processor its entry names."""

    target: str
    data: bytes


def is_bundle(data: bytes) -> bool:
    """True for a clang offload bundle, compressed or not."""
    return data.startswith((MAGIC, MAGIC_COMPRESSED))


def members(data: bytes) -> list[Member]:
    """The AMD code objects of a bundle, or of several in a row. InputError when it is damaged."""
    found = []
    position = 0
    while position < len(data):
        if data.startswith(MAGIC_COMPRESSED, position):
            plain, size = _decompress(data[position:])
            found += list(_entries(plain))
            position += size
        elif data.startswith(MAGIC, position):
            found += list(_entries(data[position:]))
            position += len(MAGIC)
        else:
            following = _next_magic(data, position)
            if following < 0:
                break
            position = following
    return found


def fat_binary(image: elf.Elf) -> list[Member]:
    """The AMD code objects a host program or library carries; empty when it carries none."""
    section = image.section(FAT_SECTION)
    return members(section.data) if section is not None else []


def _next_magic(data: bytes, start: int) -> int:
    offsets = (data.find(MAGIC, start), data.find(MAGIC_COMPRESSED, start))
    return min((offset for offset in offsets if offset >= 0), default=-1)


def _entries(data: bytes) -> Iterator[Member]:
    try:
        (count,) = _COUNT.unpack_from(data, len(MAGIC))
        if not data.startswith(MAGIC) or count > _MAX_ENTRIES:
            raise _damaged()
        position = len(MAGIC) + _COUNT.size
        for _ in range(count):
            offset, size, length = _ENTRY.unpack_from(data, position)
            position += _ENTRY.size
            triple = data[position : position + length].decode("latin-1")
            position += length
            if position > len(data) or offset + size > len(data):
                raise _damaged()
            target = processor_of_triple(triple)
            if target and size:
                yield Member(target, data[offset : offset + size])
    except struct.error as error:
        raise _damaged() from error


def _damaged() -> InputError:
    return InputError("offload bundle is truncated or damaged", hint="copy or build it again")


def _decompress(data: bytes) -> tuple[bytes, int]:
    """The bundle inside a compressed one, and how many bytes that took in `data`."""
    try:
        _, version, method = _COMPRESSED_HEAD.unpack_from(data)
        layout = _COMPRESSED_SIZES_V3 if version == 3 else _COMPRESSED_SIZES.get(version)
        if layout is None:
            raise InputError(f"compressed offload bundle of unknown version {version}")
        sizes = layout.unpack_from(data, _COMPRESSED_HEAD.size)
    except struct.error as error:
        raise _damaged() from error
    total = sizes[0] if version > 1 else len(data)
    body = data[_COMPRESSED_HEAD.size + layout.size : total]
    if total > len(data) or total < _COMPRESSED_HEAD.size or sizes[-1] > _MAX_BYTES:
        raise _damaged()
    if method == 0:
        try:
            plain = zlib.decompress(body)
        except zlib.error as error:
            raise _damaged() from error
    elif method == 1:
        plain = _zstd(body, sizes[-1])
    else:
        raise InputError(f"offload bundle with unknown compression method {method}")
    if len(plain) != sizes[-1]:
        raise _damaged()
    return plain, total


def _zstd(body: bytes, size: int) -> bytes:
    try:
        from compression import zstd  # type: ignore[import-not-found]  # Python 3.14
    except ImportError:
        try:
            import zstandard  # type: ignore[import-not-found]
        except ImportError:
            return _system_zstd(body, size)
        try:
            return zstandard.ZstdDecompressor().decompress(body, max_output_size=size)
        except zstandard.ZstdError as error:
            raise _damaged() from error
    try:
        return zstd.decompress(body)
    except zstd.ZstdError as error:
        raise _damaged() from error


def _system_zstd(body: bytes, size: int) -> bytes:
    """Decompressed by the zstd library of the system. Raises MissingTool without one."""
    name = ctypes.util.find_library("zstd")
    if name is None:
        raise MissingTool(
            "the offload bundle is compressed with zstd",
            hint="pip install zstandard, use Python 3.14, or install libzstd",
        )
    library = ctypes.CDLL(name)
    decompress = library.ZSTD_decompress
    decompress.restype = ctypes.c_size_t
    decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]
    out = ctypes.create_string_buffer(max(size, 1))
    written = decompress(out, size, body, len(body))
    if library.ZSTD_isError(written):
        raise _damaged()
    return out.raw[:written]
