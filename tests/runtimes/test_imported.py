"""Modules that follow the import of another one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from wavecast.runtimes.imported import when_imported
from wavecast.runtimes.patching import Patches


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules that the process can import."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "planted_library.py").write_text("value = 1\n")
    for name in ("planted_library", "planted_follower"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_a_module_follows_the_import(library: Path) -> None:
    (library / "planted_follower.py").write_text("import planted_library as p\np.value += 1\n")
    when_imported(Patches(), "planted_library", "planted_follower")
    assert "planted_follower" not in sys.modules
    import planted_library

    assert planted_library.value == 2


def test_nothing_follows_once_it_is_undone(library: Path) -> None:
    (library / "planted_follower.py").write_text("raise AssertionError\n")
    patches, before = Patches(), list(sys.meta_path)
    when_imported(patches, "planted_library", "planted_follower")
    patches.restore()
    assert sys.meta_path == before
    import planted_library  # noqa: F401


@pytest.mark.parametrize("text", ["from planted_library import nothing", "import sys; sys.nothing"])
def test_another_version_of_the_library_is_a_warning(library: Path, text: str) -> None:
    (library / "planted_follower.py").write_text(text + "\n")
    when_imported(Patches(), "planted_library", "planted_follower")
    with pytest.warns(RuntimeWarning, match="does not work with this version of planted_library"):
        import planted_library
    assert planted_library.value == 1
