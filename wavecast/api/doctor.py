"""`wavecast.api.doctor.doctor`: what works on this machine, and what to install for the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wavecast.api.result import ShownResult
from wavecast.options import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.pipeline.capabilities import HostSupport


@dataclass(frozen=True, slots=True, repr=False)
class SupportReport(ShownResult):
    """The inputs and targets that work on this machine."""

    capabilities: HostSupport

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report import capabilities

        return capabilities.document(self.capabilities)

    def render(self, console: Console) -> None:
        from wavecast.report import capabilities

        capabilities.render(self.capabilities, console)

    def subject(self) -> str:
        from wavecast.wording import count

        working = sum(bool(entry.targets) for entry in self.capabilities.inputs)
        return f"{count(working, 'input')} of {len(self.capabilities.inputs)}"


def doctor(
    *,
    progress: Progress = silent,  # noqa: ARG001
) -> SupportReport:
    """Which inputs and targets work on this machine, and what to install for the others."""
    from wavecast.pipeline.capabilities import examine

    return SupportReport(examine())


__all__ = ["SupportReport", "doctor"]
