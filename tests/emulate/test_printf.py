"""Messages of kernels are printed as C prints them, and refused where no `printf` sends them."""

from __future__ import annotations

import struct

import pytest

from wavecast.emulate.printf import MessageError, formatted, is_error


def characters(text: bytes) -> bytes:
    return text + b"\0" * (8 - len(text) % 8)


def message(text: bytes, *values: int | float | bytes, control: int = 0) -> bytes:
    words = [struct.pack("<Q", control), characters(text)]
    for value in values:
        if isinstance(value, bytes):
            words.append(characters(value))
        else:
            words.append(struct.pack("<d" if isinstance(value, float) else "<q", value))
    return b"".join(words)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        (b"plain 100%%", (), b"plain 100%"),
        (b"%d %u", (-1, -1), b"-1 4294967295"),
        (b"%ld|%hhd|%hu", (-(1 << 40), 255, 65537), b"-1099511627776|-1|1"),
        (b"%5.2f|%-8g|%e", (3.14159, 0.5, 1e300), b" 3.14|0.5     |1.000000e+300"),
        (b"%s and %8s!", (b"a string of 17 ch", b"x"), b"a string of 17 ch and        x!"),
        (b"%*d|%-*d|%.*f", (4, 7, 3, 8, 1, 2.25), b"   7|8  |2.2"),
        (b"%#x %08X %c", (255, 48879, 65), b"0xff 0000BEEF A"),
        (b"%p", (0x1234,), b"0x1234"),
        (b"%a", (1.5,), b"0x1.8p+0"),
    ],
)
def test_conversions_are_those_of_c(
    text: bytes, values: tuple[int | float | bytes, ...], expected: bytes
) -> None:
    assert formatted(message(text, *values)) == expected


def test_the_error_stream_is_a_bit() -> None:
    assert is_error(message(b"x", control=1))
    assert not is_error(message(b"x"))


@pytest.mark.parametrize(
    "data",
    [b"", message(b"%d"), struct.pack("<Q", 0) + b"no end..", message(b"%999999d", 1)],
)
def test_a_message_without_a_meaning_is_refused(data: bytes) -> None:
    with pytest.raises(MessageError, match="a message"):
        formatted(data)
