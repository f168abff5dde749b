"""A validation as text, JSON, HTML and Markdown."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from tests.benchmarking.accuracy.sample import case, outcome
from tests.report.browser import CHROMIUM, Page
from wavecast.benchmarking.accuracy import coverage, ranking, scores
from wavecast.benchmarking.accuracy.cases import MeasuredFigure
from wavecast.benchmarking.accuracy.result import ChoiceScore, FigureScore, MeasuredFile, Validation
from wavecast.report.validation import html, markdown, terminal
from wavecast.report.validation import json as validation_json


@pytest.fixture(scope="module")
def validation() -> Validation:
    outcomes = [
        outcome(
            1.1 if n % 2 else 0.9,
            1000 * (n + 1),
            dtype="bf16" if n % 3 else "fp8",
            device="mi300x" if n % 5 else "mi355x",
            group=f"<model {n % 7}>",
        )
        for n in range(60)
    ]
    outcomes += [outcome(1.3, 4096, fast=True, problem="p"), outcome(0.7, 4096, problem="p")]
    figure = MeasuredFigure(
        kind="latency", name="l2", device="mi300x", measured=100.0, expected=110.0, unit="cycles"
    )
    assert case(1, 1.0).op is not None
    return Validation(
        files=(
            MeasuredFile(
                Path("a&b.csv"),
                "sample",
                70,
                69,
                65,
                62,
                1,
                {"<no> |clock|": 3, "odd: 1": 4, "odd: 2": 5},
            ),
        ),
        outcomes=tuple(outcomes),
        figures=(figure,),
        scores=scores.table(outcomes),
        rankings=ranking.rank(outcomes),
        choices=(ChoiceScore("copy", "class", 10, 0.7),),
        coverage=coverage.coverage(outcomes),
        figure_scores=(
            FigureScore("latency", "mi300x", "cycles", scores.error([110.0], [100.0]), 2),
            FigureScore("bandwidth", "mi300x", "GB/s", None, 1),
        ),
        worst={"copy": tuple(outcomes[-2:])},
        seconds=0.1,
    )


@pytest.mark.parametrize("detail", ["brief", "normal", "full"])
def test_text_says_scores_and_why_rows_are_missing(
    validation: Validation, detail: terminal.Detail
) -> None:
    stream = io.StringIO()
    terminal.render(validation, Console(file=stream, width=160), detail)
    text = stream.getvalue()
    assert re.search(r"copy +62 +10\.0%", text)
    assert "3 not predicted: <no> |clock|" in text
    assert "named right in 70.0% of 10 problems" in text
    assert ("dtype fp8" in text) is (detail != "brief")
    assert ("predicted 2.05 µs, measured 1.58 µs (1.30×)" in text) is (detail != "brief")
    assert "limiter" not in text


def test_json_follows_its_schema(validation: Validation) -> None:
    document = json.loads(validation_json.dumps(validation))
    jsonschema.validate(document, validation_json.schema())
    assert "cases" not in document
    (copy,) = [row for row in document["scores"] if not row["by"]]
    assert copy["n"] == 62
    assert copy["median"] == pytest.approx(0.1)
    assert document["rankings"][0]["problems"] == 1
    assert document["figures"][1]["error"] is None
    cases = json.loads(validation_json.dumps(validation, cases=True))
    jsonschema.validate(cases, validation_json.schema())
    assert len(cases["cases"]) == 62


def test_html_is_escaped_and_needs_nothing_from_outside(validation: Validation) -> None:
    page = html.render(validation)
    assert "a&amp;b.csv" in page
    assert "&lt;no&gt;" in page
    assert "<no>" not in page
    assert page.count('class="plot residuals"') == 3
    assert not re.search(r"(src|href)=\"(?!#)", page)
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM, reason="no Chromium in PATH")
def test_the_page_draws_a_dot_per_problem_inside_its_plots(
    validation: Validation, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(html.render(validation), encoding="utf-8")
    with Page() as page:
        page.open(file)
        assert page.problems == []
        assert page.run("document.querySelectorAll('figure circle').length") == 2 * 62
        assert page.run(
            "[...document.querySelectorAll('figure svg')].every(svg => {"
            "  const frame = svg.getBoundingClientRect();"
            "  return [...svg.querySelectorAll('circle, rect, text')].every(mark => {"
            "    const box = mark.getBoundingClientRect();"
            "    return box.left >= frame.left - 3 && box.right <= frame.right + 3"
            "      && box.top >= frame.top - 3 && box.bottom <= frame.bottom + 3;"
            "  });"
            "})"
        )
        assert not page.run(
            "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )


def test_markdown_holds_scores_and_no_measurements(validation: Validation) -> None:
    page = markdown.document(validation)
    assert "| copy | 62 | 10.0% |" in page
    assert "| copy | fp8 | 20 |" in page
    assert "3 not predicted: <no> |clock|" in page
    assert "9 not predicted: odd\n" in page
    assert "4096" not in page
    tables = [line for line in page.splitlines() if line.startswith("|")]
    assert tables
    assert all(line.endswith("|") for line in tables)
