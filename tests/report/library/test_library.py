"""Surveyed calls of operators as JSON, and back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.documents.support import validated
from wavecast.errors import InputError
from wavecast.pipeline.library.library import KernelFacts, Surveyed
from wavecast.report.kit.terminal import plain
from wavecast.report.library import operators

KERNEL = KernelFacts(
    "add_kernel", "BLOCK=256", "formula", 12, 0, 0, 8.0, 4.6e-6, 4.3e-6, 7e-6, "launch", "static"
)
FOUND = (
    Surveyed("add", {"rows": 3, "dtype": "float32"}, "mi300x", (KERNEL,), 2.3e-6, "memory"),
    Surveyed("add", {"rows": 3}, "mi300x", failure="does not compile"),
)


def test_a_survey_comes_back() -> None:
    document = validated(operators.document(FOUND), "wavecast.ops/1")
    assert [call["share"] for call in document["calls"]] == [0.5, None]
    assert operators.from_document(document) == FOUND


@pytest.mark.parametrize("width", [80, 160])
def test_no_word_is_cut_in_a_terminal(width: int) -> None:
    long = replace(KERNEL, configuration="BLOCK_M=128, BLOCK_N=128, num_warps=8, num_stages=2")
    surveys = (replace(FOUND[0], kernels=(long,)), FOUND[1])
    text = plain(lambda console: operators.render(surveys, console), width)
    assert max(map(len, text.splitlines())) <= width
    words = text.split()
    for word in ("rows=3", "dtype=float32", "add_kernel", "predicted", "num_stages=2", "mi300x"):
        assert any(word in one for one in words), word
    assert "…" not in text
    assert "does not compile" in text
    assert text.startswith("call " if width == 160 else "add rows=3 dtype=float32\n")


def test_another_document_is_refused() -> None:
    with pytest.raises(InputError, match="no survey of operators"):
        operators.from_document({"schema": "wavecast.ops/2", "calls": []})
