"""How `wavecast run` executes launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wavecast.emulate.check.collected import Reports
    from wavecast.emulate.launch_counts import LaunchCounts
    from wavecast.emulate.trace.mode import TraceMode


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """How launches are executed, of scripts and of code alike. `arch` is "" when nobody said; the
    others are those of `wavecast.device` and `wavecast.load`; `launched` counts launches."""

    arch: str = ""
    threads: int | None = None
    max_instructions: int | None = None
    trace: TraceMode | None = None
    check: Reports | None = None
    launched: LaunchCounts | None = None


__all__ = ["ExecutionOptions"]
