"""The reports of a session: launches of one kernel repeat themselves, their reports do not."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from wavecast.emulate.errors import ChecksFailed
from wavecast.emulate.reports import Kind, Report
from wavecast.errors import UnknownName, UsageError
from wavecast.isa.instruction import SourceLocation

if TYPE_CHECKING:
    from wavecast.emulate.check.gpus.memory import LinkTraffic

_Key = tuple[str, str, Kind, str, int, SourceLocation | None, SourceLocation | None]


def gathering(check: object) -> Reports | None:
    """Where the reports of launches go that an argument `check` asks for: a new `Reports` for True,
    the one that was passed, None for False. Raises UsageError for anything else."""
    if isinstance(check, Reports):
        return check
    if isinstance(check, bool):
        return Reports() if check else None
    raise UsageError(
        f"check takes True, False or a Reports, not {check!r}",
        hint="check=Reports(determinism=True) asks for what --check determinism does",
    )


class Reports:
    """Reports in the order they came up, each once; `count` says how often it happened.

    `ignored` are kinds by name (`lds-race`) to leave out; `numbers` asks for the first NaN and the
    first infinity that are computed as well, `determinism` for a repetition of every launch in
    other orders of workgroups and waves. Raises UnknownName for a kind there is not.
    """

    def __init__(
        self, ignored: Iterable[str] = (), *, numbers: bool = False, determinism: bool = False
    ) -> None:
        self.numbers = numbers
        self.determinism = determinism
        kinds = {kind.rule: kind for kind in Kind}
        self._ignored = set()
        for name in ignored:
            if name not in kinds:
                raise UnknownName("check", name, kinds)
            self._ignored.add(kinds[name])
        self.traffic: tuple[LinkTraffic, ...] = ()
        """What kernels have moved between several GPUs, once all have ended."""
        self._found: dict[_Key, Report] = {}
        self._lock = threading.Lock()

    def add(self, reports: Iterable[Report]) -> None:
        """Take the reports of a launch."""
        with self._lock:
            for report in reports:
                if report.kind in self._ignored:
                    continue
                other = report.other_location if report.kind is Kind.HOST_RACE else None
                sites = report.instruction, report.location, other
                key = (report.kernel, report.target, report.kind, report.text, *sites)
                before = self._found.get(key)
                if before is not None:
                    report = replace(before, count=before.count + report.count)
                self._found[key] = report

    def __iter__(self) -> Iterator[Report]:
        return iter(list(self._found.values()))

    def __len__(self) -> int:
        return len(self._found)

    def __bool__(self) -> bool:
        """True also without reports: `check=Reports()` asks for checks."""
        return True

    @property
    def errors(self) -> list[Report]:
        """Those that fail a run; warnings and notes do not."""
        return [report for report in self if report.severity == "error"]

    def has_access(self, kernel: str, instruction: int) -> bool:
        """Whether an access of this instruction is reported as out of bounds."""
        return any(
            report.kind is Kind.OUT_OF_BOUNDS
            and (report.kernel, report.instruction) == (kernel, instruction)
            for report in self
        )

    def take(self) -> list[Report]:
        """All reports; they are forgotten here."""
        with self._lock:
            reports, self._found = list(self._found.values()), {}
        return reports

    def raise_errors(self) -> None:
        """Raise ChecksFailed if there are errors; all reports go with it and are forgotten here."""
        if self.errors:
            raise ChecksFailed(self.take())


__all__ = ["Reports", "gathering"]
