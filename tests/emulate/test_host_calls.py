"""The host's side of calls from kernels: packets that a wave would put on the ready stack."""

from __future__ import annotations

import ctypes
import struct

import pytest

from wavecast.emulate.errors import ExecutionError, Unsupported
from wavecast.emulate.host_calls import HostCallBuffer

BEGIN, END, WORDS = 1, 2, 5
"""Bits of a message's descriptor, and the first bit of its count of words."""


class Wave:
    """What the device library does, for one lane, by the addresses in the buffer."""

    def __init__(self, buffer: HostCallBuffer) -> None:
        self.buffer, self.first = buffer, buffer.interval[0]
        self.headers, self.payloads, _, _, _, self.mask = self._words(self.first, 6)

    def call(self, service: int, words: list[int], lane: int = 5) -> int:
        """The first word of the answer to a packet with these words."""
        (packet,) = self._words(self.first + 24, 1)
        header = self.headers + 24 * (packet & self.mask)
        slot = self.payloads + 4096 * (packet & self.mask) + 64 * lane
        (following,) = self._words(header, 1)
        self._store(self.first + 24, following)  # off the free stack
        self._store(slot, *words)
        self._store(header, 0, 1 << lane, service | 1 << 32)
        self._store(self.first + 32, packet)
        assert self.buffer.serve()
        assert self._words(header, 3)[2] >> 32 == 0
        self._store(header, following)
        self._store(self.first + 24, packet)
        return self._words(slot, 1)[0]

    @staticmethod
    def _words(address: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}Q", ctypes.string_at(address, 8 * count))

    @staticmethod
    def _store(address: int, *words: int) -> None:
        ctypes.memmove(address, struct.pack(f"<{len(words)}Q", *words), 8 * len(words))


def text_words(text: bytes) -> list[int]:
    data = text + b"\0" * (8 - len(text) % 8)
    return list(struct.unpack(f"<{len(data) // 8}Q", data))


@pytest.mark.parametrize("quiet", [False, True])
def test_a_message_comes_in_packets(quiet: bool, capfd: pytest.CaptureFixture[str]) -> None:
    wave = Wave(HostCallBuffer("k", 100, quiet=quiet))
    for number in (3, 4):
        descriptor = wave.call(2, [BEGIN | 1 << WORDS, 0])
        words = text_words(b"number %d, %s\n")
        descriptor = wave.call(2, [descriptor & ~0xE0 | len(words) << WORDS, *words])
        ends = text_words(b"end")
        wave.call(2, [descriptor & ~0xE0 | END | 2 << WORDS, number, *ends])
    expected = "" if quiet else "number 3, end\nnumber 4, end\n"
    assert capfd.readouterr() == (expected, "")
    assert not wave.buffer.serve()


@pytest.mark.parametrize(
    ("service", "words", "error", "message"),
    [
        (3, [0, 64], Unsupported, "k: the kernel asks the host for memory: not supported"),
        (9, [0], Unsupported, "k: the kernel asks the host for service 9: not supported"),
        (2, [END | 77 << 8, 0], ExecutionError, "without a begin"),
        (2, [BEGIN | END | 1 << WORDS, 0], ExecutionError, "a string that does not end"),
    ],
)
def test_what_the_host_does_not_do_is_an_error(
    service: int, words: list[int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Wave(HostCallBuffer("k", 1, quiet=False)).call(service, words)
