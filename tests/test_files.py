"""Reading what users name: files, pipes, and what is neither."""

from __future__ import annotations

import bz2
import gzip
import os
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
    assert files.unpacked(path) == b"content"
    path.write_bytes(pack(b"content")[:-6])
    with pytest.raises(InputError, match="cannot unpack"):
        files.unpacked(path)
    path.write_bytes(pack(bytes(1 << 24)))
    monkeypatch.setattr(files, "LARGEST", 1 << 20)
    with pytest.raises(InputError, match="larger than"):
        files.unpacked(path)


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
