"""A result with the fields of its document is the document's object: nothing is written twice."""

from __future__ import annotations

from pathlib import Path

from tests.structure.mirrors import mirrors

PARTS = "holds objects whose fields differ from those of the result"
COLUMNS = "the fields of the dataclass are columns of the store"
UNKNOWN = "a number that is unknown is NaN in the result"
KEPT = {
    "BaselineEntryJson": "an empty text is left out of the file",
    "CeilingJson": UNKNOWN,
    "CodeFigureJson": "the unit is an enum, which the document has as text",
    "ComparisonJson": "an element can be infinite or NaN, which the document has as null",
    "CompilerComparisonJson": PARTS,
    "ConditionsJson": COLUMNS,
    "CoverageJson": UNKNOWN,
    "DiffDocument": PARTS,
    "LineCostJson": UNKNOWN,
    "LocationJson": "isa imports no msgspec",
    "ModelFindingJson": PARTS,
    "ModelFindingsJson": PARTS,
    "ModuleFindingJson": PARTS,
    "ParameterJson": "a constant can be any object, which the document has as text",
    "RankingJson": UNKNOWN,
    "RunJson": COLUMNS,
    "SubjectJson": COLUMNS,
    "TokenCostJson": PARTS,
}
"""Classes of documents with exactly the fields of a result class, and why they are not one."""


def test_no_class_of_a_document_has_exactly_the_fields_of_its_result() -> None:
    equal = {one.document.name for one in mirrors() if not one.missing and not one.extra}
    assert equal == set(KEPT)


def test_a_planted_mirror_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Wave:\n    lanes: int\n    size: int\n    text: str\n")
    (tmp_path / "b.py").write_text(
        "class WaveJson:\n    lanes: int\n    size: int\n    kind: str\n"
    )
    assert mirrors(tmp_path) == []
    (tmp_path / "c.py").write_text("class WaveJson:\n    lanes: int\n")
    (found,) = mirrors(tmp_path)
    assert (found.result.name, found.missing, found.extra) == ("Wave", [], ["size", "text"])
