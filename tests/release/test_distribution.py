"""The wheel and the sdist: complete, installable in a clean environment, and of one version."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from tests.release.sources import REPOSITORY, copy_sources, tracked
from wavecast.version import __version__

EXTRAS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the sdist, built from a copy of the tracked files."""
    pytest.importorskip("setuptools")
    root = tmp_path_factory.mktemp("source")
    copy_sources(root)
    out = tmp_path_factory.mktemp("dist")
    script = (
        "import sys; from setuptools import build_meta; out = sys.argv[1]; "
        "build_meta.build_sdist(out); build_meta.build_wheel(out)"  # they change sys.argv
    )
    subprocess.run([sys.executable, "-c", script, str(out)], cwd=root, check=True, timeout=300)
    return out


def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def metadata(built: Path) -> Message:
    with zipfile.ZipFile(wheel(built)) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode())


def test_the_wheel_has_every_file_of_the_package(built: Path) -> None:
    """A table that package-data forgets is missing only from installed packages."""
    with zipfile.ZipFile(wheel(built)) as archive:
        packed = {name for name in archive.namelist() if name.startswith("wavecast/")}
    assert packed == tracked("wavecast")


def test_the_sdist_has_every_file_of_the_package(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert tracked("wavecast") <= packed
    assert {"README.md", "LICENSE", "pyproject.toml"} <= packed


def test_the_metadata_has_the_version_and_the_extras(built: Path) -> None:
    found = metadata(built)
    assert found["Version"] == __version__
    assert set(found.get_all("Provides-Extra", [])) == set(EXTRAS)
    assert "wavecast.cli:main" in _entry_points(built)


def test_the_changelog_begins_with_this_version() -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text()
    first = re.search(r"^## (\S+)", text, re.MULTILINE)
    assert first is not None
    assert first[1] == __version__


def test_the_docs_list_every_extra() -> None:
    text = (REPOSITORY / "docs/releases.md").read_text()
    assert {name for name in EXTRAS if f"| `{name}` |" not in text} == set()


@pytest.mark.thorough
def test_the_wheel_works_in_a_clean_environment(built: Path, tmp_path: Path) -> None:
    """What the README says: an installation with its extras explains a script."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin/python"
    install = [python, "-m", "pip", "install", "--quiet", f"{wheel(built)}[torch,hip]"]
    subprocess.run([*install, "torch==2.13.0"], check=True, timeout=900)
    for example in ("examples/softmax.py", "examples/hip/reduction.hip"):
        command = [environment / "bin/wavecast", "explain", REPOSITORY / example, "-a", "gfx942"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert "mi300x" in done.stdout.lower()


def _entry_points(built: Path) -> str:
    with zipfile.ZipFile(wheel(built)) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("/entry_points.txt"))
        return archive.read(name).decode()
