"""What the launches of a check mode share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from wavecast.arch import Device
from wavecast.emulate.check.formats.stored import StoredFormats
from wavecast.emulate.check.gpus.order import GpuOrder
from wavecast.emulate.check.lanes.lane_halves import LaneSites
from wavecast.emulate.check.updates.unreset import UnresetCounters
from wavecast.emulate.reports import Report
from wavecast.emulate.tensors import AddressInterval
from wavecast.emulate.written_bytes import WrittenBytes, innermost
from wavecast.isa.program import Program


class ProgramWorks(Protocol):
    """The works of a program with streams. `active`: they need records of all memory."""

    @property
    def active(self) -> bool: ...

    def on_launch(
        self,
        program: Program,
        ranges: Sequence[AddressInterval],
        shadows: Sequence[tuple[np.ndarray, ...]],
        name_of: Callable[[int], str],
    ) -> list[Report]:
        """A launch has ended, with records (`records.py`) by range: what races with it."""
        ...


@dataclass(slots=True)
class CheckSession:
    """Settings, and what is remembered from launch to launch.

    `report` is called with the reports of every launch that has any. `canary` is the 64-bit pattern
    that fills memory which was allocated and not written, 0 where nothing is filled. `numbers`
    adds the first NaN and the first infinity, which a kernel may make on purpose. `bytes_written`
    is the memory whose bytes are followed one by one, by default that of the session. With `gpus`,
    launches of several GPUs run at once, and are compared with each other. `device` is the GPU that
    holds the workgroups, by default the usual one of the code's target. `works` compares launches
    with other works, of a HIP program.
    """

    report: Callable[[list[Report]], None]
    canary: int = 0
    numbers: bool = False
    bytes_written: WrittenBytes | None = None
    gpus: GpuOrder | None = None
    device: Device | None = None
    works: ProgramWorks | None = None
    lane_sites: LaneSites = field(default_factory=LaneSites)
    stored_formats: StoredFormats = field(default_factory=StoredFormats)
    unreset: UnresetCounters = field(default_factory=UnresetCounters)

    @property
    def written(self) -> WrittenBytes:
        """The memory whose bytes are followed: that of the session around a launch by default."""
        written = innermost() if self.bytes_written is None else self.bytes_written
        return WrittenBytes() if written is None else written


__all__ = ["CheckSession", "ProgramWorks"]
