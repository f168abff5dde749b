"""The committed figures: one JSON file, one line per figure, in alphabetical order."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import UNSET, UnsetType

from wavecast import files
from wavecast.benchmarking.kpis import KPIS
from wavecast.benchmarking.records import BenchRecord
from wavecast.errors import InputError
from wavecast.json_objects import JsonObject, doc, values
from wavecast.json_schema import name_of


class BaselineEntryJson(JsonObject):
    """The figures of one subject on one device."""

    figures: Annotated[dict[str, float], doc("by KPI")]
    code: Annotated[str | UnsetType, doc("digest of the machine code; absent when unknown")] = UNSET
    compiler: Annotated[str | UnsetType, doc("name and version; absent when unknown")] = UNSET
    timing: Annotated[str | UnsetType, doc("how times were measured; absent when unknown")] = UNSET


class BaselineDocument(JsonObject, tag_field="schema", tag="wavecast.baseline/1"):
    """The committed figures, which `wavecast gate --update` writes."""

    subjects: Annotated[dict[str, dict[str, BaselineEntryJson]], doc("by subject and device")]


_SCHEMA, _, _VERSION = name_of(BaselineDocument).rpartition("/")
VERSION: Final = int(_VERSION)
"""Version of the file's schema. `read` refuses a newer one."""
_DIGITS: Final = 7

Key = tuple[str, str]
"""(subject, device): `Subject.key` and the id of a device."""


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """The figures of one subject on one device by KPI. `code` names its machine code (`codes`),
    `compiler` what it was compiled with, `timing` how times were had (`Conditions.timing`)."""

    figures: Mapping[str, float]
    code: str = ""
    compiler: str = ""
    timing: str = ""

    @classmethod
    def of(cls, record: BenchRecord, code: str) -> BaselineEntry:
        """What a baseline keeps of a record."""
        figures = {name: _round(figure.value) for name, figure in record.figures.items()}
        triton = record.environment.triton
        return cls(
            figures=figures,
            code=code,
            compiler=f"Triton {triton}" if triton else "",
            timing=record.conditions.timing,
        )


@dataclass(frozen=True, slots=True)
class Baseline:
    """All entries by subject and device."""

    entries: Mapping[Key, BaselineEntry] = field(default_factory=dict)


def read(path: Path) -> Baseline:
    """A baseline file. Raises InputError for one that is missing, empty, damaged or newer."""
    if not path.exists():
        raise InputError(
            f"no baseline at {path}", hint="create it with wavecast gate --update, and commit it"
        )
    text = files.read_text(path)
    if not text.strip():
        raise InputError(f"the baseline {path} is empty", hint="wavecast gate --update")
    try:
        document = files.parse_json(text)
    except ValueError as error:
        hint = "it has conflict markers of a merge" if "<<<<<<<" in text else ""
        where = f"{path}:{error.lineno}" if isinstance(error, json.JSONDecodeError) else path
        raise InputError(f"{where}: {error}", hint=hint) from None
    _check_version(document, path)
    entries: dict[Key, BaselineEntry] = {}
    try:
        for subject, devices in document["subjects"].items():
            if len(subject.split(" ")) < 2:
                raise ValueError(f"{subject!r} lacks the kind and name of a subject")
            for device, entry in devices.items():
                entries[subject, device] = _entry(entry)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is not a baseline: {error!r}", hint="wavecast gate --update writes it again"
        ) from None
    if not entries:
        raise InputError(f"the baseline {path} has no subjects", hint="wavecast gate --update")
    return Baseline(entries)


def write(baseline: Baseline, path: Path) -> None:
    """Write a baseline whole or not at all. Raises InputError where that cannot be done."""
    subjects: dict[str, dict[str, BaselineEntryJson]] = {}
    for (subject, device), entry in baseline.entries.items():
        subjects.setdefault(subject, {})[device] = BaselineEntryJson(
            figures={name: _plain(value) for name, value in entry.figures.items()},
            code=entry.code or UNSET,
            compiler=entry.compiler or UNSET,
            timing=entry.timing or UNSET,
        )
    document = values(BaselineDocument(subjects=subjects))
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    try:
        files.write_atomic(path, text + "\n", durable=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def _check_version(document: Any, path: Path) -> None:
    schema = document.get("schema") if isinstance(document, dict) else None
    name, _, version = str(schema).rpartition("/")
    if name != _SCHEMA or not version.isdigit():
        raise InputError(f"{path} is not a baseline of wavecast gate")
    if int(version) > VERSION:
        raise InputError(
            f"{path} is a baseline of version {version}, this wavecast knows {VERSION}",
            hint="it was written by a newer wavecast: upgrade",
        )


def _entry(entry: Mapping[str, Any]) -> BaselineEntry:
    figures = {name: float(value) for name, value in entry["figures"].items()}
    for name, value in figures.items():
        if name not in KPIS:
            raise ValueError(f"unknown KPI {name!r}")
        if not math.isfinite(value):
            raise ValueError(f"{name} is not finite")
    return BaselineEntry(
        figures=figures,
        code=str(entry.get("code", "")),
        compiler=str(entry.get("compiler", "")),
        timing=str(entry.get("timing", "")),
    )


def _round(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}") if not float(value).is_integer() else float(value)


def _plain(value: float) -> float | int:
    """Counts without a decimal point."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


__all__ = ["VERSION", "Baseline", "BaselineDocument", "BaselineEntry", "Key", "read", "write"]
