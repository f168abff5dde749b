"""The roofline of a launch on a device.

    compute time = Σ over dtypes of FLOPs / peak(dtype)
    memory time  = bytes / bandwidth
    floor        = max(compute time, memory time)
    intensity    = FLOPs / bytes;  ridge = peak / bandwidth

(Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.) Once with the datasheet's peaks and
once with sustained rates: the measured ones of the matrix cores, where the device has them, and the
bandwidth the model gives every kernel (`wavecast.perfmodel.chip`), so that no prediction beats it.
Operations whose kernels stream faster, or find operands in caches, state that (`Op.memory_floor`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wavecast.arch import Device, Quantity
from wavecast.errors import UnknownName
from wavecast.perfmodel.bounds import Ceiling, MemoryFloor, Roofline, Work
from wavecast.perfmodel.chip import sustained_bandwidth

Rate = Callable[[str], Quantity | None]


def roofline(work: Work, device: Device, least: MemoryFloor | None = None) -> Roofline:
    """Bounds of `work` on `device`; `least` is the time of its bytes where that is not bytes over
    bandwidth. Rates the device lacks make the bound `unknown`, with a note."""
    flops = {name: count for name, count in (work.flops or {}).items() if count > 0}
    dtype = max(flops, key=lambda name: flops[name]) if flops else ""
    notes = []
    peak_of, sustained_of = (
        _optional_rate(device.peak_flops),
        _optional_rate(device.sustained_flops),
    )
    compute_seconds = _compute_time(flops, peak_of) if work.flops is not None else None
    if work.flops is None:
        notes.append(f"FLOPs {work.flops_source}")
    elif compute_seconds is None:
        notes.append(_why_no_peak(device, next(n for n in flops if peak_of(n) is None)))
    memory, slower = device.peak_bandwidth(), sustained_bandwidth(device)
    if work.bytes is None:
        notes.append(f"bytes {work.bytes_source}")
    elif memory is None:
        notes.append(f"{device.id} has no known memory bandwidth")
    memory_seconds, slower_seconds = _over(work.bytes, memory), _over(work.bytes, slower)
    if least is not None and memory_seconds is not None:
        memory_seconds = min(memory_seconds, least.peak_seconds)
    if least is not None and slower_seconds is not None:
        slower_seconds = min(slower_seconds, least.sustained_seconds)
    bound = _bound(compute_seconds, memory_seconds)
    floor = _later(compute_seconds, memory_seconds)
    if compute_seconds is None and work.flops is not None:
        at_most = _compute_time(flops, lambda name: _at_least(device, name))
        if _bound(at_most, memory_seconds) == "memory":
            bound, floor = "memory", memory_seconds
    peak = peak_of(dtype) if dtype else None
    sustained = sustained_of(dtype) if dtype else None
    total = sum(flops.values())
    return Roofline(
        work=work,
        dtype=dtype,
        compute=_ceiling(dtype, peak),
        memory=_ceiling("memory", memory),
        compute_sustained=_ceiling(dtype, sustained),
        memory_sustained=_ceiling("memory", slower),
        intensity=total / work.bytes if work.bytes and work.flops is not None else None,
        ridge=_ratio(peak, memory),
        ridge_sustained=_ratio(sustained, slower),
        compute_seconds=compute_seconds,
        memory_seconds=memory_seconds,
        floor_seconds=floor,
        sustained_seconds=_sustained_floor(flops, slower_seconds, device, bound),
        bound=bound,
        note="; ".join(notes),
    )


def _compute_time(flops: Mapping[str, float], rate: Rate) -> float | None:
    seconds = 0.0
    for dtype, count in flops.items():
        peak = rate(dtype)
        if peak is None:
            return None
        seconds += count / _rate(peak)
    return seconds


def _optional_rate(rate: Rate) -> Rate:
    """`rate`, with None for dtypes nobody publishes rates of (vector bf16, say). Where a chip has
    no matrix instructions of a dtype, its vector pipes multiply."""

    def lookup(dtype: str) -> Quantity | None:
        try:
            peak = rate(dtype)
            return rate(f"vector_{dtype}") if peak is None and dtype in _VECTOR else peak
        except UnknownName:
            return None

    return lookup


_VECTOR = ("fp64", "fp32", "fp16")
"""Dtypes that vector pipes multiply."""


def _why_no_peak(device: Device, dtype: str) -> str:
    try:
        return device.why_no_peak(dtype)
    except UnknownName:
        return f"{device.id} has no known {dtype} rate"


def _at_least(device: Device, dtype: str) -> Quantity | None:
    """The rate of a dtype, or one it cannot be below: no vector unit here does halves slower than
    single precision."""
    peak = _optional_rate(device.peak_flops)(dtype)
    if peak is None and dtype in ("vector_fp16", "vector_bf16"):
        return device.peak_flops("vector_fp32")
    return peak


def _sustained_floor(
    flops: Mapping[str, float], memory: float | None, device: Device, bound: str
) -> float | None:
    """The floor at sustained rates. Computing without one keeps its peak, unless it is what binds:
    then nothing is known beyond the datasheet's floor."""
    slower, peak_of = _optional_rate(device.sustained_flops), _optional_rate(device.peak_flops)
    if bound == "unknown":
        return None
    if bound == "compute" and any(slower(name) is None for name in flops):
        return None
    compute = _compute_time(flops, lambda name: slower(name) or peak_of(name))
    return _later(compute, memory)


def _rate(quantity: Quantity) -> float:
    """FLOP/s or byte/s; a rate the device gives is always a number."""
    value = quantity.value
    assert isinstance(value, (int, float))
    return float(value)


def _over(amount: float | None, rate: Quantity | None) -> float | None:
    return None if amount is None or rate is None else amount / _rate(rate)


def _ratio(peak: Quantity | None, bandwidth: Quantity | None) -> float | None:
    return None if peak is None or bandwidth is None else _rate(peak) / _rate(bandwidth)


def _later(first: float | None, second: float | None) -> float | None:
    """The larger of two times; a floor needs both, for the missing one could be larger."""
    return None if first is None or second is None else max(first, second)


def _bound(compute: float | None, memory: float | None) -> str:
    if compute is None or memory is None:
        return "unknown"
    return "compute" if compute > memory else "memory"


def _ceiling(name: str, rate: Quantity | None) -> Ceiling | None:
    if rate is None:
        return None
    return Ceiling(name, _rate(rate), rate.status, ", ".join(rate.sources))
