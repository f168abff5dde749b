from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tests.report import sample
from wavecast.report.explain import terminal
from wavecast.report.kit.terminal import plain


def shown(report, width=100, detail: terminal.Detail = "normal", **options) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, **options)
    terminal.render(report, console, detail=detail)
    return stream.getvalue()


@pytest.mark.parametrize("detail", ["brief", "normal", "full"])
@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(width, detail):
    lines = shown(sample.report(), width, detail).splitlines()
    assert max(len(line) for line in lines) <= width


def test_comparison_comes_first_with_one_line_per_kernel_and_target():
    text = shown(sample.report(), 160)
    head = text[: text.index("not explained")].splitlines()
    rows = [line.split() for line in head if line.startswith(("  gfx", "  sm_"))]
    assert [row[0] for row in rows] == ["gfx942", "gfx950", "gfx1100", "sm_90"] * 2
    assert rows[0][:5] == ["gfx942", "MI300X", "182+128", "40", "0"]


def test_two_chips_of_a_target_are_told_apart_at_any_width():
    report = sample.report()
    first = report.explanations[0]
    device = replace(first.device, identity=replace(first.device.identity, id="x", name="MI308X"))
    both = replace(report, explanations=(first, replace(first, device=device)))
    rows = [line.split() for line in shown(both, 60).splitlines() if line.startswith("  MI3")]
    assert [row[0] for row in rows] == ["MI300X", "MI308X"]


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_comparison_keeps_spills_times_and_findings(width):
    head = shown(sample.report(), width).split("not explained")[0]
    titles = next(line.split() for line in head.splitlines() if "waves/SIMD" in line)
    assert {"spills", "predicted", "findings"} <= set(titles)


def test_what_to_do_comes_before_the_facts():
    text = shown(sample.report())
    assert text.index("\nFindings") < text.index("\nLaunch and code") < text.index("\nLoops")


def test_lines_are_not_padded():
    text = plain(lambda console: terminal.render(sample.report(), console))
    assert text
    assert all(line == line.rstrip() for line in text.splitlines())
    assert text.splitlines() == [line.rstrip() for line in shown(sample.report()).splitlines()]


def test_one_explanation_needs_no_comparison():
    report = sample.report()
    single = replace(report, explanations=report.explanations[:1], notes=(), failures=())
    assert "waves/SIMD     main loop" not in shown(single)
    assert shown(single).startswith("gfx942 MI300X  matmul_kernel")


def test_headline_says_occupancy_loop_and_bound():
    text = " ".join(shown(sample.report()).split())
    assert "2 of 8 waves/SIMD, limited by VGPRs (310; 14 VGPRs fewer → 3 waves/SIMD)" in text
    assert "Main loop at line 22 needs the matrix pipe longest: 512 cycles per iteration" in text
    assert "waits on its own dependency chain: 780 cycles" in text
    assert "Cannot launch: one workgroup does not fit the WGP (VGPRs)." in text
    assert "Spills 6 VGPRs to memory." in text
    assert "Floor 105 µs (compute; 194 µs at sustained rates)." in text


def test_loops_that_cost_the_same_are_shown_once():
    report = sample.report()
    explanation = report.explanations[0]
    analysis = explanation.analysis
    (*_, last) = analysis.loops
    at = replace(last.location, line=99) if last.location else None
    copies = [replace(last, index=last.index + n, location=at) for n in (1, 2)]
    changed = replace(analysis, loops=(*analysis.loops, *copies))
    text = shown(replace(report, explanations=(replace(explanation, analysis=changed),)))
    line = last.location.line if last.location else "unknown"
    assert f"3 equal loops, lines {line}, 99" in text or f"3 equal loops, lines 99, {line}" in text
    once = tuple(replace(loop, trip_count=1.0) for loop in analysis.loops)
    changed = replace(analysis, loops=once)
    text = shown(replace(report, explanations=(replace(explanation, analysis=changed),)))
    assert "The loop at line 22 runs once; it needs" in " ".join(text.split())


def test_memory_of_a_workgroup_is_called_as_the_vendor_does():
    lines = shown(sample.report(), 160).splitlines()
    labels = [line.split()[0] for line in lines if "per workgroup" in line or "per block" in line]
    assert labels == ["LDS", "LDS", "LDS", "shared"] * 2


def test_findings_show_the_source_line_and_what_to_change():
    text = shown(sample.report())
    assert "warning scalar-width-access line 24: loads of b move 2 bytes per lane" in text
    assert "24 │ y = tl.load(right)" in text
    assert "→ transpose b" in text


def test_notes_and_failures_are_all_shown():
    report = sample.report()
    text = " ".join(shown(report).split())
    for note in report.notes:
        assert note in text
    for failure in report.failures:
        assert failure.message in text


def test_brief_is_shorter_and_full_longer_than_normal():
    brief, normal, full = (
        len(shown(sample.report(), detail=detail)) for detail in ("brief", "normal", "full")
    )
    assert brief < normal < full


def test_no_escape_codes_without_a_terminal_and_no_loss_without_colour():
    plain = shown(sample.report())
    assert "\x1b" not in plain
    coloured = shown(sample.report(), force_terminal=True, color_system="standard")
    assert "\x1b[" in coloured
    assert shown(sample.report(), force_terminal=True, no_color=True).count("\x1b[3") == 0


def test_control_characters_and_markup_of_names_do_nothing():
    report = sample.hostile_report("[red]k\x1b[2J[/red]")
    text = shown(report)
    assert "\x1b" not in text
    assert "[red]k�[2J[/red]" in text


def test_an_empty_report_shows_its_failures():
    assert "not explained k for gfx942 (parse): unknown opcode" in shown(sample.empty_report())
