"""Scripts that were copied, moved or renamed while Triton's cache has their kernels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import wavecast

pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.torch

SCRIPT = """
import torch
import triton
import triton.language as tl
import {helper} as functions


@triton.jit
def kernel(out, x, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offs, mask=offs < n)
    tl.store(out + offs, functions.twice(value) + tl.sum(value, 0), mask=offs < n)


x = torch.randn(5000, device="cuda")
kernel[(5,)](torch.empty_like(x), x, 5000, BLOCK=1024)
"""

HELPER = """
import triton
import triton.language as tl


@triton.jit
def twice(x):
    y = x * 2.0
    return tl.exp(y)
"""


def write(folder: Path, script: str, helper: str) -> Path:
    folder.mkdir()
    (folder / f"{helper}.py").write_text(HELPER)
    path = folder / f"{script}.py"
    path.write_text(SCRIPT.format(helper=helper))
    return path


def files(document: object) -> Iterator[str]:
    """Every value of a key `file`."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "file" and value:
                yield value
            yield from files(value)
    elif isinstance(document, list):
        for value in document:
            yield from files(value)


def explained(path: Path, target: str) -> tuple[set[str], str]:
    """The source files in the report of a script, and its terminal text."""
    found = wavecast.explain(str(path), arch=target)
    return set(files(found.to_dict())), str(found)


@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_lines_are_those_of_the_script_that_ran(tmp_path, target):
    first = write(tmp_path / "first", "script", "helper")
    second = write(tmp_path / "second", "renamed", "assistant")
    before, text = explained(first, target)
    copied, copied_text = explained(second, target)
    moved = {
        str(first): str(second),
        str(first.parent / "helper.py"): f"{second.parent}/assistant.py",
    }
    assert str(first) in before
    assert copied == {moved.get(file, file) for file in before}
    assert [line for line in SCRIPT.splitlines() if line in text and line not in copied_text] == []
