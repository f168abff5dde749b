"""Compressed offload bundles: exactly the stated size comes out."""

from __future__ import annotations

import zlib

import pytest

from wavecast.compile import compression
from wavecast.errors import UsageError

PLAIN = b"wavecast"
FRAME = bytes.fromhex("28b52ffd2008410000") + PLAIN
"""One raw block: magic number, single segment of 8 bytes, the last block of 8 raw bytes."""


def test_a_zstd_frame_of_the_stated_size() -> None:
    assert compression.zstd_plain(FRAME, len(PLAIN)) == PLAIN
    assert compression.zstd_plain(FRAME, len(PLAIN) - 1) is None
    assert compression.zstd_plain(FRAME, len(PLAIN) + 1) is None


@pytest.mark.parametrize("damaged", [FRAME[:-3], FRAME[:4], b"", b"hello", FRAME[:5] + b"\xff" * 9])
def test_a_damaged_zstd_frame(damaged: bytes) -> None:
    assert compression.zstd_plain(damaged, len(PLAIN)) is None


def test_no_more_than_the_stated_size_is_unpacked() -> None:
    bomb = zlib.compress(bytes(1 << 20))
    assert compression.zlib_plain(bomb, 1 << 10) is None
    assert compression.zlib_plain(bomb, 1 << 21) is None
    assert compression.zlib_plain(bomb, 1 << 20) == bytes(1 << 20)
    with pytest.raises(UsageError, match="memory"):
        compression.zlib_plain(bomb, 1 << 60)
