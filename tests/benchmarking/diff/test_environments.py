"""Environments for releases of Triton, without installing any."""

from __future__ import annotations

import fcntl
import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

from wavecast.benchmarking.diff import environments
from wavecast.errors import InputError, UnknownName, UsageError

OFFERED = ("3.4.0", "3.6.0", "3.7.0", "3.7.1", "3.9.0", "3.10.0")


def test_releases_stand_in_order() -> None:
    assert sorted(OFFERED, key=environments.release_key) == list(OFFERED)
    with pytest.raises(UsageError, match="not a release of Triton"):
        environments.release_key("main")
    with pytest.raises(UsageError, match="not a release of Triton"):
        environments.python_with("3.8.0; rm -r x")


def test_a_part_of_the_releases() -> None:
    assert environments.between(OFFERED, "3.7.0", "3.9.0") == ("3.7.0", "3.7.1", "3.9.0")
    assert environments.between(OFFERED, "3.4.0")[0] == "3.4.0"
    assert environments.between(OFFERED)[0] == "3.6.0", "the oldest that wavecast requires"
    with pytest.raises(UnknownName, match=r"3\.7\.2"):
        environments.between(OFFERED, "3.7.2")
    with pytest.raises(UsageError, match="no two releases"):
        environments.between(OFFERED, "3.9.0", "3.7.0")


def test_what_pip_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = "triton (3.10.0)\nAvailable versions: 3.10.0, 3.9.0, 3.9.0rc1, 3.7.1\n"

    def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
        assert arguments == ("index", "versions", "triton")
        return subprocess.CompletedProcess(arguments, 0, answer, "")

    monkeypatch.setattr(environments, "_pip", pip)
    assert environments.offered_releases() == ("3.7.1", "3.9.0", "3.10.0")
    failed = subprocess.CompletedProcess((), 1, "", "ERROR: No matching distribution\n")
    monkeypatch.setattr(environments, "_pip", lambda *_, **__: failed)
    with pytest.raises(InputError, match="No matching distribution"):
        environments.offered_releases()


def test_the_installed_release_needs_no_environment() -> None:
    pytest.importorskip("triton")
    assert environments.python_with(environments.installed_release()) == Path(sys.executable)


def test_a_release_that_pip_does_not_have(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    refused = "WARNING: x\nERROR: No matching distribution found for triton==3.99.0\n"
    failed = subprocess.CompletedProcess((), 1, "", refused)
    monkeypatch.setattr(environments, "_pip", lambda *_, **__: failed)
    with pytest.raises(InputError, match=r"cannot install Triton 3\.99\.0: No matching dist"):
        environments.python_with("3.99.0")
    assert not [path for path in (tmp_path / "environments").iterdir() if path.is_dir()]


def test_a_release_that_does_not_import_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(environments, "_CHECK", "raise ImportError('no libtriton')")
    fine = subprocess.CompletedProcess((), 0, "", "")
    monkeypatch.setattr(environments, "_pip", lambda *_, **__: fine)
    with pytest.raises(InputError, match="cannot be imported with this PyTorch: ImportError: no"):
        environments.python_with("3.99.0")
    assert not [path for path in (tmp_path / "environments").iterdir() if path.is_dir()]


def _make_slowly(folder: Path, python: Path, release: str, lock: int) -> None:
    del python, release, lock
    with (folder.parent / "made").open("a") as file:
        file.write("x")
    folder.mkdir()
    (folder / "wavecast-finished").write_text("")


def _ask(release: str) -> None:
    environments._make = _make_slowly
    environments.python_with(release)


def test_an_environment_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    fork = multiprocessing.get_context("spawn")
    processes = [fork.Process(target=_ask, args=("3.99.0",)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert (tmp_path / "environments/made").read_text() == "x"


def test_one_that_was_not_finished_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a killed process leaves: a folder without the mark, a lock nobody holds."""
    monkeypatch.setenv("WAVECAST_CACHE_DIR", str(tmp_path))
    fine = subprocess.CompletedProcess((), 0, "", "")
    monkeypatch.setattr(environments, "_pip", lambda *_, **__: fine)
    monkeypatch.setattr(environments, "_CHECK", "print('triton 3.99.0')")
    python = environments.python_with("3.99.0")
    folder = python.parent.parent
    (folder / "wavecast-finished").unlink()
    (folder / "half").write_text("")
    assert environments.python_with("3.99.0") == python
    assert not (folder / "half").exists()
    assert (folder / "wavecast-finished").read_text() == "triton 3.99.0\n"
    seen = subprocess.run([python, "-c", "import click"], check=False)
    assert seen.returncode == 0, "the packages of this environment are visible there"


def test_an_installation_that_outlives_its_parent_keeps_the_lock(tmp_path: Path) -> None:
    """As after a kill -9 of the process that had started pip."""
    folder = tmp_path / "environment"
    with environments._lock(folder) as lock:
        left = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
    with (tmp_path / "environment.lock").open("w") as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        left.kill()
        left.wait()
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
