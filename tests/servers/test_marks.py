"""What editors show of a report, and the text of logs, from the sample report."""

from __future__ import annotations

from pathlib import Path

from tests.report import sample
from wavecast.report.explain import brief
from wavecast.report.explain import json as json_report
from wavecast.servers.marks import marks

DOCUMENT = json_report.document(sample.report())


def test_findings_are_at_their_lines_and_failures_at_the_first() -> None:
    (source,) = {entry["code"]["source"] for entry in DOCUMENT["kernels"]}
    found = marks(DOCUMENT, Path(source))
    expected = {
        (line, finding["rule"])
        for entry in DOCUMENT["kernels"]
        for finding in entry["findings"]
        for line in finding["lines"]
    }
    assert {(mark.line, mark.rule) for mark in found.findings if mark.line > 1} == expected
    assert len(found.titles) == len(DOCUMENT["kernels"])
    failed = [mark for mark in found.findings if mark.line == 1]
    assert [mark.text for mark in failed] == [one["message"] for one in DOCUMENT["failures"]]


def test_another_file_has_no_marks_but_failures() -> None:
    found = marks(DOCUMENT, Path("another.py"))
    assert not found.titles
    assert not found.hovers
    assert len(found.findings) == len(DOCUMENT["failures"])


def test_the_text_for_logs_has_a_line_for_each_kernel_and_finding() -> None:
    lines = brief.lines(DOCUMENT).splitlines()
    findings = sum(len(entry["findings"]) for entry in DOCUMENT["kernels"])
    assert len(lines) == len(DOCUMENT["kernels"]) + findings + len(DOCUMENT["failures"])
    assert lines[0].startswith("matmul_kernel gfx942 ")
    assert " · 310 VGPR · no spills · 2/8 waves/SIMD" in lines[0]
