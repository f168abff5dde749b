"""Plain values as msgpack: what comes back, and what is refused."""

from __future__ import annotations

from enum import IntEnum

import msgspec
import numpy as np
import pytest

from wavecast.packing import pack, unpack


class Level(IntEnum):
    """A number that is no plain int."""

    TOP = 3


class Name(str):
    """Text that is no plain str."""


def test_lists_and_tuples_come_back_as_tuples() -> None:
    value = [1, ("a", [b"\0", None]), {"k": [True, {"n": [2.5, [[]]]}], (1, (2,)): []}]
    expected = (1, ("a", (b"\0", None)), {"k": (True, {"n": (2.5, ((),))}), (1, (2,)): ()})
    assert unpack(pack(value)) == expected
    assert unpack(memoryview(pack(value))) == expected


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Level.TOP, 3),
        (Name("x"), "x"),
        (np.float64(0.5), 0.5),
        (np.str_("x"), "x"),
        (np.bytes_(b"x"), b"x"),
        ({Name("key"): [Name("x")]}, {"key": ("x",)}),
        (-(2**63), -(2**63)),
        (2**64 - 1, 2**64 - 1),
    ],
)
def test_subclasses_of_plain_types_are_packed_as_these(value: object, plain: object) -> None:
    found = unpack(pack(value))
    assert found == plain
    assert type(found) is type(plain)


@pytest.mark.parametrize(
    ("value", "error"),
    [(object(), TypeError), ([1j], TypeError), (np.int64(1), TypeError), (2**64, OverflowError)],
)
def test_other_values_are_refused(value: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        pack(value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        pack({"text": "x" * 50})[:-1],
        pack(1) + pack(2),
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff\x01",
        b"\x81\x80\x01",
        b"\xa1\xff",
        b"\x91" * 100_000,
        msgspec.msgpack.encode(msgspec.msgpack.Ext(5, b"x")),
    ],
    ids=["empty", "no code", "cut", "two", "list", "map", "key", "text", "deep", "extension"],
)
def test_damaged_bytes_are_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (msgspec's messages)
        unpack(data)
