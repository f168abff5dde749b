from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wavecast.compile.cache import CacheWarning, DiskCache, default_root
from wavecast.compile.digest import key

KEY = key("hip", "source", "gfx942")


def test_what_was_put_comes_back() -> None:
    cache = DiskCache()
    assert cache.get(KEY) is None
    value = {"text": "v_add", "bytes": b"\0\1", "numbers": [1, 2.5, None], "none": None}
    assert cache.put(KEY, value)
    assert DiskCache().get(KEY) == {**value, "numbers": (1, 2.5, None)}


def test_the_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path / "own"))
    assert default_root() == tmp_path / "own"
    monkeypatch.delenv("WAVECAST_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root() == tmp_path / "wavecast"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_root() == tmp_path / "home" / ".cache" / "wavecast"


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"\x82\xa1t\xa1x\xa1n\x92\x01\xcb?\xf8\0\0\0\0\0\0", {"t": "x", "n": (1, 1.5)}),
        (b"\xc4\x02\0\1", b"\0\1"),
        (b"\xc1", None),
        (b"\x91" * 5000, None),
    ],
)
def test_entries_of_other_writers_are_read_or_absent(body: bytes, value: object) -> None:
    """The bytes are those that the package msgpack wrote before, and no msgpack."""
    cache = DiskCache()
    cache.put(KEY, 1)
    (entry,) = cache.entries()
    entry.path.write_bytes(b"WCC1" + hashlib.sha256(body).digest() + body)
    assert cache.get(KEY) == value


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign"])
def test_a_damaged_entry_counts_as_absent(damage: str) -> None:
    cache = DiskCache()
    cache.put(KEY, {"text": "x" * 1000})
    (entry,) = cache.entries()
    content = bytearray(entry.path.read_bytes())
    content[500] ^= 1
    new = {"flip": bytes(content), "cut": bytes(content[:200]), "empty": b"", "foreign": b"hello"}
    entry.path.write_bytes(new[damage])
    assert cache.get(KEY) is None
    assert cache.put(KEY, "again")
    assert cache.get(KEY) == "again"


def test_a_folder_that_cannot_be_written_warns_once(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    cache = DiskCache(blocked)
    with pytest.warns(CacheWarning, match="WAVECAST_CACHE_DIR"):
        assert not cache.put(KEY, 1)
    assert not cache.put(KEY, 1)
    assert cache.get(KEY) is None
    assert list(cache.entries()) == []


def test_clear_leaves_other_files_alone() -> None:
    cache = DiskCache()
    cache.put(KEY, 1)
    cache.put(key("ptx", "x"), 2)
    folder = cache.root / "hip"
    stranger = folder / "notes.txt"
    stranger.write_text("mine")
    alike = folder / KEY[:-1]
    alike.write_text("mine")
    named_like_one = cache.root / "hip" / (key("hip", "other") + ".wcc")
    named_like_one.write_text("not written by wavecast")
    assert [entry.kind for entry in cache.clear("ptx")] == ["ptx"]
    assert [entry.kind for entry in cache.clear()] == ["hip"]
    assert stranger.exists()
    assert alike.exists()
    assert named_like_one.exists()


def test_clear_by_age_counts_from_the_last_use() -> None:
    cache = DiskCache()
    used, unused = key("hip", "used"), key("hip", "unused")
    for name in (used, unused):
        cache.put(name, 1)
    old = time.time() - 10 * 86400
    for entry in cache.entries():
        os.utime(entry.path, (old, old))
    assert cache.get(used) == 1
    assert [entry.path.stem for entry in cache.clear(older_than_days=5)] == [unused]
    assert cache.get(used) == 1


def test_a_temporary_file_of_a_killed_process_is_removed_later() -> None:
    cache = DiskCache()
    cache.put(KEY, 1)
    fresh = cache.root / "hip" / ".wavecast-f1e5.tmp"
    stale = cache.root / "hip" / ".wavecast-57a1e.tmp"
    for path in (fresh, stale):
        path.write_bytes(b"half")
    old = time.time() - 7200
    os.utime(stale, (old, old))
    cache.clear("ptx")
    assert fresh.exists()
    assert not stale.exists()


_WRITER = """
import sys
from wavecast.compile.cache import DiskCache
from wavecast.compile.digest import key
cache = DiskCache(sys.argv[1])
body = bytes(200_000)
print("ready", flush=True)
for turn in range(int(sys.argv[2])):
    name = key("hip", turn % 7)
    cache.put(name, {"turn": turn % 7, "body": body})
    found = cache.get(name)
    assert found is not None and found["turn"] == turn % 7, found
"""


def _writer(root: Path, turns: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(root), str(turns)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_may_write_the_same_entries_at_once(tmp_path: Path) -> None:
    writers = [_writer(tmp_path, 60) for _ in range(4)]
    for writer in writers:
        _, errors = writer.communicate(timeout=600)
        assert writer.returncode == 0, errors
    assert len(list(DiskCache(tmp_path).entries())) == 7
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_killed_writer_leaves_only_whole_entries(tmp_path: Path) -> None:
    for _ in range(3):
        writer = _writer(tmp_path, 100_000)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.05)
        writer.send_signal(signal.SIGKILL)
        writer.communicate(timeout=600)
    cache = DiskCache(tmp_path)
    for turn in range(7):
        value = cache.get(key("hip", turn))
        assert value is None or value == {"turn": turn, "body": bytes(200_000)}
