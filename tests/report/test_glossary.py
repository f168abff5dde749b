"""docs/glossary.md explains what reports print: column heads, limiters, causes, statuses."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from wavecast.arch import PIPES
from wavecast.arch import STATUSES as FACT_STATUSES
from wavecast.benchmarking.compare.verdict import FigureVerdict
from wavecast.benchmarking.gate.verdict import Status
from wavecast.perfmodel.coefficients import STATUSES as COEFFICIENT_STATUSES
from wavecast.perfmodel.prediction import FIDELITIES
from wavecast.perfmodel.simulation.causes import BUSY, CAUSES
from wavecast.report.explain import terminal
from wavecast.report.explain import words as names
from wavecast.report.validation import words as validation_words

ROOT: Final = Path(__file__).parents[2]
REPORT: Final = ROOT / "wavecast/report"
LINK: Final = "glossary.md"

_EVERYDAY: Final = """
a after argument at before bytes by change command compared count cycles data do each
error evidence expected figure file first found from gpu in instr. instruction
interval kernel limited line loop mean measured median name not now of op over
per predicted ratio rates reached reason record responsible row second seen set
share source step tenth time times to triton unit value verdict what why worst
high low and class id difference for host launches library module the there
"""
EVERYDAY: Final = frozenset(_EVERYDAY.split())
"""Words of column heads that need no explanation."""


def glossary() -> str:
    return (ROOT / "docs" / LINK).read_text(encoding="utf-8")


def terms() -> set[str]:
    """The terms of the glossary in lower case, the statuses of its table among them."""
    text = glossary()
    heads = re.findall(r"^- \*\*(.+?)\*\*: \S", text, re.MULTILINE)
    rows = re.findall(r"^\| `(.+?)` \| \S", text, re.MULTILINE)
    return {term.strip().lower() for head in [*heads, *rows] for term in head.split(", ")}


def explained(text: str, known: set[str]) -> bool:
    """Whether a head or name is made of terms, their plurals, and everyday words."""
    left = "" if text.lower() in known else text.lower()
    for term in sorted((term for term in known if " " in term), key=len, reverse=True):
        left = re.sub(rf"\b{re.escape(term)}s?\b", " ", left)
    words = {word for word in re.split(r"[ ,/]+", left) if word}
    return all({word, word.removesuffix("s")} & (known | EVERYDAY) for word in words)


def column_heads() -> set[str]:
    """Heads of the tables of terminal text and HTML pages."""
    found = {title for title, _ in terminal._COLUMNS.values()}
    for path in sorted(REPORT.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                found |= _heads_of(node)
    for path in sorted((REPORT / "templates").glob("*.j2")):
        text = path.read_text(encoding="utf-8")
        found |= set(re.findall(r"<(?:th|dt)[^>]*>([^<{]+)</(?:th|dt)>", text))
    return {head.strip() for head in found if head.strip()}


def _heads_of(call: ast.Call) -> set[str]:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name == "plain_table":
        firsts = [a.elts[0] for a in call.args if isinstance(a, ast.Tuple)]
    elif name == "add_column":
        firsts = call.args[:1]
    else:
        return set()
    return {f.value for f in firsts if isinstance(f, ast.Constant) and isinstance(f.value, str)}


def unexplained(printed: set[str]) -> list[str]:
    """The names that docs/glossary.md lacks."""
    known = terms()
    return sorted(name for name in printed if not explained(name, known))


def test_every_column_head_is_explained() -> None:
    heads = column_heads()
    assert {"VGPR", "waves/SIMD", "floor", "Ridge", "WMAPE"} <= heads
    assert not unexplained(heads)


@pytest.mark.parametrize(
    ("what", "printed"),
    [
        ("limiters", {*BUSY, "atomics", "latency", "launch", "writes"}),
        ("causes", set(CAUSES)),
        ("pipes", {say.pipe(pipe) for pipe in PIPES for say in (names.AMD, names.NVIDIA)}),
        ("resources", {*names.AMD.resources.values(), *names.NVIDIA.resources.values()}),
        ("units", {names.AMD.residency, names.AMD.unit, names.WGP.unit, names.NVIDIA.unit}),
        ("fidelities", set(FIDELITIES)),
        ("statuses", {*FACT_STATUSES, *COEFFICIENT_STATUSES}),
        ("baselines", set(validation_words.BASELINES.values())),
        ("verdicts", {*FigureVerdict, *Status}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_name_of_reports_is_explained(what: str, printed: set[str]) -> None:
    assert not unexplained(printed), f"{what} without a line in docs/glossary.md"


def test_an_unknown_name_is_not_explained() -> None:
    assert not explained("flux capacity", terms())


def test_groups_are_sorted_and_terms_are_unique() -> None:
    seen: list[str] = []
    for group in glossary().split("\n## ")[1:]:
        heads = [head.lower() for head in re.findall(r"^- \*\*(.+?)\*\*: ", group, re.MULTILINE)]
        assert heads == sorted(heads)
        seen += heads
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize(
    "path",
    ["README.md", "docs/system.md", "docs/predict.md", "wavecast/report/templates/page.html.j2",
     "wavecast/cli/explain.py"],
)  # fmt: skip
def test_the_glossary_is_linked(path: str) -> None:
    assert f"docs/{LINK}" in (ROOT / path).read_text(encoding="utf-8")
