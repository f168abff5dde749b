"""Rates and limits of the subject's device as plain numbers, None where they are not known."""

from __future__ import annotations

from wavecast.arch import Device, OccupancyLimits, Quantity
from wavecast.rules.finding import RuleInput


def peak_flops(device: Device, dtype: str) -> float | None:
    """Peak FLOP/s in `dtype`."""
    return _number(device.peak_flops(dtype))


def peak_bandwidth(device: Device) -> float | None:
    """Peak main-memory bytes per second."""
    return _number(device.peak_bandwidth())


def bytes_per_clock(device: Device) -> float | None:
    """Peak main-memory bytes per engine clock and compute unit."""
    bandwidth, clock = _number(device.peak_bandwidth()), _number(device.clock_hz)
    if bandwidth is None or clock is None:
        return None
    return bandwidth / clock / device.compute_units


def placement(subject: RuleInput) -> OccupancyLimits:
    """Limits of the unit a workgroup runs on, in the mode the kernel was compiled for."""
    return subject.device.limits(cu_mode=subject.analysis.occupancy.unit == "CU")


def _number(quantity: Quantity | None) -> float | None:
    value = quantity.value if quantity is not None else None
    return float(value) if isinstance(value, (int, float)) else None
