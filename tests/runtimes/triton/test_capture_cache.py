"""Captures kept between runs: used while nothing that the run depended on has changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtimes.conftest import ADD, GFX942
from wavecast import processes
from wavecast.compile.codeobject import Launch
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton import Capture, capture_cache, capture_script, observed_run
from wavecast.runtimes.triton.capture_cache import CaptureCache
from wavecast.runtimes.triton.dependencies import (
    RunDependencies,
    merge_dependencies,
    package_folders,
)
from wavecast.runtimes.triton.job import Job
from wavecast.runtimes.triton.observed_run import RunObserver

pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.torch

BODY = """
import json, os
from helper import size
if os.path.exists("more.json") or os.listdir("folder") != ["one"]:
    launch(7)
with open("sizes.json") as file:
    launch(size(json.load(file)))
try:
    import missing_module
except ImportError:
    launch(500)
with open("written.txt", "w") as file:
    file.write("done")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working folder, with a script and what it looks at."""
    folder = tmp_path_factory.mktemp("captures")
    (folder / "helper.py").write_text("def size(number):\n    return number + 1\n")
    (folder / "sizes.json").write_text("999")
    (folder / "folder").mkdir()
    (folder / "folder/one").touch()
    (folder / "script.py").write_text(ADD + BODY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVECAST_CACHE_DIR", str(folder / "cache"))
        patch.setenv("WAVECAST_TEST_VARIABLE", "0")
        patch.setenv(capture_cache.VARIABLE, "1")
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def first(folder: Path) -> Capture:
    """The capture of a run, which is stored."""
    return captured(folder / "script.py")


def captured(path: Path, **options: Any) -> Capture:
    return capture_script(path, ["-v"], [GFX942], quiet=True, caching="use", **options)


def job(folder: Path, *arguments: str, quiet: bool = True) -> Job:
    script = str(folder / "script.py")
    return Job(script, arguments, (GFX942,), "", "first", None, quiet, 1)


def is_valid(folder: Path, *arguments: str) -> bool:
    return CaptureCache(job(folder, *arguments)).load() is not None


def append(path: Path) -> None:
    path.write_text(f"{path.read_text()}\n")


CHANGES: dict[str, Callable[[Path], object]] = {
    "the script": lambda folder: append(folder / "script.py"),
    "a module": lambda folder: append(folder / "helper.py"),
    "a file that it reads": lambda folder: append(folder / "sizes.json"),
    "a file that it asks for": lambda folder: (folder / "more.json").touch(),
    "a folder that it lists": lambda folder: (folder / "folder/two").touch(),
    "a module that was missing": lambda folder: (folder / "missing_module.py").touch(),
    "a module before another": lambda folder: (folder / "json.py").touch(),
    "the environment": lambda _: os.environ.update(WAVECAST_TEST_VARIABLE="1"),
}


def test_an_unchanged_script_is_not_run_again(
    folder: Path, first: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [launch.grid[0] for launch in first.launches["gfx942"]] == [4, 2]
    assert not any("was not run" in note for note in first.notes)
    (folder / "unrelated.py").touch()
    monkeypatch.setattr("subprocess.Popen", None)
    seen: list[Launch] = []
    again = captured(folder / "script.py", on_launch=seen.append)
    assert again.launches == first.launches
    assert tuple(seen) == again.launches["gfx942"]
    assert "was not run: its launches are those of" in again.notes[0]
    assert again.notes[1:] == first.notes


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("what", CHANGES)
def test_any_change_makes_it_run(folder: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVECAST_TEST_VARIABLE", "0")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert is_valid(folder, "-v")
    CHANGES[what](folder)
    assert not is_valid(folder, "-v")
    for path in folder.rglob("*"):
        if path.is_file() and path not in before:
            path.unlink()
    for path, content in before.items():
        path.write_bytes(content)
    monkeypatch.setenv("WAVECAST_TEST_VARIABLE", "0")
    assert is_valid(folder, "-v")


@pytest.mark.usefixtures("first")
def test_what_has_no_entry(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_valid(folder)
    assert capture_cache.cache_of(job(folder), "use") is not None
    assert capture_cache.cache_of(job(folder), "off") is None
    assert capture_cache.cache_of(job(folder, quiet=False), "use") is None
    monkeypatch.setenv(capture_cache.VARIABLE, "0")
    assert capture_cache.cache_of(job(folder), "use") is None


def observed(folder: Path, body: str) -> RunDependencies | str:
    """What a fork that executes `body` depended on."""
    result = folder / "observed.json"
    started = folder / "started.py"
    started.write_text(body)
    os.utime(started, (1, 1))

    def child() -> None:
        os.chdir(folder)
        observer = RunObserver(started, (str(folder / "ignored"),))
        patches = Patches()
        observer.install(patches)
        exec(compile(body, str(started), "exec"), {})
        patches.restore()
        found = observer.dependencies()
        result.write_text(json.dumps(found if isinstance(found, str) else found.pack()))

    processes.wait(processes.fork(child))
    found = json.loads(result.read_text())
    return found if isinstance(found, str) else RunDependencies.unpack(found)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("import subprocess; subprocess.run(['true'])", "starts a program"),
        ("import os; os.system('true')", "starts a program"),
        ("import os\nif not os.fork(): os._exit(0)", "starts a process"),
        ("import ctypes; ctypes.CDLL(None)", "loads a library"),
        ("import sqlite3; sqlite3.connect(':memory:')", "opens a database"),
        (
            "import socket\ntry: socket.create_connection(('127.0.0.1', 9), 0.1)\n"
            "except OSError: pass",
            "opens a connection",
        ),
        ("import pathlib; f = pathlib.Path('new'); f.touch()", ""),
        ("n = open('old').read(); open('old', 'w').write('x')", "a file changed while it ran"),
        ("import os; open('old').read(); os.remove('old')", "a file changed while it ran"),
        ("import os\nif not os.path.exists('a'): open('a', 'w')", "a file changed while it ran"),
        ("import os\nif not os.path.exists('a'): os.mkdir('a')", "a file changed while it ran"),
        ("open('a', 'x')", "a file changed while it ran"),
        ("open('old', 'a').write('x'); open('old').read()", "a file changed while it ran"),
        ("open('old', 'a').write('x')", ""),
        ("open('old', 'w').write('x'); open('old').read()", ""),
        ("import os\nos.mkdir('a'); os.path.exists('a/b'); open('a/b', 'w')", ""),
        (
            "import pathlib, os; open('old').read(); os.utime('old', (1, 1))",
            "a file changed while it ran",
        ),
    ],
)
def test_what_no_file_decides(tmp_path: Path, body: str, reason: str) -> None:
    (tmp_path / "old").touch()
    found = observed(tmp_path, body)
    assert (found if isinstance(found, str) else "") == reason


def test_files_that_only_a_descriptor_or_bytes_name(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / "ignored").mkdir()
    body = (
        "import os\nos.stat(b'one')\nfile = os.open('two', os.O_RDONLY)\nos.fstat(file)\n"
        "os.listdir(file and '.')\nopen('/proc/self/stat').read()\nos.path.isfile('ignored/x')"
    )
    found = observed(tmp_path, body)
    assert isinstance(found, RunDependencies)
    assert {str(tmp_path / name) for name in ("one", "two", "started.py")} <= set(found.paths)
    assert not [path for path in found.paths if "ignored/" in path or path.startswith("/proc")]
    assert str(tmp_path) in found.listed


def test_a_script_in_a_package_is_known_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chapters of the course have their scripts in Wavecast's package."""
    (tmp_path / "old").touch()
    folders = (*package_folders(), str(tmp_path))
    monkeypatch.setattr(observed_run, "package_folders", lambda: folders)
    found = observed(tmp_path, "open('old')")
    assert isinstance(found, RunDependencies)
    assert str(tmp_path / "started.py") in found.paths
    assert str(tmp_path / "started.py") not in found.installed
    assert str(tmp_path / "old") in found.installed


def test_runs_that_saw_different_files_are_not_united() -> None:
    def one(state: str) -> RunDependencies:
        return RunDependencies({"/a": state}, {}, {}, {}, ("b",))

    together = merge_dependencies([one("1"), one("1")])
    assert together is not None
    assert together.paths == {"/a": "1"}
    assert merge_dependencies([one("1"), one("2")]) is None


@pytest.mark.parametrize(
    ("body", "new"),
    [
        ("from importlib.util import find_spec; find_spec('wanted_file')", "wanted_file.py"),
        ("import space\ntry: from space import wanted_file\nexcept ImportError: pass",
         "space/wanted_file.py"),
        ("import space", "space/__init__.py"),
        ("file = open('old', 'a+'); file.seek(0); file.read()", "old"),
    ],
)  # fmt: skip
def test_files_that_would_be_found_now(tmp_path: Path, body: str, new: str) -> None:
    (tmp_path / "space").mkdir()
    (tmp_path / "old").touch()
    os.utime(tmp_path / "old", (1, 1))
    found = observed(tmp_path, f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{body}")
    assert isinstance(found, RunDependencies)
    assert found.is_unchanged()
    (tmp_path / new).write_text("# new")
    assert not found.is_unchanged()
