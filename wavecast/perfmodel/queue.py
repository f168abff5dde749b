"""A stream of launches and copies: from an event before the first step to one after the last.

The host hands steps to the device one by one (`submit` each); the device runs them in order, with
`gap` between one's end and the next one's start. A copy between host and device waits for what is
before it and for itself: small ones go through a buffer of the runtime, larger ones over the link
from memory that is pinned for them. `Chip.launch` is what one empty launch takes between the
events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from wavecast.errors import UsageError
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import Traffic, transfer

FAMILY = "queue"
COPIES = ("h2d", "d2h", "d2d")


@dataclass(frozen=True, slots=True)
class Launches:
    """`count` launches of kernels that take `seconds` each, from first to last instruction."""

    seconds: float
    count: float = 1


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of `bytes`, of a kind of `COPIES`. The host waits for all but `d2d`."""

    kind: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Fill:
    """Device memory set to a value; the host does not wait."""

    bytes: int


@dataclass(frozen=True, slots=True)
class HostWait:
    """The host waits until the device has done everything."""


Step = Launches | Copy | Fill | HostWait


def elapsed_time(chip: Chip, steps: Iterable[Step]) -> float:
    """Seconds between the events. Raises UsageError for a kind of copy there is not."""
    constants = coefficients.values(FAMILY, chip.device)
    submit, gap = constants["submit"], constants["gap"]
    host = device = -submit
    for step in steps:
        if isinstance(step, HostWait):
            host = device = max(host, device) + constants["wait"]
        elif isinstance(step, Copy) and step.kind != "d2d":
            host = device = max(host, device) + _between(step, constants)
        else:
            seconds, count = _on_device(chip, step)
            host += submit * count
            first = max(host - submit * (count - 1), device + gap)
            device = max(first + seconds * count + gap * (count - 1), host + seconds)
    return chip.launch + max(host, device)


def _between(step: Copy, constants: Mapping[str, float]) -> float:
    if step.kind not in COPIES:
        raise UsageError(f"no copy is of kind {step.kind!r}", hint=f"there are {', '.join(COPIES)}")
    staged = step.bytes <= constants["staged_bytes"]
    return (
        constants["copy"]
        + step.bytes / constants["staged_bandwidth" if staged else "host_bandwidth"]
    )


def _on_device(chip: Chip, step: Launches | Copy | Fill) -> tuple[float, float]:
    """Seconds of one launch, and how many; copies and fills are kernels of the runtime."""
    if isinstance(step, Launches):
        return step.seconds, step.count
    read = float(step.bytes) if isinstance(step, Copy) else 0.0
    parts = transfer(chip, Traffic(read, float(step.bytes), streams=2.0))
    least = chip.latency["hbm"]
    return least + float(np.max([np.asarray(part) for part in parts.values()])), 1.0


__all__ = ["COPIES", "Copy", "Fill", "HostWait", "Launches", "Step", "elapsed_time"]
