"""What check mode found, as text, JSON, SARIF and annotations of a code host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from wavecast import json_objects
from wavecast.compile.names import readable
from wavecast.documents.check import (
    CheckDocument,
    CheckReportJson,
    InstructionJson,
    OtherInstructionJson,
)
from wavecast.emulate.reports import EXPLANATIONS, Kind, Report
from wavecast.report.execution.check_causes import ReportGroup, groups, sort_reports
from wavecast.report.explain import sarif, source
from wavecast.report.kit import units
from wavecast.report.kit.locations import call_site
from wavecast.report.kit.terminal import SEVERITY_STYLE, safe
from wavecast.version import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.emulate.check.gpus.memory import LinkTraffic
    from wavecast.isa.instruction import SourceLocation

Format = Literal["text", "json", "sarif", "github"]
_ORDER = {"error": 0, "warning": 1, "note": 2}


def render(
    reports: Sequence[Report], console: Console, traffic: Sequence[LinkTraffic] = ()
) -> None:
    """The likeliest report of each cause with its source lines, how many more it has, a line of
    totals, and what links carried."""
    from rich.text import Text

    causes = groups(reports)
    for cause in causes:
        report = cause.first
        style = SEVERITY_STYLE[report.severity]
        text = Text.assemble(
            (report.severity, style), f"[{report.kind.rule}] ", (safe(_sentence(report)), "bold")
        )
        kernel = safe(readable(report.kernel))
        text.append(f"\n  at {_location(report.location)} in {kernel} ({report.target})")
        text.append(safe(_who(report)), style="dim")
        _quote(text, report.location)
        if report.other_text:
            text.append(f"\n  {_relation(report)}: {safe(report.other_text)}")
            if report.other_kernel:
                text.append(f" in {safe(readable(report.other_kernel))}")
            if report.other_location is not None:
                text.append(f" at {_location(report.other_location)}")
                _quote(text, report.other_location)
        text.append(f"\n  {report.explanation}", style="dim")
        if cause.others:
            text.append(f"\n  {cause.more}")
            if lines := _lines_of(cause):
                text.append(f" ({lines})")
        text.append("\n")
        console.print(text, soft_wrap=True)
    console.print(totals(reports))
    if traffic:
        _render_traffic(traffic, console)


def _render_traffic(traffic: Sequence[LinkTraffic], console: Console) -> None:
    """What kernels moved between GPUs in all, and over the link that carried most."""
    read, written = (sum(getattr(link, name) for link in traffic) for name in ("read", "written"))
    most = traffic[0]
    console.print(
        f"between GPUs: {units.size(read)} loaded, {units.size(written)} stored; the most over a "
        f"link is {units.size(most.bytes)}, from GPU {most.source} to GPU {most.target}"
    )


def _lines_of(cause: ReportGroup) -> str:
    """`lines 19, 20` of the other reports; "" where they are all at the line of the first."""
    of_all = {
        report.location.outermost.line
        for report in (cause.first, *cause.others)
        if report.location is not None
    }
    return f"lines {', '.join(map(str, sorted(of_all)))}" if len(of_all) > 1 else ""


def totals(reports: Sequence[Report]) -> str:
    """`check: 2 errors, 1 warning (12 reports)`, a count per likely cause, or that nothing was
    found."""
    if not reports:
        return "check: nothing found"
    causes = groups(reports)
    counts = [
        units.plural(number, name)
        for name in _ORDER
        if (number := sum(cause.first.severity == name for cause in causes))
    ]
    text = "check: " + ", ".join(counts)
    return text if len(causes) == len(reports) else f"{text} ({len(reports)} reports)"


def check_document(reports: Sequence[Report], traffic: Sequence[LinkTraffic] = ()) -> CheckDocument:
    """The reports, schema `wavecast.check/1`."""
    entries = [_entry(report) for report in sort_reports(reports)]
    return CheckDocument(wavecast=__version__, reports=entries, traffic=list(traffic))


def document(reports: Sequence[Report], traffic: Sequence[LinkTraffic] = ()) -> dict[str, Any]:
    """The reports as plain dicts."""
    return json_objects.values(check_document(reports, traffic))


def dumps(reports: Sequence[Report], traffic: Sequence[LinkTraffic] = ()) -> str:
    """The document as JSON text."""
    return json_objects.dumps(document(reports, traffic), indent=2)


def _entry(report: Report) -> CheckReportJson:
    return CheckReportJson.of(
        report,
        kind=report.kind.rule,
        arch=report.target,
        message=_sentence(report),
        instruction=InstructionJson(index=report.instruction, text=report.text),
        location=call_site(report.location),
        addresses=[hex(address) for address in report.addresses],
        other=None if report.other is None else _other(report, report.other),
    )


def _other(report: Report, index: int) -> OtherInstructionJson:
    location = call_site(report.other_location)
    return OtherInstructionJson(
        index=index,
        text=report.other_text,
        location=location,
        kernel=report.other_kernel or report.kernel,
        gpu=report.gpu if report.other_gpu is None else report.other_gpu,
        workgroup=None if report.other_workgroup is None else list(report.other_workgroup),
    )


def sarif_document(reports: Sequence[Report]) -> dict[str, Any]:
    """The reports as one run of SARIF 2.1.0, with a result per likely cause."""
    kinds = sorted({report.kind for report in reports})
    return sarif.run(
        [
            {
                "id": kind.rule,
                "shortDescription": {"text": kind.rule.replace("-", " ")},
                "fullDescription": {"text": EXPLANATIONS[kind]},
            }
            for kind in kinds
        ],
        [_result(cause, kinds) for cause in groups(reports)],
    )


def _result(cause: ReportGroup, kinds: Sequence[Kind]) -> dict[str, Any]:
    report = cause.first
    more = f" ({cause.more})" if cause.others else ""
    result: dict[str, Any] = {
        "ruleId": report.kind.rule,
        "ruleIndex": kinds.index(report.kind),
        "level": sarif.LEVELS[report.severity],
        "message": {"text": f"{report.target}: {_sentence(report)}{_who(report)}{more}"},
        "locations": [
            {
                **_sarif_location(report.location),
                "logicalLocations": [{"name": report.kernel, "kind": "function"}],
            }
        ],
    }
    if report.other_location is not None:
        result["relatedLocations"] = [
            {**_sarif_location(report.other_location), "message": {"text": report.other_text}}
        ]
    return result


def _sarif_location(location: SourceLocation | None) -> dict[str, Any]:
    if location is None:
        return {}
    outer = location.outermost
    return sarif.physical_location(outer.file, outer.line, outer.column)


def github(reports: Sequence[Report]) -> str:
    """Workflow commands that GitHub shows as annotations at the source lines, one per cause."""
    levels = {"error": "error", "warning": "warning", "note": "notice"}
    lines = []
    for cause in groups(reports):
        report, more = cause.first, f" ({cause.more})" if cause.others else ""
        fields = [f"title={_escape(f'wavecast {report.kind.rule}', True)}"]
        if report.location is not None:
            outer = report.location.outermost
            fields = [f"file={_escape(outer.file, True)}", f"line={outer.line}", *fields]
        text = (
            f"{readable(report.kernel)} ({report.target}): {_sentence(report)}{_who(report)}{more}"
        )
        lines.append(f"::{levels[report.severity]} {','.join(fields)}::{_escape(text)}")
    return "\n".join(lines)


def _escape(text: str, in_property: bool = False) -> str:
    """As GitHub's workflow commands want it: % and line ends, in properties : and , as well."""
    pairs = [("%", "%25"), ("\r", "%0D"), ("\n", "%0A")]
    if in_property:
        pairs += [(":", "%3A"), (",", "%2C")]
    for character, code in pairs:
        text = text.replace(character, code)
    return text


