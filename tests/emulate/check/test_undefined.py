"""Results that the programming models leave undefined, and code the hardware cannot execute."""

from pathlib import Path

import numpy as np
import pytest

import wavecast
from tests.emulate.check.support import checked
from tests.emulate.check.test_planted import found, line_of
from tests.emulate.memory_support import assembly
from tests.targets import swept
from wavecast.compile.assembly import load
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.check.static import static_reports
from wavecast.emulate.reports import Kind

SOURCE = Path(__file__).with_name("undefined.hip")
TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
ONES = np.ones(64, np.int32)


@pytest.fixture(scope="module", params=swept(TARGETS))
def kernels(request):
    return wavecast.load(SOURCE, arch=request.param, check=True, threads=1)


def zeros(count=64, dtype=np.float32):
    return np.zeros(count, dtype)


def only(reports, kind, line):
    (report,) = (one for one in reports if one.severity == "error")
    assert report.kind is kind
    assert line in SOURCE.read_text().splitlines()[line_of(report) - 1]
    return report


@pytest.mark.hip
def test_a_value_from_an_inactive_lane(kernels):
    assert found(kernels["shuffle"], 1, 64, zeros(), zeros(), 32) == ()
    reports = found(kernels["shuffle"], 1, 64, zeros(), zeros(), 16)
    assert only(reports, Kind.INACTIVE_LANE, "__shfl").lanes == tuple(range(16))


@pytest.mark.hip
def test_a_swizzled_value_from_an_inactive_lane(kernels):
    arrays = zeros(dtype=np.int32), zeros(dtype=np.int32)
    assert found(kernels["swizzled"], 1, 64, *arrays, 32) == ()
    reports = found(kernels["swizzled"], 1, 64, *arrays, 16)
    assert only(reports, Kind.INACTIVE_LANE, "lane ^ 16").lanes == tuple(range(16))


REDUCTIONS = ["ported_reduction", "ported_block_reduction", "ported_quarter", "ported_maximum"]


@pytest.mark.hip
@pytest.mark.parametrize("name", REDUCTIONS)
def test_values_of_inactive_lanes_that_nobody_uses(kernels, name):
    dtype = np.int32 if name == "ported_maximum" else np.float32
    assert found(kernels[name], 1, 64, zeros(dtype=dtype), zeros()) == ()


@pytest.mark.hip
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("all_lanes_stored", "out[threadIdx.x] = v"),
        ("as_an_address", "out[other & 63]"),
        ("as_a_condition", "if (other > 3)"),
    ],
)
def test_values_of_inactive_lanes_are_reported_with_their_use(kernels, name, use):
    dtype = np.float32 if name == "all_lanes_stored" else np.int32
    reports = found(kernels[name], 1, 64, zeros(), np.full(64, 5, dtype))
    report = only(reports, Kind.INACTIVE_LANE, "// inactive")
    assert report.other_location is not None
    assert use in SOURCE.read_text().splitlines()[report.other_location.line - 1]


@pytest.mark.hip
def test_lanes_that_never_were_active_may_be_read(kernels):
    assert found(kernels["shuffle"], 1, 16, zeros(), zeros(), 16) == ()


@pytest.mark.hip
@pytest.mark.parametrize(("name", "dtype"), [("divide", np.int32), ("divide_long", np.int64)])
def test_a_division_by_zero(kernels, name, dtype):
    ones = ONES.astype(dtype) << (40 if dtype is np.int64 else 4)
    assert found(kernels[name], 1, 64, zeros(dtype=dtype), ones, ones) == ()
    zero = ones.copy()
    zero[7] = 0
    reports = found(kernels[name], 1, 64, zeros(dtype=dtype), ones, zero)
    assert 7 in only(reports, Kind.INTEGER_DIVISION_BY_ZERO, "/ b[threadIdx.x]").lanes


@pytest.mark.hip
def test_a_remainder_by_a_scalar_zero(kernels):
    ones = ONES.view(np.uint32)
    kernel = kernels["divide_unsigned"]
    assert found(kernel, 1, 64, zeros(dtype=np.uint32), ones, 3) == ()
    reports = found(kernel, 1, 64, zeros(dtype=np.uint32), ones, 0)
    assert {one.kind for one in reports if one.severity == "error"} == {
        Kind.INTEGER_DIVISION_BY_ZERO
    }


