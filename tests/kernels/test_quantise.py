"""Quantisation: refused arguments, strides, empty tensors, extreme values on machine code."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests.targets import thorough_beyond  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402
from wavecast.kernels.quantise.common import same_codes  # noqa: E402
from wavecast.runtimes.triton import device  # noqa: E402

pytestmark = pytest.mark.torch


def _extremes() -> torch.Tensor:
    """Rows of zeros, tiny and huge values, ties, NaN and infinity."""
    x = torch.zeros(6, 64)
    x[1] = torch.linspace(-1e-37, 1e-37, 64)
    x[2] = torch.linspace(-3e38, 3e38, 64)
    x[3] = torch.arange(64) / 2.0 - 16.0
    x[4] = 1.0
    x[4, 3] = float("nan")
    x[5] = -2.0
    x[5, 9] = float("inf")
    return x


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("quantise_fp8_token", "gfx942"),
        ("quantise_fp8_tensor", "gfx942"),
        ("quantise_fp8_group", "gfx1100"),
        ("quantise_int8_token", "gfx942"),
        ("quantise_int8_tensor", "gfx1201"),
        ("quantise_mxfp4", "gfx90a"),
        ("quantise_mxfp8", "gfx950"),
    ],
)
def test_extreme_values(name: str, arch: str) -> None:
    operator = ops.operator(name)
    x = _extremes()
    with device(arch):
        got = operator.call(x)
    assert not same_codes(got, operator.reference(x), {})


DTYPES = [torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.int8]


@pytest.mark.parametrize(
    ("arch", "dtype"),
    thorough_beyond(
        [*(("gfx942", dtype) for dtype in DTYPES), ("gfx90a", DTYPES[0]), ("gfx950", DTYPES[0]),
         ("gfx950", DTYPES[2])],
        itertools.product(["gfx90a", "gfx942", "gfx950"], DTYPES),
    ),
)  # fmt: skip
def test_codes_of_every_bfloat16_are_those_of_a_cast(dtype: torch.dtype, arch: str) -> None:
    """Bit for bit, so signs of zero too; gfx942 converts half of some values."""
    x = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    one = torch.ones(1)
    with device(arch):
        if dtype == torch.int8:
            codes, _ = ops.operator("quantise_int8_tensor").call(x, one)
            right = x.float().clamp(-127, 127).round().nan_to_num().to(dtype)
        else:
            codes, _ = ops.operator("quantise_fp8_tensor").call(x, one, dtype)
            most = torch.finfo(dtype).max
            right = x.float().clamp(-most, most).to(dtype)
    both = codes.float().isnan() & right.float().isnan()  # e5m2 has many
    assert bool((both | (codes.view(torch.uint8) == right.view(torch.uint8))).all())


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.int8])
@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_caches_hold_the_codes_of_a_cast(dtype: torch.dtype, arch: str) -> None:
    x = torch.arange(1 << 12, dtype=torch.int32).mul(16).to(torch.int16).view(torch.bfloat16)
    x = x.reshape(32, 1, 128)
    operator, slots, one = ops.operator("kv_cache_write"), torch.arange(32), torch.ones(1)
    found, right = ([torch.zeros(2, 16, 1, 128, dtype=dtype) for _ in "kv"] for _ in "ab")
    with device(arch):
        operator.call(x, x.flip(0), *found, slots, one, one)
    operator.reference(x, x.flip(0), *right, slots, one, one)
    for mine, expected in zip(found, right, strict=True):
        assert torch.equal(mine.view(torch.uint8), expected.view(torch.uint8))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.int8])
@pytest.mark.parametrize(("group", "arch"), [(0, "gfx942"), (32, "gfx950"), (0, "gfx1100")])
def test_nan_does_not_get_lost_in_a_norm(dtype: torch.dtype, group: int, arch: str) -> None:
    x, weight = torch.randn(3, 80), torch.ones(80)
    x[1, 7] = float("nan")
    weight[50] = float("nan")  # the second group's
    operator = ops.operator("rms_norm_quantised")
    with device(arch):
        codes, scales, _ = operator.call(x, weight, None, dtype, group)
    right, right_scales, _ = operator.reference(x, weight, None, dtype, group)
    torch.testing.assert_close(scales, right_scales, equal_nan=True)
    assert bool(scales.isnan().any())
    torch.testing.assert_close(codes.float(), right.float(), rtol=0.13, atol=1, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2])
def test_every_code_comes_back(dtype: torch.dtype) -> None:
    """Values that a format holds are quantised to themselves, where the scale is one."""
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)
    values = codes.float()
    held = values[values.isfinite()]
    most = torch.finfo(dtype).max
    assert float(held.abs().max()) == most
    with device("gfx942"):
        got, scale = ops.operator("quantise_fp8_token").call(held[None], dtype)
    assert float(scale) == 1.0
    assert torch.equal(got.float()[0], held)


@pytest.mark.parametrize("value", [0.0, 1e-38, 3e38, float("inf"), float("nan")])
def test_one_scale_of_extreme_values(value: float) -> None:
    x = torch.linspace(-1.0, 1.0, 70).reshape(2, 5, 7) * 1e-39
    x[1, 2, 3] = value
    operator = ops.operator("quantise_fp8_tensor")
    given = torch.tensor([[0.25]])
    with device("gfx950"):
        found = operator.call(x)
        static = operator.call(x, given, torch.float8_e5m2)
    assert not same_codes(found, operator.reference(x), {})
    assert not same_codes(static, operator.reference(x, given, torch.float8_e5m2), {})


def test_scales_of_tensors_are_those_of_the_product() -> None:
    """Codes and scales go into `scaled_matmul` as they are."""
    a, b = torch.randn(5, 64), torch.randn(64, 48)
    product = ops.operator("scaled_matmul").reference
    for quantise, error in (
        (ops.operator("quantise_int8_tensor").reference, 0.03),
        (ops.operator("quantise_fp8_tensor").reference, 0.08),
    ):
        (left, left_scale), (right, right_scale) = quantise(a), quantise(b)
        got = product(left, right, left_scale, right_scale, out_dtype=torch.float32)
        assert float((got - a @ b).norm() / (a @ b).norm()) < error


def test_strides_and_dimensions() -> None:
    wide = torch.randn(4, 3, 96).transpose(0, 1)[..., ::2]
    operator = ops.operator("quantise_int8_token")
    with device("gfx942"):
        codes, scale = operator.call(wide)
    assert codes.shape == (3, 4, 48)
    assert scale.shape == (3, 4, 1)
    assert not same_codes((codes, scale), operator.reference(wide), {})


@pytest.mark.parametrize("scale", [None, torch.tensor([0.5])])
@pytest.mark.parametrize("name", ["quantise_int8_tensor", "quantise_fp8_tensor"])
def test_one_number_stays_one(name: str, scale: torch.Tensor | None) -> None:
    operator, x = ops.operator(name), torch.tensor(3.5)
    with device("gfx942"):
        got = operator.call(x, scale)
    assert not same_codes(got, operator.reference(x, scale), {})
    assert got[0].shape == ()


def test_empty_tensors_launch_nothing() -> None:
    for shape in ((0, 64), (3, 0)):
        x = torch.empty(shape)
        for name in (
            *("quantise_fp8_token", "quantise_fp8_group", "quantise_mxfp4"),
            *("quantise_fp8_tensor", "quantise_int8_tensor"),
        ):
            operator = ops.operator(name)
            got = operator.call(x)
            expected = operator.reference(x)
            assert [one.shape for one in got] == [one.shape for one in expected]


def test_mx_values_come_back() -> None:
    x = torch.randn(5, 96)
    codes, scale = ops.operator("quantise_mxfp4").reference(x)
    back = ops.operator("dequantise_mx").reference(codes, scale, torch.float32)
    largest = x.reshape(5, 3, 32).abs().amax(-1).repeat_interleave(32, -1)
    assert bool(((back - x).abs() <= largest / 4).all())


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("quantise_fp8_token", {"x": torch.ones(2, 3).double()}, "x is float64"),
        ("quantise_fp8_token", {"x": torch.ones(2, 3), "dtype": torch.int8}, "no fp8 dtype int8"),
        ("quantise_fp8_group", {"x": torch.ones(2, 3), "group": 100}, "groups of 100"),
        ("quantise_int8_token", {"x": torch.tensor(1.0)}, "x is a scalar"),
        ("quantise_fp8_tensor", {"x": torch.ones(3), "scale": torch.ones(2)}, "not one element"),
        ("quantise_int8_tensor", {"x": torch.ones(3), "scale": torch.ones(1).half()}, "float16"),
        ("quantise_mxfp4", {"x": torch.ones(2, 33)}, "an odd number"),
        ("quantise_mxfp8", {"x": torch.ones(2, 3), "dtype": torch.float8_e4m3fnuz}, "no MX dtype"),
    ],
)
def test_bad_arguments(name: str, given: dict, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ops.operator(name).call(**given)
