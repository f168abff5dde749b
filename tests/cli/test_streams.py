"""Where output goes: locales without Unicode, readers that leave, full disks, closed streams."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.targets import thorough_beyond
from wavecast.cli import streams

FORMATS = ("text", "json", "html", "sarif")
SAXPY = Path(__file__).parents[1] / "compile" / "data" / "saxpy.gfx942.s"
COMMAND = (sys.executable, "-m", "wavecast")


def wavecast(*arguments: str, **named) -> subprocess.CompletedProcess[bytes]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **named}
    return subprocess.run([*COMMAND, *arguments], check=False, **streams)


@pytest.mark.parametrize("encoding", thorough_beyond(["ascii"], ["ascii", "latin-1"]))
@pytest.mark.parametrize("format_", thorough_beyond(["text", "json"], FORMATS))
def test_any_locale_gets_a_report(encoding: str, format_: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C"}
    done = wavecast("explain", str(SAXPY), "-f", format_, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode(encoding if format_ == "text" else "utf-8")


@pytest.mark.parametrize(
    "verb",
    thorough_beyond(["arch", "doctor"], ["arch", "arch mi300x h100", "doctor", "rules", "cache"]),
)
def test_every_verb_prints_in_ascii(verb: str) -> None:
    done = wavecast(*verb.split(), env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


@pytest.mark.parametrize("format_", thorough_beyond(["text"], ["text", "html"]))
def test_a_reader_that_leaves_is_no_error(format_: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as broken:
        done = wavecast("explain", str(SAXPY), "-f", format_, stdout=broken)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "verb", thorough_beyond(["rules"], [f"explain {SAXPY.name}", "rules", "arch"])
)
def test_a_full_disk_is_said_in_one_line(verb: str) -> None:
    with open("/dev/full", "wb") as full:
        done = wavecast(*verb.split(), stdout=full, cwd=SAXPY.parent)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("wavecast: cannot write the output: ")
    assert done.stderr.count(b"\n") == 1


def test_a_closed_standard_output_is_said() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *COMMAND, "rules"], stderr=subprocess.PIPE, check=False
    )
    assert done.returncode == 2
    assert b"standard output is closed" in done.stderr


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code = (
        "from wavecast.cli import streams\nfrom wavecast.compile.cache import DiskCache\n"
        f"streams.prepare()\nDiskCache({str(tmp_path / 'file')!r}).put('a-' + '0' * 64, 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr.startswith(b"wavecast: warning: cache ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("format_", thorough_beyond(["text", "json"], FORMATS))
def test_a_file_name_that_is_not_text(format_: str, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/na\xffme.s"
    Path(os.fsdecode(path)).write_bytes(SAXPY.read_bytes())
    done = wavecast("explain", os.fsdecode(path), "-f", format_)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'rmdir "$PWD"; "$@"', "sh", *COMMAND, "rules"], cwd=gone, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_long_message_about_gpus_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    gpus = "; ".join(f"GPU {gpu} (k at x.py:{gpu}): {'waits ' * 60}" for gpu in range(4))
    with pytest.raises(SystemExit):
        streams.fail(f"deadlock: {gpus}; GPU 4 runs nothing")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["wavecast:", "GPU", str(gpu)] for gpu in range(5)
    ]
    assert lines[0] == "wavecast: deadlock:"
    assert "…" not in "".join(lines)
