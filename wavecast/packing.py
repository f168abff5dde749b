"""Plain values as bytes in msgpack, for caches and between the processes of this program.

A plain value is None, a boolean, a number, text, bytes, or a list, tuple or map of them. Reading
runs no code of the writer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

_EXACT: Final[Mapping[type, Callable[[Any], object]]] = {
    float: float.__float__,
    str: str.__str__,
    int: int.__int__,
    bytes: bytes.__bytes__,
}
"""Types whose subclasses (numpy.float64, numpy.str_) are packed as the type itself, made so."""
_LEAVES: Final = frozenset((type(None), bool, int, float, str, bytes))


def pack(value: object, other: Callable[[Any], object] | None = None) -> bytes:
    """The bytes of a value; `other` replaces what is not plain, or raises TypeError.

    A set becomes a list, and an instance of a dataclass a map, as msgspec does. Raises TypeError
    for a value that is not plain, OverflowError for an integer beyond 64 bits.
    """

    def replacement(value: Any) -> object:
        for base, exact in _EXACT.items():
            if isinstance(value, base):
                return exact(value)
        if other is not None:
            return other(value)
        raise TypeError(f"{type(value).__name__} is not a plain value")

    return msgspec.msgpack.encode(value, enc_hook=replacement)


def unpack(data: Any, extension: Callable[[int, memoryview], object] | None = None) -> Any:
    """The value of `data` (bytes or a view of them); lists and tuples come back as tuples.

    `extension` makes a value of msgpack's extension types. Raises ValueError for bytes that are not
    a value, and what `extension` raises.
    """
    try:
        if extension is None:
            return _with_tuples(_decode(data))
        return _with_tuples(msgspec.msgpack.decode(data, ext_hook=extension))
    except RecursionError:
        raise ValueError("values are nested too deeply") from None


def _unknown(code: int, data: memoryview) -> object:  # noqa: ARG001
    raise ValueError(f"unknown extension type {code}")


_decode: Final = msgspec.msgpack.Decoder(ext_hook=_unknown).decode


def _with_tuples(value: Any) -> Any:
    """A decoded value with tuples for its lists; most lists and maps hold leaves only."""
    if type(value) is list:
        if _LEAVES.issuperset(map(type, value)):
            return tuple(value)
        return tuple([child if type(child) in _LEAVES else _with_tuples(child) for child in value])
    if type(value) is dict:
        for key, child in value.items():
            if type(child) not in _LEAVES:
                value[key] = _with_tuples(child)
    return value


__all__ = ["pack", "unpack"]
