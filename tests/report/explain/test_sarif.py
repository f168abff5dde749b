from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

import pytest

from tests.report import sample
from wavecast.report.explain import sarif
from wavecast.rules.finding import Rule

RULE = Rule(
    "spills", "error", "Registers are spilled", "Spilled registers cost memory.", lambda _: ()
)


@pytest.fixture(scope="module")
def document() -> dict:
    return sarif.document(sample.report(), [RULE])


def results(document: dict) -> list[dict]:
    return document["runs"][0]["results"]


def test_the_log_has_what_the_standard_requires(document):
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    driver = document["runs"][0]["tool"]["driver"]
    assert driver["name"] == "wavecast"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", driver["semanticVersion"])
    for result in results(document):
        assert result["message"]["text"]
        assert result["level"] in {"none", "note", "warning", "error"}
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        for location in (*result["locations"], *result.get("relatedLocations", ())):
            physical = location["physicalLocation"]
            assert urlsplit(physical["artifactLocation"]["uri"]).path
            region = physical.get("region", {"startLine": 1})
            assert region["startLine"] >= 1
            assert region.get("startColumn", 1) >= 1


def test_every_finding_is_a_result_at_its_line(document):
    report = sample.report()
    assert len(results(document)) == sum(len(e.findings) for e in report.explanations)
    narrow = next(r for r in results(document) if r["ruleId"] == "scalar-width-access")
    physical = narrow["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "file:///home/user/matmul.py"
    assert physical["region"] == {"startLine": 24, "startColumn": 8}
    assert narrow["level"] == "warning"
    assert narrow["properties"]["arch"] == "gfx942"
    assert narrow["properties"]["kernel"] == "matmul_kernel"


def test_a_finding_without_a_line_stands_at_the_kernel(document):
    note = next(r for r in results(document) if r["level"] == "note")
    region = note["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 10}


def test_rules_are_described_where_they_are_known(document):
    rules = {rule["id"]: rule for rule in document["runs"][0]["tool"]["driver"]["rules"]}
    assert rules["spills"]["shortDescription"]["text"] == RULE.title
    assert rules["spills"]["defaultConfiguration"] == {"level": "error"}
    assert rules["scalar-width-access"] == {"id": "scalar-width-access"}


def test_failures_are_notifications(document):
    invocation = document["runs"][0]["invocations"][0]
    assert invocation["executionSuccessful"] is False
    texts = [n["message"]["text"] for n in invocation["toolExecutionNotifications"]]
    assert texts[0] == "fp8_kernel for gfx1100: fp8 dot is not supported (use bf16)"


def test_the_log_is_json_without_nan():
    json.dumps(sarif.document(sample.report()), allow_nan=False)
    assert results(sarif.document(sample.empty_report())) == []
