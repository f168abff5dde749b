"""The reduced hazard of docs/lab-reproducers.md: LLVM still has it, and static checks find it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from wavecast.lab.codegen import Llc
from wavecast.lab.reduce import Condition

PAGE = Path(__file__).parents[2] / "docs" / "lab-reproducers.md"
SECTION = PAGE.read_text(encoding="utf-8").split("## A matrix result is read before")[1]
SECTION = SECTION.split("\n## ")[0]

pytestmark = pytest.mark.skipif(not shutil.which("llc-22"), reason="there is no llc-22")


def fenced(language: str) -> str:
    (text,) = re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)
    return text


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950"])
def test_the_code_of_the_page_has_the_hazard(target: str) -> None:
    assert Condition("hazard").holds(fenced("llvm"), Llc("llc-22", target), target)


def added(text: str, target: str) -> list[str]:
    """What the pass puts right before the sum of the machine IR."""
    words = ["-mtriple=amdgcn-amd-amdhsa", f"-mcpu={target}", "-run-pass=post-RA-hazard-rec"]
    command = ["llc-22", *words, "-x", "mir", "-", "-o", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    body = [line.strip() for line in done.stdout.partition("\nbody:")[2].split("\n")]
    at = next(number for number, line in enumerate(body) if "V_ADD_F32" in line)
    return [line for line in body[at - 2 : at] if line.startswith("S_NOP")]


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950"])
def test_the_order_of_predecessors_decides(target: str) -> None:
    """By hand: block 3 with its predecessors in either order, and the long way without waits."""
    text = fenced("yaml")
    assert added(text, target) == []
    assert added(text.replace("    S_NOP 7\n", ""), target) != []
    other = text.replace("bb.1", "bb.9").replace("bb.2", "bb.1").replace("bb.9", "bb.2")
    first, waits, head, last = re.split(r"\n(?=  bb\.[123]:)", other)
    head = head.replace("S_CBRANCH_SCC0 %bb.2", "S_CBRANCH_SCC0 %bb.3")
    assert added("\n".join([first, head, waits, last]), target) != []
