"""Verdicts of a gate for machines: JSON, JUnit, SARIF, annotations of GitHub."""

from __future__ import annotations

import re
from typing import Any, Final
from xml.etree import ElementTree

from wavecast.bench.gate.verdict import GateVerdict, Judged, Status
from wavecast.bench.kpis import KPIS
from wavecast.documents import base
from wavecast.documents.gate import GateDocument, JudgedFigureJson
from wavecast.report import sarif
from wavecast.report.gate import headline, line

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
    return base.values(
        GateDocument.of(
            verdict,
            ok=not verdict.broken,
            headline=headline(verdict),
            judged=[
                JudgedFigureJson.of(one, location=one.location, breaks=verdict.breaks(one))
                for one in verdict.changed
            ],
            same=len(verdict.of(Status.SAME)),
        )
    )


def junit(verdict: GateVerdict) -> str:
    """One test case per figure and per subject that has none, a suite per device. The format is the
    one Jenkins, GitLab and GitHub's reporters read: testsuites, testsuite, testcase, failure."""
    root = ElementTree.Element("testsuites", name="wavecast gate")
    totals = [0, 0]
    for device in dict.fromkeys(one.device for one in verdict.judged):
        mine = [one for one in verdict.judged if one.device == device]
        broken = sum(verdict.breaks(one) for one in mine)
        totals = [totals[0] + len(mine), totals[1] + broken]
        suite = ElementTree.SubElement(
            root, "testsuite", name=device, tests=str(len(mine)), failures=str(broken),
            errors="0", skipped="0",
        )  # fmt: skip
        for one in mine:
            case = ElementTree.SubElement(
                suite, "testcase", classname=_clean(f"{device}.{one.subject}"),
                name=one.kpi or str(one.status),
            )  # fmt: skip
            if one.location.file:
                case.set("file", _clean(one.location.file))
                case.set("line", str(one.location.line))
            if verdict.breaks(one):
                text = _clean(line(one))
                failure = ElementTree.SubElement(case, "failure", message=text, type=one.status)
                failure.text = text
            elif one.status is not Status.SAME:
                ElementTree.SubElement(case, "system-out").text = _clean(line(one))
    root.set("tests", str(totals[0]))
    root.set("failures", str(totals[1]))
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(
        root, encoding="unicode"
    )


def sarif_log(verdict: GateVerdict) -> dict[str, Any]:
    """What breaks the gate as results of one run, with its warnings; the rule is the KPI, or the
    status where no figure is at fault."""
    reported = verdict.reported
    names = sorted({_rule(one) for one in reported})
    rules = []
    for name in names:
        status = next(one.status for one in reported if _rule(one) == name)
        kpi = KPIS.get(name.removeprefix("gate-").replace("-", "_"))
        text = f"Worse than the baseline allows: {kpi.meaning}." if kpi else _MEANINGS[status]
        rules.append({"id": name, "shortDescription": {"text": text}})
    results = [
        {
            "ruleId": _rule(one),
            "ruleIndex": names.index(_rule(one)),
            "level": _level(one),
            "message": {"text": line(one)},
            "locations": [_location(one)],
            "partialFingerprints": {"wavecast/1": f"{one.subject}:{one.device}:{_rule(one)}"},
            "properties": {
                "device": one.device,
                "before": one.before,
                "after": one.after,
                "limit": one.limit,
            },
        }
        for one in reported
    ]
    return sarif.run(rules, results)


def workflow_commands(verdict: GateVerdict) -> list[str]:
    """Workflow commands that show what broke at its line in a pull request. Properties and text
    are escaped as the actions toolkit does (docs.github.com, workflow commands)."""
    found = []
    for one in verdict.reported:
        properties = {"title": f"wavecast gate: {one.kpi or one.status}"}
        if one.location.file and not one.location.file.startswith("/"):
            properties = {"file": one.location.file, **properties}
            if one.location.line:
                properties["line"] = str(one.location.line)
        shown = ",".join(f"{name}={_property(text)}" for name, text in properties.items())
        found.append(f"::{_level(one)} {shown}::{_data(line(one))}")
    return found


def _level(one: Judged) -> str:
    return "warning" if one.status is Status.WARN else "error"


def _rule(one: Judged) -> str:
    return f"gate-{(one.kpi or str(one.status).lower()).replace('_', '-')}"


def _location(one: Judged) -> dict[str, Any]:
    logical = {"name": one.subject, "kind": "function"}
    return {
        **sarif.physical_location(one.location.file, one.location.line, 0),
        "logicalLocations": [logical],
    }


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


__all__ = ["document", "junit", "sarif_log", "workflow_commands"]
