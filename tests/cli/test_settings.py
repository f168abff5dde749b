"""`[tool.wavecast]` tables: what is taken from them and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast.cli.settings import default_map
from wavecast.errors import InputError, UsageError


def settings(folder: Path, content: str | bytes) -> dict[str, dict[str, object]]:
    data = content.encode() if isinstance(content, str) else content
    (folder / "pyproject.toml").write_bytes(data)
    return default_map(folder)


def test_lists_become_what_the_option_takes(tmp_path: Path) -> None:
    found = settings(tmp_path, '[tool.wavecast]\narch = ["a", "b"]\narch-file = ["x.toml"]\n')
    assert found["explain"] == {"arch": "a,b", "arch_file": ("x.toml",)}


def test_one_file_is_a_list_of_one(tmp_path: Path) -> None:
    found = settings(tmp_path, '[tool.wavecast.explain]\narch_file = "x.toml"\n')
    assert found["explain"] == {"arch_file": ("x.toml",)}


@pytest.mark.parametrize("content", ["tool = 3\n# wavecast", "[project\n", b"\xff", ""])
def test_files_that_are_not_about_wavecast_do_not_matter(tmp_path: Path, content) -> None:
    assert not any(settings(tmp_path, content).values())


@pytest.mark.parametrize("content", ["[tool.wavecast\n", b"[tool.wavecast]\narch = '\xff'"])
def test_a_broken_file_with_settings_is_refused(tmp_path: Path, content) -> None:
    with pytest.raises(InputError):
        settings(tmp_path, content)


@pytest.mark.parametrize("content", ["[tool]\nwavecast = 3", "[tool.wavecast]\nach = 'gfx942'"])
def test_wrong_settings_are_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(UsageError):
        settings(tmp_path, content)


def test_a_folder_that_is_gone_has_no_settings(tmp_path: Path) -> None:
    assert default_map(tmp_path / "gone") == {}
