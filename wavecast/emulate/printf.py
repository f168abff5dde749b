"""C's `printf` of a format and 64-bit words, as kernels send them to the host.

A message is a word of control, the format's characters and, for each conversion, a word, or the
characters of a string; characters end with a zero and fill whole words. Source: LLVM
AMDGPUEmitPrintf.cpp; ROCm device libraries, `ockl/src/services.cl`.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

_CONVERSION: Final = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:(?P<point>\.)(?P<digits>\*|\d*))?"
    rb"(?P<size>hh|h|ll|l|j|z|t|L)?(?P<kind>[diouxXcfFeEgGaAsp%])"
)
_MOST_CHARACTERS: Final = 1 << 12
"""Of one number: C allows widths of billions."""
_SIZES: Final = {b"hh": 1, b"h": 2, b"": 4}
"""Bytes of an integer; 8 for other lengths."""


class MessageError(ValueError):
    """A message that no `printf` sends."""


def formatted(data: bytes) -> bytes:
    """What a message prints. Raises MessageError."""
    reader = _MessageReader(data)
    reader.word()  # control: 1 for the error stream
    text = reader.characters()
    out, end = [], 0
    for match in _CONVERSION.finditer(text):
        out += [text[end : match.start()], *_converted(match, reader)]
        end = match.end()
    return b"".join([*out, text[end:]])


def is_error(data: bytes) -> bool:
    """Whether a message goes to the error stream."""
    return bool(_MessageReader(data).word() & 1)


class _MessageReader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def word(self) -> int:
        at, self._at = self._at, self._at + 8
        if self._at > len(self._data):
            raise MessageError("a message without the values that its format names")
        return int.from_bytes(self._data[at : self._at], "little")

    def characters(self) -> bytes:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise MessageError("a message with a string that does not end")
        text = self._data[self._at : end]
        self._at += (len(text) // 8 + 1) * 8
        return text


def _converted(match: re.Match[bytes], reader: _MessageReader) -> Iterator[bytes]:
    kind, size = match["kind"], match["size"] or b""
    if kind == b"%":
        yield b"%"
        return
    width = _number(match["width"], reader)
    flags = match["flags"] + b"-" * (width < 0)
    specification = b"%" + flags + (b"%d" % abs(width) if width else b"")
    if match["point"]:
        digits = _number(match["digits"], reader)
        if digits >= 0:
            specification += b".%d" % digits
    if kind == b"s":
        yield _printed(specification + kind, ctypes.c_char_p(reader.characters()))
    elif kind in b"fFeEgGaA":
        value = ctypes.c_double.from_buffer_copy(reader.word().to_bytes(8, "little"))
        yield _printed(specification + kind, value)
    elif kind == b"p":
        yield _printed(specification + kind, ctypes.c_void_p(reader.word()))
    elif kind == b"c":
        yield _printed(specification + kind, ctypes.c_int(reader.word() & 0xFF))
    else:
        bits = 8 * _SIZES.get(size, 8)
        value = reader.word() & (1 << bits) - 1
        if kind in b"di" and value >> bits - 1:
            value -= 1 << bits
        yield _printed(specification + b"ll" + kind, ctypes.c_longlong(value))


def _number(text: bytes, reader: _MessageReader) -> int:
    """A width or precision. Raises MessageError where it is too large."""
    value = reader.word() & 0xFFFFFFFF if text == b"*" else int(text or 0)
    value -= (value >> 31) << 32
    if abs(value) > _MOST_CHARACTERS:
        raise MessageError(f"a message with a number of {value:,} characters")
    return value


def _printed(specification: bytes, value: Any) -> bytes:
    """One value by the C library."""
    length = _library().snprintf(None, 0, specification, value)
    if length < 0:
        raise MessageError(f"C's library does not print {specification!r}")
    room = ctypes.create_string_buffer(length + 1)
    _library().snprintf(room, ctypes.c_size_t(length + 1), specification, value)
    return room.raw[:length]


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


__all__ = ["MessageError", "formatted", "is_error"]
