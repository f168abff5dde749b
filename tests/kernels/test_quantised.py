"""Quantised and grouped products: refused arguments, strides, empty tensors, values that matter."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from wavecast import ops  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402
from wavecast.frameworks.torch.verify import difference  # noqa: E402
from wavecast.kernels.operator import Tolerance  # noqa: E402
from wavecast.launch.inputs import Make  # noqa: E402
from wavecast.runtimes.triton import device  # noqa: E402

pytestmark = pytest.mark.torch


def _made(name: str, **sizes: object) -> dict:
    return ops.operator(name).inputs(Make(5), **sizes)


@pytest.mark.parametrize("rows", [3, 70])
def test_codes_of_nan_and_minus_zero_where_a_target_has_another_format(rows: int) -> None:
    """gfx942 multiplies e4m3fn as e4m3fnuz, whose code of NaN is that of -0."""
    given = _made("matmul_fp8_block", m=rows, n=20, k=128, dtype="float8_e4m3fn")
    codes = given["a"].view(torch.uint8)
    codes[0, :5] = 0x80
    codes[2, 7] = 0x7F
    operator = ops.operator("matmul_fp8_block")
    with device("gfx942"):
        got = operator.call(**given)
    expected = operator.reference(**given)
    assert bool(got[2].isnan().all())
    assert int(got.isnan().sum()) == 20
    keep = torch.arange(rows) != 2
    assert not difference(got[keep], expected[keep].double(), Tolerance(ulps=2.0))


def test_grouped_strides_and_rows_of_no_group() -> None:
    operator = ops.operator("grouped_matmul")
    a = torch.randn(40, 64).bfloat16().T.contiguous().T
    b = torch.randn(3, 24, 128).bfloat16()[..., ::2]
    offsets = torch.tensor([0, 5, 5, 30])
    with device("gfx1100"):
        got = operator.call(a, b, offsets)
    assert not difference(got, operator.reference(a.double(), b.double(), offsets), Tolerance())
    assert not bool(got[30:].any())


def test_empty_tensors_launch_nothing() -> None:
    a = torch.empty(0, 64).bfloat16()
    offsets = torch.zeros(3, dtype=torch.int32)
    assert ops.operator("grouped_matmul").call(
        a, torch.ones(2, 8, 64).bfloat16(), offsets
    ).shape == (
        0,
        8,
    )
    found = ops.operator("grouped_outer").call(a, torch.empty(0, 5).bfloat16(), offsets)
    assert found.shape == (2, 64, 5)
    assert not bool(found.any())
    given = _made("matmul_w4a16", m=1, n=7, k=128, dtype="bfloat16")
    given["x"] = torch.empty(0, 128).bfloat16()
    assert ops.operator("matmul_w4a16").call(**given).shape == (0, 7)


def test_more_dimensions() -> None:
    given = _made("matmul_mx", m=6, n=20, k=64)
    operator = ops.operator("matmul_mx")
    flat = operator.reference(**given)
    given["a"] = given["a"].reshape(2, 3, -1)
    given["a_scale"] = given["a_scale"].reshape(2, 3, -1)
    with device("gfx950"):
        got = operator.call(**given)
    assert got.shape == (2, 3, 20)
    assert not difference(got.reshape(6, 20), flat.double(), Tolerance(ulps=2.0))


def test_gradients_of_a_grouped_product_by_autograd() -> None:
    a = torch.randn(10, 6).bfloat16().requires_grad_()
    b = torch.randn(2, 4, 6).bfloat16().requires_grad_()
    y = torch.ops.wavecast.grouped_matmul(a, b, torch.tensor([0, 4, 9]), True)
    y.float().sum().backward()
    assert a.grad is not None
    assert b.grad is not None
    assert not bool(a.grad[9].any())


@pytest.mark.parametrize(
    ("name", "sizes", "changed", "message"),
    [
        (
            "matmul_fp8_block",
            {"m": 2, "n": 3, "k": 128, "dtype": "float8_e5m2"},
            {"b": torch.ones(3, 128).to(torch.float8_e4m3fn)},
            "b is float8_e4m3fn",
        ),
        (
            "matmul_fp8_block",
            {"m": 2, "n": 3, "k": 128, "dtype": "float8_e5m2"},
            {"b_scale": torch.ones(3, 1)},
            "b_scale is 3x1, expected 1x1",
        ),
        (
            "matmul_w4a16",
            {"m": 2, "n": 3, "k": 128, "dtype": "bfloat16"},
            {"group": 48},
            "groups of 48",
        ),
        (
            "matmul_w4a16",
            {"m": 2, "n": 3, "k": 128, "dtype": "bfloat16"},
            {"x": torch.ones(2, 100).bfloat16()},
            "100 columns",
        ),
        ("matmul_mx", {"m": 2, "n": 3, "k": 64}, {"out_dtype": torch.int8}, "out_dtype"),
        (
            "grouped_matmul",
            {"m": 4, "n": 3, "k": 8, "groups": 2, "dtype": "bfloat16"},
            {"offsets": torch.zeros(5, dtype=torch.int32)},
            "offsets is 5, expected 3",
        ),
    ],
)
def test_bad_arguments(name: str, sizes: dict, changed: dict, message: str) -> None:
    given = {**_made(name, **sizes), **changed}
    with pytest.raises(ArgumentError, match=message):
        ops.operator(name).call(**given)
