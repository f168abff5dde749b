"""Verdicts of a gate for machines: JSON, JUnit, SARIF, annotations of GitHub."""

from __future__ import annotations

import re
from typing import Any, Final
from xml.etree import ElementTree

from wavecast import json_objects
from wavecast.benchmarking.gate.verdict import GateVerdict, Judged, Status
from wavecast.benchmarking.kpis import KPIS
from wavecast.documents.gate import GateDocument, JudgedFigureJson
from wavecast.report.bench.gate import headline, line
from wavecast.report.explain import sarif

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids (section 2.2 of its recommendation)."""
_MEANINGS: Final = {
    Status.WRONG: "The result is wrong, or the figures cannot be true.",
    Status.FAILED: "The kernel could not be measured.",
    Status.GONE: "The baseline has the kernel, and it was not measured.",
    Status.NEW: "The baseline does not have the kernel.",
}


def document(verdict: GateVerdict) -> dict[str, Any]:
    """The verdict as JSON-ready values, schema `wavecast.gate/1`: what breaks the gate, what is
    new, what is better, and the number of figures that did not change."""
    return json_objects.values(
        GateDocument.of(
            verdict,
            ok=not verdict.broken,
            headline=headline(verdict),
            judged=[
                JudgedFigureJson.of(
                    judgement, location=judgement.location, breaks=verdict.breaks(judgement)
                )
                for judgement in verdict.changed
            ],
            same=len(verdict.of(Status.SAME)),
        )
    )


def junit(verdict: GateVerdict) -> str:
    """One test case per figure and per subject that has none, a suite per device. The format is the
    one Jenkins, GitLab and GitHub's reporters read: testsuites, testsuite, testcase, failure."""
    root = ElementTree.Element("testsuites", name="wavecast gate")
    totals = [0, 0]
    for device in dict.fromkeys(judgement.device for judgement in verdict.judged):
        mine = [judgement for judgement in verdict.judged if judgement.device == device]
        broken = sum(verdict.breaks(judgement) for judgement in mine)
        totals = [totals[0] + len(mine), totals[1] + broken]
        suite = ElementTree.SubElement(
            root, "testsuite", name=device, tests=str(len(mine)), failures=str(broken),
            errors="0", skipped="0",
        )  # fmt: skip
        for judgement in mine:
            case = ElementTree.SubElement(
                suite, "testcase", classname=_clean(f"{device}.{judgement.subject}"),
                name=judgement.kpi or str(judgement.status),
            )  # fmt: skip
            if judgement.location.file:
                case.set("file", _clean(judgement.location.file))
            if judgement.location.file and judgement.location.line:
                case.set("line", str(judgement.location.line))
            if verdict.breaks(judgement):
                text = _clean(line(judgement))
                failure = ElementTree.SubElement(
                    case, "failure", message=text, type=judgement.status
                )
                failure.text = text
            elif judgement.status is not Status.SAME:
                ElementTree.SubElement(case, "system-out").text = _clean(line(judgement))
    root.set("tests", str(totals[0]))
    root.set("failures", str(totals[1]))
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(
        root, encoding="unicode"
    )


def junit_of_error(text: str) -> str:
    """A report whose only test case is the gate, which could not judge."""
    clean = _clean(text)
    root = ElementTree.Element("testsuites", name="wavecast gate", tests="1", failures="0")
    suite = ElementTree.SubElement(
        root, "testsuite", name="gate", tests="1", failures="0", errors="1", skipped="0"
    )
    case = ElementTree.SubElement(suite, "testcase", classname="wavecast", name="gate")
    ElementTree.SubElement(case, "error", message=clean, type="error").text = clean
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(
        root, encoding="unicode"
    )


def sarif_of_error(text: str, file: str) -> dict[str, Any]:
    """A log whose only result is that the gate could not judge; `file` has its settings."""
    rule = {"id": "gate-error", "shortDescription": {"text": "The gate could not judge."}}
    result = {
        "ruleId": "gate-error",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": text},
        "locations": [sarif.physical_location(file, 1, 0)],
    }
    return sarif.run([rule], [result])


def sarif_log(verdict: GateVerdict) -> dict[str, Any]:
    """What breaks the gate as results of one run, with its warnings; the rule is the KPI, or the
    status where no figure is at fault."""
    reported = verdict.failures_and_warnings
    names = sorted({_rule(judgement) for judgement in reported})
    rules = []
    for name in names:
        status = next(judgement.status for judgement in reported if _rule(judgement) == name)
        kpi = KPIS.get(name.removeprefix("gate-").replace("-", "_"))
        text = f"Worse than the baseline allows: {kpi.meaning}." if kpi else _MEANINGS[status]
        rules.append({"id": name, "shortDescription": {"text": text}})
    results = [
        {
            "ruleId": _rule(judgement),
            "ruleIndex": names.index(_rule(judgement)),
            "level": _level(judgement),
            "message": {"text": line(judgement)},
            "locations": [_location(judgement)],
            "partialFingerprints": {
                "wavecast/1": f"{judgement.subject}:{judgement.device}:{_rule(judgement)}"
            },
            "properties": {
                "device": judgement.device,
                "before": judgement.before,
                "after": judgement.after,
                "limit": judgement.limit,
            },
        }
        for judgement in reported
    ]
    return sarif.run(rules, results)


def workflow_commands(verdict: GateVerdict) -> list[str]:
    """Workflow commands that show what broke at its line in a pull request. Properties and text
    are escaped as the actions toolkit does (docs.github.com, workflow commands)."""
    commands = []
    for judgement in verdict.failures_and_warnings:
        properties = {"title": f"wavecast gate: {judgement.kpi or judgement.status}"}
        if judgement.location.file and not judgement.location.file.startswith("/"):
            properties = {"file": judgement.location.file, **properties}
            if judgement.location.line:
                properties["line"] = str(judgement.location.line)
        parameters = ",".join(f"{name}={_property(text)}" for name, text in properties.items())
        commands.append(f"::{_level(judgement)} {parameters}::{_data(line(judgement))}")
    return commands


def workflow_command_of_error(text: str, file: str) -> str:
    """The workflow command that shows why the gate could not judge; `file` has its settings."""
    return (
        f"::error file={_property(file)},title={_property('wavecast gate')},line=1::{_data(text)}"
    )


def _level(judgement: Judged) -> str:
    return "warning" if judgement.status is Status.WARN else "error"


def _rule(judgement: Judged) -> str:
    return f"gate-{(judgement.kpi or str(judgement.status).lower()).replace('_', '-')}"


def _location(judgement: Judged) -> dict[str, Any]:
    logical = {"name": judgement.subject, "kind": "function"}
    return {
        **sarif.physical_location(judgement.location.file, judgement.location.line, 0),
        "logicalLocations": [logical],
    }


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


__all__ = [
    "document",
    "junit",
    "junit_of_error",
    "sarif_log",
    "sarif_of_error",
    "workflow_commands",
]
