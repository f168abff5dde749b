"""Clang offload bundles, plain or compressed: which code objects they have, and where.

Layout: LLVM "Clang Offload Bundler" documentation, sections "Bundled Code Object Layout" and
"Compressed Offload Bundle".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Final

from wavecast.compile import compression
from wavecast.compile.member import Member, slice_of
from wavecast.errors import InputError
from wavecast.isa.elf import Content
from wavecast.isa.metadata import processor_of_triple

MAGIC: Final = b"__CLANG_OFFLOAD_BUNDLE__"
MAGIC_COMPRESSED: Final = b"CCOB"
_ANY_MAGIC: Final = re.compile(MAGIC + b"|" + MAGIC_COMPRESSED)

_COUNT = struct.Struct("<Q")
_ENTRY = struct.Struct("<QQQ")
_COMPRESSED_HEAD = struct.Struct("<4sHH")
_COMPRESSED_SIZES: Final = {1: struct.Struct("<I8x"), 2: struct.Struct("<II8x")}
_COMPRESSED_SIZES_V3: Final = struct.Struct("<QQ8x")
_METHODS: Final = {0: compression.zlib_plain, 1: compression.zstd_plain}
_MAX_ENTRIES: Final = 4096
_MAX_BYTES: Final = 1 << 32
_LONGEST_TRIPLE: Final = 1024


def is_bundle(data: Content) -> bool:
    """True for a clang offload bundle, compressed or not."""
    return data[: len(MAGIC)] == MAGIC or data[: len(MAGIC_COMPRESSED)] == MAGIC_COMPRESSED


def members(data: Content, start: int = 0, end: int | None = None) -> Iterator[Member]:
    """The AMD code objects of the bundle at `start`, or of several in a row up to `end`. A
    compressed bundle is unpacked when the iteration comes to it. Raises InputError when one is
    damaged."""
    position, end = start, len(data) if end is None else end
    while position < end:
        if data[position : position + len(MAGIC_COMPRESSED)] == MAGIC_COMPRESSED:
            plain, size = _decompress(data, position, end)
            batch, _ = entries(plain, 0, len(plain))
            yield from batch
            position += size
        elif data[position : position + len(MAGIC)] == MAGIC:
            batch, position = entries(data, position, end)
            yield from batch
        else:
            following = _ANY_MAGIC.search(data, position, end)
            position = following.start() if following is not None else end


def entries(data: Content, start: int, limit: int) -> tuple[list[Member], int]:
    """The members of a bundle without compression at `start`, and the offset of its end. Raises
    InputError where it does not end before `limit`."""
    bundle_members, position = [], start + len(MAGIC)
    last = position
    try:
        (count,) = _COUNT.unpack_from(data, position)
        if data[start:position] != MAGIC or count > _MAX_ENTRIES:
            raise _damage_error()
        position += _COUNT.size
        for _ in range(count):
            offset, size, length = _ENTRY.unpack_from(data, position)
            position += _ENTRY.size
            if length > _LONGEST_TRIPLE or position + length > limit:
                raise _damage_error()
            triple = data[position : position + length].decode("latin-1")
            position += length
            if start + offset + size > limit:
                raise _damage_error()
            last = max(last, position, start + offset + size)
            target = processor_of_triple(triple)
            if target and size:
                bundle_members.append(Member(target, size, slice_of(data, start + offset, size)))
    except struct.error as error:
        raise _damage_error() from error
    return bundle_members, max(last, position)


def _damage_error() -> InputError:
    return InputError("offload bundle is truncated or damaged", hint="copy or build it again")


def _decompress(data: Content, start: int, limit: int) -> tuple[bytes, int]:
    """The bundle in a compressed one at `start`, and the bytes that the compressed one has."""
    try:
        _, version, method = _COMPRESSED_HEAD.unpack_from(data, start)
        layout = _COMPRESSED_SIZES_V3 if version == 3 else _COMPRESSED_SIZES.get(version)
        if layout is None:
            raise InputError(f"compressed offload bundle of unknown version {version}")
        sizes = layout.unpack_from(data, start + _COMPRESSED_HEAD.size)
    except struct.error as error:
        raise _damage_error() from error
    head = _COMPRESSED_HEAD.size + layout.size
    total = sizes[0] if version > 1 else limit - start
    if total < head or start + total > limit or sizes[-1] > _MAX_BYTES:
        raise _damage_error()
    if method not in _METHODS:
        raise InputError(f"offload bundle with unknown compression method {method}")
    plain = _METHODS[method](data[start + head : start + total], sizes[-1])
    if plain is None:
        raise _damage_error()
    return plain, total
