"""Reports for terminals as HTML pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.bar import Bar
from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tests.report.browser import CHROMIUM, Page
from wavecast.cli.explain import command
from wavecast.report.explain.terminal_tables import plain_table
from wavecast.report.kit.recorded_html import page, value_of
from wavecast.report.kit.terminal import heading

HOSTILE = "</script><img src=x onerror=\"document.title='run'\">"


def report(console: Console) -> None:
    table = plain_table(("kernel", False), ("time", True))
    table.add_row(Text(HOSTILE), "24.0 µs")
    table.add_row("softmax", Text("1.2 ms", style="bold red"))
    table.add_row("copy", "–")
    bars = Table.grid()
    bars.add_row("LDS", Bar(200, 0, 50))
    console.print(heading("Kernels", "of a script"))
    console.print(Padding(Group(table, bars), 2))
    console.print("[yellow]careful[/yellow] [not markup")
    console.print(HOSTILE, markup=False)
    console.print(Panel("framed"))


def body() -> str:
    text = page("title & more", report)
    return text[text.index("<main") : text.index("</main>")]


def test_headings_tables_and_texts_become_elements() -> None:
    text = body()
    assert '<h2><span class="bold">Kernels</span>' in text
    assert '<th>kernel</th><th class="n">time</th>' in text
    assert '<td class="n" data-value="0.0012"><span class="bold red">1.2 ms</span></td>' in text
    assert '<td class="n" data-value="">–</td>' in text
    assert '<i class="bar" style="width:min(60px,10.0vw)"></i>' in text
    assert '<span class="yellow">careful</span> [not markup' in text
    assert "framed" in text


def test_pages_have_the_head_of_others() -> None:
    text = page("title", report)
    assert '<svg viewBox="0 0 28 16" aria-hidden="true">' in text
    assert 'id="theme"' in text


def test_nothing_of_a_report_is_markup() -> None:
    assert "<img" not in body()
    assert body().count("&lt;img") == 2
    assert "<title>title &amp; more</title>" in page("title & more", report)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("24.0 µs", 24e-6), ("1,024", 1024.0), ("592 TFLOP/s", 592e12), ("4 KiB", 4096.0),
        ("45%", 45.0), ("−3.5 %", -3.5), ("~2 ms", 2e-3), ("3e-05", 3e-5), ("–", None), ("", None),
    ],
)  # fmt: skip
def test_cells_sort_by_their_value(text: str, value: float | None) -> None:
    assert value_of(text) == (pytest.approx(value) if value is not None else None)


def test_an_operation_has_a_page(tmp_path: Path) -> None:
    out = tmp_path / "gemm.html"
    arguments = ["gemm", "--shape", "512x512x512", "--dtype", "bf16", "-a", "mi300x,mi355x"]
    done = CliRunner().invoke(command, [*arguments, "-f", "html", "-o", str(out)])
    assert done.exit_code == 0, done.output
    text = out.read_text()
    assert text.index("<th>device</th>") < text.index("MI300X") < text.index("MI355X")


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium")
def test_tables_sort_and_filter(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page("report", report))
    with Page() as shown:
        shown.open(path)
        column = (
            "[...document.querySelectorAll('tbody tr:not([hidden]) td.n')].map(c => c.textContent)"
        )
        shown.run("document.querySelectorAll('th.n')[0].click()")
        assert shown.run(column) == ["1.2 ms", "24.0 µs", "–"]
        shown.run("filter.value = 'soft'; filter.dispatchEvent(new Event('input'))")
        assert shown.run(column) == ["1.2 ms"]
        assert shown.run("document.title") == "report"
        assert shown.problems == []


def wide(console: Console) -> None:
    table = plain_table(*((f"column {index}", True) for index in range(8)))
    table.add_row(*["1,024 TFLOP/s"] * 8)
    console.print(table)


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium")
def test_wide_tables_are_whole_on_a_narrow_screen(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page("report", wide))
    head = "getComputedStyle(document.querySelector('td:nth-child(8)'), '::before').content"
    with Page(width=400) as shown:
        shown.open(path)
        cut = "[...document.querySelectorAll('.scroll')].some(e => e.scrollWidth > e.clientWidth)"
        assert shown.run(cut) is False
        assert shown.run(head) == '"column 7"'
    with Page(width=1400) as shown:
        shown.open(path)
        assert shown.run(head) == "none"
