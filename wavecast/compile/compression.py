"""Unpacking zlib and zstd data whose size is known: never more than that size is made."""

from __future__ import annotations

import ctypes
import ctypes.util
import zlib

from wavecast import limits
from wavecast.errors import MissingTool


def zlib_plain(body: bytes, size: int) -> bytes | None:
    """`size` bytes out of zlib data; None where it does not have exactly these. Raises
    UsageError where this machine lacks the memory."""
    limits.check_memory(size, "an offload bundle")
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(body, size + 1)
    except zlib.error:
        return None
    return plain if len(plain) == size and unpacker.eof else None


def zstd_plain(body: bytes, size: int) -> bytes | None:
    """`size` bytes out of a zstd frame; None where it does not have exactly these. Raises
    MissingTool where nothing here reads zstd, and as `zlib_plain`."""
    limits.check_memory(size, "an offload bundle")
    try:
        from compression import zstd  # type: ignore[import-not-found]  # Python 3.14
    except ImportError:
        return _with_package(body, size)
    try:
        plain = zstd.ZstdDecompressor().decompress(body, size + 1)
    except zstd.ZstdError:
        return None
    return plain if len(plain) == size else None


def _with_package(body: bytes, size: int) -> bytes | None:
    try:
        import zstandard  # type: ignore[import-not-found]
    except ImportError:
        return _with_system(body, size)
    try:
        with zstandard.ZstdDecompressor().stream_reader(body) as reader:
            plain = reader.read(size + 1)
    except zstandard.ZstdError:
        return None
    return plain if len(plain) == size else None


def _with_system(body: bytes, size: int) -> bytes | None:
    """Unpacked by the zstd library of the system. Raises MissingTool without one."""
    name = ctypes.util.find_library("zstd")
    if name is None:
        raise MissingTool(
            "the offload bundle is compressed with zstd",
            hint="pip install zstandard, use Python 3.14, or install libzstd",
        )
    library = ctypes.CDLL(name)
    unpack = library.ZSTD_decompress
    unpack.restype = ctypes.c_size_t
    unpack.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]
    out = ctypes.create_string_buffer(max(size, 1))
    written = unpack(out, size, body, len(body))
    return None if library.ZSTD_isError(written) or written != size else out.raw[:size]
