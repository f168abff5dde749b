"""Plots of profiles: areas are times; the page runs clean in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.browser import CHROMIUM, Page
from wavecast.profiles.answer import ProfileAnswer
from wavecast.profiles.profile import Profile, ProfiledKernel, ProfiledOp
from wavecast.profiles.summary import summarise
from wavecast.report.profiles import html
from wavecast.report.profiles.plot import Box, boxes


@pytest.mark.parametrize("sizes", [[6, 6, 4, 3, 2, 2, 1], [5], [1e9, 1], [3] * 40])
def test_boxes_fill_the_area_in_proportion(sizes: list[float]) -> None:
    found = boxes(sizes, Box(10, 20, 300, 200))
    scale = 300 * 200 / sum(sizes)
    for size, box in zip(sizes, found, strict=True):
        assert box.width * box.height == pytest.approx(size * scale)
        assert box.x >= 10
        assert box.x + box.width <= 310.001
        assert box.y >= 20
        assert box.y + box.height <= 220.001


def _answer() -> ProfileAnswer:
    profile, now = Profile("test"), 0
    for name, duration in (("Cijk_a", 40_000), ("ncclDevKernel_b", 10_000), ("Cijk_a", 30_000)):
        kernel = profile.kernels.number(ProfiledKernel(name, (4, 1, 1), (256, 1, 1)))
        profile.launches.add(kernel, 0, 0, now, duration)
        profile.launches.op[-1] = len(profile.ops)
        profile.ops.add(profile.op_infos.number(ProfiledOp(f"op of {name}")), 0, now, 5)
        now += duration + 2_000
    return ProfileAnswer(Path("t.json"), profile, summarise(profile), {}, ())


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM, reason="no Chromium in PATH")
def test_the_page_zooms_sorts_and_searches(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(html.render([_answer()]), encoding="utf-8")
    with Page(width=420) as page:
        page.open(file)
        page.wait(100)
        assert page.run("document.documentElement.scrollWidth") == 420
        assert page.run("timelines[0].at(1, 18 + 16 + 5)").startswith("40 µs at 0 ns, measured")
        page.run("document.querySelector('[data-zoom=in]').click()")
        assert page.run("timelines[0].to - timelines[0].from") == 42_000
        page.run("[...document.querySelectorAll('details')].forEach(one => one.open = true)")
        heads = "document.querySelector('table.sortable').tHead.rows[0].cells"
        names = "[...document.querySelectorAll('table.sortable')][0].tBodies[0].rows[0].cells[0]"
        page.run(f"{heads}[1].click()")
        assert page.run(f"{heads}[1].getAttribute('aria-sort')") == "descending"
        page.run(f"{heads}[1].click()")
        assert page.run(f"{names}.textContent") != ""
        page.run("filter.value = 'nccl'; filter.dispatchEvent(new Event('input'))")
        shown = "[...document.querySelectorAll('table.sortable tbody tr')].filter(r => !r.hidden)"
        assert page.run(f"{shown}.every(r => r.textContent.toLowerCase().includes('nccl'))")
        assert page.run(f"{shown}.length") > 0
        assert page.problems == []
        assert page.requests == [file.as_uri()]
