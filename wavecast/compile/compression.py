"""Unpacking zlib and zstd data whose size is known: never more than that size is made."""

from __future__ import annotations

import sys
import zlib

from wavecast import limits


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
    """`size` bytes out of a zstd frame; None where it does not have exactly these. Raises as
    `zlib_plain`."""
    limits.check_memory(size, "an offload bundle")
    plain = _frame(body, size + 1)
    return plain if plain is not None and len(plain) == size else None


def _frame(body: bytes, most: int) -> bytes | None:
    """At most `most` bytes out of a zstd frame; None for a damaged one."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        try:
            return zstd.ZstdDecompressor().decompress(body, most)
        except zstd.ZstdError:
            return None
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(body) as reader:
            return reader.read(most)
    except zstandard.ZstdError:
        return None
