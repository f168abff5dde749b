"""The entry points of SGLang's plugins, without SGLang."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from pkgutil import resolve_name

import pytest

from wavecast.errors import MissingTool, UnknownName, UsageError
from wavecast.frameworks.sglang import plugin, versions

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def installed(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(versions, "version", lambda name: version)


def test_entry_points() -> None:
    """SGLang finds both by their groups."""
    groups = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]
    named = {group: groups[group]["wavecast"] for group in groups if group.startswith("sglang")}
    assert {group: resolve_name(one) for group, one in named.items()} == {
        "sglang.srt.platforms": plugin.platform,
        "sglang.srt.plugins": plugin.register,
    }


def test_an_installation_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU is emulated unless one is named."""
    monkeypatch.delenv("WAVECAST_SGLANG", raising=False)
    assert plugin.platform() is None
    plugin.register()


def test_emulated_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its class is named, not imported."""
    monkeypatch.setenv("WAVECAST_SGLANG", "gfx950")
    installed(monkeypatch, versions.SUPPORTED[0])
    assert plugin.platform() == "wavecast.frameworks.sglang.platform.SglangPlatform"
    monkeypatch.setenv("WAVECAST_SGLANG", "gfx000")
    with pytest.raises(UnknownName):
        plugin.platform()


def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names the versions."""
    monkeypatch.setenv("WAVECAST_SGLANG", "gfx942")
    installed(monkeypatch, "0.4.1")
    with pytest.raises(UsageError, match=r"SGLang 0\.4\.1: wavecast works with 0\.5\.23"):
        plugin.register()


def test_without_sglang(monkeypatch: pytest.MonkeyPatch) -> None:
    """What to install is said."""

    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(versions, "version", absent)
    with pytest.raises(MissingTool, match="SGLang is not installed"):
        versions.check()
