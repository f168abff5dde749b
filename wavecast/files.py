"""The files that users name: read in bounded memory and time, with errors of one line; files
written whole or not at all, and lines appended, which survive a kill.

A pipe is read while data arrive; devices, sockets and folders are refused.
"""

from __future__ import annotations

import bz2
import csv
import errno
import gzip
import io
import json
import mmap
import os
import re
import secrets
import select
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from wavecast.errors import InputError

LARGEST: Final = 1 << 31
"""Bytes of the largest file that is read, packed or unpacked."""
LARGEST_MAPPED: Final = 1 << 36
"""Bytes of the largest file that is mapped."""
WAIT_SECONDS: Final = 10.0
"""How long a pipe may have no data before it is refused."""
TEMPORARY: Final = re.compile(r"\.wavecast-[0-9a-f]+\.tmp")
"""Names of files that `atomic` writes; one stays where a process is killed."""
_CHUNK: Final = 1 << 20
_LARGEST_TEXT: Final = f"{LARGEST >> 30} GiB"
_FIELD: Final = 1 << 30
"""Characters of the largest CSV cell: all samples of a measurement are one cell."""
csv.field_size_limit(_FIELD)


def read(path: str | Path) -> bytes:
    """The content of a file or a pipe. Raises InputError for one that is missing, a folder, a
    device, larger than `LARGEST`, unreadable, or a pipe that nothing writes to."""
    try:
        return _read(path)
    except FileNotFoundError:
        raise InputError(f"no such file: {path}") from None
    except (OSError, ValueError) as error:  # a ValueError: a NUL in the name
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {why}") from None


