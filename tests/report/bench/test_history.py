"""The page of a history: what it shows, what it needs, and its filter in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.benchmarking.history.sample import nightly
from tests.report.browser import CHROMIUM, Page
from wavecast.benchmarking.history.series import History, SeriesFilter, history
from wavecast.report.bench import history as words
from wavecast.report.bench import history_html


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> History:
    runs = nightly([""] * 20)
    records = {run.id: records for run, records in runs}
    folder = tmp_path_factory.mktemp("nowhere")
    return history(records, [run for run, _ in runs], SeriesFilter(), folder)


def test_the_page_needs_nothing_else(found: History) -> None:
    page = history_html.render(found)
    assert page.count("<article") == page.count('<svg class="plot history"') == 6
    assert page.count('class="change worse"') == page.count('class="change better"') == 2
    assert "triton 3.8.0 → 3.9.0" in page
    assert "http" not in page.replace("http-equiv", "")
    changed = ["data-changed" in one for one in re.findall(r"<article[^>]*>", page)]
    assert changed == [True, True, False, False, False, False]


def test_names_are_text_not_markup() -> None:
    ((run, (record, _)),) = nightly(["0123456789<b>"])
    object.__setattr__(record.subject, "name", "<script>alert(1)</script>[red]")
    told = history({run.id: [record]}, [run], SeriesFilter(), Path("/"))
    page = history_html.render(told)
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([1.0, 1.0, 2.0], "▁▁█"),
        ([5.0, 5.0], "▄▄"),
        ([0.0], "▄"),
        ([1.0] * 79 + [9.0], "▁" * 39 + "█"),
    ],
)
def test_sparklines(values: list[float], line: str) -> None:
    assert words.sparkline(values) == line


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM, reason="needs headless Chromium")
def test_the_filter(found: History, tmp_path: Path) -> None:
    path = tmp_path / "history.html"
    path.write_text(history_html.render(found), encoding="utf-8")
    shown = "[...document.querySelectorAll('article')].filter(a => !a.hidden).length"
    with Page(dark=True) as page:
        page.open(path)
        assert page.run(shown) == 6
        typed = "filter.value = 'SOFTMAX spills'; filter.dispatchEvent(new Event('input'))"
        page.run(typed)
        assert page.run(shown) == 1
        page.run("filter.value = ''; only.click()")
        assert page.run(shown) == 2
        assert page.run("document.getElementById('shown').textContent") == "2 of 6"
        titles = "document.querySelectorAll('.run title').length"
        assert page.run(titles) == 6 * 20
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        assert not page.problems
        assert all(request.startswith("file:") for request in page.requests)
