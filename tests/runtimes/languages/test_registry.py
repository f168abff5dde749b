"""What a program is told whose launches are not seen."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from wavecast.runtimes.languages.registry import SEEN_ON_AMD, UNSEEN, unseen_launches


def test_languages_through_hip_are_seen_on_amd_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SEEN_ON_AMD, *UNSEEN):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert unseen_launches(False) == ""
    monkeypatch.setitem(sys.modules, "tilelang", ModuleType("tilelang"))
    assert unseen_launches() == ""
    assert unseen_launches(False) == "what TileLang launches is seen on AMD GPUs only"
    monkeypatch.setitem(sys.modules, "warp", ModuleType("warp"))
    assert unseen_launches() == "what Warp launches is not seen"
    assert unseen_launches(False) == (
        "what Warp launches is not seen; what TileLang launches is seen on AMD GPUs only"
    )
