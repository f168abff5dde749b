"""Findings as SARIF 2.1.0, for code hosts and editors that show such logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from wavecast.json_objects import values
from wavecast.report.explain import summary
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.isa.instruction import SourceLocation
    from wavecast.pipeline.explain.result import ExplainReport, Explanation, Failure
    from wavecast.rules.finding import Finding, Rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "note": "note"}
"""Severity -> SARIF level."""


def document(report: ExplainReport, rules: Iterable[Rule] = ()) -> dict[str, Any]:
    """The report's findings as one run.

    `rules` gives titles and explanations; a rule that found something but is not among them is
    listed by its name. Failures become notifications of the tool's execution.
    """
    rules_by_name = {rule.name: rule for rule in rules}
    names = sorted({f.rule for e in report.explanations for f in e.findings})
    index = {name: position for position, name in enumerate(names)}
    labels = {id(e): group.label for group in summary.groups(report) for e in group.explanations}
    return run(
        [_rule(name, rules_by_name.get(name)) for name in names],
        [
            _result(explanation, labels[id(explanation)], finding, index)
            for explanation in report.explanations
            for finding in summary.sorted_findings(explanation.findings)
        ],
        [_failure(failure) for failure in report.failures],
    )


def run(
    rules: Sequence[dict[str, Any]],
    results: Sequence[dict[str, Any]],
    failures: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """A log of one run."""
    invocation = {
        "executionSuccessful": not failures,
        "toolExecutionNotifications": list(failures),
    }
    driver = {"name": "wavecast", "semanticVersion": __version__, "rules": list(rules)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [invocation],
                "columnKind": "unicodeCodePoints",
                "results": list(results),
            }
        ],
    }


def _rule(name: str, rule: Rule | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": name}
    if rule is not None:
        entry["shortDescription"] = {"text": rule.title}
        entry["fullDescription"] = {"text": rule.explanation}
        entry["defaultConfiguration"] = {"level": LEVELS[rule.severity]}
    return entry


def _failure(failure: Failure) -> dict[str, Any]:
    what = " for ".join(part for part in (failure.kernel, failure.target) if part)
    hint = f" ({failure.hint})" if failure.hint else ""
    return {
        "level": "error",
        "message": {"text": f"{what}: {failure.message}{hint}"},
        "properties": {"stage": failure.stage},
    }


def _result(
    explanation: Explanation, label: str, finding: Finding, index: dict[str, int]
) -> dict[str, Any]:
    parts = [finding.message, finding.evidence, finding.advice]
    device = explanation.device
    location = finding.location
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": LEVELS[finding.severity],
        "message": {"text": f"{device.target}: " + ". ".join(part for part in parts if part)},
        "locations": [_location(explanation, location)],
        "partialFingerprints": {
            "wavecast/1": f"{explanation.code.kernel}:{device.id}:{finding.rule}:"
            f"{summary.line_of(location) or 0}",
        },
        "properties": {
            "kernel": explanation.code.kernel,
            "launch": label,
            "arch": device.target,
            "device": device.name,
            "evidence": finding.evidence,
            "advice": finding.advice,
            "instruction": finding.instruction,
            "floorSeconds": values(explanation.roofline.floor_seconds),
        },
    }
    if location is not None and location.inlined_at is not None:
        result["relatedLocations"] = [
            physical_location(location.file, location.line, location.column)
        ]
    return result


def _location(explanation: Explanation, location: SourceLocation | None) -> dict[str, Any]:
    """Where a finding is shown: its line in the kernel's body, or the kernel's first line."""
    code = explanation.code
    if location is None:
        where = physical_location(code.source, code.source_line, 0)
    else:
        outer = location.outermost
        where = physical_location(outer.file, outer.line, outer.column)
    kernel = {"name": code.kernel, "kind": "function"}
    return {**where, "logicalLocations": [kernel]}


def physical_location(file: str, line: int, column: int) -> dict[str, Any]:
    """A location; without a file it is the kernel alone, without a line the whole file."""
    if not file:
        return {}
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    if line > 0:
        physical["region"] = {"startLine": line}
        if column > 0:
            physical["region"]["startColumn"] = column
    return {"physicalLocation": physical}


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
