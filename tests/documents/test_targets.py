"""docs/targets.md says what works on each target: every cell is tried."""

from __future__ import annotations

import pytest

from tests.documents.targets.table import PAGE, TARGETS, cells, page, stated, works
from tests.targets import thorough_beyond

pytest.importorskip("ziglang", reason="needs a HIP compiler")
pytestmark = [pytest.mark.torch, pytest.mark.hip]
QUICK = [("gfx1250", "Triton", "check"), ("gfx1030", "Triton", "run"), ("sm_90", "HIP", "run")]


def test_page() -> None:
    """The table has a cell for every target, input and verb, as it would be written again."""
    text = PAGE.read_text(encoding="utf-8")
    answers = stated(text)
    assert set(answers) == {(target, *column) for target in TARGETS for column in cells()}
    assert page(text, lambda *cell: answers[cell]) == text


@pytest.mark.parametrize(
    ("target", "name", "verb"),
    thorough_beyond(QUICK, [(target, *column) for target in TARGETS for column in cells()]),
)
def test_cell(target: str, name: str, verb: str) -> None:
    answers = stated(PAGE.read_text(encoding="utf-8"))
    assert works(target, name, verb) is answers[target, name, verb]
