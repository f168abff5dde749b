"""Compiled results on disk, shared by every process of a user.

An entry is one file, `<root>/<kind>/<key>.wcc`: a magic, the SHA-256 of the body, the body in
msgpack (`packing`). It is written to a temporary name and renamed, so that a reader sees a whole
entry or none, whoever is killed; one that does not match its checksum counts as absent and is built
again. Nothing else in the folder is ever touched.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wavecast import files

KINDS: Final = {
    "captures": "launches of scripts",
    "cuda": "cubins of CUDA C++",
    "arguments": "names of arguments that code objects do not have",
    "disassembly": "code objects as text",
    "emulate": "native code of kernels",
    "functions": "native code of functions that kernels share",
    "hip": "compiled HIP files",
    "loops": "native code of numeric loops",
    "operators": "names and summaries of the kernel library",
    "outlined": "which native code has a function that kernels share",
    "ptx": "assembled PTX",
    "recompiled": "kernels compiled again with other settings",
    "sass": "disassembled NVIDIA code",
    "times": "predicted times of kernels compiled again",
    "triton": "keys of installations of Triton",
}
"""What entries hold, by kind."""
_MAGIC: Final = b"WCC1"
_SUFFIX: Final = ".wcc"
_ENTRY: Final = re.compile(r"([a-z][a-z0-9_]*)-[0-9a-f]{64}\.wcc")
_ABANDONED_SECONDS: Final = 3600.0
"""A temporary file older than this belongs to a process that was killed."""


class CacheWarning(UserWarning):
    """The cache cannot be written; results are computed again each time."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One entry on disk. `bytes` is its size, `used` the time of its last use (seconds, Unix)."""

    kind: str
    path: Path
    bytes: int
    used: float


def default_root() -> Path:
    """`$WAVECAST_CACHE_DIR`, else `$XDG_CACHE_HOME/wavecast`, else `~/.cache/wavecast`."""
    directory = os.environ.get("WAVECAST_CACHE_DIR")
    if directory:
        return Path(directory)
    shared = os.environ.get("XDG_CACHE_HOME")
    base = Path(shared) if shared and os.path.isabs(shared) else Path.home() / ".cache"
    return base / "wavecast"


class DiskCache:
    """The cache at `root` (`default_root()` when not given). Creating one touches no disk."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = Path(root) if root is not None else default_root()
        self.writable = True
        """False once a write failed; later writes are not tried again."""

    def get(self, key: str) -> object | None:
        """The value stored under `key` (see `digest.key`), None when there is none or it is
        damaged. Lists come back as tuples."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        head = len(_MAGIC) + 32
        body = memoryview(content)[head:]
        if content[:head] != _MAGIC + hashlib.sha256(body).digest():
            return None
        from wavecast.packing import unpack

        try:
            value = unpack(body)
        except ValueError:
            return None
        self._touch(path)
        return value

    def put(self, key: str, value: object) -> bool:
        """Store `value`: None, numbers, strings, bytes, and lists, tuples, mappings of them.

        Returns False, with one CacheWarning per cache, when the disk is full or read-only. Raises
        TypeError for a value that cannot be stored.
        """
        from wavecast.packing import pack

        body = pack(value)
        if not self.writable:
            return False
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write_atomic(path, _MAGIC + hashlib.sha256(body).digest() + body)
        except OSError as error:
            self.writable = False
            warnings.warn(
                f"cache {self.root} cannot be written ({error.strerror or error}); "
                "working without it (set WAVECAST_CACHE_DIR to a writable folder)",
                CacheWarning,
                stacklevel=2,
            )
            return False
        return True

    def entries(self, kind: str = "") -> Iterator[CacheEntry]:
        """Every entry, of one kind or of all; files that are not entries are passed over."""
        for path in sorted(self.root.glob("*/*" + _SUFFIX)):
            match = _ENTRY.fullmatch(path.name)
            if match is None or match[1] != path.parent.name or kind not in ("", match[1]):
                continue
            status = _entry_status(path)
            if status is not None:
                yield CacheEntry(match[1], path, status.st_size, status.st_mtime)

    def clear(self, kind: str = "", older_than_days: float = 0.0) -> tuple[CacheEntry, ...]:
        """Delete entries (of `kind`, not used for that many days) and return them.

        Temporary files that killed processes left behind go as well.
        """
        limit = time.time() - older_than_days * 86400.0
        removed = []
        for entry in list(self.entries(kind)):
            if older_than_days and entry.used > limit:
                continue
            try:
                entry.path.unlink()
            except OSError:
                continue
            removed.append(entry)
        self._remove_abandoned()
        return tuple(removed)

    def _path(self, key: str) -> Path:
        match = _ENTRY.fullmatch(key + _SUFFIX)
        if match is None:
            raise ValueError(f"not a cache key: {key!r}")
        return self.root / match[1] / (key + _SUFFIX)

    def _touch(self, path: Path) -> None:
        """Note the use, so that `clear --older-than` keeps what is still needed."""
        try:
            os.utime(path)
        except OSError:
            return

    def _remove_abandoned(self) -> None:
        limit = time.time() - _ABANDONED_SECONDS
        for path in self.root.glob("*/.wavecast-*.tmp"):
            try:
                if files.TEMPORARY.fullmatch(path.name) and path.lstat().st_mtime < limit:
                    path.unlink()
            except OSError:
                continue


def _entry_status(path: Path) -> os.stat_result | None:
    """The status of a regular file that starts like an entry, None otherwise."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return None
        with path.open("rb") as file:
            return status if file.read(len(_MAGIC)) == _MAGIC else None
    except OSError:
        return None
