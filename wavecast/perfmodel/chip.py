"""What one device can do, in SI units: the capacities the model divides demands by.

Facts of the device come from `wavecast.arch`; what a datasheet does not say (sustained bandwidths,
launch times) from `wavecast.perfmodel.coefficients`. Numbers nobody published are None, and a model
that needs one says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from wavecast.arch import Device, Quantity
from wavecast.errors import MissingFact, UnknownName
from wavecast.perfmodel import coefficients

LANES = 64


@dataclass(frozen=True, slots=True, eq=False)
class Chip:
    """Capacities of a device. Clocks in Hz, bytes, byte/s, seconds; per-clock rates per CU.

    `hbm` is the sustained bandwidth of the memory, `hbm_peak` the datasheet's. `l2_bytes` and
    `l2_bandwidth` are of the whole chip, `l2_slice` of one die (XCD). `mall_bytes` is 0 without a
    memory-side cache. `launch` is an empty kernel from start to end.
    """

    device: Device
    units: int
    dies: int
    simds: int
    lanes: int
    clock: float
    vector_flops: float
    lds_bytes: float
    lds_rate: float
    l2_bytes: float
    l2_slice: float
    l2_bandwidth: float | None
    mall_bytes: float
    mall_bandwidth: float | None
    hbm_peak: float
    hbm: float
    tdp: float | None
    latency: Mapping[str, float]
    launch: float

    @staticmethod
    def of(device: Device) -> Chip:
        """The capacities of a device. Raises MissingFact for one without memory or clock facts."""
        return of_device(device)

    def matrix_rate(self, dtype: str) -> float:
        """FLOP per clock and CU of a matrix dtype; MissingFact when the chip has none known."""
        return matrix_rate(self.device, dtype)

    def coefficient(self, family: str, name: str) -> float:
        """A coefficient for this device. Raises UnknownName or MissingFact."""
        return coefficients.coefficient(family, name).of(self.device)


@cache
def of_device(device: Device) -> Chip:
    """As `Chip.of`; its cache is cleared when coefficients change. Raises MissingFact."""
    constants = coefficients.values("chips", device)
    clock = constants.get("clock") or device.clock_hz.number
    memory, sustained = device.peak_bandwidth(), sustained_bandwidth(device)
    hbm_peak = memory.number if memory else constants.get("memory_bandwidth")
    if hbm_peak is None:
        raise MissingFact(f"{device.id} has no known memory bandwidth")
    units = device.compute_units
    dies = device.dies
    l2 = _size(device, "l2_size", constants)
    return Chip(
        device=device,
        units=units,
        dies=dies,
        simds=device.simds_per_cu,
        lanes=device.wave_lanes,
        clock=clock,
        vector_flops=_vector_flops(device, clock),
        lds_bytes=device.lds_bytes,
        lds_rate=device.facts.number("lds_bytes_per_clk_cu"),
        l2_bytes=l2,
        l2_slice=l2 / dies,
        l2_bandwidth=_l2_bandwidth(device),
        mall_bytes=_size(device, "mall", constants),
        mall_bandwidth=_first(
            device, ("eff_mall", "meas_mall_read", "meas_mall_bw", "mall_bw"), 1e12
        ),
        hbm_peak=hbm_peak,
        hbm=sustained.number if sustained else hbm_peak * constants["hbm_fraction"],
        tdp=_number(device, "tdp"),
        latency=_latencies(device, clock, constants),
        launch=_first(device, ("meas_launch",), 1e-6) or constants["launch"],
    )


def sustained_bandwidth(device: Device) -> Quantity | None:
    """What the memory sustains in byte/s, for kernels and for the roofline over them; None without
    a datasheet's bandwidth.

    A measurement the user's file gives; else the datasheet's times the coefficient, which weighs
    all measurements of a chip there are, where each by itself is of one program.
    """
    bandwidth, peak = device.sustained_bandwidth(), device.peak_bandwidth()
    if bandwidth is not None and bandwidth.status == "override":
        return bandwidth
    if peak is None:
        return None
    fraction = coefficients.coefficient("chips", "hbm_fraction")
    sources = (*peak.sources, fraction.source)
    return Quantity(peak.number * fraction.of(device), "B/s", fraction.status, sources)


def _number(device: Device, name: str) -> float | None:
    value = device.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def _vector_flops(device: Device, clock: float) -> float:
    """FLOP per clock and CU of fp32. Raises MissingFact."""
    peak = device.peak_flops("vector_fp32")
    if peak is None:
        return device.facts.number("ops_clk_cu_vec_fp32")
    return peak.number / device.compute_units / clock


def _size(device: Device, name: str, constants: Mapping[str, float]) -> float:
    """Bytes of a cache by the datasheet, else by the coefficient for chips without one. Raises
    MissingFact."""
    if device.get(name) is None and name in constants:
        return constants[name] * 2**20
    return float(device.facts.integer(name, "B"))


def _first(device: Device, names: tuple[str, ...], scale: float) -> float | None:
    values = (value for name in names if (value := _number(device, name)) is not None)
    value = next(values, None)
    return None if value is None else value * scale


def _l2_bandwidth(device: Device) -> float | None:
    return _first(device, ("eff_l2", "meas_l2_read", "meas_l2_bw", "l2_bw_peak"), 1e12)


def _latencies(device: Device, clock: float, constants: Mapping[str, float]) -> dict[str, float]:
    """Seconds from load to use per level; a chip's own measurement, else the assumed one."""
    latencies = {}
    for level, field, assumed in (
        ("lds", "lat_lds", "latency_lds"),
        ("scalar", "lat_scalar_l1", "latency_scalar"),
        ("l1", "lat_l1v", "latency_l1"),
        ("l2", "lat_l2", "latency_l2"),
        ("mall", "lat_mall", "latency_mall"),
        ("hbm", "lat_dram", "latency_hbm"),
    ):
        value = _number(device, field)
        if value is None:
            latencies[level] = constants[assumed]
        else:
            unit = device.quantity(field).unit
            latencies[level] = value * 1e-9 if unit == "ns" else value / clock
    return latencies


@cache
def matrix_rate(device: Device, dtype: str) -> float:
    """FLOP per clock and CU of a matrix dtype. Raises MissingFact where none is known."""
    per_clock = _number(device, f"ops_clk_cu_mat_{dtype}")
    if per_clock is not None:
        return per_clock
    try:
        peak = device.peak_flops(dtype)
    except UnknownName:
        peak = None
    if peak is None:
        raise MissingFact(f"{device.id} has no known {dtype} matrix rate")
    return peak.number / device.compute_units / device.clock_hz.number


__all__ = ["Chip", "matrix_rate", "of_device", "sustained_bandwidth"]
