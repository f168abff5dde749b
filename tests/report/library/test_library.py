"""Surveyed calls of operators as JSON, and back."""

from __future__ import annotations

import pytest

from tests.documents.support import validated
from wavecast.errors import InputError
from wavecast.pipeline.library.library import KernelFacts, Surveyed
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


def test_another_document_is_refused() -> None:
    with pytest.raises(InputError, match="no survey of operators"):
        operators.from_document({"schema": "wavecast.ops/2", "calls": []})
