"""Peak and sustained rates."""

from __future__ import annotations

import pytest

from wavecast import arch
from wavecast.errors import UnknownName

AMD = [device for device in arch.devices() if device.vendor == "amd"]
CASES = [
    pytest.param(device, dtype, id=f"{device.id}-{dtype}")
    for device in AMD
    for dtype in (*arch.DTYPES, *arch.VECTOR_DTYPES)
]


@pytest.mark.parametrize(("device", "dtype"), CASES)
def test_printed_peaks_agree_with_operations_per_clock(device: arch.Device, dtype: str) -> None:
    """Within 1 % wherever both are known, but for published conflicts."""
    kind = dtype.replace("vector_", "vec_") if dtype.startswith("vector") else f"mat_{dtype}"
    names = f"peak_{kind}", f"ops_clk_cu_{kind}"
    if not all(name in device.fields() for name in names):
        return
    clock = device.clock_hz.number
    peak = device.peak_flops(dtype)
    assert peak is not None
    expected = device.quantity(names[1]).number * device.compute_units * clock
    if abs(peak.number / expected - 1) > 0.01:
        assert device.quantity(names[0]).status == "conflict"


def test_published_peaks_in_flops() -> None:
    peak = arch.load("mi300x").peak_flops("bf16")
    assert peak is not None
    assert (peak.value, peak.unit, peak.status) == (1307.4e12, "FLOP/s", "spec")
    assert "cdna3-white-paper" in peak.source
    int8 = arch.load("a100").peak_flops("int8")
    assert int8 is not None
    assert int8.value == 624e12


@pytest.mark.parametrize(
    "dtype", ["fp8", "fp8_e4m3", "e5m2", "fp8e4nv", "float8_e4m3fnuz", "float8_e4m3fn", "bf8"]
)
def test_all_fp8_formats_run_at_one_rate(dtype: str) -> None:
    for name in ("mi300x", "mi355x", "h100"):
        device = arch.load(name)
        assert device.peak_flops(dtype) == device.peak_flops("fp8")


def test_types_a_chip_lacks() -> None:
    assert arch.load("mi300x").peak_flops("fp4") is None
    assert arch.load("mi355x").peak_flops("xf32") is None
    assert arch.load("mi210").peak_flops("fp8") is None
    assert "no known fp4 rate" in arch.load("mi300x").why_no_peak("fp4")
    assert arch.load("mi300x").why_no_peak("bf16") == ""


def test_tf32_is_xf32() -> None:
    for name, rate in (("mi300x", 653.7e12), ("h100", 494.7e12)):
        found = arch.load(name).peak_flops("tf32")
        assert found is not None
        assert found == arch.load(name).peak_flops("xf32")
        assert found.value == pytest.approx(rate)


def test_without_a_clock_there_is_no_peak() -> None:
    device = arch.load("mi308x")
    assert device.peak_flops("bf16") is None
    assert "clock of mi308x is not known" in device.why_no_peak("bf16")
    assert device.peak_bandwidth() is None


def test_unknown_type() -> None:
    with pytest.raises(UnknownName, match="bf16"):
        arch.load("mi300x").peak_flops("bf17")


def test_sustained() -> None:
    device = arch.load("mi300x")
    flops, bandwidth = device.sustained_flops("bf16"), device.sustained_bandwidth()
    assert flops is not None
    assert bandwidth is not None
    assert (flops.value, flops.source) == (708e12, "max-achievable-flops")
    assert bandwidth.value == pytest.approx(4.09e12)
    assert device.sustained_flops("fp64") is None


@pytest.mark.parametrize("device", arch.devices(), ids=lambda device: device.id)
def test_sustained_is_below_peak(device: arch.Device) -> None:
    for dtype in (*arch.DTYPES, *arch.VECTOR_DTYPES):
        peak, sustained = device.peak_flops(dtype), device.sustained_flops(dtype)
        if peak is not None and sustained is not None:
            assert sustained.number < peak.number
    peak, sustained = device.peak_bandwidth(), device.sustained_bandwidth()
    if peak is not None and sustained is not None:
        assert 0.4 * peak.number < sustained.number < peak.number
