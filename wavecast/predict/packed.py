"""An executed sample as bytes, for a process that asked another one to execute it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.emulate.launch import AddressRange
from wavecast.isa.program import Kernel
from wavecast.model.chip import Chip
from wavecast.model.cu.code import Code
from wavecast.model.cu.streams import Streams
from wavecast.model.launch import Grid, Launched, Traffic
from wavecast.predict.launch import sampled


@dataclass(frozen=True, slots=True, eq=False)
class _Packed:
    """What of an executed launch is not known from its code and device."""

    streams: Streams
    grid: Grid
    traffic: Traffic | None
    dtype: str
    work: float
    notes: tuple[str, ...]
    widen: float


def pack(launch: Launch, ranges: Sequence[AddressRange], device: Device) -> bytes:
    """Execute a sample of a launch for a device, with nothing in the caches, as predictions from
    code have it. Raises as `predict.launch.execute` does."""
    found = sampled(launch, ranges, device, warm=False)
    launched = found.launched
    return pickle.dumps(
        _Packed(
            launched.streams, launched.grid, launched.traffic, launched.dtype, launched.work,
            found.notes, found.widen,
        )
    )  # fmt: skip


def unpack(
    content: bytes, kernel: Kernel, device: Device
) -> tuple[Launched, tuple[str, ...], float]:
    """The launch as executed, notes on the interval, and how much wider it is. `content` must come
    from a process of the same user: it is a pickle."""
    found = pickle.loads(content)
    assert isinstance(found, _Packed)
    code = Code.of(kernel.program, device, kernel.descriptor.wave_size)
    launched = Launched(
        Chip.of(device), code, found.streams, found.grid, found.traffic, found.dtype, (), found.work
    )
    return launched, found.notes, found.widen


__all__ = ["pack", "unpack"]
