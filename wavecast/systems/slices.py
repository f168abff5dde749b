"""What a predicted run does in time: slices on tracks, for timelines and traces."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.systems.pricing import Priced

HOST = "host"
"""Track and group of what the CPU does."""


@dataclass(frozen=True, slots=True)
class TimelineSlice:
    """Something that takes `seconds` from `start` on a track.

    `group` is what times are added up by (a module of a step, a phase), `where` the layer or the
    module that it belongs to, or "". `priced` is the kernel, None for what is none.
    """

    track: str
    name: str
    start: float
    seconds: float
    group: str
    where: str = ""
    priced: Priced | None = None

    @property
    def end(self) -> float:
        """Seconds after the start of the run."""
        return self.start + self.seconds


__all__ = ["HOST", "TimelineSlice"]
