"""Damage to values of JSON and TOML, to parts of ELF files, and to rows of databases."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from typing import Any

from tests.fuzz import mutate

_DEEP = "deep"
_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 0.5, 1 << 31, 1 << 63, 10**30, 10**400, 1e308, float("nan"),
    float("inf"), "", "0", "nan", "x" * 5000, "\u202e", "é\n\x1b[31m", [], {}, [[]], [None],
    {"": None}, "9" * 5000, _DEEP,
)  # fmt: skip
"""What stands in the place of another value: other types, limits, numbers that are none."""

Place = tuple[Any, Any]
"""A container and a key of it."""


def value(rng: random.Random, original: Any, *, strength: int = 3) -> Any:
    """`original` (values of JSON) with one to `strength` changes."""
    root = [json.loads(json.dumps(original))]
    for _ in range(rng.randint(1, strength)):
        container, key = rng.choice(_places(root, []))
        _change(rng, container, key, len(root) == 1 and container is root)
        if not root:
            break
    return root[0] if root else None


def document(rng: random.Random, original: Any) -> bytes:
    """A document of JSON with other values, other lines or fewer bytes."""
    kind = rng.randrange(4)
    if kind < 2:
        return _dumped(value(rng, original)).encode("utf-8", "surrogatepass")
    text = json.dumps(original, indent=1)
    if kind == 2:
        return mutate.text(rng, text).encode("utf-8", "surrogatepass")
    return mutate.binary(rng, text.encode())


def toml(rng: random.Random, original: dict[str, Any]) -> bytes:
    """A document of TOML with other values, other lines or fewer bytes."""
    kind = rng.randrange(4)
    if kind < 2:
        damaged = value(rng, original)
        return toml_text(damaged if isinstance(damaged, dict) else original).encode()
    text = toml_text(original)
    if kind == 2:
        return mutate.text(rng, text).encode("utf-8", "surrogatepass")
    return mutate.binary(rng, text.encode())


def toml_text(table: dict[str, Any]) -> str:
    """A table as TOML: a line per key, with inline tables."""
    return "".join(f"{_key(name)} = {_toml(entry)}\n" for name, entry in table.items())


def elf(rng: random.Random, original: bytes) -> bytes:
    """An ELF file of 64 bits with changed bytes in one section, one section header or its head."""
    if rng.random() < 0.2 or original[:4] != b"\x7fELF":
        return mutate.binary(rng, original)
    table, size, number = (
        struct.unpack_from("<Q", original, 0x28)[0],
        *struct.unpack_from("<HH", original, 0x3A),
    )
    data = bytearray(original)
    for _ in range(rng.randint(1, 3)):
        header = table + size * rng.randrange(max(number, 1))
        start, length = struct.unpack_from("<QQ", original, header + 0x18)
        low, high = rng.choice(((0, 64), (header, header + size), (start, start + length)))
        high = min(high, len(data) - 8)
        if low >= high:
            continue
        at = rng.randrange(low, high)
        width = rng.choice((1, 1, 2, 4, 8))
        number_there = rng.choice((0, 1, 0x7F, (1 << 8 * width) - 1, rng.getrandbits(8 * width)))
        data[at : at + width] = (number_there & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    return bytes(data)


def cell(rng: random.Random, original: Any) -> Any:
    """A value that a row of a database has in the place of another."""
    return rng.choice(
        (None, -1, 0, (1 << 63) - 1, 1.5, float("inf"), "", "x", "9" * 300, b"\xff\x00", original)
    )


def _places(container: Any, places: list[Place]) -> list[Place]:
    keys = list(container) if isinstance(container, dict) else range(len(container))
    for key in keys:
        places.append((container, key))
        if isinstance(container[key], dict | list):
            _places(container[key], places)
    return places


def _change(rng: random.Random, container: Any, key: Any, whole: bool) -> None:
    actions: list[Callable[[], None]] = [
        lambda: container.__setitem__(key, _strange(rng, container[key])),
        lambda: container.__setitem__(key, _strange(rng, container[key])),
    ]
    if not whole:
        actions.append(lambda: container.__delitem__(key))
        if isinstance(container, list):
            actions.append(lambda: container.append(json.loads(json.dumps(container[key]))))
        else:
            actions.append(lambda: container.__setitem__(f"{key}x", container.pop(key)))
    rng.choice(actions)()


def _strange(rng: random.Random, before: Any) -> Any:
    if isinstance(before, int | float) and rng.random() < 0.3:
        return rng.choice((-before, before + 1, before * 1e9, str(before), float(before)))
    return json.loads(json.dumps(rng.choice(_VALUES)))


def _dumped(damaged: Any) -> str:
    deep = "[" * 3000 + "]" * 3000
    return json.dumps(damaged).replace(f'"{_DEEP}"', deep)


def _key(name: str) -> str:
    return json.dumps(name)


def _toml(entry: Any) -> str:
    match entry:
        case None:
            return "''"
        case bool():
            return str(entry).lower()
        case int() | float():
            return str(entry)
        case str():
            return json.dumps(entry)
        case list():
            return f"[{', '.join(map(_toml, entry))}]"
        case _:
            inner = ", ".join(f"{_key(name)} = {_toml(part)}" for name, part in entry.items())
            return f"{{ {inner} }}"


__all__ = ["cell", "document", "elf", "toml", "toml_text", "value"]
