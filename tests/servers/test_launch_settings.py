"""Integers of a script that have a field in the workbench: those that set a launch, no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast.servers.workbench.launch_settings import launch_settings

KERNEL = """
@triton.jit
def copy(out, x, n, BLOCK: tl.constexpr, K: "tl.constexpr" = 4):
    s = tl.sum(tl.load(x), axis=0)
    for i in tl.range(0, 8, num_stages=2):
        pass
"""


def settings(text: str) -> list[tuple[str, str]]:
    found = launch_settings(text, "k.py")
    assert [text[one.start : one.stop] for one in found] == [one.value for one in found]
    assert [text.count("\n", 0, one.start) + 1 for one in found] == [one.line for one in found]
    return [(one.name, one.value) for one in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("copy[(64,)](o, x, 1024, 256, num_warps=8)", [("num_warps", "8")]),
        ("copy[(64,)](o, x, n=1024, BLOCK=256)", [("BLOCK", "256")]),
        ("SIZE = 1024\nB = 256\ncopy[(SIZE // B,)](o, x, SIZE, B)", [("B", "256")]),
        ("rows = 304\nBLOCK: int = 64\ncopy[(rows,)](o, x)", [("BLOCK", "64")]),
        ('configs = [triton.Config({"BLOCK": 128, "m": 1}, num_stages=3, x=2)]',
         [("BLOCK", "128"), ("num_stages", "3")]),
        ("def run(x, BLOCK=64, *, num_warps=4, rows=8): pass",
         [("BLOCK", "64"), ("num_warps", "4")]),
        ("BLOCK, rows = 64, 8", [("BLOCK", "64")]),
        ("BLOCK = tl.constexpr(32)", [("BLOCK", "32")]),
        ("BLOCK = True; num_warps = 4.0; x = torch.zeros(8, dim=1)", []),
        ("other.kernel[g](x, TILE=32, é='µ', kpack=2)", [("TILE", "32"), ("kpack", "2")]),
    ],
)  # fmt: skip
def test_settings_of_a_script(text: str, expected: list[tuple[str, str]]) -> None:
    assert settings(KERNEL + text) == [("K", "4"), ("num_stages", "2"), *expected]


def test_settings_of_an_example() -> None:
    text = (Path(__file__).parents[2] / "examples/softmax.py").read_text(encoding="utf-8")
    assert "axis" in text
    assert {name for name, _ in settings(text)} <= {"BLOCK", "num_warps", "num_stages"}


@pytest.mark.parametrize("text", ["def (", "", "\0", "(" * 5000])
def test_what_is_no_script_has_none(text: str) -> None:
    assert launch_settings(text, "k.py") == []


def test_other_languages_have_none() -> None:
    assert launch_settings("num_warps = 4", "k.hip") == []
