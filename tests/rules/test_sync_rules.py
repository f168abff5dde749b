"""The rules on missing waits and hazards: what fires, where, and what does not."""

from __future__ import annotations

import pytest

from tests.rules.support import assembly_subject
from wavecast import rules
from wavecast.rules import Finding

LOAD = "global_load_dword v1, v0, s[0:1]"
USE = "v_add_f32_e32 v2, 1.0, v1"


def found(name: str, *body: str, target: str = "gfx942") -> tuple[Finding, ...]:
    text = "\n".join(f"\t{line}" for line in body)
    return rules.check(assembly_subject(text, target), only=[name])


def test_a_load_used_without_a_wait() -> None:
    (finding,) = found("missing-wait", LOAD, USE)
    assert finding.severity == "error"
    assert finding.instruction == 1
    assert finding.message == f"`{USE}` reads v1 before `{LOAD}` is sure to have written it"
    assert "s_waitcnt vmcnt(0)" in finding.advice


def test_the_place_is_the_line_of_the_assembly() -> None:
    subject = assembly_subject(f"\t{LOAD}\n\t{USE}", file="k.s")
    (finding,) = rules.check(subject, only=["missing-wait"])
    assert finding.location is not None
    assert finding.location.file == "k.s"
    assert finding.location.line == 5
    assert "assembly line 5" in finding.evidence
    assert "instruction 0, line 4" in finding.evidence


def test_a_wait_and_no_finding() -> None:
    assert found("missing-wait", LOAD, "s_waitcnt vmcnt(0)", USE) == ()


def test_one_finding_per_load() -> None:
    assert len(found("missing-wait", LOAD, USE, "v_mul_f32_e32 v3, 2.0, v1")) == 1


def test_at_most_ten_and_the_rest_is_counted() -> None:
    loads = [f"ds_read_b32 v{10 + n}, v0" for n in range(13)]
    uses = [f"v_mov_b32_e32 v9, v{10 + n}" for n in range(13)]
    findings = found("missing-wait", *loads, *uses)
    assert len(findings) == 10
    assert "3 more instructions" in "".join(finding.evidence for finding in findings)


def test_a_hazard() -> None:
    (finding,) = found("hazard", "v_readlane_b32 s2, v0, 3", "v_mov_b32_e32 v1, s2")
    assert finding.severity == "error"
    assert "after 0 of 2 wait states" in finding.message
    assert finding.advice == "Put `s_nop 1` between the two."
    assert found("hazard", "v_readlane_b32 s2, v0, 3", "s_nop 1", "v_mov_b32_e32 v1, s2") == ()


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_other_generations(target: str) -> None:
    load = "global_load_b32 v1, v0, s[0:1]"
    (finding,) = found("missing-wait", load, USE, target=target)
    counter = "s_waitcnt vmcnt(0)" if target == "gfx1100" else "s_wait_loadcnt 0x0"
    assert counter in finding.advice
