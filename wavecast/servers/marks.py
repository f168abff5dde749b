"""What an editor shows of a report of `explain`: findings, titles of kernels and times of lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wavecast.report.explain import brief
from wavecast.report.kit import units

_LEAST_SHARE = 0.005
"""Lines that take less of a kernel's time are not told."""


@dataclass(frozen=True, slots=True)
class LineFinding:
    """A finding at `line`, counted from 1. `severity` is error, warning or note."""

    line: int
    severity: str
    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class KernelTitle:
    """One line about a kernel on a GPU, at the kernel's first line, counted from 1."""

    line: int
    text: str


@dataclass(slots=True)
class FileMarks:
    """What an editor shows of one file. `hovers` has lines of text by line, counted from 1."""

    findings: list[LineFinding] = field(default_factory=list)
    titles: list[KernelTitle] = field(default_factory=list)
    hovers: dict[int, list[str]] = field(default_factory=dict)


def marks(document: Mapping[str, Any], path: Path) -> FileMarks:
    """The marks of the file `path` in a document `wavecast.explain/1`."""
    file_marks = FileMarks()
    for entry in document["kernels"]:
        if _is(entry["code"]["source"], path):
            first = max(entry["code"]["source_line"], 1)
            file_marks.titles.append(KernelTitle(first, f"{entry['arch']}: {_title(entry)}"))
        file_marks.findings.extend(_findings(entry, path))
        for line, text in _times(entry, path):
            file_marks.hovers.setdefault(line, []).append(text)
    for failure in document["failures"]:
        file_marks.findings.append(LineFinding(1, "error", failure["stage"], failure["message"]))
    return file_marks


def _title(entry: Mapping[str, Any]) -> str:
    return brief.line(entry).removeprefix(f"{entry['label']} {entry['arch']} ")


def _findings(entry: Mapping[str, Any], path: Path) -> Iterator[LineFinding]:
    for finding in entry["findings"]:
        location = finding["location"]
        while location is not None and location["inlined_at"] is not None:
            location = location["inlined_at"]
        if location is None or not _is(location["file"], path):
            continue
        saved = f" (saves {finding['gain']:.0%})" if finding["gain"] else ""
        text = f"{entry['arch']}: {finding['message']}{saved}\n{finding['advice']}".strip()
        for line in finding["lines"] or [location["line"]]:
            yield LineFinding(max(line, 1), finding["severity"], finding["rule"], text)


def _times(entry: Mapping[str, Any], path: Path) -> Iterator[tuple[int, str]]:
    """Line -> the share of a kernel's predicted time."""
    prediction = entry["prediction"]
    if prediction is None:
        return
    for part in prediction["lines"]:
        file, _, number = part["name"].rpartition(":")
        share = part["seconds"] / prediction["seconds"]
        if part["kind"] == "line" and number.isdigit() and _is(file, path):
            if share < _LEAST_SHARE:
                continue
            time = units.seconds(part["seconds"])
            yield int(number), f"{entry['arch']} {entry['label']}: {time}, {share:.0%} of the time"


def _is(source: str, path: Path) -> bool:
    """Whether a report names `path`, absolute or relative to the folder of `path`."""
    return bool(source) and (path.parent / source).resolve() == path.resolve()