def _sentence(report: Report) -> str:
    return f"{report.text} {report.message}"


def _relation(report: Report) -> str:
    """What the other instruction is to this one."""
    if report.kind in (Kind.MISSING_WAIT, Kind.HAZARD):
        return "after"
    return "other side"


def _who(report: Report) -> str:
    parts = [] if report.gpu is None else [f"GPU {report.gpu}"]
    if report.workgroup is not None:
        parts.append(f"workgroup {report.workgroup}")
    if report.wave is not None:
        parts.append(f"wave {report.wave}")
    if report.lanes:
        parts.append(f"lanes {spans(report.lanes)}")
    if report.count > 1:
        parts.append(f"{report.count} times")
    return "".join(f", {part}" for part in parts)


def spans(numbers: Sequence[int]) -> str:
    """`0-3,8,10-11`."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def _location(location: SourceLocation | None) -> str:
    if location is None:
        return "an unknown line"
    outer = location.outermost
    inner = f" (inlined from {location})" if location.inlined_at is not None else ""
    return f"{outer}{inner}"


def _quote(text: Any, location: SourceLocation | None) -> None:
    if location is None:
        return
    outer = location.outermost
    line = source.file_line(outer.file, outer.line).strip()
    if line:
        text.append(f"\n  {outer.line:>5} │ {safe(line)}", style="dim")


__all__ = [
    "Format",
    "document",
    "dumps",
    "github",
    "render",
    "sarif_document",
    "sort_reports",
    "totals",
]
