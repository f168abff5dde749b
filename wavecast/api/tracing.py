"""Options of traces of launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wavecast.options import Options, option
from wavecast.options.values import OUTPUT_FILE, Integers, OptionValues

if TYPE_CHECKING:
    from wavecast.emulate.trace.mode import TraceMode

PERFETTO_SUFFIX: Final = ".perfetto.json"


class Workgroups(OptionValues):
    """`0,5,8-15`: numbers of workgroups, x fastest."""

    name = "0,5,8-15"

    def parse(self, text: str) -> tuple[int, ...]:
        numbers: list[int] = []
        for part in text.split(","):
            first, dash, last = part.strip().partition("-")
            if not first.isdecimal() or (dash and not last.isdecimal()):
                raise ValueError(f"{text!r} is not a list of workgroups such as 0,5,8-15")
            end = int(last or first)
            if not int(first) <= end < int(first) + (1 << 20):
                raise ValueError(f"{part.strip()!r} is not a range of up to a million workgroups")
            numbers += range(int(first), end + 1)
        return tuple(numbers)

    def take(self, value: Any) -> tuple[int, ...]:
        return self.parse(value) if isinstance(value, str) else tuple(map(Integers().take, value))


@dataclass(frozen=True, kw_only=True)
class TraceOptions(Options):
    """What is traced of launches, and the files that are written; `fidelity` counts executions."""

    NEEDS: ClassVar[Mapping[str, str]] = {"trace_only": "trace_workgroups"}
    NEEDS_ONE_OF: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "trace_streams": ("trace", "perfetto"),
        "trace_workgroups": ("trace", "perfetto"),
    }

    trace: Path | None = option(
        None,
        "Write what launches execute and access: JSON, or a Perfetto timeline if FILE ends with "
        f"{PERFETTO_SUFFIX}.",
        values=OUTPUT_FILE,
        metavar="FILE",
    )
    perfetto: Path | None = option(
        None,
        "Write a timeline of recorded waves, by instructions.",
        values=OUTPUT_FILE,
        metavar="FILE",
    )
    trace_streams: int | None = option(
        None,
        "Trace: number of workgroups to record.",
        values=Integers(),
        metavar="N",
        default_text="0; 1 for a timeline",
    )
    trace_workgroups: tuple[int, ...] | None = option(
        None, "Trace: count only these workgroups.", values=Workgroups()
    )
    trace_only: bool = option(False, "Trace: run no other workgroups; results are incomplete.")
    fidelity: bool = option(
        False, "Say which executed instructions have no documented result, and what they decide."
    )

    def trace_files(self) -> tuple[Path | None, Path | None]:
        """The file of the document and that of the timeline."""
        if self.trace is not None and self.trace.name.endswith(PERFETTO_SUFFIX):
            return None, self.trace
        return self.trace, self.perfetto

    def trace_mode(self) -> TraceMode | None:
        """What watches launches; None where nothing of them is asked for."""
        from wavecast.emulate.trace.mode import TraceMode

        document, timeline = self.trace_files()
        files = document is not None or timeline is not None
        if not files and not self.fidelity:
            return None
        streams = self.trace_streams
        return TraceMode(
            memory=files,
            workgroups=self.trace_workgroups,
            only=self.trace_only,
            streams=int(timeline is not None) if streams is None else streams,
            together=True,
            values=self.fidelity,
        )


__all__ = ["PERFETTO_SUFFIX", "TraceOptions", "Workgroups"]
