from __future__ import annotations

import html.parser
import json
import re

import pytest

from tests.report import sample
from wavecast.report.explain import html as report_html

VOID = {"meta", "input", "br", "link", "img", "hr"}
SVG_LEAVES = {"path", "circle"}


class Reader(html.parser.HTMLParser):
    """Checks that elements nest, and keeps what a test asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.scripts: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.problems: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> at line {self.getpos()[0]}")

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


@pytest.fixture(scope="module")
def page() -> str:
    return report_html.render(sample.report())


@pytest.mark.parametrize(
    "report",
    [sample.report(), sample.hostile_report(), sample.empty_report()],
    ids=["rich", "hostile", "empty"],
)
def test_elements_nest_and_ids_are_unique(report):
    reader = read(report_html.render(report))
    assert reader.problems == []
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))


def test_nothing_is_loaded_and_nothing_inline_runs(page):
    reader = read(page)
    for tag, name, value in reader.attributes:
        assert name not in {"src", "srcset", "data", "action"}, (tag, name, value)
        assert not name.startswith("on"), (tag, name)
        if name == "href":
            assert (value or "").startswith("#"), value
    assert "url(" not in page
    assert "@import" not in page
    assert len(reader.scripts) == 2


def test_policy_allows_only_the_pages_script(page):
    (policy,) = [
        value or "" for _, name, value in read(page).attributes
        if name == "content" and "default-src" in (value or "")
    ]  # fmt: skip
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert "sha256-" in directives["script-src"]
    assert "unsafe" not in directives["script-src"]


def test_names_and_source_cannot_break_out():
    text = report_html.render(sample.hostile_report())
    reader = read(text)
    assert len(reader.scripts) == 2
    assert not any(tag == "img" for tag, _, _ in reader.attributes)
    assert "<script>document" not in text
    assert "<script>document" not in report_html.fragment(sample.hostile_report())
    island = json.loads(reader.scripts[0])
    assert island["kernels"][0]["targets"][0]["labels"][0][1].startswith("<script>document")


def test_island_maps_instructions_to_source_lines(page):
    target = json.loads(read(page).scripts[0])["kernels"][0]["targets"][0]
    matrix = next(i for i, text in enumerate(target["text"]) if text.startswith("v_mfma"))
    (line,) = target["chains"][target["chain"][matrix]]
    assert re.search(rf'data-s="{line}"[^<]*<i class="h"></i><a[^>]*>25</a>', page)
    assert target["labels"][1][:3] == [8, ".LBB0_1", 1]
    assert "executed 64× per wave" in target["labels"][1][3]


def test_inlined_code_names_its_own_line_and_the_call():
    target = json.loads(read(report_html.render(sample.report())).scripts[0])["kernels"][1]
    first = target["targets"][0]
    inlined = next(i for i, text in enumerate(first["text"]) if text.startswith("v_max3"))
    assert len(first["chains"][first["chain"][inlined]]) == 2


def test_sass_is_listed_with_its_lines(page):
    target = json.loads(read(page).scripts[0])["kernels"][0]["targets"][3]
    hgmma = next(i for i, text in enumerate(target["text"]) if "HGMMA" in text)
    assert target["chains"][target["chain"][hgmma]]


def test_a_long_kernel_stays_compact():
    text = report_html.render(sample.long_report(20_000))
    assert len(text) < 3_000_000
    assert text.count("<div") < 2_000


def test_same_report_same_page(page):
    assert report_html.render(sample.report()) == page


def test_fragment_is_a_part_of_a_page_without_script():
    text = report_html.fragment(sample.report())
    reader = read(text)
    assert reader.problems == []
    assert reader.scripts == []
    assert "<html" not in text
    assert "gfx942 (MI300X)" in text