def _read(path: str | Path) -> bytes:
    # Without O_NONBLOCK, opening a FIFO waits for its writer; on files the flag has no effect.
    mode = os.stat(path).st_mode
    _check_readable(path, mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        _check_readable(path, status.st_mode)
        if status.st_size > LARGEST:
            raise InputError(f"{path} is larger than {_LARGEST_TEXT}")
        if stat.S_ISFIFO(status.st_mode):
            return _join(path, _arriving(path, file))
        return _join(path, iter(lambda: file.read(max(_CHUNK, status.st_size + 1)), b""))


def map_file(path: str | Path) -> bytes | mmap.mmap:
    """The content of a file, mapped to memory and read where it is looked at, of at most
    `LARGEST_MAPPED` bytes; a pipe as `read` gives it. Raises InputError as `read`."""
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            return read(path)
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > LARGEST_MAPPED:
                raise InputError(f"{path} is larger than {LARGEST_MAPPED >> 30} GiB")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except FileNotFoundError:
        raise InputError(f"no such file: {path}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {why}") from None


def check_regular(path: str | Path) -> None:
    """For libraries that open the file themselves. Raises InputError for a path that is missing, or
    not a file."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise InputError(f"no such file: {path}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {why}") from None
    _check_readable(path, mode)
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is a pipe, not a file", hint="write it to a file first")


def _check_readable(path: str | Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a folder", hint="give one file of it")
    if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
        raise InputError(f"{path} is a device, not a file", hint="give a file or a pipe")


def _arriving(path: str | Path, pipe: io.FileIO) -> Iterator[bytes]:
    """What is written to a pipe until its writers close it."""
    while True:
        ready = select.poll()
        ready.register(pipe, select.POLLIN)
        if not ready.poll(WAIT_SECONDS * 1000):
            raise InputError(f"nothing was written to the pipe {path} for {WAIT_SECONDS:.0f} s")
        data = pipe.read(_CHUNK)
        if not data:
            return
        yield data


def _join(path: str | Path, chunks: Iterable[bytes]) -> bytes:
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > LARGEST:
            raise InputError(f"{path} is larger than {_LARGEST_TEXT}")
    return b"".join(parts)


def read_text(path: str | Path) -> str:
    """A file as UTF-8, with or without a byte order mark. Raises InputError as `read`, and for
    other bytes."""
    try:
        return read(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason}") from None


@contextmanager
def atomic(path: str | Path, *, durable: bool = False) -> Iterator[Path]:
    """A file to write in place of `path`, which has all of it at the end of the block, and what it
    had before if the block raises or the process is killed; `durable`: also if the machine stops.

    A link stays and its target is written. A file keeps its permission bits, a new one has the
    usual ones. What is neither file nor link (a pipe, `/dev/stdout`) is written itself. Raises
    OSError as `open` for writing.
    """
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        yield Path(path)
        return
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = target.with_name(f".wavecast-{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        if mode is not None:
            os.fchmod(descriptor, stat.S_IMODE(mode))
        yield temporary
        if durable:
            os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    if durable:
        _synchronise(target.parent)


def _synchronise(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomic(path: str | Path, content: str | bytes, *, durable: bool = False) -> None:
    """Write a file (text as UTF-8) whole or not at all. Raises OSError, and as `atomic`."""
    data = content.encode() if isinstance(content, str) else content
    with atomic(path, durable=durable) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | Path, text: str) -> None:
    """Write a file as UTF-8, whole or not at all. Raises InputError where it cannot be written."""
    try:
        write_atomic(path, text.encode("utf-8", errors="replace"))
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def check_writable(path: str | Path) -> None:
    """For files that are written after a long run. Raises InputError where that cannot succeed."""
    folder = Path(path).absolute().parent
    if os.path.isdir(path):
        raise InputError(f"cannot write {path}: it is a folder")
    if not folder.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {folder}")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise InputError(f"cannot write {path}: permission denied")


def check_folder(path: str | Path) -> None:
    """For folders that files are written to after a long run, and that may have to be made. Raises
    InputError where that cannot succeed."""
    nearest = Path(path).absolute()
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        raise InputError(f"cannot write to {path}: {nearest} is not a folder")
    if not os.access(nearest, os.W_OK):
        raise InputError(f"cannot write to {path}: permission denied")


def append_text(path: str | Path, text: str) -> None:
    """Append UTF-8 to a file. Raises InputError where it cannot be written."""
    try:
        with open(path, "a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


class AppendedLines:
    """Appends values to a file as lines of JSON. A line is on disk when `append` returns, and stays
    whoever is killed; an unfinished last line is cut off when the file is opened."""

    def __init__(self, path: Path) -> None:
        """Raises OSError where the file cannot be written."""
        content = path.read_bytes() if path.exists() else b""
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def append(self, value: Any) -> None:
        """Append one value. Raises OSError when the disk is full."""
        data = (json.dumps(value) + "\n").encode()
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read_packed(path: str | Path) -> bytes:
    """A file that gzip or bzip2 may have packed, by its first bytes. Raises InputError as `read`,
    and for a damaged one."""
    content = read(path)
    packed: gzip.GzipFile | bz2.BZ2File
    if content.startswith(b"\x1f\x8b"):
        packed = gzip.GzipFile(fileobj=io.BytesIO(content))
    elif content.startswith(b"BZh"):
        packed = bz2.BZ2File(io.BytesIO(content))
    else:
        return content
    try:
        return _join(path, iter(lambda: packed.read(_CHUNK), b""))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot unpack {path}: {error}") from None


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError where it is not JSON or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def parse_toml(text: str) -> dict[str, Any]:
    """The table of a TOML text. Raises ValueError where it is not TOML or nested too deeply."""
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def csv_rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """The rows of a CSV text, with cells of any length. Raises ValueError for a broken one."""
    try:
        yield from csv.reader(lines)
    except csv.Error as error:
        raise ValueError(f"not CSV: {error}") from None


__all__ = [
    "LARGEST",
    "LARGEST_MAPPED",
    "TEMPORARY",
    "WAIT_SECONDS",
    "AppendedLines",
    "append_text",
    "atomic",
    "check_folder",
    "check_regular",
    "check_writable",
    "csv_rows",
    "map_file",
    "parse_json",
    "parse_toml",
    "read",
    "read_packed",
    "read_text",
    "write_atomic",
    "write_text",
]
