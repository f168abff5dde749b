"""Bundles compressed with zstd, by whichever library is there."""

from __future__ import annotations

import builtins
import ctypes.util
from typing import Any

import pytest

from wavecast.compile import bundle
from wavecast.errors import InputError, MissingTool

PLAIN = b"wavecast"
FRAME = bytes.fromhex("28b52ffd2008410000") + PLAIN
"""One raw block: magic number, single segment of 8 bytes, the last block of 8 raw bytes."""


@pytest.fixture
def without_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Python module decompresses zstd."""
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name in ("compression", "zstandard"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.mark.skipif(ctypes.util.find_library("zstd") is None, reason="needs libzstd")
def test_the_library_of_the_system(without_modules: None) -> None:
    assert bundle._zstd(FRAME, len(PLAIN)) == PLAIN
    with pytest.raises(InputError, match="damaged"):
        bundle._zstd(FRAME[:-3], len(PLAIN))


def test_without_any_library(without_modules: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    with pytest.raises(MissingTool, match="zstd"):
        bundle._zstd(FRAME, len(PLAIN))
