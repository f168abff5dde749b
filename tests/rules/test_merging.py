"""Findings with one answer are told as one."""

from __future__ import annotations

from wavecast.isa.instruction import SourceLocation
from wavecast.rules import RULES
from wavecast.rules.finding import Finding, Severity
from wavecast.rules.merging import join_findings

NARROW = " move 2 bytes per lane: rows do not begin at multiples of 16 elements"


def finding(
    about: str, rest: str = NARROW, rule: str = "unaligned-stride", severity: Severity = "note"
) -> Finding:
    line = SourceLocation("k.py", 10 + len(about), 0)
    message = f"{about}{rest}"
    return Finding(rule, severity, message, "4 loads", "Pad.", line, about=about)


def test_what_holds_for_several_tensors_is_said_once() -> None:
    group = [finding("loads of R"), finding("stores of Z"), finding("loads of Y")]
    one = join_findings(group)
    assert one.message == f"loads of R and Y and stores of Z{NARROW}"
    assert one.evidence == "4 loads"
    assert len(one.locations) == len(group)


def test_no_rule_name_in_the_prose_and_the_gravest_severity() -> None:
    other = finding("loads of R", " cross lines", "narrow-global-access", "warning")
    one = join_findings([finding("loads of R"), other])
    assert one.rule == "unaligned-stride"
    assert one.severity == "warning"
    assert one.evidence == "4 loads; also: loads of R cross lines"
    assert not [name for name in RULES if name in one.message + one.evidence]


def test_more_than_two_messages_are_counted() -> None:
    one = join_findings([finding("loads of R", f" move {n} bytes") for n in (1, 2, 4, 8)])
    assert one.message == "loads of R move 1 bytes; loads of R move 2 bytes; and 2 more"
