"""Names for content: equal digest, equal content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

Part = object


def digest(*parts: Part) -> str:
    """SHA-256 (hex) of a sequence of values.

    Values are None, bool, int, float, str, bytes, and lists, tuples, and mappings of them; a
    mapping's order does not matter, a tuple and a list with equal items are equal. Every value is
    written with its type and length, so that no two different sequences meet. Raises TypeError
    for other types.
    """
    state = hashlib.sha256()
    _add(state, parts)
    return state.hexdigest()


def key(kind: str, *parts: Part) -> str:
    """A cache key: the kind of entry, a dash, and the digest of what the entry depends on. Raises
    ValueError for a kind that is not a lower-case identifier."""
    if not kind.isidentifier() or not kind.islower():
        raise ValueError(f"not a kind of cache entry: {kind!r}")
    return f"{kind}-{digest(kind, *parts)}"


def _add(state: hashlib._Hash, value: Part) -> None:
    if isinstance(value, str):
        _hash_tagged(state, b"s", value.encode("utf-8", "surrogatepass"))
    elif isinstance(value, bytes):
        _hash_tagged(state, b"b", value)
    elif value is None or isinstance(value, bool | int | float):
        _hash_tagged(state, b"n", repr(value).encode())
    elif isinstance(value, list | tuple):
        _hash_tagged(state, b"l", str(len(value)).encode())
        for item in value:
            _add(state, item)
    elif isinstance(value, Mapping):
        _hash_tagged(state, b"m", str(len(value)).encode())
        for name in sorted(value, key=str):
            _add(state, name)
            _add(state, value[name])
    else:
        raise TypeError(f"cannot digest a {type(value).__name__}")


def _hash_tagged(state: hashlib._Hash, tag: bytes, content: bytes) -> None:
    state.update(tag + len(content).to_bytes(8, "little"))
    state.update(content)
