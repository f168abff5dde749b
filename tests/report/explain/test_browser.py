"""The page in a real browser: it loads clean, and its search and links work."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report import sample
from tests.report.browser import CHROMIUM, Page
from wavecast.report.explain import html as report_html

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium in PATH"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with Page() as page:
        yield page


@pytest.fixture
def page(browser: Page, tmp_path: Path) -> Page:
    return opened(browser, tmp_path, sample.report())


@pytest.fixture
def resized(browser: Page) -> Iterator[Page]:
    """The browser, whose window has the usual size again after the test."""
    yield browser
    browser.show()


def opened(browser: Page, folder: Path, report) -> Page:
    file = folder / "report.html"
    file.write_text(report_html.render(report), encoding="utf-8")
    browser.problems.clear()
    browser.requests.clear()
    browser.open(file)
    browser.wait(100)
    return browser


def texts(page: Page, selector: str) -> list[str]:
    found = f"[...document.querySelectorAll({selector!r})]"
    return page.run(f"{found}.filter(e => e.checkVisibility()).map(e => e.textContent)")


def source_row(line: int) -> str:
    return (
        "[...document.querySelectorAll('#k0 .sources .r')]"
        f".find(r => r.querySelector('a').textContent === '{line}')"
    )


def show_explorer(page: Page) -> None:
    page.run("document.querySelector('#k0 .explorer').scrollIntoView()")
    page.wait(150)


def test_page_loads_without_a_message_and_without_a_request(page: Page):
    assert page.problems == []
    assert all(url.startswith("file:") for url in page.requests)
    assert len(page.requests) == 1
    assert page.run("document.title") == "matmul.py · wavecast explain"
    assert page.run("document.documentElement.scrollWidth <= innerWidth")


def test_clicking_a_source_line_highlights_its_instructions(page: Page):
    show_explorer(page)
    page.run(f"{source_row(25)}.click()")
    marked = texts(page, "#k0 .asm .r.pin code")
    assert sum(text.startswith("v_mfma") for text in marked) == 4
    assert not any(text.startswith("buffer_load") for text in marked)


def test_clicking_an_instruction_highlights_its_source_line(page: Page):
    show_explorer(page)
    page.run("document.querySelector('#k0 .asm .r[data-i=\"10\"]').click()")
    assert texts(page, "#k0 .sources .r.pin a") == ["24"]


def test_hovering_lights_and_leaving_unlights(page: Page):
    show_explorer(page)
    over = "dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))"
    page.run(f"{source_row(24)}.{over}")
    assert len(texts(page, "#k0 .asm .r.lit")) == 3
    page.run("document.querySelector('#k0 .explorer').dispatchEvent(new MouseEvent('mouseleave'))")
    assert texts(page, "#k0 .asm .r.lit") == []


def test_search_filters_source_assembly_and_findings(page: Page):
    show_explorer(page)
    page.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}))")
    assert page.run("document.activeElement.id") == "search"
    page.run("search.value = 'V_MFMA'; search.dispatchEvent(new Event('input'))")
    page.wait(250)
    assert len(texts(page, "#k0 .asm .r[data-i]")) == 4
    assert texts(page, "#k0 .sources .r") == []
    assert "4 instructions" in page.run("found.textContent")
    page.run("search.value = 'tl.load(right)'; search.dispatchEvent(new Event('input'))")
    page.wait(250)
    assert texts(page, "#k0 .sources .r a") == ["24"]
    page.run("search.value = 'spill'; search.dispatchEvent(new Event('input'))")
    page.wait(250)
    assert len(texts(page, "#k0 .finding")) == 1
    page.run("search.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))")
    assert len(texts(page, "#k0 .asm .r[data-i]")) == 36


def test_tabs_switch_targets_and_side_by_side_shows_all(page: Page):
    page.run("document.querySelector('#k0t3tab').click()")
    assert "sm_90" in "".join(texts(page, "#k0 .headline"))
    page.run("document.querySelector('#k0 .side').click()")
    assert len(texts(page, "#k0 .panel")) == 4
    assert len(texts(page, "#k0 .asm")) == 4


def test_clicking_the_pressure_plot_goes_to_the_instruction(page: Page):
    page.run(
        "(() => { const p = document.querySelector('#k0 .pressure'), b = p.getBoundingClientRect();"
        "p.dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: b.left + b.width / 2,"
        "clientY: b.top + 20})); })()"
    )
    (index,) = page.run(
        "[...document.querySelectorAll('#k0 .asm .r.pin')].map(r => Number(r.dataset.i))"
    )
    assert 16 <= index <= 20


def test_theme_follows_the_system_and_toggles(page: Page):
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.run(colour)
    page.run("document.querySelector('#theme').click()")
    assert page.run(colour) != before
    page.run("document.querySelector('#theme').click()")
    assert page.run(colour) == before


def test_hostile_names_run_nothing(browser: Page, tmp_path: Path):
    page = opened(browser, tmp_path, sample.hostile_report())
    show_explorer(page)
    page.run("document.querySelector('#search').value = 'script'")
    page.run("search.dispatchEvent(new Event('input'))")
    page.wait(250)
    assert page.run("document.title").startswith("<script>document.title='owned'</script>.py")
    assert page.run("document.querySelectorAll('script').length") == 2
    assert page.problems == []


def test_a_long_kernel_opens_whole(browser: Page, tmp_path: Path):
    page = opened(browser, tmp_path, sample.long_report(20_000))
    show_explorer(page)
    assert page.run("document.querySelectorAll('#k0 .asm .r[data-i]').length") == 20_000
    assert page.problems == []


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (1280, True), (800, False), (400, False)]
)
def test_screenshot_shows_something(resized: Page, tmp_path: Path, width: int, dark: bool):
    resized.show(width, 700, dark)
    page = opened(resized, tmp_path, sample.report())
    image = page.screenshot()
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    size, colours = png_statistics(image)
    assert size == (width, 700)
    assert colours > 40


@pytest.mark.parametrize("width", [400, 800, 1100, 1280])
def test_no_column_of_the_comparison_is_out_of_sight(resized: Page, tmp_path: Path, width: int):
    resized.show(width, 700)
    page = opened(resized, tmp_path, sample.report())
    furthest = page.run(
        "Math.max(...[...document.querySelectorAll('.compare td')]"
        ".map(e => e.getBoundingClientRect().right))"
    )
    assert furthest <= width


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_text_of_plots_has_one_size_on_every_screen(resized: Page, tmp_path: Path, width: int):
    resized.show(width, 700)
    page = opened(resized, tmp_path, sample.report())
    sizes = page.run(
        "[...document.querySelectorAll('.plot text')].filter(e => e.getClientRects().length)"
        ".map(e => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().d)"
        ".filter(size => size)"
    )
    assert sizes
    assert 10 <= min(sizes) <= max(sizes) <= 13
    assert page.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [400, 500, 800])
def test_the_points_of_a_roofline_are_in_sight_and_its_labels_apart(
    resized: Page, tmp_path: Path, width: int
):
    resized.show(width, 700)
    page = opened(resized, tmp_path, sample.report())
    points = page.run(
        "[...document.querySelectorAll('.roofline circle')].map(e => e.getBoundingClientRect())"
        ".map(r => [r.left, r.right])"
    )
    assert points
    assert all(0 < left < right < width for left, right in points)
    boxes = page.run(
        "[...document.querySelector('.roofline').querySelectorAll('text')]"
        ".map(e => e.getBoundingClientRect()).map(r => [r.left, r.top, r.right, r.bottom])"
    )
    assert all(right <= width for _, _, right, _ in boxes)
    for (left, top, right, bottom), other in itertools.combinations(boxes, 2):
        apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
        assert apart, (width, left, top, other)


def png_statistics(image: bytes) -> tuple[tuple[int, int], int]:
    """Width and height of a PNG, and how many different bytes its pixel data holds."""
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    size = struct.unpack(">II", image[16:24])
    data, position = b"", 8
    while position < len(image):
        length, kind = struct.unpack(">I4s", image[position : position + 8])
        if kind == b"IDAT":
            data += image[position + 8 : position + 8 + length]
        position += 12 + length
    return (size[0], size[1]), len(set(zlib.decompress(data)))
