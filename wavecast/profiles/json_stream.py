"""Objects of a long JSON array, decoded in batches, so that a trace need not fit the memory.

A chunk of bytes is cut at its last `}, {`: what precedes it is JSON only if an element of the array
ends there. Where it is not JSON, braces that are outside strings count; NumPy finds quotes, escapes
and braces.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from wavecast import files
from wavecast.errors import InputError

Item = TypeVar("Item")
CHUNK: Final = 8 << 20
"""Bytes that are read at once."""
_PIECE: Final = 1 << 13
"""Bytes that are lost where a packed file is damaged: what is unpacked at once."""
_LONGEST: Final = 1 << 30
"""Bytes of an element, or of what precedes the array, that are never exceeded by a real file."""
_GAP: Final = 64
"""Bytes in which an element begins after a comma: more spaces are read the slow way."""
_NOT_FINITE: Final = re.compile(rb"(?<=[:\[,\s])-?(?:nan|inf|NaN|Infinity)(?=[,\]}\s])")
"""Numbers that some profilers write and JSON does not have."""
_DAMAGED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for text that is not JSON of the wanted form, or is nested too deeply."""
_MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""
_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_STEP: Final = np.zeros(256, dtype=np.int8)
for _character, _value in (("{", 1), ("[", 1), ("}", -1), ("]", -1)):
    _STEP[ord(_character)] = _value


class ArrayReader:
    """Reads `{…, "key": [ … ], …}`, or `[ … ]` alone: `batches` gives the decoded elements, and
    `rest` afterwards the object without the array. `damaged` counts elements that do not decode;
    `truncated`: the file ends inside the array."""

    def __init__(self, stream: IO[bytes], key: str) -> None:
        self._stream, self._key = stream, f'"{key}"'.encode()
        self.rest: dict[str, object] = {}
        self.damaged = 0
        self.truncated = False

    def batches(self, decode: Callable[[bytes], list[Item]]) -> Iterator[list[Item]]:
        """The elements, as `decode` makes them of the bytes of a JSON array.

        Raises InputError for a file without the array.
        """
        head, pending = self._head()
        while True:
            most, end = _before_last(pending, decode)
            if most:
                yield most
                pending = pending[end:].lstrip(b", \t\r\n")
            cut, closed = _cut(pending)
            if cut:
                yield self._decode(pending[:cut], decode)
            if closed is not None:
                self._finish(head, pending[closed:])
                return
            pending = pending[cut:].lstrip(b", \t\r\n")
            more = self._read()
            if not more:
                self.truncated = True
                return
            if len(pending) > _LONGEST:
                raise InputError(f"an element of {self._key.decode()} is longer than 1 GiB")
            pending += more

    def _head(self) -> tuple[bytes, bytes]:
        """What precedes the elements, and the first bytes of them."""
        text = b""
        while True:
            start = text.removeprefix(_MARK).lstrip()
            if start.startswith(b"["):
                return b"", start[1:]
            at = text.find(self._key)
            opening = text.find(b"[", at) if at >= 0 else -1
            if opening >= 0 and not text[at + len(self._key) : opening].strip(b": \t\r\n"):
                return text[:at].removeprefix(_MARK), text[opening + 1 :]
            more = self._read()
            if not more or len(text) > _LONGEST:
                raise InputError(f"no array {self._key.decode()}")
            text += more

    def _read(self) -> bytes:
        text, whole = read_some(self._stream, CHUNK)
        self.truncated |= not whole
        return text

    def _decode(self, text: bytes, decode: Callable[[bytes], list[Item]]) -> list[Item]:
        try:
            return decode(b"[" + text + b"]")
        except _DAMAGED:
            return self._one_by_one(text, decode)

    def _one_by_one(self, text: bytes, decode: Callable[[bytes], list[Item]]) -> list[Item]:
        items: list[Item] = []
        start = 0
        for end in _ends(text).tolist():
            element = text[start:end].lstrip(b", \t\r\n")
            try:
                items += decode(b"[" + _NOT_FINITE.sub(b"null", element) + b"]")
            except _DAMAGED:
                self.damaged += 1
            start = end
        return items

    def _finish(self, head: bytes, tail: bytes) -> None:
        while more := self._read():
            tail += more
        if not head:
            return
        try:
            self.rest = _object(head + self._key + b": null" + tail)
        except _DAMAGED:
            try:
                self.rest = _object(head.rstrip(b", \t\r\n") + b"}")
            except _DAMAGED:
                self.truncated = True


def _object(text: bytes) -> dict[str, object]:
    """Raises as msgspec, and for JSON that is not an object."""
    return msgspec.json.decode(text, type=dict[str, object])


def read_whole(stream: IO[bytes]) -> bytes:
    """All bytes. Raises InputError where a packed file ends early or is damaged, and for more than
    `files.LARGEST` bytes."""
    text, whole = read_some(stream, files.LARGEST + 1)
    if not whole:
        raise InputError("it cannot be unpacked: it is damaged or ends early")
    if len(text) > files.LARGEST:
        raise InputError(f"it has more than {files.LARGEST >> 30} GiB")
    return text


def read_some(stream: IO[bytes], size: int) -> tuple[bytes, bool]:
    """(at most `size` bytes, False if a packed file ends early or is damaged after them)."""
    pieces: list[bytes] = []
    remaining = size
    try:
        while remaining > 0 and (piece := stream.read(min(remaining, _PIECE))):
            pieces.append(piece)
            remaining -= len(piece)
    except (EOFError, OSError, zlib.error):
        return b"".join(pieces), False
    return b"".join(pieces), True


def _structure(text: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of braces and brackets outside strings, and the depth after each."""
    values = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(values == _QUOTE)
    if quotes.size and text.find(b"\\") >= 0:
        quotes = quotes[~_is_escaped(values, quotes)]
    steps = _STEP[values]
    braces = np.flatnonzero(steps)
    outside = np.searchsorted(quotes, braces) % 2 == 0
    braces = braces[outside]
    return braces, np.cumsum(steps[braces], dtype=np.int64)


def _is_escaped(values: NDArray[np.uint8], quotes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether an odd number of backslashes precedes each quote."""
    slashes = np.flatnonzero(values == _BACKSLASH)
    first = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)
    last = np.append(first[1:], slashes.size) - 1
    odd = (slashes[last] - slashes[first]) % 2 == 0
    return np.isin(quotes, slashes[last[odd]] + 1, assume_unique=True)


def _ends(text: bytes) -> NDArray[np.int64]:
    """Where the elements end."""
    braces, depth = _structure(text)
    return braces[depth == 0] + 1


def _before_last(text: bytes, decode: Callable[[bytes], list[Item]]) -> tuple[list[Item], int]:
    """(the elements before the last `}, {`, their end); none where what precedes it is not JSON."""
    end = text.rfind(b"},") + 1
    if not end or not text[end + 1 : end + _GAP].lstrip().startswith(b"{"):
        return [], 0
    try:
        return decode(b"[" + text[:end] + b"]"), end
    except _DAMAGED:
        return [], 0


def _cut(text: bytes) -> tuple[int, int | None]:
    """(end of the last whole element, position after the bracket that closes the array)."""
    braces, depth = _structure(text)
    closing = np.flatnonzero(depth < 0)
    closed = None
    if closing.size:
        closed = int(braces[closing[0]]) + 1
        braces, depth = braces[: closing[0]], depth[: closing[0]]
    whole = np.flatnonzero(depth == 0)
    return (int(braces[whole[-1]]) + 1 if whole.size else 0), closed


__all__ = ["CHUNK", "ArrayReader", "read_some", "read_whole"]
