"""Rooflines worked out by hand, and properties that hold for any work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavecast import arch
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.roofline import roofline


def work(flops: dict[str, float] | None, bytes_: float | None) -> Work:
    return Work(flops, bytes_, None if bytes_ is None else 0.0, "given", "given")


def test_a_gemm_by_hand() -> None:
    """MI300X, bf16: 1307.4 TFLOP/s and 5.325 TB/s by the datasheet, sustained 708 and 77 %."""
    found = roofline(work({"bf16": 2 * 4096.0**3}, 3 * 2 * 4096.0**2), arch.load("mi300x"))
    assert found.intensity == pytest.approx(4096 / 3)
    assert found.ridge == pytest.approx(1307.4 / 5.325)
    assert found.bound == "compute"
    assert found.floor_seconds == pytest.approx(2 * 4096**3 / 1307.4e12)
    assert found.sustained_seconds == pytest.approx(2 * 4096**3 / 708e12)


def test_a_copy_by_hand() -> None:
    found = roofline(work({}, 2e9), arch.load("mi300x"))
    assert (found.bound, found.intensity) == ("memory", 0.0)
    assert found.floor_seconds == pytest.approx(2e9 / 5.325e12)
    assert found.sustained_seconds == pytest.approx(2e9 / (0.77 * 5.325e12))


@pytest.mark.parametrize("name", ["mi210", "mi300x", "mi355x", "rx7900xtx", "rx9070xt", "h200"])
def test_the_memory_ceiling_is_what_kernels_get(name: str) -> None:
    """Otherwise predictions beat the bound they are compared with."""
    ceiling = roofline(work({}, 1e9), arch.load(name)).memory_sustained
    assert ceiling is not None
    assert ceiling.rate == pytest.approx(Chip.of(arch.load(name)).hbm)


def test_a_measured_bandwidth_of_the_user_is_the_ceiling_and_what_kernels_get(tmp_path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('device = "mi300x"\nmeas_babelstream_triad = 3.5\n', encoding="utf-8")
    device = arch.load("mi300x", (file,))
    assert roofline(work({}, 1e9), device).sustained_seconds == pytest.approx(1e9 / 3.5e12)
    assert Chip.of(device).hbm == pytest.approx(3.5e12)


def test_mixed_dtypes_add_up() -> None:
    device = arch.load("mi300x")
    found = roofline(work({"bf16": 1e12, "fp8": 1e12}, 1.0), device)
    assert found.compute_seconds == pytest.approx(1e12 / 1307.4e12 + 1e12 / 2614.9e12)


def test_without_a_sustained_rate_of_the_binding_side_there_is_no_sustained_floor() -> None:
    device = arch.load("rx7900xtx")
    assert device.sustained_flops("bf16") is None
    assert roofline(work({"bf16": 1e15}, 1.0), device).sustained_seconds is None
    assert roofline(work({"bf16": 1.0}, 1e9), device).sustained_seconds is not None


@pytest.mark.parametrize(
    ("flops", "bytes_", "device", "says"),
    [
        ({"fp8": 1e12}, 1e9, "mi210", "fp8"),
        (None, 1e9, "mi300x", "FLOPs"),
        ({"bf16": 1e12}, None, "mi300x", "bytes"),
        ({"bf16": 1e12}, 1e9, "mi308x", "mi308x"),
    ],
)
def test_what_is_not_known_is_said(flops, bytes_, device: str, says: str) -> None:
    found = roofline(work(flops, bytes_), arch.load(device))
    assert found.bound == "unknown"
    assert found.floor_seconds is None
    assert says in found.note


@given(
    st.floats(1.0, 1e18), st.floats(1.0, 1e15), st.sampled_from(["mi300x", "h100_sxm", "mi355x"])
)
def test_the_bound_is_the_side_of_the_ridge(flops: float, bytes_: float, device: str) -> None:
    found = roofline(work({"bf16": flops}, bytes_), arch.load(device))
    assert found.intensity is not None
    assert found.ridge is not None
    assert found.floor_seconds == max(found.compute_seconds or 0, found.memory_seconds or 0)
    if abs(found.intensity / found.ridge - 1) > 1e-9:
        assert found.bound == ("compute" if found.intensity > found.ridge else "memory")


@given(st.floats(1.0, 1e18), st.floats(1.0, 1e15))
def test_more_work_never_takes_less_time(flops: float, bytes_: float) -> None:
    device = arch.load("mi300x")
    once = roofline(work({"bf16": flops}, bytes_), device).floor_seconds
    more = roofline(work({"bf16": 2 * flops}, 2 * bytes_), device).floor_seconds
    assert once is not None
    assert more == pytest.approx(2 * once)


def test_a_missing_vector_rate_does_not_hide_a_memory_bound() -> None:
    """MI300X has no published rate for vector halves; they are no slower than single precision."""
    device = arch.load("mi300x")
    assert device.peak_flops("vector_fp16") is None
    found = roofline(work({"vector_fp16": 1e6}, 1e9), device)
    assert found.bound == "memory"
    assert found.floor_seconds == found.memory_seconds
    assert roofline(work({"vector_fp16": 1e18}, 1.0), device).bound == "unknown"


def test_a_dtype_nobody_has_a_rate_for_is_a_note() -> None:
    found = roofline(work({"vector_bf16": 1e18}, 1.0), arch.load("mi455x"))
    assert found.bound == "unknown"
    assert "vector_bf16" in found.note
