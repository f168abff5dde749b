"""Signatures: what they check, make, count and refuse."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from wavecast.errors import ArgumentError, UsageError  # noqa: E402
from wavecast.kernels.operator import Operator  # noqa: E402
from wavecast.kernels.signature import (  # noqa: E402
    Signature,
    TensorSpec,
    integers,
    streamed,
    vector_flops,
)
from wavecast.kernels.strides import rows_of  # noqa: E402
from wavecast.launch.inputs import Make  # noqa: E402

pytestmark = pytest.mark.torch

NORM = Signature(
    *("x: [..., columns] float", "weight?: [columns] float", "scale: [..., cdiv(columns, 4)] =x"),
    returns=("y: [..., columns] =x",),
)


def tensors(**changes: object) -> dict[str, object]:
    given = {
        "x": torch.empty(2, 3, 10),
        "weight": torch.empty(10, dtype=torch.bfloat16),
        "scale": torch.empty(2, 3, 3),
    }
    return {**given, **changes}


def test_sizes_are_bound() -> None:
    assert NORM.check("norm", tensors()) == {"...": (2, 3), "columns": 10}
    assert NORM.check("norm", tensors(weight=None))["columns"] == 10


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.empty(2, 3, 10).int()}, "norm: x is int32; it takes float32, float16"),
        ({"x": torch.empty(())}, r"norm: x is a scalar, expected \[..., columns\]"),
        ({"weight": torch.empty(9)}, "norm: weight is 9, expected 10"),
        ({"scale": torch.empty(2, 3, 2)}, "norm: scale is 2x3x2, expected 2x3x3"),
        ({"scale": torch.empty(2, 4, 3)}, "norm: scale is 2x4x3, expected 2x3x3"),
        ({"scale": torch.empty(2, 3, 3).half()}, "norm: scale is float16; it takes float32"),
        ({"x": None}, "norm: x is missing"),
        ({"weight": torch.empty(10, device="meta")}, "norm: tensors on several devices"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        NORM.check("norm", tensors(**changes))


def test_a_checked_function_is_checked_under_its_name_with_its_defaults() -> None:
    @Signature("x: [...] float", "other?: [...] =x").checked
    def double(x, other=None):
        return x + x

    assert torch.equal(double(torch.ones(2)), 2 * torch.ones(2))
    with pytest.raises(ArgumentError, match="double: other is 3, expected 2"):
        double(torch.ones(2), other=torch.ones(3))


def test_inputs_follow_from_sizes() -> None:
    given = NORM.inputs()(Make(), rows=5, columns=9, dtype="float16", eps=0.5)
    assert [tuple(given[name].shape) for name in ("x", "weight", "scale")] == [(5, 9), (9,), (5, 3)]
    assert given["x"].dtype == given["scale"].dtype == torch.float16
    assert given["eps"] == 0.5
    assert NORM.inputs()(Make(), rows=5, columns=9, dtype="float16", weight=False)["weight"] is None
    assert (
        NORM.inputs(absent=("weight",))(Make(), rows=1, columns=1, dtype="float32")["weight"]
        is None
    )
    rows = Signature("indices: [...] index", "codes: [...] int8", leading="count")
    found = rows.inputs(indices=integers(3, "most"))(Make(), count=50, most=5)
    assert found["indices"].dtype == torch.int64
    assert set(found["indices"].tolist()) == {3, 4}
    assert found["codes"].dtype == torch.int8


def test_work_counts_every_tensor_once() -> None:
    work = NORM.work(vector_flops(3.0, "rows", "columns"))(rows=5, columns=8, dtype="bfloat16")
    assert work.flops == {"vector_fp32": 120.0}
    assert work.bytes_read == 2 * (5 * 8 + 8 + 5 * 2)
    assert work.bytes_written == 2 * 5 * 8
    without = NORM.work(vector_flops(3.0, "rows"))(
        rows=5, columns=8, dtype="bfloat16", weight=False
    )
    assert without.bytes_read == 2 * (5 * 8 + 5 * 2)


def test_a_size_can_name_a_dtype_that_is_an_argument() -> None:
    inputs = Signature("x: [rows, columns] float").inputs(options={"to": "dtype"})
    given = inputs(Make(), rows=2, columns=3, dtype="bfloat16", to="int8", group=32)
    assert (given["x"].dtype, given["dtype"], given["group"]) == (torch.bfloat16, torch.int8, 32)
    assert set(inputs(Make(), rows=2, columns=3)) == {"x"}


def test_work_of_streamed_tensors() -> None:
    work = streamed(2, 1, 3.0, "m n")(m=4, n=5, dtype="float16", flag=True)
    assert work.flops == {"vector_fp32": 60.0}
    assert (work.bytes_read, work.bytes_written) == (80, 40)


def test_rows_are_copied_only_where_columns_are_apart() -> None:
    x = torch.empty(2, 3, 8)
    assert rows_of(x).data_ptr() == x.data_ptr()
    assert rows_of(x[..., :5]).stride() == (8, 1)
    assert rows_of(x.mT).stride() == (3, 1)


def test_results_are_made_from_what_is_bound() -> None:
    given = tensors()
    y = NORM.empty(given, NORM.check("norm", given))
    assert (tuple(y.shape), y.dtype) == ((2, 3, 10), torch.float32)


def test_the_page_lists_arguments_and_results() -> None:
    assert NORM.rows() == [
        ("x", "[..., columns]", "float"),
        ("weight?", "[columns]", "float"),
        ("scale", "[..., cdiv(columns, 4)]", "that of x"),
        ("→ y", "[..., columns]", "that of x"),
    ]


@NORM.checked
def scaled_rows(x, weight=None, scale=None):
    return x


def scaled_rows_reference(x, weight=None, scale=None):
    return x


def test_an_operator_takes_reference_and_tensors_from_its_call() -> None:
    known: dict[str, Any] = {"call": scaled_rows, "cases": (), "shapes": ()}
    found = Operator(summary="rows", flops=vector_flops(1.0), **known)
    assert found.reference is scaled_rows_reference
    assert found.tensors is NORM
    assert Operator(summary="rows", reference=max, work=max, inputs=max, **known).reference is max
    with pytest.raises(UsageError, match="other_name has no function other_name_reference"):
        Operator(summary="rows", name="other_name", **known)


@pytest.mark.parametrize(
    "line", ["x", "x: columns", "x: [a, ...", "x: [..., ...]", "x: [a b] float"]
)
def test_a_line_that_is_no_signature(line: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        TensorSpec.parse(line)
