"""Unmodified TileLang on emulated GPUs: executed, checked, timed, and explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.targets import swept
from tests.warm_python import run_python

pytest.importorskip("tilelang", reason="needs tilelang")

SCRIPT = Path(__file__).with_name("tilelang_program.py")


def wavecast(verb: str, *arguments: str) -> str:
    ended = run_python("-m", "wavecast", verb, str(SCRIPT), *arguments)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.parametrize("target", swept(("gfx942", "gfx1100", "gfx950", "gfx1201")))
def test_a_product_is_executed(target: str) -> None:
    wavecast("run", "-a", target)


def test_a_product_is_checked_and_its_time_is_predicted() -> None:
    assert "nothing found" in wavecast("run", "--check", "-a", "gfx942")
    printed = wavecast("run", "-a", "gfx942", "--", "--time")
    match = re.search(r"milliseconds ([\d.e-]+)", printed)
    assert match is not None
    assert 0.001 < float(match[1]) < 0.1


def test_a_product_is_explained_with_the_lines_of_its_source() -> None:
    printed = wavecast("explain", "-a", "gfx942")
    assert "product_kernel" in printed
    assert "A: float16[64, 96]" in printed
    assert re.search(r"line \d+", printed)
