"""What the processor of this process offers to matrix code."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from wavecast.compile.processor import processor
from wavecast.emulate.matrix.dot_check import dots_are_exact
from wavecast.emulate.matrix.host import Host, host


@cache
def detect() -> Host:
    """The machine this runs on, limited to what `WAVECAST_HOST_CPU` allows."""
    cpu = processor()
    offer = host(cpu.architecture, dict.fromkeys(cpu.flags, True))
    return replace(offer, bf16_dots=offer.bf16_dots and dots_are_exact(cpu))


__all__ = ["detect"]
