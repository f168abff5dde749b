"""Options of checks of launches, and the reports of the checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wavecast.api.result import ShownResult, few
from wavecast.options import Options, option
from wavecast.options.values import OUTPUT_FILE, OneOf

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.emulate.check.collected import Reports

FORMATS: Final = ("text", "json", "html", "sarif", "github")


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Options):
    """What is checked of launches, and where the reports go."""

    NEEDS: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("check_format", "check_output", "check_ignore", "check_numbers", "check_determinism"),
        "check",
    )

    check: bool = option(
        False,
        "Report races, missing waits, uninitialised reads and more; exit code 1 if there are "
        "errors.",
    )
    check_format: str = option("text", "Check: format of the reports.", values=OneOf(FORMATS))
    check_output: Path | None = option(
        None, "Check: write the reports to this file.", values=OUTPUT_FILE, metavar="FILE"
    )
    check_ignore: tuple[str, ...] = option(
        (), "Check: disable a kind of report (lds-race, …); repeatable.", metavar="KIND"
    )
    check_numbers: bool = option(False, "Check: also report the first NaN and infinity (warnings).")
    check_determinism: bool = option(
        False,
        "Check: repeat launches in other orders of workgroups and waves, and report what differs. "
        "Also: --check determinism.",
    )

    def reports(self) -> Reports | None:
        """Where reports are collected, None without checks. Raises UnknownName for a kind."""
        from wavecast.emulate.check.collected import Reports

        if not self.check:
            return None
        return Reports(
            self.check_ignore, numbers=self.check_numbers, determinism=self.check_determinism
        )


@dataclass(frozen=True, slots=True, repr=False)
class CheckReport(ShownResult):
    """What checks of launches found: iterate over `reports`. The document is `wavecast.check/1`."""

    WIDTH: ClassVar[int] = 120
    reports: Reports

    def render(self, console: Console) -> None:
        from wavecast.report.execution import checks

        checks.render(list(self.reports), console, self.reports.traffic)

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.execution import checks

        return checks.document(list(self.reports), self.reports.traffic)

    def sarif(self) -> str:
        """The reports as a SARIF log."""
        from wavecast import json_objects
        from wavecast.report.execution import checks

        return json_objects.dumps(checks.sarif_document(list(self.reports)), indent=2)

    def github(self) -> str:
        """Workflow commands that GitHub shows as annotations at the source lines."""
        from wavecast.report.execution import checks

        return checks.github(list(self.reports))

    def written(self, form: str) -> str:
        """The reports in a format of `FORMATS`."""
        return str(self) if form == "text" else getattr(self, form)()

    def exit_code(self) -> int:
        return int(bool(self.reports.errors))

    def subject(self) -> str:
        return f"checks of {few([report.kernel for report in self.reports]) or 'launches'}"


__all__ = ["FORMATS", "CheckOptions", "CheckReport"]
