"""Reading what users name: files, pipes, and what is neither."""

from __future__ import annotations

import bz2
import gzip
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from wavecast import files
from wavecast.errors import InputError
from wavecast.patterns import regex


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_the_content_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbftext" * 1000)
    assert files.read(path) == path.read_bytes()
    assert files.read_text(path).startswith("text")


def test_a_pipe_is_read_to_its_end(pipe: Path) -> None:
    data = os.urandom(3 << 20)
    writer = threading.Thread(target=lambda: pipe.write_bytes(data))
    writer.start()
    assert files.read(pipe) == data
    writer.join()


def test_a_pipe_without_a_writer_is_refused(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "WAIT_SECONDS", 0.05)
    with pytest.raises(InputError, match="nothing was written to the pipe"):
        files.read(pipe)


@pytest.mark.parametrize("read", [files.read, files.check_regular])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("/dev/zero", "is a device"),
        ("/dev/full", "is a device"),
        ("/", "is a folder"),
        ("/nowhere/file", "no such file"),
        ("a\0b", "cannot read"),
        ("n" * 5000, "cannot read"),
    ],
)
def test_what_is_not_a_file(read: Callable[[str], object], name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(name)


def test_a_pipe_is_not_for_libraries(pipe: Path) -> None:
    with pytest.raises(InputError, match="is a pipe"):
        files.check_regular(pipe)


def test_the_largest_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(101))
    monkeypatch.setattr(files, "LARGEST", 100)
    with pytest.raises(InputError, match="larger than"):
        files.read(path)
    path.write_bytes(bytes(100))
    assert files.read(path) == bytes(100)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_packed_files(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(pack(b"content"))
    assert files.read_packed(path) == b"content"
    path.write_bytes(pack(b"content")[:-6])
    with pytest.raises(InputError, match="cannot unpack"):
        files.read_packed(path)
    path.write_bytes(pack(bytes(1 << 24)))
    monkeypatch.setattr(files, "LARGEST", 1 << 20)
    with pytest.raises(InputError, match="larger than"):
        files.read_packed(path)


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        files.read_text(path)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "9" * 5000, "{", ""])
def test_json_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        files.parse_json(text)


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "{a=" * 5000, "a = " + "9" * 5000])
def test_toml_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        files.parse_toml(text)


def test_long_cells_of_csv() -> None:
    rows = list(files.csv_rows(["a,b\n", f"1,{'x' * 200_000}\n"]))
    assert [len(cell) for cell in rows[1]] == [1, 200_000]


@pytest.mark.parametrize("text", ["(", "(" * 3000 + ")" * 3000, "a{99999999999999999999}", "*"])
def test_expressions_that_do_not_compile(text: str) -> None:
    with pytest.raises(Exception, match="is not a regular expression") as caught:
        regex(text, "-k")
    assert len(str(caught.value)) < 300


_KILLED = """
import os, signal, sys
from wavecast import files
with files.atomic(sys.argv[1]) as temporary:
    temporary.write_text("half of the new con")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_file_is_whole_whoever_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for before in (None, "the content before"):
        if before is not None:
            path.write_text(before)
        done = subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False)
        assert done.returncode == -signal.SIGKILL
        assert (path.read_text() if path.exists() else None) == before
    left = [other.name for other in tmp_path.iterdir() if other != path]
    assert len(left) == 2
    assert all(files.TEMPORARY.fullmatch(name) for name in left)


def test_a_file_that_is_not_finished_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")

    def fail() -> None:
        with files.atomic(path) as temporary:
            temporary.write_text("af")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [(other.name, other.read_text()) for other in tmp_path.iterdir()] == [("file", "before")]


@pytest.mark.parametrize("durable", [False, True])
def test_permissions_are_those_of_an_ordinary_file(tmp_path: Path, durable: bool) -> None:
    (tmp_path / "ordinary").write_text("")
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("before")
    old.chmod(0o640)
    for path in (new, old):
        files.write_atomic(path, "after", durable=durable)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"ordinary": modes["ordinary"], "new": modes["ordinary"], "old": 0o640}


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    link.symlink_to(target)
    for text in ("first", "second"):
        files.write_text(link, text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert len(list(target.parent.iterdir())) == 1


def test_what_is_no_file_is_written_itself(pipe: Path) -> None:
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_text(pipe, "text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    files.write_text("/dev/null", "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("name", ["nowhere/file", ".", "n" * 300, "file/below"])
def test_what_cannot_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("before")
    with pytest.raises(InputError, match="cannot write"):
        files.write_text(tmp_path / name, "text")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
