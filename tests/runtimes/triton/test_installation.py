"""The key of the installed Triton is made once per installation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton import installation


def test_it_is_made_again_when_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "triton"
    (folder / "compiler").mkdir(parents=True)
    (folder / "__pycache__").mkdir()
    source = folder / "compiler" / "code.py"
    source.write_text("one")
    made: list[str] = []

    def key() -> str:
        made.append(source.read_text())
        return made[-1]

    assert [installation.stored_key(key, folder) for _ in range(2)] == ["one", "one"]
    (folder / "__pycache__" / "code.pyc").write_text("compiled")
    assert installation.stored_key(key, folder) == "one"
    source.write_text("two")
    os.utime(source, (1, 1))
    assert installation.stored_key(key, folder) == "two"
    assert made == ["one", "two"]


def test_it_is_the_key_of_triton() -> None:
    cache = pytest.importorskip("triton.runtime.cache")
    expected = cache.triton_key()
    patches = Patches()
    installation.install(patches)
    try:
        assert [cache.triton_key() for _ in range(2)] == [expected, expected]
    finally:
        patches.restore()
