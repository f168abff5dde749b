"""docs/ops is what the descriptions and the survey say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

from wavecast.kernels import registry
from wavecast.report.library import operators as library

pytestmark = pytest.mark.torch
ROOT = Path(__file__).parents[2]
AGAIN = "wavecast ops --survey results/ops.json --pages docs/ops"


def test_every_operator_has_the_page_its_description_makes() -> None:
    stored = json.loads((ROOT / "results" / "ops.json").read_text(encoding="utf-8"))
    found = library.from_document(stored)
    operators = registry.operators()
    pages = {path.stem for path in (ROOT / "docs" / "ops").glob("*.md")}
    assert pages == {*operators, "README"}
    for name, operator in operators.items():
        text = (ROOT / "docs" / "ops" / f"{name}.md").read_text(encoding="utf-8")
        assert text == library.page(operator, registry.family(name), found), AGAIN


def test_no_judged_shape_spills_on_amd() -> None:
    """Of the survey as it is stored: the first shape of every operator on five targets, all shapes
    on gfx942 and gfx950."""
    stored = json.loads((ROOT / "results" / "ops.json").read_text(encoding="utf-8"))
    for one in library.from_document(stored):
        if not one.device.startswith(("h100", "h200", "b200", "a100")):
            assert not one.failure, one
            assert not one.spills, one