@pytest.mark.hip
def test_a_wave_that_ends_before_a_barrier(kernels):
    assert found(kernels["early_exit"], 2, 256, zeros(256), zeros(256), 256) == ()
    reports = found(kernels["early_exit"], 2, 256, zeros(256), zeros(256), 128)
    only(reports, Kind.EXITED_WAVE, "__syncthreads")


@pytest.mark.hip
def test_waves_with_unequal_numbers_of_barriers(kernels):
    kernel = kernels["barriers_per_wave"]
    assert found(kernel, 2, 256, zeros(256), zeros(256), 0) == ()
    reports = found(kernel, 2, 256, zeros(256), zeros(256), 1)
    assert {one.kind for one in reports if one.severity == "error"} == {Kind.EXITED_WAVE}


@pytest.mark.parametrize("target", swept(TARGETS))
def test_a_register_that_is_not_allocated(target):
    body = "\tv_mov_b32_e32 v{n}, 0\n\tv_mov_b32_e32 v2, v{n}"
    assert checked(target, body.format(n=63), zeros()) == []
    (report,) = checked(target, body.format(n=64), zeros())
    assert report.kind is Kind.UNALLOCATED_REGISTER
    assert "uses v64, and the descriptor allocates 64 VGPRs" in report.message


@pytest.mark.parametrize("target", swept(TARGETS))
def test_a_scalar_register_that_is_not_allocated(target):
    body = "\ts_mov_b32 s{n}, 0\n\ts_mov_b32 s2, s{n}"
    assert checked(target, body.format(n=63), zeros()) == []
    reports = checked(target, body.format(n=64), zeros())
    if not target.startswith("gfx9"):
        assert reports == []
        return
    (report,) = reports
    assert report.kind is Kind.UNALLOCATED_REGISTER
    assert "uses s64, and the descriptor allocates 64 SGPRs" in report.message


@pytest.mark.parametrize("target", swept(TARGETS))
def test_code_without_an_end(target):
    text = assembly(target, "\tv_mov_b32_e32 v2, 0")
    (code,) = load(text, target)
    assert static_reports(parse_kernel(code)) == []
    (code,) = load(text.replace("\ts_endpgm\n", ""), target)
    (report,) = static_reports(parse_kernel(code))
    assert report.kind is Kind.MISSING_END
    assert report.text == "v_mov_b32_e32 v2, 0"


@pytest.mark.hip
@pytest.mark.parametrize(
    ("target", "right", "wrong"),
    [
        ("gfx942", "float8_e4m3fnuz", "float8_e4m3fn"),
        ("gfx1201", "float8_e4m3fn", "float8_e4m3fnuz"),
    ],
)
def test_a_tensor_of_another_8_bit_format(target, right, wrong):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    kernel = wavecast.load(SOURCE, arch=target, check=True, threads=1)["from_fp8"]
    data = torch.zeros(64, dtype=torch.uint8)
    assert found(kernel, 1, 64, zeros(), data.view(getattr(torch, right))) == ()
    reports = found(kernel, 1, 64, zeros(), data.view(getattr(torch, wrong)))
    report = only(reports, Kind.FP8_FORMAT, "cvt_f32_fp8")
    assert f"reads {right}, and in is a tensor of {wrong}" in report.message


@pytest.mark.hip
def test_a_conversion_to_8_bits_reads_none():
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    kernel = wavecast.load(SOURCE, arch="gfx942", check=True, threads=1)["to_fp8"]
    codes = torch.zeros(64, dtype=torch.uint8).view(torch.float8_e4m3fn)
    assert found(kernel, 1, 64, codes, zeros()) == ()


@pytest.mark.hip
@pytest.mark.parametrize("name", ["private_array", "private_bytes"])
def test_elements_of_a_private_array_that_nothing_has_written(kernels, name):
    index = np.arange(16, dtype=np.int32)[::-1].copy()
    dtype = np.float32 if name == "private_array" else np.int32
    assert found(kernels[name], 1, 64, zeros(dtype=dtype), index, 16) == ()
    reports = found(kernels[name], 1, 64, zeros(dtype=dtype), index, 13)
    report = only(reports, Kind.UNINITIALISED_PRIVATE, "out[threadIdx.x] = value")
    assert set(report.lanes) >= {13, 14, 15, 29}
    assert 12 not in report.lanes
    other = report.other_location
    assert other is not None
    text = SOURCE.read_text().splitlines()[other.outermost.line - 1]
    assert "value = own[" in text
