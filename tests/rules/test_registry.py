"""The registry: what it lists, how findings are ordered, what a failing rule does."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.rules.support import assembly_subject
from wavecast import rules
from wavecast.errors import UnknownName
from wavecast.rules import Finding, Rule, RuleInput

RULE_FILES = Path(rules.__file__).parent


def test_every_rule_is_known_by_its_own_name() -> None:
    for name in rules.RULES:
        entry = rules.rule(name)
        assert entry.name == name
        assert entry.title
        assert "\n\nFires " in f"\n\n{entry.explanation}", name
        assert entry.severity in ("error", "warning", "note")


def test_every_file_with_a_rule_is_in_the_registry() -> None:
    listed = {module.rpartition(".")[2] for module in rules.RULES.values()}
    with_rule = {
        path.stem for path in RULE_FILES.glob("*.py") if "\nRULE = Rule(" in path.read_text()
    }
    assert with_rule == listed


def test_importing_the_package_loads_no_rule() -> None:
    code = (
        "import sys, wavecast.rules as r; print([m for m in r.RULES.values() if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_rule_is_an_error_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="register-spills"):
        rules.rule("register-spill")
    with pytest.raises(UnknownName):
        rules.check(assembly_subject("s_nop 0"), disabled=["no-such-rule"])


def test_a_rule_that_fails_hides_no_other_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(subject: RuleInput) -> list[Finding]:
        raise ZeroDivisionError("no lanes")

    module = import_module(rules.RULES["register-spills"])
    broken = Rule("register-spills", "warning", "Broken", "Fires never.", fail)
    monkeypatch.setattr(module, "RULE", broken)
    found = rules.check(assembly_subject("s_nop 0", dynamic_lds=1 << 20))
    by_rule = {finding.rule: finding for finding in found}
    assert "lds-over-limit" in by_rule
    failure = by_rule["register-spills"]
    assert failure.severity == "error"
    assert "register-spills" in failure.message
    assert failure.evidence == "ZeroDivisionError: no lanes"


def test_findings_come_by_severity_and_only_or_disabled_choose_rules() -> None:
    subject = assembly_subject("s_nop 0", grid=(200, 1, 1), dynamic_lds=1 << 20)
    found = rules.check(subject)
    assert [finding.rule for finding in found] == ["lds-over-limit", "grid-too-small"]
    only = rules.check(subject, only=["grid-too-small"])
    assert [finding.rule for finding in only] == ["grid-too-small"]
    rest = rules.check(subject, disabled=["lds-over-limit"])
    assert [finding.rule for finding in rest] == ["grid-too-small"]
