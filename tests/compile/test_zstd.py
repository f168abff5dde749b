"""Bundles compressed with zstd, by whichever library is there."""

from __future__ import annotations

import builtins
import ctypes.util
import zlib
from typing import Any

import pytest

from wavecast.compile import compression
from wavecast.errors import MissingTool, UsageError

PLAIN = b"wavecast"
FRAME = bytes.fromhex("28b52ffd2008410000") + PLAIN
"""One raw block: magic number, single segment of 8 bytes, the last block of 8 raw bytes."""


@pytest.fixture
def without_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Python module decompresses zstd."""
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **named: Any) -> Any:
        if name in ("compression", "zstandard"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.mark.skipif(ctypes.util.find_library("zstd") is None, reason="needs libzstd")
def test_the_library_of_the_system(without_modules: None) -> None:
    assert compression.zstd_plain(FRAME, len(PLAIN)) == PLAIN
    assert compression.zstd_plain(FRAME[:-3], len(PLAIN)) is None
    assert compression.zstd_plain(FRAME, len(PLAIN) - 1) is None


def test_without_any_library(without_modules: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    with pytest.raises(MissingTool, match="zstd"):
        compression.zstd_plain(FRAME, len(PLAIN))


def test_no_more_than_the_stated_size_is_unpacked() -> None:
    bomb = zlib.compress(bytes(1 << 20))
    assert compression.zlib_plain(bomb, 1 << 10) is None
    assert compression.zlib_plain(bomb, 1 << 21) is None
    assert compression.zlib_plain(bomb, 1 << 20) == bytes(1 << 20)
    with pytest.raises(UsageError, match="memory"):
        compression.zlib_plain(bomb, 1 << 60)
